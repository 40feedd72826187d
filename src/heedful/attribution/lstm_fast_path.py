"""Fast path of one-layer LSTMs: leave-one-out and Jacobians of whole texts, many variants of a text at a time.

Leaving out token i changes no forward state before i and no backward state after it, and from there on all variants of
a text read the same tokens. So they advance together, with one matrix product per token, and the input's share of the
gates is computed once. The Jacobian of every state runs the same recurrence backwards over one set of stored gates.

    i, f, o = σ(·), g = tanh(·) of W_ih x + b_ih + W_hh h + b_hh;   c ← f c + i g;   h ← o tanh c

Arrays are (L, B, ·), position first. tanh x is computed as 2σ(2x) − 1: three times as fast here, and as exact as
numbers near 1 can be.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attribution.interface import Numbers, PassageBatch, Subject, numbers, target_probability
from heedful.attribution.network import LSTMLayer, ModelParts
from heedful.errors import ConfigError
from heedful.models.recurrence import is_plain

ROWS = 512  # variants that advance together: enough rows for a fast matrix product, few enough to stay in the cache
CHECK_EVERY = 16  # steps between two checks whether a variant still differs from the full text


def deletions_at_once(subject: Subject, length: int) -> int:
    """How many texts of a length to give to `deletions` at once."""
    return max(1, min(ROWS, subject.max_tokens // length) // length)


def deletions(subject: Subject, batch: PassageBatch) -> Float[Tensor, "B L"]:
    """ŷ − ŷ_{−i} where token i is deleted; 0 where it is the only one."""
    parts, layer, passes, hidden = _encoded(subject, batch)
    states = layer.finish(hidden, [direction.last for direction in passes], batch.before)
    full = target_probability(parts.output(states, batch.mask).probabilities, batch)
    B, L, _ = hidden.shape
    difference = torch.zeros_like(batch.mask, dtype=full.dtype)
    at_once = max(1, min(ROWS, subject.max_tokens // L) // B)
    for first in range(0, L, at_once):
        end = min(L, first + at_once)
        variants = hidden.repeat(end - first, 1, 1, 1)
        last = []
        for direction, columns in zip(passes, variants.chunk(len(passes), dim=-1), strict=True):
            h, c = leave_one_out(direction, first, end, columns)
            last.append((h.flatten(0, 1), c.flatten(0, 1)))
        keep = batch.mask.repeat(end - first, 1, 1)
        keep[torch.arange(end - first), :, torch.arange(first, end)] = False
        keep |= ~keep.any(-1, keepdim=True)  # a row of the only token is not used, but every row needs a position
        some = batch.take(torch.arange(B, device=hidden.device).repeat(end - first))
        states = layer.finish(variants.flatten(0, 1), last, some.before)
        without = target_probability(parts.output(states, keep.flatten(0, 1)).probabilities, some).view(-1, B)
        difference[:, first:end] = (full - without).t()
    return difference * (batch.mask.sum(1, keepdim=True) > 1)


def jacobians(subject: Subject, batch: PassageBatch) -> list[Numbers]:
    """‖∂‖h_p‖₂/∂e_i‖₂: a matrix (p, i) for each text."""
    _, layer, passes, hidden = _encoded(subject, batch, keep_gates=True)
    hidden.requires_grad_()
    states = layer.finish(hidden, [direction.last for direction in passes], batch.before)
    (start,) = torch.autograd.grad(torch.linalg.vector_norm(states.hidden, dim=-1).sum(), hidden)
    start = start.transpose(0, 1).contiguous()
    L, B, _ = start.shape
    results = [np.empty((n, n)) for n in batch.mask.sum(1).tolist()]
    at_once = max(1, ROWS // B)
    for first in range(0, L, at_once):
        norms = numbers(adjoint_norms(passes, start, first, min(L, first + at_once)))
        for b, result in enumerate(results):
            n = len(result)
            result[first : first + at_once] = norms[: max(0, n - first), b, :n]
    return results


def _encoded(
    subject: Subject, batch: PassageBatch, *, keep_gates: bool = False
) -> tuple[ModelParts, LSTMLayer, "list[Pass]", Float[Tensor, "B L D"]]:
    """The model's parts and its LSTM layer, one pass for each direction, and their states side by side."""
    parts, embedded = subject.parts, subject.network.embed(batch.pieces).detach()
    assert parts is not None
    assert parts.lstm is not None
    directions = [(parts.lstm.forward, False), (parts.lstm.backward, True)]
    passes = [
        run(lstm, embedded, batch.mask, reverse=reverse, keep_gates=keep_gates)
        for lstm, reverse in directions
        if lstm is not None
    ]
    hidden = torch.cat([direction.after[0] for direction in passes], dim=-1).transpose(0, 1).contiguous()
    return parts, parts.lstm, passes, hidden


@dataclass(frozen=True)
class Pass:
    """One direction of one layer over texts: the inputs' share of the gates, and the state before and after each token.

    `gates` holds i, f, g, o of each token if they were to be kept.
    """

    lstm: nn.LSTM
    reverse: bool
    inputs: Float[Tensor, "L B G"]
    over: Float[Tensor, "H G"]
    before: tuple[Float[Tensor, "L B H"], Float[Tensor, "L B H"]]
    after: tuple[Float[Tensor, "L B H"], Float[Tensor, "L B H"]]
    last: tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]
    mask: Bool[Tensor, "L B"]
    gates: Float[Tensor, "L B G"] | None = None


@torch.no_grad()
def run(
    lstm: nn.LSTM,
    embedded: Float[Tensor, "B L E"],
    mask: Bool[Tensor, "B L"],
    *,
    reverse: bool = False,
    keep_gates: bool = False,
) -> Pass:
    """Read each text from its first token to its last, or the other way; padding stands on the right."""
    if not is_plain(lstm):
        raise ConfigError("the LSTM fast path supports only one layer and one direction without projection")
    H, (B, L, _) = lstm.hidden_size, embedded.shape
    real = mask.t().contiguous()
    inputs, over = _input_gates(lstm, embedded)
    before, after = ([embedded.new_zeros(L, B, H) for _ in "hc"] for _ in range(2))
    kept = embedded.new_empty(L, B, 4 * H) if keep_gates else None
    h, c = (embedded.new_zeros(B, H) for _ in "hc")
    full = real.all(1).tolist()
    for j in reversed(range(L)) if reverse else range(L):
        before[0][j], before[1][j] = h, c
        gates = torch.addmm(inputs[j], h, over)
        h = _step(gates, c, torch.empty_like(h))
        if kept is not None:
            kept[j] = gates
        if not full[j]:  # padding leaves the state as it is: 0 before a reversed text, the last one after a text
            here = real[j][:, None]
            h, c = torch.where(here, h, before[0][j]), torch.where(here, c, before[1][j])
        after[0][j], after[1][j] = h, c
    return Pass(lstm, reverse, inputs, over, (before[0], before[1]), (after[0], after[1]), (h, c), real, kept)


@torch.no_grad()
def leave_one_out(
    direction: Pass, first: int, end: int, hidden: Float[Tensor, "V B L H"]
) -> tuple[Float[Tensor, "V B H"], Float[Tensor, "V B H"]]:
    """States without token i, for i from `first` to `end`, written into `hidden`; and the state after the last token.

    `hidden` must hold the full text's states; what a deletion does not change stays. A variant's value at its own
    position i has no meaning. A variant that differs from the full text by no more than a few units of rounding has
    converged and is not computed further.
    """
    (L, B, H), V = direction.before[0].shape, end - first
    h, c = (state[first:end].clone() for state in direction.before)
    full = direction.mask.all(1).tolist()
    buffer = h.new_empty(V * B, 4 * H)
    low, high = 0, V
    for count, j in enumerate(reversed(range(L)) if direction.reverse else range(L)):
        rows = slice(max(j + 1 - first, 0), high) if direction.reverse else slice(low, min(j - first, V))
        v = rows.stop - rows.start
        if v <= 0:
            continue
        gates = torch.mm(h[rows].view(v * B, H), direction.over, out=buffer[: v * B]).view(v, B, 4 * H)
        gates += direction.inputs[j]
        if full[j]:
            _step(gates, c[rows], h[rows])
        else:
            here, cell = direction.mask[j][:, None], c[rows].clone()
            new = _step(gates, cell, torch.empty_like(cell))
            h[rows], c[rows] = torch.where(here, new, h[rows]), torch.where(here, cell, c[rows])
        hidden[rows, :, j] = h[rows]
        if count % CHECK_EVERY == CHECK_EVERY - 1:
            gone = _converged(
                (h[rows], c[rows]), (direction.after[0][j], direction.after[1][j]), from_end=direction.reverse
            )
            forgotten = slice(high - gone, high) if direction.reverse else slice(low, low + gone)
            h[forgotten], c[forgotten] = direction.last
            low, high = (low, high - gone) if direction.reverse else (low + gone, high)
    return h, c


@torch.no_grad()
def adjoint_norms(passes: list[Pass], start: Float[Tensor, "L B D"], first: int, end: int) -> Float[Tensor, "P B L"]:
    """‖start_pᵀ ∂h_p/∂e_i‖₂ for p from `first` to `end` and every i: norms of vector-Jacobian products.

    Adjoints below the smallest normal number count as 0 and are not computed further.
    """
    L, B, _ = start.shape
    norms = start.new_zeros(end - first, B, L)
    at_own = start.new_zeros(end - first, B, passes[0].lstm.input_size)  # where both directions meet
    for direction, wanted in zip(passes, start.chunk(len(passes), dim=-1), strict=True):
        for i, rows, gradient in _adjoints(direction, wanted, first, end):
            norms[rows, :, i] = torch.linalg.vector_norm(gradient, dim=-1)
            own = i - first
            if rows.start <= own < rows.stop:
                at_own[own] += gradient[own - rows.start]
    p = torch.arange(first, end, device=start.device)
    norms[p - first, :, p] = torch.linalg.vector_norm(at_own, dim=-1)
    return norms


def _adjoints(
    direction: Pass, start: Float[Tensor, "L B H"], first: int, end: int
) -> Iterator[tuple[int, slice, Float[Tensor, "P B E"]]]:
    """(i, rows, ∂/∂e_i of those rows), from each state backwards along its direction.

    The gates' adjoints of several steps are collected until there are enough rows for a fast product with W_ih.
    """
    assert direction.gates is not None
    (L, B, H), P = direction.before[0].shape, end - first
    to_input, to_state = (weight.detach() for weight in direction.lstm.all_weights[0][:2])
    i_, f, g, o = direction.gates.chunk(4, dim=-1)
    tanh = torch.tanh(direction.after[1])
    # The gates' adjoints are those of c and h times these; part of h's goes through c.
    by_c = torch.stack([g * i_ * (1 - i_), direction.before[1] * f * (1 - f), i_ * (1 - g * g)], dim=2)
    by_h, c_of_h = tanh * o * (1 - o), o * (1 - tanh * tanh)
    dh, dc = start[first:end].clone(), torch.zeros_like(start[first:end])
    waiting = dh.new_empty(max(P * B, ROWS), 4, H)
    steps: list[tuple[int, slice]] = []
    used, low, high = 0, 0, P
    for count, i in enumerate(range(first, L) if direction.reverse else range(end - 1, -1, -1)):
        rows = slice(low, min(i - first + 1, P)) if direction.reverse else slice(max(i - first, 0), high)
        v = (rows.stop - rows.start) * B
        if v <= 0:
            break
        if used + v > len(waiting):
            yield from _split(steps, waiting[:used].flatten(1) @ to_input, B)
            steps, used = [], 0
        gates = waiting[used : used + v]
        dc[rows].addcmul_(dh[rows], c_of_h[i])
        torch.mul(dc[rows].unsqueeze(2), by_c[i], out=gates.view(-1, B, 4, H)[:, :, :3])
        torch.mul(dh[rows], by_h[i], out=gates.view(-1, B, 4, H)[:, :, 3])
        torch.mm(gates.flatten(1), to_state, out=dh[rows].view(v, H))
        dc[rows] *= f[i]
        steps.append((i, rows))
        used += v
        if count % CHECK_EVERY == CHECK_EVERY - 1:
            gone = _vanished(dh[rows], dc[rows], from_end=not direction.reverse)
            low, high = (low + gone, high) if direction.reverse else (low, high - gone)
    yield from _split(steps, waiting[:used].flatten(1) @ to_input, B)


def _split(steps: list[tuple[int, slice]], gradients: Tensor, B: int) -> Iterator[tuple[int, slice, Tensor]]:
    used = 0
    for i, rows in steps:
        v = (rows.stop - rows.start) * B
        yield i, rows, gradients[used : used + v].view(-1, B, gradients.shape[1])
        used += v


def _input_gates(lstm: nn.LSTM, embedded: Tensor) -> tuple[Tensor, Tensor]:
    """The inputs' share of the gates (L, B, 4H) and W_hhᵀ, both with g's part doubled for σ."""
    H = lstm.hidden_size
    scale = embedded.new_ones(4 * H)
    scale[2 * H : 3 * H] = 2
    W_ih, W_hh, *biases = (weight.detach() for weight in lstm.all_weights[0])
    B, L, E = embedded.shape
    # One product of two matrices: of a transposed view torch makes L products of few rows, up to 3 times as slow.
    inputs = (embedded.transpose(0, 1).reshape(L * B, E) @ W_ih.t()).view(L, B, -1)
    if lstm.bias:
        inputs += biases[0] + biases[1]
    return inputs.mul_(scale), (W_hh.t() * scale).contiguous()


def _step(
    gates: Float[Tensor, "*rows G"], c: Float[Tensor, "*rows H"], h: Float[Tensor, "*rows H"]
) -> Float[Tensor, "*rows H"]:
    """One token: activates the gates, updates the cell and writes the new state, all in place."""
    i, f, g, o = gates.sigmoid_().chunk(4, dim=-1)
    g.mul_(2).sub_(1)
    c.mul_(f).addcmul_(i, g)
    return torch.mul(c, 2, out=h).sigmoid_().mul_(2).sub_(1).mul_(o)


def _converged(states: tuple[Tensor, Tensor], full: tuple[Tensor, Tensor], *, from_end: bool) -> int:
    """How many variants, from the oldest on, differ from the full text by rounding alone."""
    differs = torch.zeros(len(states[0]), dtype=torch.bool, device=states[0].device)
    for state, reference in zip(states, full, strict=True):
        tolerance = 4 * torch.finfo(state.dtype).eps * max(1.0, float(reference.abs().max()))
        differs |= ~((state - reference).abs().amax((1, 2)) <= tolerance)  # NaN differs
    return _run_of_false(differs, from_end)


def _vanished(dh: Tensor, dc: Tensor, *, from_end: bool) -> int:
    size = torch.maximum(dh.abs().amax((1, 2)), dc.abs().amax((1, 2)))
    return _run_of_false(~(size < torch.finfo(dh.dtype).tiny), from_end)  # NaN has not vanished


def _run_of_false(flags: Tensor, from_end: bool) -> int:
    true = (flags.flip(0) if from_end else flags).nonzero()
    return int(true[0]) if len(true) else len(flags)
