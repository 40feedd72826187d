"""One prediction to be explained: the words that were read, and the output asked about."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError


@dataclass(frozen=True)
class Passage:
    """A text as a model reads it, or a source sentence and one output word of its translation.

    text: its place in the data. words: as a reader sees them; special: those that the tokeniser added. pieces: what the
    model reads, one or more to a word; word: of which word each piece is a part. target: the label or output piece
    asked about, by number, and `output` by name; -1 and "" until the model has been asked. label: the right one, where
    known. before: of an encoder–decoder, the output pieces before this one. cut: pieces that truncation took away.
    """

    text: int
    words: tuple[str, ...]
    special: tuple[bool, ...]
    pieces: tuple[int, ...]
    word: tuple[int, ...]
    target: int = -1
    output: str = ""
    label: str | None = None
    before: tuple[int, ...] = ()
    cut: int = 0

    def __post_init__(self) -> None:
        if len(self.words) != len(self.special):
            raise DataError(
                f"text {self.text}: {len(self.words)} words, but {len(self.special)} say if they are special"
            )
        if len(self.pieces) != len(self.word):
            raise DataError(f"text {self.text}: {len(self.pieces)} pieces, but {len(self.word)} belong to words")

    def words_of(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Values of pieces (last axis) summed into their words.

        >>> Passage(0, ("un", "do"), (False, False), (7, 8, 9), (0, 0, 1)).words_of(np.array([0.1, 0.2, 0.7])).round(2)
        array([0.3, 0.7])
        """
        summed = np.zeros((*values.shape[:-1], len(self.words)))
        np.add.at(summed.T, list(self.word), values.T)
        return summed

    def without(self, keep: NDArray[np.bool_]) -> "tuple[int, ...]":
        """The pieces of the words that are kept, in order."""
        return tuple(piece for piece, word in zip(self.pieces, self.word, strict=True) if keep[word])


@runtime_checkable
class Reader(Protocol):
    """Texts become passages: the tokeniser's side of a model."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the model's labels, in order; none where it writes sentences."""

    def read(self, number: int, text: str, label: str | None = None) -> Passage:
        """A text of the data, its words and pieces; long ones are cut, and the passage says by how much."""
