"""Value vectors: what a layer's attention takes over from each position, f_h(x_l) with the output projection applied.

The output of a layer's attention is linear in its weights,

    o_q = o⁰_q + Σ_h Σ_l α_{h,q,l} f_h(x_l)

(Kobayashi et al. 2020, Eq. 5, with W_O inside f). A model of ours states its value vectors. Of any other model they are
read off: where every position of one head attends to itself alone, and nothing else gets weight, o − o⁰ is f_h(x_l) at
each position. That works for every architecture whose attention can be replaced, and is checked by the equation.
"""

from contextlib import suppress
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attribution.interface import LONG, PassageBatch, Subject
from heedful.attribution.network import Network
from heedful.attribution.taps import Tap

LINEAR = 1e-3  # largest error of the equation, as a share of the largest contribution
PRODUCTS = 1 << 24  # numbers that norms of contributions are computed from at once
STEPS = 24  # results after the softmax among which the output of attention is looked for


Entered = tuple[Float[Tensor, "B H Q L"], Float[Tensor, "B L S"]]  # a layer's attention, and the states that it reads


def value_vectors(
    subject: Subject, batch: PassageBatch, layer: int, entered: Entered | None = None
) -> Float[Tensor, "B H L D"] | None:
    """f_h(x_l) of a layer for every head and position; None where they are not known.

    That is so where attention cannot be replaced, and in cross-attention of other people's models. entered: the layer's
    `Subject.entered`, if it is known.
    """
    network, parts = subject.network, subject.network.parts
    if not states_values(network):
        return _read_off(subject, batch, layer, entered) if network.can_change else None
    embedded = network.embed(batch.pieces)
    if parts is not None and parts.values is not None:
        return parts.values(parts.encode(embedded, batch.mask, batch.before))
    stated: Tensor = network.values(layer, embedded)  # type: ignore[attr-defined]
    return stated


def states_values(network: Network) -> bool:
    """Whether a network states its value vectors: through its parts, or by a function `values(layer, embedded)`."""
    by_parts = network.parts is not None and network.parts.values is not None
    return by_parts or getattr(network, "values", None) is not None


class _SeenEnoughError(Exception):
    """Ends a run whose further results are not needed."""


def _read_off(subject: Subject, batch: PassageBatch, layer: int, entered: Entered | None) -> Tensor | None:
    alpha, own = entered or subject.entered(batch, layer)
    B, H, Q, L = alpha.shape
    if Q != L:
        return None
    resumes = subject.resumes_at(layer)
    # What the layer computes before its softmax is the same in every run; of a long text it would take much memory.
    remembered: dict[nn.Module, Any] | None = {} if resumes and L <= LONG else None

    def states(weights: Tensor, kept: range) -> list[Tensor]:
        """The results with three axes after this layer's softmax, where its weights are these."""
        seen: list[Tensor] = []
        start = [-1]

        def change(number: int, given: Tensor) -> Tensor:
            if number != layer:
                return given
            start[0] = 0
            return weights

        def record(number: int, result: Tensor) -> Tensor:
            if start[0] >= 0:
                if start[0] in kept:
                    seen.append(result.detach())
                start[0] += 1
                if start[0] >= kept.stop:
                    raise _SeenEnoughError
            return result

        with torch.no_grad(), suppress(_SeenEnoughError), Tap(record, "states"):
            if resumes:  # the layers below are not run again
                subject.resume(batch, layer, own, change, remembered, everywhere=True)
            else:
                subject.run(batch, change=change, finite=False)
        return seen

    first = range(STEPS)
    if remembered is not None:
        states(alpha, first)  # what is remembered is no longer computed, nor seen: in all runs that are compared
    nothing, half, whole = (states(share * alpha, first) for share in (0.0, 0.5, 1.0))
    place, goes_on = None, False
    for k, (none, some, everything) in enumerate(zip(nothing, half, whole, strict=True)):
        added, halved, of_pieces = everything - none, some - none, everything.shape[:2] == (B, L)
        if of_pieces:
            added, halved = added[batch.mask], halved[batch.mask]
        depends = bool(added.any())
        if of_pieces and not _close(halved, added / 2, added):
            goes_on = True
            break
        if depends and of_pieces:
            place, goes_on = k, k + 1 == STEPS
        else:
            goes_on = goes_on or depends
    if place is None:
        return None
    if not goes_on:  # what attention reads is multiplied by 0
        return torch.zeros(B, H, L, 1, dtype=torch.float64, device=alpha.device)
    itself, only = torch.eye(L, dtype=alpha.dtype, device=alpha.device).expand(B, L, L), range(place, place + 1)
    vectors = []
    for head in range(H):
        weights = torch.zeros_like(alpha)
        weights[:, head] = itself
        vectors.append((states(weights, only)[0] - nothing[place]).double())
    found = torch.stack(vectors, dim=1)
    summed, added = torch.einsum("bhql,bhld->bqd", alpha.double(), found), whole[place] - nothing[place]
    return found if _close(summed[batch.mask], added[batch.mask], added[batch.mask]) else None


def _close(found: Tensor, expected: Tensor, size: Tensor) -> bool:
    """Whether two results are equal up to rounding, by the size of the largest contribution."""
    if not size.numel():
        return True
    error, largest = (found.double() - expected.double()).abs().max(), size.double().abs().max()
    return bool(torch.isfinite(largest)) and bool(error <= LINEAR * largest)


def contribution_norms(alpha: Float[Tensor, "B H Q L"], vectors: Float[Tensor, "B H L D"]) -> Float[Tensor, "B Q L"]:
    """‖Σ_h α_{h,q,l} f_h(x_l)‖₂ of every pair of positions; differentiable in α.

    >>> alpha = torch.tensor([[[[0.9, 0.1]]]])
    >>> contribution_norms(alpha, torch.tensor([[[[0.0, 0.0], [3.0, 4.0]]]]))[0, 0].round(decimals=3)
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    f = vectors.double()
    products = torch.einsum("bhld,bkld->bhkl", f, f)
    at_once = max(1, PRODUCTS // products.numel())  # rows: every pair of heads has a product at every place
    squares = torch.cat(
        [
            torch.einsum("bhql,bkql,bhkl->bql", weights, weights, products)
            for weights in map(Tensor.double, torch.split(alpha, at_once, dim=2))
        ],
        dim=1,
    )
    none = squares <= 0  # where the gradient of a square root is not finite
    return torch.where(none, 0.0, torch.where(none, 1.0, squares).sqrt())
