"""The texts asked about, some at a time; and what comes of asking: rows that sum to 1."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import DataError
from heedful.measure.importance_forward import Forward, undisturbed
from heedful.measure.ragged import Ragged

Tokens = Int[Tensor, "B L"]
Mask = Bool[Tensor, "B L"]
Targets = Int[Tensor, " B"]


@dataclass(frozen=True)
class Importance(Ragged):
    """One row per text, or per hidden state of each text in turn; every row is normalised to sum 1.

    Where nothing matters (every gradient or difference is 0), and where the only token of a text would have to be
    deleted, there is nothing to divide: all positions get the same share, and `undefined` is true of the row.
    """

    undefined: NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """Some texts of a batch, cut to the longest of them; `text` says which they are."""

    tokens: Tensor
    mask: Tensor
    text: Tensor


class Batch:
    """The texts asked about, their real tokens first; and the class of each that ŷ is about, once it is known."""

    def __init__(self, forward: Forward, tokens: Tensor, mask: Tensor, targets: Tensor | None) -> None:
        self.forward, self.tokens, self.mask = forward, tokens, mask
        self.lengths: NDArray[np.int64] = mask.sum(1).cpu().numpy()
        self.chosen = torch.full((len(tokens),), -1, device=tokens.device) if targets is None else targets

    @classmethod
    def of(cls, forward: Forward, tokens: Tensor, mask: Tensor, targets: Tensor | None = None) -> "Batch":
        """Masked tokens go to the right, where padding belongs."""
        if tokens.shape != mask.shape:
            raise DataError(f"tokens have shape {tuple(tokens.shape)}, the mask {tuple(mask.shape)}; they must agree")
        empty = (~mask.any(1)).nonzero()
        if len(empty):
            raise DataError(f"text {int(empty[0])} has every token masked; every text needs one")
        order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
        return cls(forward, tokens.gather(1, order), mask.gather(1, order), targets)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each text begins when all real tokens stand in one line."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def choose(self, probabilities: Tensor, text: Tensor) -> Tensor:
        """ŷ of each row: the class asked for, or the one predicted for the whole text, which has to come first."""
        if probabilities.ndim != 2 or len(probabilities) != len(text):
            raise DataError(
                f"the model gave probabilities of shape {tuple(probabilities.shape)} for {len(text)} texts; "
                "they must be (texts, classes)"
            )
        if not bool(torch.isfinite(probabilities).all()):
            row = int(text[int((~torch.isfinite(probabilities)).any(1).nonzero()[0])])
            raise DataError(f"the model's prediction for text {row} is not a number")
        if probabilities.shape[1] == 1:
            return probabilities[:, 0]
        unknown = self.chosen[text] < 0
        if bool(unknown.any()):
            self.chosen = self.chosen.clone()
            self.chosen[text[unknown]] = probabilities.detach().argmax(1)[unknown]
        return probabilities.gather(1, self.chosen[text][:, None])[:, 0]

    def parts(self, texts: Callable[[int], int]) -> Iterator[Part]:
        """All texts, shortest first, at most texts(longest) at a time."""
        order = np.argsort(self.lengths, kind="stable")
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and end + 1 - start <= texts(int(self.lengths[order[end]])):
                end += 1
            index = torch.from_numpy(order[start:end]).to(self.tokens.device)
            longest = int(self.lengths[order[end - 1]])
            yield Part(self.tokens[index, :longest], self.mask[index, :longest], index)
            start = end

    def gather(
        self, values: Callable[[Part], Tensor], texts: Callable[[int], int], *, gradients: bool
    ) -> NDArray[np.float64]:
        """`values` of every part, at the real tokens of each text in turn; the model is left as it was found."""
        rows: list[NDArray[np.float64]] = [np.empty(0)] * len(self.lengths)
        with undisturbed(self.forward.modules), torch.set_grad_enabled(gradients):
            for part in self.parts(texts):
                matrix = values(part).detach().double().cpu().numpy()
                for b, row in zip(part.text.tolist(), matrix, strict=True):
                    rows[b] = row[: self.lengths[b]]
        return np.concatenate(rows) if rows else np.empty(0)


def normalised(values: NDArray[np.float64], lengths: NDArray[np.int64]) -> Importance:
    """Rows that sum to 1, in place; the same share everywhere where a row is all 0.

    >>> normalised(np.array([1.0, 3.0, 0.0, 0.0]), np.array([2, 2])).values
    array([0.25, 0.75, 0.5 , 0.5 ])
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tops = np.maximum.reduceat(values, offsets[:-1]) if len(lengths) else np.empty(0)
    if not np.isfinite(tops).all():
        raise DataError(f"row {int(np.argmax(~np.isfinite(tops)))} has a gradient that is not a finite number")
    undefined = tops == 0
    values /= np.repeat(np.where(undefined, 1, tops), lengths)  # first by the largest: tiny numbers must not sum to 0
    values[np.repeat(undefined, lengths)] = 1
    if len(lengths):
        values /= np.repeat(np.add.reduceat(values, offsets[:-1]), lengths)
    return Importance(values, offsets, undefined)
