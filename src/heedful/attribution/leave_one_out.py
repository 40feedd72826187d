"""Leave-one-out importance of words and of hidden states (meister2021 §3, Eq. 6).

    D_ŷ(x)_w = |ŷ − ŷ_{−w}|     word w is deleted and the rest encoded anew
    D_ŷ(I)_w                   the hidden states of w are masked, and the remaining scores projected anew

ŷ is the probability of a passage's target. Rows are not yet normalised; see `attention_maps.shares`. 0 for special
words, which always stay, and for a word that is all there is.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attribution import lstm_fast_path
from heedful.attribution.interface import Numbers, Passage, PassageBatch, Subject, numbers, target_probability, within


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

    The states of a word are masked, and the scores of all other states are projected anew. Networks without `parts`
    have no scores to project: there, the remaining weights are divided by their sum. For a softmax that is the same.
    """
    if subject.network.parts is None:
        subject.require_change("leave-one-out of hidden states")

    def of_batch(batch: PassageBatch) -> list[Numbers]:
        predict = _masked_prediction(subject, batch, layer)
        (B, L), device = batch.pieces.shape, batch.pieces.device
        words = [passage.word + (-1,) * (L - len(passage.word)) for passage in batch.passages]
        word, full = torch.tensor(words, device=device), predict(torch.arange(B, device=device), batch.mask)
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
            without = predict(row, batch.mask[row] & (word[row] != left_out[:, None]))
            for (b, w), difference in zip(chunk, numbers((full[row] - without).abs()), strict=True):
                result[b][w] = difference
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
    if parts is not None:
        states = parts.encode(network.embed(batch.pieces), batch.mask, batch.before)
        scores = parts.score(states)

    def probabilities(row: Tensor, keep: Tensor) -> Tensor:
        if parts is not None:
            return parts.read(states.rows(row), parts.project(scores[row], keep))
        changed = range(network.layers)[layer]
        return subject.run(
            batch.take(row), change=lambda number, alpha: hide_pieces(alpha, ~keep) if number == changed else alpha
        ).probabilities

    return lambda row, keep: target_probability(probabilities(row, keep), batch.take(row))
