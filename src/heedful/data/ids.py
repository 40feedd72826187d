"""Sentences as numbers: rows of token ids of unequal length, end to end in one array."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError


@dataclass(frozen=True, eq=False)
class Ids:
    """Sentence m is `values[offsets[m]:offsets[m + 1]]`; ids are 0 or more.

    >>> Ids.of([[5, 7], [9]])[1]
    array([9], dtype=int32)
    """

    values: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.values):
            raise DataError("offsets must start at 0 and end at the number of ids")
        if np.any(np.diff(self.offsets) < 0):
            raise DataError("offsets must not fall")
        if len(self.values) and self.values.min() < 0:
            raise DataError(f"token ids are 0 or more; found {int(self.values.min())}")

    @classmethod
    def of(cls, rows: "Sentences") -> "Ids":
        """Join sentences given as lists or arrays of ids; ids that are joined already come back as they are.

        >>> Ids.of([[1, 2], [], [3]]).lengths
        array([2, 0, 1])
        """
        if isinstance(rows, Ids):
            return rows
        arrays = []
        for m, row in enumerate(rows):
            array = np.asarray(row)
            if array.ndim != 1 or not (len(array) == 0 or np.issubdtype(array.dtype, np.integer)):
                raise DataError(f"sentence {m} is {row!r}; a sentence is a list of whole numbers")
            arrays.append(array.astype(np.int32))
        lengths = np.array([len(a) for a in arrays], dtype=np.int64)
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int32)
        return cls(values, offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, m: int) -> NDArray[np.int32]:
        return self.values[self.offsets[m] : self.offsets[m + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[m] for m in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many tokens each sentence has."""
        return np.diff(self.offsets)

    @property
    def size(self) -> int:
        """One more than the largest id: the smallest vocabulary that holds them all."""
        return int(self.values.max()) + 1 if len(self.values) else 0

    def take(self, which: NDArray[np.int64]) -> "Ids":
        """The sentences named, in that order.

        >>> Ids.of([[1, 2], [3]]).take(np.array([1, 0])).values
        array([3, 1, 2], dtype=int32)
        """
        lengths = self.lengths[which]
        offsets = offsets_of(lengths)
        places = np.arange(int(offsets[-1])) + np.repeat(self.offsets[which] - offsets[:-1], lengths)
        return Ids(self.values[places], offsets)


Sentences = Ids | Iterable[Sequence[int] | NDArray[Any]]


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row begins, and where the last one ends.

    >>> offsets_of(np.array([2, 0, 1]))
    array([0, 2, 2, 3])
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def pairs_of(sources: Sentences, targets: Sentences) -> tuple[Ids, Ids]:
    """Both sides as `Ids`, refused where they do not pair up or a source sentence has no words.

    >>> sources, targets = pairs_of([[1, 2]], [[3]])
    >>> len(sources), len(targets)
    (1, 1)
    """
    first, second = Ids.of(sources), Ids.of(targets)
    if len(first) != len(second):
        raise DataError(f"{len(first)} source sentences but {len(second)} target sentences")
    if len(first) and first.lengths.min() == 0:
        raise DataError(f"source sentence {int(np.argmin(first.lengths))} is empty; nothing can align with it")
    return first, second
