"""Which tokens, and which hidden states, does a prediction depend on? Gradients and leave-one-out (meister2021 §3).

    g_ŷ(x)_i = ‖∂ŷ/∂e_i‖₂ / Σ_j ‖∂ŷ/∂e_j‖₂      (Eq. 4; of the hidden states, g_ŷ(I): h for e)
    g_{h_p}(x)_i: the same of ‖h_p‖₂ for ŷ           (Eq. 5)
    D_ŷ(x)_i = |ŷ − ŷ_{−i}| / Σ_j |ŷ − ŷ_{−j}|      (Eq. 6; D_ŷ(I): the hidden state, not the token, is left out)

ŷ is the one probability a model gives, or, where it gives one per class, that of the class predicted for the whole text
(or of `targets`). Masked tokens are as good as removed, and the model is left exactly as it was found. Results have the
model's precision: below about 1e-7, a float32 model's differences are rounding.

Memory is bounded by `max_tokens`, the padded tokens held at once; a single text that is longer is held alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.attribution import lstm_fast_path as recurrent
from heedful.attribution.forward import (
    Forward,
    Importance,
    Mask,
    Part,
    States,
    Targets,
    TextBatch,
    Tokens,
    normalised,
)
from heedful.data.ragged import Ragged
from heedful.errors import MissingExtraError
from heedful.models.training import undisturbed

MAX_TOKENS = 65_536
MAX_TOKENS_BACKWARD = 16_384  # what waits for its backward pass weighs about four times as much
WAVE = 512  # variants that advance together: enough rows for a fast matrix product, few enough to stay in the cache


def g_y_x(
    forward: Forward,
    tokens: Tokens,
    mask: Mask,
    *,
    attach: bool = True,
    targets: Targets | None = None,
    max_tokens: int = MAX_TOKENS_BACKWARD,
) -> Importance:
    """Gradient importance of the tokens: ‖∂ŷ/∂e_i‖₂, normalised.

    `attach=False` holds the attention weights fixed in the gradient (Jain & Wallace 2019).
    """
    if not attach:
        forward.require_open("attach=False")
    batch = TextBatch.of(forward, tokens, mask, targets)

    def norms(part: Part) -> Tensor:
        embedded = forward.embed(part.tokens).detach().requires_grad_()
        states = forward.encode(embedded, part.mask, part.text)
        chosen = batch.choose(forward.predict(states, part.mask, attach=attach), part.text)
        return _norm(_gradient(chosen, embedded))

    return normalised(batch.gather(norms, _within(max_tokens), gradients=True), batch.lengths)


def g_y_h(
    forward: Forward,
    tokens: Tokens,
    mask: Mask,
    *,
    attach: bool = True,
    targets: Targets | None = None,
    max_tokens: int = MAX_TOKENS_BACKWARD,
) -> Importance:
    """Gradient importance of the hidden states: ‖∂ŷ/∂h_i‖₂, normalised; a decoder's state counts as given."""
    forward.require_open("g_y_h")
    batch = TextBatch.of(forward, tokens, mask, targets)

    def norms(part: Part) -> Tensor:
        with torch.no_grad():
            states = forward.encode(forward.embed(part.tokens), part.mask, part.text).detached()
        hidden = states.hidden.requires_grad_()
        chosen = batch.choose(forward.predict(States(hidden, states.aside), part.mask, attach=attach), part.text)
        return _norm(_gradient(chosen, hidden))

    return normalised(batch.gather(norms, _within(max_tokens), gradients=True), batch.lengths)


def g_h_x(forward: Forward, tokens: Tokens, mask: Mask, *, max_tokens: int = MAX_TOKENS_BACKWARD) -> Importance:
    """Gradient importance of the tokens for each hidden state: ‖∂‖h_p‖₂/∂e_i‖₂, normalised; a row for each p.

    The rows of text b come after those of the texts before it. An LSTM layer whose parts are known runs all adjoints
    as one wave; any other encoder reads as many copies of the text as memory allows, one for each p.
    """
    forward.require_open("g_h_x")
    batch = TextBatch.of(forward, tokens, mask)
    rows: list[NDArray[np.float64]] = [np.empty(0)] * len(batch.lengths)
    wave = forward.lstm is not None
    with undisturbed(forward.modules), torch.enable_grad():
        for part in batch.parts(_within(WAVE) if wave else _one):
            jacobians = _jacobian_wave(forward, part) if wave else [_jacobian(forward, part, max_tokens)]
            for b, jacobian in zip(part.text.tolist(), jacobians, strict=True):
                rows[b] = jacobian.ravel()
    return normalised(np.concatenate(rows) if rows else np.empty(0), np.repeat(batch.lengths, batch.lengths))


def d_y_x(
    forward: Forward, tokens: Tokens, mask: Mask, *, targets: Targets | None = None, max_tokens: int = MAX_TOKENS
) -> Importance:
    """Leave-one-out importance of the tokens: token i is deleted and the rest encoded anew.

    An LSTM layer whose parts are known reuses the states that a deletion does not reach, and advances the variants of
    a text as one wave; any other encoder reads every shortened text, as many at a time as memory allows.
    """
    batch = TextBatch.of(forward, tokens, mask, targets)

    wave = forward.lstm is not None
    deletions = _deletion_wave if wave else _deletions
    texts = (lambda longest: max(1, min(WAVE, max_tokens // longest) // longest)) if wave else _within(max_tokens)
    values = batch.gather(lambda part: deletions(forward, batch, part, max_tokens), texts, gradients=False)
    return normalised(values, batch.lengths)


def d_y_h(
    forward: Forward, tokens: Tokens, mask: Mask, *, targets: Targets | None = None, max_tokens: int = MAX_TOKENS
) -> Importance:
    """Leave-one-out importance of the hidden states: position i is masked and the remaining scores projected anew."""
    forward.require_open("d_y_h")
    batch = TextBatch.of(forward, tokens, mask, targets)

    def differences(part: Part) -> Tensor:
        states = forward.encode(forward.embed(part.tokens), part.mask, part.text)
        scores = forward.score(states)
        whole = batch.choose(forward.read(states, forward.project(scores, part.mask)), part.text)

        def without(row: Tensor, keep: Tensor) -> Tensor:
            alpha = forward.project(scores[row], keep)
            return batch.choose(forward.read(states.rows(row), alpha), part.text[row])

        return _each_without(part, whole, without, max_tokens)

    return normalised(batch.gather(differences, _within(min(WAVE, max_tokens)), gradients=False), batch.lengths)


def _within(limit: int) -> Callable[[int], int]:
    """How many texts of n tokens stay within a limit; at least one."""
    return lambda longest: max(1, limit // longest)


def _one(longest: int) -> int:
    return 1


def _norm(vectors: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows"]:
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return norms


def _gradient(of: Tensor, wanted: Tensor) -> Tensor:
    """∂(sum)/∂wanted; 0 where the one does not depend on the other."""
    if not of.requires_grad:
        return torch.zeros_like(wanted)
    (gradient,) = torch.autograd.grad(of.sum(), wanted, allow_unused=True)
    return torch.zeros_like(wanted) if gradient is None else gradient


def _each_without(
    part: Part, whole: Tensor, without: Callable[[Tensor, Tensor], Tensor], max_tokens: int
) -> Float[Tensor, "B L"]:
    """|ŷ − ŷ_{−i}| for every real position i, some variants at a time; `without(rows, what they keep)` gives ŷ_{−i}."""
    difference = torch.zeros(part.mask.shape, dtype=whole.dtype, device=whole.device)
    possible = part.mask & (part.mask.sum(1, keepdim=True) > 1)
    at_once = max(1, max_tokens // part.mask.shape[1])
    for chunk in torch.split(possible.nonzero(), at_once) if possible.any() else ():
        row, i = chunk.unbind(1)
        keep = part.mask[row]
        keep[torch.arange(len(row), device=row.device), i] = False
        difference[row, i] = (whole[row] - without(row, keep)).abs()
    return difference


def _deletions(forward: Forward, batch: TextBatch, part: Part, max_tokens: int) -> Tensor:
    def predict(tokens: Tensor, mask: Tensor, text: Tensor) -> Tensor:
        states = forward.encode(forward.embed(tokens), mask, text)
        return batch.choose(forward.predict(states, mask), text)

    def without(row: Tensor, keep: Tensor) -> Tensor:
        left = torch.argsort((~keep).to(torch.uint8), dim=1, stable=True)[:, :-1]
        return predict(part.tokens[row].gather(1, left), keep.gather(1, left), part.text[row])

    return _each_without(part, predict(part.tokens, part.mask, part.text), without, max_tokens)


def _deletion_wave(forward: Forward, batch: TextBatch, part: Part, max_tokens: int) -> Tensor:
    """The same for one LSTM layer, whose states are not computed twice (`recurrent.leave_one_out`)."""
    reads = _read(forward, part)
    hidden = torch.cat([read.after[0] for read in reads], dim=-1).transpose(0, 1).contiguous()
    states = _finish(forward, hidden, [read.last for read in reads], part.text)
    whole = batch.choose(forward.predict(states, part.mask), part.text)
    B, L, _ = hidden.shape
    difference = torch.zeros_like(part.mask, dtype=whole.dtype)
    at_once = max(1, min(WAVE, max_tokens // L) // B)
    for first in range(0, L, at_once):
        end = min(L, first + at_once)
        variants = hidden.repeat(end - first, 1, 1, 1)
        last = []
        for read, columns in zip(reads, variants.chunk(len(reads), dim=-1), strict=True):
            h, c = recurrent.leave_one_out(read, first, end, columns)
            last.append((h.flatten(0, 1), c.flatten(0, 1)))
        keep = part.mask.repeat(end - first, 1, 1)
        keep[torch.arange(end - first), :, torch.arange(first, end)] = False
        keep |= ~keep.any(-1, keepdim=True)  # nobody asks about the only token, but every row needs one
        text = part.text.repeat(end - first)
        states = _finish(forward, variants.flatten(0, 1), last, text)
        without = batch.choose(forward.predict(states, keep.flatten(0, 1)), text).view(-1, B)
        difference[:, first:end] = (without - whole).abs().t()
    return difference * (part.mask.sum(1, keepdim=True) > 1)


def _jacobian(forward: Forward, part: Part, max_tokens: int) -> NDArray[np.float64]:
    """‖∂‖h_p‖/∂e_i‖ of one text, as many p at a time as there may be copies of it."""
    L = part.tokens.shape[1]
    result = np.empty((L, L))
    embedded = forward.embed(part.tokens).detach()
    for positions in torch.split(torch.arange(L, device=embedded.device), max(1, max_tokens // L)):
        copies = embedded.repeat(len(positions), 1, 1).requires_grad_()
        states = forward.encode(copies, part.mask.expand(len(positions), L), part.text.repeat(len(positions)))
        at = states.hidden[torch.arange(len(positions), device=embedded.device), positions]
        gradient = _gradient(_norm(at), copies)
        result[positions.cpu().numpy()] = _norm(gradient).double().cpu().numpy()
    return result


def _jacobian_wave(forward: Forward, part: Part) -> list[NDArray[np.float64]]:
    """The same for one LSTM layer (`recurrent.adjoint_norms`), one matrix for each text."""
    reads = _read(forward, part, keep_gates=True)
    hidden = torch.cat([read.after[0] for read in reads], dim=-1).transpose(0, 1).contiguous().requires_grad_()
    states = _finish(forward, hidden, [read.last for read in reads], part.text)
    start = _gradient(_norm(states.hidden), hidden).transpose(0, 1).contiguous()
    L, B, _ = start.shape
    results = [np.empty((n, n)) for n in part.mask.sum(1).tolist()]
    at_once = max(1, WAVE // B)
    for first in range(0, L, at_once):
        norms = recurrent.adjoint_norms(reads, start, first, min(L, first + at_once)).double().cpu().numpy()
        for b, result in enumerate(results):
            n = len(result)
            result[first : first + at_once] = norms[: max(0, n - first), b, :n]
    return results


def _read(forward: Forward, part: Part, *, keep_gates: bool = False) -> list[recurrent.Pass]:
    assert forward.lstm is not None
    embedded = forward.embed(part.tokens).detach()
    layers = [(forward.lstm.ahead, False), (forward.lstm.back, True)]
    return [
        recurrent.run(lstm, embedded, part.mask, reverse=reverse, keep_gates=keep_gates)
        for lstm, reverse in layers
        if lstm is not None
    ]


def _finish(forward: Forward, hidden: Tensor, last: list[tuple[Tensor, Tensor]], text: Tensor) -> States:
    assert forward.lstm is not None
    return forward.lstm.finish(hidden, last, text)


Predict = Callable[[Tensor, Tensor, Tensor], Tensor]


def gradient_input(
    forward: Forward,
    tokens: Tokens,
    mask: Mask,
    *,
    attach: bool = True,
    targets: Targets | None = None,
    max_tokens: int = MAX_TOKENS_BACKWARD,
) -> Ragged:
    """e_i · ∂ŷ/∂e_i for every token: what ŷ would lose, to first order, if the embedding were 0. Signed."""
    captum = _captum("gradient · input")

    def attribute(predict: Predict, embedded: Tensor, part: Part) -> Tensor:
        found: Tensor = captum.InputXGradient(predict).attribute(
            embedded, additional_forward_args=(part.mask, part.text)
        )
        return found

    return _signed(forward, tokens, mask, attach, targets, max_tokens, attribute)


def integrated_gradients(
    forward: Forward,
    tokens: Tokens,
    mask: Mask,
    *,
    steps: int = 50,
    attach: bool = True,
    targets: Targets | None = None,
    baseline: Callable[[Tensor], Tensor] | None = None,
    max_tokens: int = MAX_TOKENS_BACKWARD,
) -> Ragged:
    """The integral of (e_i − e⁰_i) · ∂ŷ/∂e_i from embeddings e⁰ to the text's own (Sundararajan et al. 2017). Signed.

    A text's row sums to ŷ − ŷ(e⁰), but for the error of `steps` points of Gauss–Legendre quadrature. baseline: e⁰ of
    tokens (B, L), embeddings of 0 unless said.
    """
    captum = _captum("integrated gradients")

    def attribute(predict: Predict, embedded: Tensor, part: Part) -> Tensor:
        found: Tensor = captum.IntegratedGradients(predict).attribute(
            embedded,
            baselines=None if baseline is None else baseline(part.tokens).detach(),
            additional_forward_args=(part.mask, part.text),
            n_steps=steps,
            internal_batch_size=max(len(embedded), max_tokens // embedded.shape[1]),
        )
        return found

    return _signed(forward, tokens, mask, attach, targets, max_tokens, attribute)


def _signed(
    forward: Forward,
    tokens: Tensor,
    mask: Tensor,
    attach: bool,
    targets: Tensor | None,
    max_tokens: int,
    attribute: Callable[[Predict, Tensor, Part], Tensor],
) -> Ragged:
    if not attach:
        forward.require_open("attach=False")
    batch = TextBatch.of(forward, tokens, mask, targets)

    def predict(embedded: Tensor, mask: Tensor, text: Tensor) -> Tensor:
        states = forward.encode(embedded, mask, text)
        y = batch.choose(forward.predict(states, mask, attach=attach), text)
        depends = y.requires_grad or not embedded.requires_grad
        return y if depends else y + 0 * embedded.sum((1, 2))  # captum asks for the gradient even where there is none

    def values(part: Part) -> Tensor:
        embedded = forward.embed(part.tokens).detach()
        with torch.no_grad():
            predict(embedded, part.mask, part.text)  # the class is that of the whole text, not of a point on the way
        return attribute(predict, embedded.requires_grad_(), part).sum(-1)

    flat = batch.gather(values, lambda longest: max(1, max_tokens // longest), gradients=True)
    return Ragged(flat, batch.offsets)


def _captum(purpose: str) -> Any:
    try:
        import captum.attr
    except ImportError:
        raise MissingExtraError("captum", "hf", purpose) from None
    return captum.attr
