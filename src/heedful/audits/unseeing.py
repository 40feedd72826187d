"""Which states does the prediction need? Each word is hidden from the attention of one layer in turn."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.audits.asking import Batch, Numbers, Subject
from heedful.audits.maps import asked
from heedful.audits.network import Change
from heedful.audits.passage import Passage


def hidden_leave_one_out(subject: Subject, passages: Sequence[Passage], layer: int) -> list[Numbers]:
    """|ŷ − ŷ_{−w}| where a layer's attention cannot see the states of w (D_ŷ(I) of meister2021, Eq. 6).

    What attention gave to w, the other places share as they shared the rest; of a softmax that is what the remaining
    scores give. 0 of special words, and of a word that is all there is.
    """
    rows = [(i, int(w)) for i, passage in enumerate(passages) for w in np.flatnonzero(asked(passage))]
    some = [passages[i] for i, _ in rows]

    def changed(batch: Batch) -> Change:
        words = [rows[place][1] for place in batch.places]
        hidden = [[of == word for of in p.word] for word, p in zip(words, batch.passages, strict=True)]
        return _of_layer(layer, torch.tensor(hidden, device=batch.pieces.device))

    targets = np.array([passage.target for passage in some])
    whole = subject.with_attention(passages, lambda batch: lambda where, alpha: alpha)
    without = subject.with_attention(some, changed)[np.arange(len(some)), targets]
    result = [np.zeros(len(passage.words)) for passage in passages]
    for (i, w), y in zip(rows, without, strict=True):
        alone = all(word == w for word in passages[i].word)
        result[i][w] = 0.0 if alone else abs(whole[i, passages[i].target] - y)
    return result


def unseen(alpha: Float[Tensor, "B H Q L"], hidden: Bool[Tensor, "B L"]) -> Float[Tensor, "B H Q L"]:
    """Attention that cannot see some pieces; each row keeps the weight it had, unless all of it was there.

    >>> unseen(torch.tensor([[[[0.5, 0.25, 0.25]]]]), torch.tensor([[True, False, False]]))
    tensor([[[[0.0000, 0.5000, 0.5000]]]])
    """
    left = alpha * ~hidden[:, None, None]
    rest = left.sum(-1, keepdim=True)
    return left * (alpha.sum(-1, keepdim=True) / rest.where(rest > 0, torch.ones_like(rest)))


def _of_layer(layer: int, hidden: Bool[Tensor, "B L"]) -> Callable[[int, Tensor], Tensor]:
    return lambda where, alpha: unseen(alpha, hidden) if where == layer else alpha
