"""Importance of words and hidden states for a prediction: gradients and leave-one-out (meister2021 §3, Eqs 4–6).

    g_ŷ(x)_i = ‖∂ŷ/∂e_i‖₂           (Eq. 4; of the hidden states, g_ŷ(I): h for e)
    g_{h_p}(x)_i = ‖∂‖h_p‖₂/∂e_i‖₂    (Eq. 5)
    D_ŷ(x)_w = ŷ − ŷ_{−w}             (Eq. 6, where its size is taken) word w is deleted and the rest encoded anew
    D_ŷ(I)_w                         the hidden states of w are masked, and the remaining scores projected anew

and integrated gradients. ŷ is the probability of a passage's target. Rows have a value for each word, those of its
pieces summed, and are not yet normalised; see `attention_maps.shares`. They have the model's precision: below about
1e-7, a float32 model's differences are rounding. Leave-one-out is 0 for special words, which always stay, and for a
word that is all there is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
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

    def of_norm(states: Tensor, copies: Tensor) -> Tensor:
        (gradient,) = gradient_of(vector_norm(states, dim=-1), (copies,))
        sizes: Tensor = vector_norm(gradient, dim=-1)
        return sizes

    return _of_states(subject, passages, layer, of_norm)


def jacobian_h_x(subject: Subject, passages: Sequence[Passage], layer: int = -1) -> list[Numbers]:
    """The norm of the whole Jacobian of each hidden state, ‖∂h_p/∂e_i‖_F: a matrix (pieces p, words) for each passage.

    Meister et al. (2021, App. A) compare it with `g_h_x`, which takes one backward pass where this takes one for each
    component of h_p.
    """

    def of_components(states: Tensor, copies: Tensor) -> Tensor:
        squares = torch.zeros(copies.shape[:2], dtype=copies.dtype, device=copies.device)
        for k in range(states.shape[1]):
            last = k + 1 == states.shape[1]
            (gradient,) = torch.autograd.grad(states[:, k].sum(), copies, retain_graph=not last)
            squares += (gradient**2).sum(-1)
        return squares.sqrt()

    return _of_states(subject, passages, layer, of_components)


def _of_states(
    subject: Subject, passages: Sequence[Passage], layer: int, size: Callable[[Tensor, Tensor], Tensor]
) -> list[Numbers]:
    """`size(states, copies)` of each hidden state of a passage, which is run on one copy for each."""

    def by_copies(batch: PassageBatch) -> list[Numbers]:
        embedded, L = subject.network.embed(batch.pieces).detach(), batch.pieces.shape[1]
        sizes = []
        for positions in torch.split(torch.arange(L, device=embedded.device), max(1, subject.max_tokens // 4 // L)):
            copies = embedded.repeat(len(positions), 1, 1).requires_grad_()
            hidden = subject.run(batch.take(torch.zeros_like(positions)), copies).hidden
            if not hidden:
                raise DataError("gradients of hidden states need a network that returns them; this one has none")
            states = hidden[layer][torch.arange(len(positions), device=embedded.device), positions]
            sizes.append(size(states, copies))
        return [batch.passages[0].words_of(numbers(torch.cat(sizes)))]

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


def integrated_gradients(
    subject: Subject, passages: Sequence[Passage], steps: int = 50, *, baseline: int | None = None
) -> list[Numbers]:
    """∫ (e − e⁰) · ∂ŷ/∂e from a baseline e⁰ to a passage's embeddings e (Sundararajan et al. 2017), in words. Signed.

    baseline: the piece whose embedding stands for every word, special words keeping their own; embeddings of 0 for
    all if it is None. A row sums to ŷ − ŷ(e⁰), up to the error of `steps` points of Gauss–Legendre quadrature.
    """

    def of_batch(batch: PassageBatch) -> list[Numbers]:
        end = subject.network.embed(batch.pieces).detach()

        def predict(some: PassageBatch, values: Tensor) -> Tensor:
            return subject.probabilities(some, values)

        return _integrate(subject, batch, end, _baseline(subject, batch, baseline), steps, predict)

    return subject.map(passages, of_batch, gradients=True, at_once=_texts_of_an_integral(subject, steps))


def _texts_of_an_integral(subject: Subject, steps: int) -> Callable[[int], int]:
    """How many texts of a length are integrated together: the steps of a few fill a batch, with little padding."""
    return within(max(1, subject.max_tokens // 4 // steps))


def _baseline(subject: Subject, batch: PassageBatch, piece: int | None) -> Tensor:
    """The embeddings from which an integral starts."""
    if piece is None:
        return torch.zeros_like(subject.network.embed(batch.pieces))
    pieces = batch.pieces.clone()
    for b, passage in enumerate(batch.passages):
        plain = torch.tensor([not passage.special[word] for word in passage.word], device=pieces.device)
        pieces[b, : len(passage.pieces)][plain] = piece
    return subject.network.embed(pieces).detach()


def hidden_integrated_gradients(
    subject: Subject, passages: Sequence[Passage], layer: int, steps: int = 50, *, baseline: int | None = None
) -> list[Numbers] | None:
    """∫ (h − h⁰) · ∂ŷ/∂h up to the states h that a layer's attention reads, summed into words. Signed.

    h⁰ are the states for the baseline, where the integrals of inputs start too: no input gives states of 0, and layer
    norms are not continuous there. A row sums to ŷ − ŷ(h⁰). None where the network's states cannot be replaced.
    """

    def of_batch(batch: PassageBatch) -> list[Numbers | None]:
        embedded = subject.network.embed(batch.pieces).detach()
        with torch.no_grad():
            start = subject.run(batch, _baseline(subject, batch, baseline)).hidden[layer]
        if subject.resumes_at(layer):
            end = subject.states_at(batch, layer)

            def resume(some: PassageBatch, states: Tensor) -> Tensor:
                return subject.resume(some, layer, states)

            return [*_integrate(subject, batch, end.detach(), start, steps, resume)]
        place = find_states(lambda given: subject.run(batch, given).hidden[layer], embedded)
        if place is None:
            return [None] * len(batch.passages)

        def predict(some: PassageBatch, states: Tensor) -> Tensor:
            inputs = subject.network.embed(some.pieces).detach()
            probabilities: Tensor = place.put(lambda given: subject.run(some, given), inputs, states).probabilities
            return probabilities

        return [*_integrate(subject, batch, place.states, start, steps, predict)]

    rows = subject.map(passages, of_batch, gradients=True, at_once=_texts_of_an_integral(subject, steps))
    known = [row for row in rows if row is not None]
    return known if len(known) == len(passages) else None


def _integrate(
    subject: Subject,
    batch: PassageBatch,
    end: Tensor,
    start: Tensor,
    steps: int,
    run: Callable[[PassageBatch, Tensor], Tensor],
) -> list[Numbers]:
    """captum's integral of (end − start) · ∂ŷ/∂values; run: the probabilities for these values."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise MissingExtraError("captum", "hf", "integrated gradients") from None

    def predict(values: Tensor, row: Tensor) -> Tensor:
        some = batch.take(row)
        y = target_probability(run(some, values), some)
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


def d_y_x(subject: Subject, passages: Sequence[Passage], *, spans: int | None = None) -> list[Numbers]:
    """Leave-one-out importance of the words of each passage: below 0 where ŷ rises without the word.

    On the fast path, an LSTM layer keeps the states that a deletion does not change, and computes many deletions
    together. Any other model is run on every shortened passage. spans: in a text of more words, so many spans of
    neighbouring words are left out in place of single words; the words of a span share its importance equally.
    """
    if spans is None and _on_fast_path(subject, passages):

        def deletions(batch: PassageBatch) -> list[Numbers]:
            rows = zip(batch.passages, batch.words_of(lstm_fast_path.deletions(subject, batch)), strict=True)
            return [row * passage.explained() for passage, row in rows]

        def at_once(length: int) -> int:
            return lstm_fast_path.deletions_at_once(subject, length)

        return subject.map(passages, deletions, at_once=at_once)
    everything = [np.ones(len(passage.words), dtype=bool) for passage in passages]
    variants = [(i, span) for i, passage in enumerate(passages) for span in deleted_spans(passage, spans)]
    full = subject.predict(passages, everything)
    shortened = subject.predict(
        [passages[i] for i, _ in variants], [~np.isin(np.arange(len(everything[i])), span) for i, span in variants]
    )
    result = [np.zeros(len(passage.words)) for passage in passages]
    for (i, span), y in zip(variants, shortened, strict=True):
        result[i][span] = 0.0 if np.isnan(y) else (full[i] - y) / len(span)
    return result


def deleted_spans(passage: Passage, most: int | None = None) -> list[NDArray[np.int64]]:
    """The words that leave-one-out deletes together: each word alone, or at most so many spans of neighbours.

    >>> passage = Passage.of_pieces(0, [7, 8, 9, 7, 8])
    >>> [span.tolist() for span in deleted_spans(passage, 2)], len(deleted_spans(passage))
    ([[0, 1, 2], [3, 4]], 5)
    """
    words = np.flatnonzero(passage.explained())
    return np.array_split(words, len(words) if most is None else min(most, len(words))) if len(words) else []


def d_y_h(subject: Subject, passages: Sequence[Passage], layer: int = -1, *, spans: int | None = None) -> list[Numbers]:
    """Leave-one-out importance of the hidden states that a layer's attention reads, with its sign.

    The states of a word are masked, and the scores of all other states are projected anew. Networks without `parts`
    have no scores to project: there, the remaining weights are divided by their sum. For a softmax that is the same.
    spans: as for `d_y_x`.
    """
    if subject.network.parts is None:
        subject.require_change("leave-one-out of hidden states")

    def of_batch(batch: PassageBatch) -> list[Numbers]:
        predict = _masked_prediction(subject, batch, layer)
        (B, L), device = batch.pieces.shape, batch.pieces.device
        words = [passage.word + (-1,) * (L - len(passage.word)) for passage in batch.passages]
        word, full = torch.tensor(words, device=device), predict(torch.arange(B, device=device), batch.mask)
        kept = [[p.special[w] for w in p.word] + [True] * (L - len(p.word)) for p in batch.passages]
        stays = torch.tensor(kept, device=device)  # special words and padding
        result = [np.zeros(len(passage.words)) for passage in batch.passages]
        variants = [
            (b, span)
            for b, passage in enumerate(batch.passages)
            if len(set(passage.word)) > 1
            for span in deleted_spans(passage, spans)
        ]
        at_once = max(1, subject.max_tokens // L)
        for begin in range(0, len(variants), at_once):
            chunk = variants[begin : begin + at_once]
            row = torch.tensor([b for b, _ in chunk], device=device)
            first, last = (torch.tensor([int(span[k]) for _, span in chunk], device=device)[:, None] for k in (0, -1))
            inside = (word[row] >= first) & (word[row] <= last)
            without = predict(row, batch.mask[row] & (stays[row] | ~inside))
            for (b, span), difference in zip(chunk, numbers(full[row] - without), strict=True):
                result[b][span] = difference / len(span)
        return result

    return subject.map(passages, of_batch, at_once=within(min(lstm_fast_path.ROWS, subject.max_tokens)))


def hide_pieces(alpha: Float[Tensor, "B H Q L"], hidden: Bool[Tensor, "B L"]) -> Float[Tensor, "B H Q L"]:
    """Attention without some pieces; each row keeps its total weight, unless all of it was on those pieces.

    >>> hide_pieces(torch.tensor([[[[0.5, 0.25, 0.25]]]]), torch.tensor([[True, False, False]]))
    tensor([[[[0.0000, 0.5000, 0.5000]]]])
    """
    left = alpha * ~hidden[:, None, None]
    rest = left.sum(-1, keepdim=True)
    return left * (alpha.sum(-1, keepdim=True) / rest.where(rest > 0, torch.ones_like(rest)))


def _on_fast_path(subject: Subject, passages: Sequence[Passage]) -> bool:
    """The fast path deletes single pieces, so every word must be one."""
    if subject.parts is None or subject.parts.lstm is None:
        return False
    return all(passage.word == tuple(range(len(passage.words))) for passage in passages)


def _masked_prediction(subject: Subject, batch: PassageBatch, layer: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A function of rows of the batch and of the pieces that attention may read there: ŷ of each row.

    With `parts`, the texts are encoded and scored once.
    """
    network, parts = subject.network, subject.network.parts
    number = range(network.layers)[layer]
    if parts is not None:
        states = parts.encode(network.embed(batch.pieces), batch.mask, batch.before)
        scores = parts.score(states)
    else:
        changed = subject.changed(batch, number, subject.states_at(batch, number))

    def probabilities(row: Tensor, keep: Tensor) -> Tensor:
        if parts is not None:
            return parts.read(states.rows(row), parts.project(scores[row], keep))
        return changed(row, lambda at, alpha: hide_pieces(alpha, ~keep) if at == number else alpha)

    return lambda row, keep: target_probability(probabilities(row, keep), batch.take(row))
