"""Gradient importance of words and hidden states (meister2021 §3), and integrated gradients.

    g_ŷ(x)_i = ‖∂ŷ/∂e_i‖₂           (Eq. 4; of the hidden states, g_ŷ(I): h for e)
    g_{h_p}(x)_i = ‖∂‖h_p‖₂/∂e_i‖₂    (Eq. 5)

ŷ is the probability of a passage's target. Rows are summed over the pieces of a word and not yet normalised; see
`attention_maps.shares`. They have the model's precision: below about 1e-7, a float32 model's differences are rounding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vector_norm

from heedful.attribution import lstm_fast_path
from heedful.attribution.interface import Numbers, Passage, PassageBatch, Subject, numbers, target_probability, within
from heedful.attribution.taps import find_states
from heedful.errors import DataError, MissingExtraError


@dataclass(frozen=True)
class GradientImportances:
    """One array for each passage: of inputs (words,), of hidden states (layers, words).

    g_y_x, g_y_h: norms of the gradient, Σ ‖∂ŷ/∂e‖₂. x_product, h_product: gradient × input, Σ e · ∂ŷ/∂e, with its sign.
    """

    g_y_x: list[Numbers]
    x_product: list[Numbers]
    g_y_h: list[Numbers]
    h_product: list[Numbers]


def gradients(subject: Subject, passages: Sequence[Passage], *, attach: bool = True) -> GradientImportances:
    """All gradients of ŷ, by one backward pass. A translator's decoder state does not depend on its hidden states.

    `attach=False` keeps the attention weights constant in the gradient (Jain & Wallace 2019).
    """
    if not attach:
        subject.require_change("attach=False")

    def of_batch(batch: PassageBatch) -> list[Numbers]:
        embedded = subject.network.embed(batch.pieces).detach().requires_grad_()
        output = subject.run(batch, embedded, None if attach else lambda layer, alpha: alpha.detach())
        inputs = (embedded, *output.hidden)
        found = gradient_of(target_probability(output.probabilities, batch), inputs)
        pairs = [(vector_norm(g, dim=-1), (values * g).sum(-1)) for values, g in zip(inputs, found, strict=True)]
        return batch.words_of(torch.stack([row for pair in pairs for row in pair], dim=1))

    rows = subject.map(passages, of_batch, gradients=True)
    return GradientImportances(
        [r[0] for r in rows], [r[1] for r in rows], [r[2::2] for r in rows], [r[3::2] for r in rows]
    )


def g_h_x(subject: Subject, passages: Sequence[Passage], layer: int = -1) -> list[Numbers]:
    """The gradient of each hidden state's norm, ‖∂‖h_p‖₂/∂e_i‖₂: a matrix (pieces p, words) for each passage.

    On the fast path, all states of an LSTM layer are computed together. Any other model is run on as many copies of the
    passage as `max_tokens` allows, one copy for each p.
    """
    parts = subject.parts
    if parts is not None and parts.lstm is not None:

        def together(batch: PassageBatch) -> list[Numbers]:
            rows = zip(batch.passages, lstm_fast_path.jacobians(subject, batch), strict=True)
            return [passage.words_of(matrix) for passage, matrix in rows]

        return subject.map(passages, together, gradients=True, at_once=within(lstm_fast_path.ROWS))

    def by_copies(batch: PassageBatch) -> list[Numbers]:
        embedded, L = subject.network.embed(batch.pieces).detach(), batch.pieces.shape[1]
        norms = []
        for positions in torch.split(torch.arange(L, device=embedded.device), max(1, subject.max_tokens // 4 // L)):
            copies = embedded.repeat(len(positions), 1, 1).requires_grad_()
            hidden = subject.run(batch.take(torch.zeros_like(positions)), copies).hidden
            if not hidden:
                raise DataError("gradients of hidden states need a network that returns them; this one has none")
            states = hidden[layer][torch.arange(len(positions), device=embedded.device), positions]
            (gradient,) = gradient_of(vector_norm(states, dim=-1), (copies,))
            norms.append(vector_norm(gradient, dim=-1))
        return [batch.passages[0].words_of(numbers(torch.cat(norms)))]

    return subject.map(passages, by_copies, gradients=True, at_once=lambda length: 1)


def gradient_of(values: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """∂(sum of values)/∂input for each input; 0 where there is no dependence.

    >>> x, unused = torch.ones(2, requires_grad=True), torch.ones(1)
    >>> gradient_of(x**2, (x, unused))
    [tensor([2., 2.]), tensor([0.])]
    """
    linked = [values.requires_grad and tensor.requires_grad for tensor in inputs]
    wanted = [tensor for tensor, is_linked in zip(inputs, linked, strict=True) if is_linked]
    found = iter(torch.autograd.grad(values.sum(), wanted, materialize_grads=True) if wanted else ())
    return [
        next(found) if is_linked else torch.zeros_like(tensor) for tensor, is_linked in zip(inputs, linked, strict=True)
    ]


def can_integrate() -> bool:
    """Whether captum, which computes integrated gradients, is installed."""
    try:
        return find_spec("captum.attr") is not None
    except (ImportError, ValueError):
        return False


def captum_missing() -> str:
    """The notice for an audit without captum.

    >>> captum_missing().startswith("integrated gradients were left out: ")
    True
    """
    return f"integrated gradients were left out: {MissingExtraError('captum', 'hf', 'taking them')}"


def integrated_gradients(subject: Subject, passages: Sequence[Passage], steps: int = 50) -> list[Numbers]:
    """∫ e · ∂ŷ/∂e from embeddings of 0 to a passage's own (Sundararajan et al. 2017), summed into words. Signed.

    A row sums to ŷ − ŷ(0), up to the error of `steps` points of Gauss–Legendre quadrature.
    """

    def of_batch(batch: PassageBatch) -> list[Numbers]:
        end = subject.network.embed(batch.pieces).detach()
        return _integrate(subject, batch, end, torch.zeros_like(end), steps, subject.run)

    return subject.map(passages, of_batch, gradients=True)


def hidden_integrated_gradients(
    subject: Subject, passages: Sequence[Passage], layer: int, steps: int = 50
) -> list[Numbers] | None:
    """∫ (h − h⁰) · ∂ŷ/∂h up to the states h that a layer's attention reads, summed into words. Signed.

    h⁰ are the states for embeddings of 0, where the integrals of inputs start too: no input gives states of 0, and
    layer norms are not continuous there. A row sums to ŷ − ŷ(h⁰). None where the network's states cannot be replaced.
    """

    def of_batch(batch: PassageBatch) -> list[Numbers | None]:
        embedded = subject.network.embed(batch.pieces).detach()
        place = find_states(lambda given: subject.run(batch, given).hidden[layer], embedded)
        if place is None:
            return [None] * len(batch.passages)
        with torch.no_grad():
            start = subject.run(batch, torch.zeros_like(embedded)).hidden[layer]

        def run(some: PassageBatch, states: Tensor) -> Any:
            return place.put(
                lambda given: subject.run(some, given), subject.network.embed(some.pieces).detach(), states
            )

        return [*_integrate(subject, batch, place.states, start, steps, run)]

    rows = subject.map(passages, of_batch, gradients=True)
    known = [row for row in rows if row is not None]
    return known if len(known) == len(passages) else None


def _integrate(
    subject: Subject,
    batch: PassageBatch,
    end: Tensor,
    start: Tensor,
    steps: int,
    run: Callable[[PassageBatch, Tensor], Any],
) -> list[Numbers]:
    """captum's integral of (end − start) · ∂ŷ/∂values; run: the network's output for these values."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise MissingExtraError("captum", "hf", "integrated gradients") from None

    def predict(values: Tensor, row: Tensor) -> Tensor:
        some = batch.take(row)
        y = target_probability(run(some, values).probabilities, some)
        depends = y.requires_grad or not values.requires_grad
        return y if depends else y + 0 * values.sum((1, 2))  # captum asks for the gradient even where there is none

    integral: Tensor = IntegratedGradients(predict).attribute(
        end.requires_grad_(),
        baselines=start,
        additional_forward_args=(torch.arange(len(end), device=end.device),),
        n_steps=steps,
        internal_batch_size=max(len(end), max(1, subject.max_tokens // 4) // end.shape[1]),
    )
    return batch.words_of(integral.sum(-1))
