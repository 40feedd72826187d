"""Leave-one-out importance of words and of hidden states (meister2021 §3, Eq. 6).

    D_ŷ(x)_w = |ŷ − ŷ_{−w}|     word w is deleted and the rest encoded anew
    D_ŷ(I)_w                   the hidden states of w, not the word, are left out

ŷ is the probability of a passage's target. Rows are not yet normalised; see `attention_maps.shares`. 0 for special
words, which always stay, and for a word that is all there is.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attribution import lstm_fast_path
from heedful.attribution.interface import (
    Change,
    ModelParts,
    Numbers,
    Passage,
    PassageBatch,
    Subject,
    numbers,
    target_probability,
    within,
)


def d_y_x(subject: Subject, passages: Sequence[Passage]) -> list[Numbers]:
    """Leave-one-out importance of the words of each passage.

    On the fast path, an LSTM layer keeps the states that a deletion does not change, and computes many deletions
    together. Any other model is run on every shortened passage.
    """
    if _on_fast_path(subject, passages):

        def deletions(batch: PassageBatch) -> list[Numbers]:
            rows = zip(batch.passages, batch.words_of(lstm_fast_path.deletions(subject, batch)), strict=True)
            return [row * passage.explained() for passage, row in rows]

        def at_once(length: int) -> int:
            return lstm_fast_path.deletions_at_once(subject, length)

        return subject.map(passages, deletions, at_once=at_once)
    everything = [np.ones(len(passage.words), dtype=bool) for passage in passages]
    variants = [(i, int(word)) for i, passage in enumerate(passages) for word in np.flatnonzero(passage.explained())]
    full = subject.predict(passages, everything)
    shortened = subject.predict(
        [passages[i] for i, _ in variants], [np.arange(len(everything[i])) != word for i, word in variants]
    )
    result = [np.zeros(len(passage.words)) for passage in passages]
    for (i, word), y in zip(variants, shortened, strict=True):
        result[i][word] = 0.0 if np.isnan(y) else abs(full[i] - y)
    return result


def d_y_h(subject: Subject, passages: Sequence[Passage], layer: int = -1) -> list[Numbers]:
    """Leave-one-out importance of the hidden states that a layer's attention reads.

    With padded batches, the states of a word are masked and the remaining scores projected anew. Otherwise the other
    positions share what attention gave to the word, in proportion to their own weights; for a softmax that is the same.
    """
    if subject.parts is not None:
        parts = subject.parts
        fits = within(min(lstm_fast_path.ROWS, subject.max_tokens))
        return subject.map(passages, lambda batch: _projected_anew(subject, parts, batch), at_once=fits)
    subject.require_change("leave-one-out of hidden states")
    variants = [(i, int(word)) for i, passage in enumerate(passages) for word in np.flatnonzero(passage.explained())]
    last = subject.network.layers - 1 if layer == -1 else layer

    def hidden(batch: PassageBatch) -> Change:
        words = [variants[place][1] for place in batch.places]
        pieces = [[of == word for of in p.word] for word, p in zip(words, batch.passages, strict=True)]
        return _in_layer(last, torch.tensor(pieces, device=batch.pieces.device))

    some = [passages[i] for i, _ in variants]
    targets = np.array([passage.target for passage in some])
    full = subject.with_attention(passages, lambda batch: lambda number, alpha: alpha)
    without = subject.with_attention(some, hidden)[np.arange(len(some)), targets]
    result = [np.zeros(len(passage.words)) for passage in passages]
    for (i, word), y in zip(variants, without, strict=True):
        alone = all(of == word for of in passages[i].word)
        result[i][word] = 0.0 if alone else abs(full[i, passages[i].target] - y)
    return result


def hide_pieces(alpha: Float[Tensor, "B H Q L"], hidden: Bool[Tensor, "B L"]) -> Float[Tensor, "B H Q L"]:
    """Attention without some pieces; each row keeps its total weight, unless all of it was on those pieces.

    >>> hide_pieces(torch.tensor([[[[0.5, 0.25, 0.25]]]]), torch.tensor([[True, False, False]]))
    tensor([[[[0.0000, 0.5000, 0.5000]]]])
    """
    left = alpha * ~hidden[:, None, None]
    rest = left.sum(-1, keepdim=True)
    return left * (alpha.sum(-1, keepdim=True) / rest.where(rest > 0, torch.ones_like(rest)))


def _in_layer(layer: int, hidden: Bool[Tensor, "B L"]) -> Callable[[int, Tensor], Tensor]:
    return lambda number, alpha: hide_pieces(alpha, hidden) if number == layer else alpha


def _on_fast_path(subject: Subject, passages: Sequence[Passage]) -> bool:
    """The fast path deletes single pieces, so every word must be one."""
    if subject.parts is None or subject.parts.lstm is None:
        return False
    return all(passage.word == tuple(range(len(passage.words))) for passage in passages)


def _projected_anew(subject: Subject, parts: ModelParts, batch: PassageBatch) -> list[Numbers]:
    """|ŷ − ŷ_{−w}|, some variants at a time; the text is encoded once."""
    states = parts.encode(subject.network.embed(batch.pieces), batch.mask, batch.before)
    scores = parts.score(states)
    full = target_probability(parts.read(states, parts.project(scores, batch.mask)), batch)
    L, device = batch.pieces.shape[1], batch.pieces.device
    word = torch.tensor([passage.word + (-1,) * (L - len(passage.word)) for passage in batch.passages], device=device)
    result = [np.zeros(len(passage.words)) for passage in batch.passages]
    variants = [
        (b, w)
        for b, passage in enumerate(batch.passages)
        if len(set(passage.word)) > 1
        for w in np.flatnonzero(passage.explained()).tolist()
    ]
    at_once = max(1, subject.max_tokens // L)
    for start in range(0, len(variants), at_once):
        chunk = variants[start : start + at_once]
        row, left_out = torch.tensor(chunk, device=device).unbind(1)
        keep = batch.mask[row] & (word[row] != left_out[:, None])
        some, alpha = batch.take(row), parts.project(scores[row], keep)
        without = target_probability(parts.read(states.rows(row), alpha), some)
        for (b, w), difference in zip(chunk, numbers((full[row] - without).abs()), strict=True):
            result[b][w] = difference
    return result
