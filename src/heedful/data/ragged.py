"""Ragged array: rows of unequal length, stored end to end in one array.

Metrics accept a matrix (with a mask where rows end early), a list of rows, or a `Ragged`; `as_ragged` makes the last of
any of them, so that each metric is written once. Sentences as token ids go through `as_ids` in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Row r is `values[offsets[r]:offsets[r + 1]]`.

    >>> rows = Ragged.of([[1.0, 2.0], [3.0]])
    >>> rows[1], rows.lengths
    (array([3.]), array([2, 1]))
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.values):
            raise DataError("offsets must start at 0 and end at the number of values")
        if np.any(np.diff(self.offsets) < 0):
            raise DataError("offsets must not decrease")

    @classmethod
    def of(cls, rows: Sequence[ArrayLike]) -> "Ragged":
        """Join one-dimensional rows of numbers as floats; every row needs a value."""
        arrays = [np.atleast_1d(_array(row)) for row in rows]
        for r, array in enumerate(arrays):
            if array.ndim != 1:
                raise DataError(f"row {r} has shape {array.shape}; rows are one-dimensional")
        values = _floating(np.concatenate(arrays) if arrays else np.empty(0))
        return _without_empty_rows(Ragged.from_lengths(values, [len(array) for array in arrays]))

    @classmethod
    def from_lengths(cls, values: NDArray[Any], lengths: Sequence[int] | NDArray[np.integer[Any]]) -> "Ragged":
        """Cut an array into rows of these lengths.

        >>> Ragged.from_lengths(np.array([7, 8, 9]), [2, 0, 1]).offsets
        array([0, 2, 2, 3])
        """
        return Ragged(values, offsets_of(lengths))

    @classmethod
    def from_arrow(cls, column: "pa.ListArray | pa.ChunkedArray") -> "Ragged":
        """The lists of a pyarrow column, as `to_arrow` makes one."""
        array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        return Ragged.from_lengths(array.flatten().to_numpy(), array.value_lengths().to_numpy())

    def to_arrow(self) -> "pa.ListArray":
        """A pyarrow column with one list per row, for a Parquet file."""
        import pyarrow as pa

        return pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), pa.array(self.values))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        r = range(len(self))[row]
        return self.values[self.offsets[r] : self.offsets[r + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[r] for r in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of values in each row."""
        return np.diff(self.offsets)

    @property
    def row_of(self) -> NDArray[np.int64]:
        """The row that each value belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def size(self) -> int:
        """One more than the largest id: the smallest vocabulary that holds them all."""
        return int(self.values.max()) + 1 if len(self.values) else 0

    def take(self, which: NDArray[np.int64]) -> "Ragged":
        """The rows with these indices, in this order.

        >>> Ragged.of([[1.0, 2.0], [3.0]]).take(np.array([1, 0])).values
        array([3., 1., 2.])
        """
        starts, lengths = self.offsets[:-1][which], self.lengths[which]
        return Ragged.from_lengths(self.values[ranges(starts, lengths)], lengths)


# Sentences as token ids, in any of the forms that `as_ids` takes.
Sentences = Ragged | Iterable[Sequence[Any] | NDArray[Any]]


def offsets_of(lengths: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Where each row begins, and where the last one ends.

    >>> offsets_of([2, 0, 1])
    array([0, 2, 2, 3])
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices start, start + 1, … of each row, end to end.

    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    offsets = offsets_of(lengths)
    return np.arange(int(offsets[-1])) + np.repeat(starts - offsets[:-1], lengths)


def as_ragged(rows: "Ragged | ArrayLike | Sequence[ArrayLike]", mask: ArrayLike | None = None) -> Ragged:
    """A matrix, a tensor, a list of rows or a `Ragged`, as a `Ragged` of floats without empty rows.

    Positions where `mask` is false are left out.

    >>> as_ragged([[1.0, 2.0], [3.0, 9.0]], mask=[[True, True], [True, False]]).lengths
    array([2, 1])
    """
    if isinstance(rows, Ragged):
        if mask is not None:
            raise DataError("ragged rows take no mask: leave the positions out instead")
        return _without_empty_rows(rows)
    if mask is None and isinstance(rows, list | tuple) and not (rows and np.isscalar(rows[0])):
        return Ragged.of(rows)
    matrix = _floating(np.atleast_2d(_array(rows)))
    if matrix.ndim > 2:
        matrix = matrix.reshape(-1, matrix.shape[-1])
    if mask is None:
        return _without_empty_rows(Ragged(matrix.ravel(), np.arange(len(matrix) + 1) * matrix.shape[1]))
    keep = np.broadcast_to(_array(mask).astype(bool), np.shape(_array(rows))).reshape(matrix.shape)
    return _without_empty_rows(Ragged.from_lengths(matrix[keep], keep.sum(axis=1)))


def paired(
    u: "Ragged | ArrayLike | Sequence[ArrayLike]",
    v: "Ragged | ArrayLike | Sequence[ArrayLike]",
    mask: ArrayLike | None = None,
) -> tuple[Ragged, Ragged]:
    """Both arguments as ragged rows of the same lengths; other lengths and NaN are errors.

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


def as_ids(sentences: Sentences) -> Ragged:
    """Sentences as a `Ragged` of int32 token ids; a sentence may be empty.

    >>> as_ids([[5, 7], [], [9]])[2]
    array([9], dtype=int32)
    """
    if isinstance(sentences, Ragged):
        ids = sentences
        if not np.issubdtype(ids.values.dtype, np.integer):
            raise DataError(f"token ids are whole numbers, not {ids.values.dtype}")
    else:
        arrays = []
        for m, row in enumerate(sentences):
            array = np.asarray(row)
            if array.ndim != 1 or not (len(array) == 0 or np.issubdtype(array.dtype, np.integer)):
                raise DataError(f"sentence {m} is {row!r}; a sentence is a list of whole numbers")
            arrays.append(array.astype(np.int32))
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int32)
        ids = Ragged.from_lengths(values, [len(array) for array in arrays])
    if len(ids.values) and ids.values.min() < 0:
        raise DataError(f"token ids are 0 or more; got {int(ids.values.min())}")
    return ids


def paired_ids(sources: Sentences, targets: Sentences) -> tuple[Ragged, Ragged]:
    """Both sides as token ids; a different number of sentences and an empty source sentence are errors.

    >>> sources, targets = paired_ids([[1, 2]], [[3]])
    >>> len(sources), len(targets)
    (1, 1)
    """
    first, second = as_ids(sources), as_ids(targets)
    if len(first) != len(second):
        raise DataError(f"{len(first)} source sentences but {len(second)} target sentences")
    if len(first) and first.lengths.min() == 0:
        raise DataError(f"source sentence {int(np.argmin(first.lengths))} is empty; nothing can align with it")
    return first, second


def _without_empty_rows(rows: Ragged) -> Ragged:
    if np.any(empty := rows.lengths == 0):
        raise DataError(f"row {int(np.argmax(empty))} is empty; every row needs a position")
    return rows


def _floating(values: NDArray[Any]) -> NDArray[Any]:
    return values if np.issubdtype(values.dtype, np.floating) else values.astype(np.float64)


def _array(values: Any) -> NDArray[Any]:
    """A NumPy array of anything array-like; a tensor may hold gradients, or bfloat16, which NumPy does not know."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)
