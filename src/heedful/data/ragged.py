"""Rows of unequal length, end to end in one array.

Everything that `measure` takes arrives in one of three shapes: a matrix (with a mask where rows end early), a list
of rows, or a `Ragged`. `as_ragged` makes the last of any of them, so that each measure is written once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.errors import DataError

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Ragged:
    """Row r is `values[offsets[r]:offsets[r + 1]]`; no row is empty.

    >>> Ragged.of([[1.0, 2.0], [3.0]]).row(1)
    array([3.])
    """

    values: FloatArray
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.values):
            raise DataError("offsets must start at 0 and end at the number of values")
        if np.any(np.diff(self.offsets) <= 0):
            raise DataError(f"row {int(np.argmax(np.diff(self.offsets) <= 0))} is empty; every row needs a position")

    @classmethod
    def of(cls, rows: Sequence[ArrayLike]) -> "Ragged":
        """Join a list of one-dimensional rows."""
        arrays = [np.atleast_1d(_array(row)) for row in rows]
        for r, array in enumerate(arrays):
            if array.ndim != 1:
                raise DataError(f"row {r} has shape {array.shape}; rows are one-dimensional")
        values = np.concatenate(arrays) if arrays else np.empty(0)
        offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays], dtype=np.int64)]).astype(np.int64)
        if not np.issubdtype(values.dtype, np.floating):
            values = values.astype(np.float64)
        return cls(values, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many positions each row has."""
        return np.diff(self.offsets)

    @property
    def row_of(self) -> NDArray[np.int64]:
        """The row that each value belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def row(self, r: int) -> FloatArray:
        """Row r as a view."""
        return self.values[self.offsets[r] : self.offsets[r + 1]]

    def rows(self, which: NDArray[np.int64]) -> "Ragged":
        """The rows named, in that order."""
        return Ragged.of([self.row(int(r)) for r in which])


def as_ragged(rows: "Ragged | ArrayLike | Sequence[ArrayLike]", mask: ArrayLike | None = None) -> Ragged:
    """A matrix, a tensor, a list of rows or a `Ragged`, as a `Ragged`.

    Positions where `mask` is false are left out.

    >>> as_ragged([[1.0, 2.0], [3.0, 9.0]], mask=[[True, True], [True, False]]).lengths
    array([2, 1])
    """
    if isinstance(rows, Ragged):
        if mask is not None:
            raise DataError("ragged rows take no mask: leave the positions out instead")
        return rows
    if mask is None and isinstance(rows, list | tuple) and not (rows and np.isscalar(rows[0])):
        return Ragged.of(rows)
    matrix = np.atleast_2d(_array(rows))
    if not np.issubdtype(matrix.dtype, np.floating):
        matrix = matrix.astype(np.float64)
    if matrix.ndim > 2:
        matrix = matrix.reshape(-1, matrix.shape[-1])
    if mask is None:
        return Ragged(matrix.ravel(), np.arange(len(matrix) + 1) * matrix.shape[1])
    keep = np.broadcast_to(_array(mask).astype(bool), np.shape(_array(rows))).reshape(matrix.shape)
    offsets = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int64)
    return Ragged(matrix[keep], offsets)


def paired(
    u: "Ragged | ArrayLike | Sequence[ArrayLike]",
    v: "Ragged | ArrayLike | Sequence[ArrayLike]",
    mask: ArrayLike | None = None,
) -> tuple[Ragged, Ragged]:
    """Both arguments as ragged rows, refused where they do not lie over one another or hold NaN.

    >>> u, v = paired([0.1, 0.9], [3.0, 4.0])
    >>> len(u), len(v)
    (1, 1)
    """
    first, second = as_ragged(u, mask), as_ragged(v, mask)
    if not np.array_equal(first.offsets, second.offsets):
        raise DataError(
            f"u has {len(first)} rows over {len(first.values)} positions, v {len(second)} over {len(second.values)}; "
            "they must have the same rows of the same lengths"
        )
    for name, rows in (("u", first), ("v", second)):
        bad = np.isnan(rows.values)
        if bad.any():
            raise DataError(f"{name} is NaN in row {int(rows.row_of[int(np.argmax(bad))])}")
    return first, second


def _array(values: Any) -> NDArray[Any]:
    """A NumPy array of anything array-like; a tensor may hold gradients, or bfloat16, which NumPy does not know."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)


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
