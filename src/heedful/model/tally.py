"""Count tables of parts of a corpus, merged into the table of the whole: whole numbers, exact in any order."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heedful.data.ids import Ids
from heedful.errors import DataError
from heedful.model import lexicon_kernels as kernels
from heedful.model.lexicon import CountTable, count_table

BITS = 21  # of an id or a length in a key
MOST = 1 << BITS
Cells = tuple[NDArray[np.int64], NDArray[np.int64]]  # rising keys, and how often each was counted


@dataclass
class Tally:
    """A sum of many `Cells` that are added one by one.

    Parts of like size are merged first, as in a counter that carries, so each cell is merged only log₂ n times.

    >>> total = Tally()
    >>> for key in (5, 3, 5):
    ...     total.add((np.array([key]), np.array([2])))
    >>> total.cells()
    (array([3, 5]), array([2, 4]))
    """

    parts: list[Cells] = field(default_factory=list)

    def add(self, cells: Cells) -> None:
        """Count more."""
        self.parts.append(cells)
        while len(self.parts) > 1 and len(self.parts[-2][0]) <= 2 * len(self.parts[-1][0]):
            self._carry()

    def cells(self) -> Cells:
        """Everything counted so far."""
        while len(self.parts) > 1:
            self._carry()
        return self.parts[0] if self.parts else (np.empty(0, np.int64), np.empty(0, np.int64))

    def _carry(self) -> None:
        second, first = self.parts.pop(), self.parts.pop()
        self.parts.append(kernels.add_sorted(*first, *second))


def table_cells(sources: Ids, targets: Ids, source_size: int, target_size: int) -> Cells:
    """The count table of a part, as cells whose keys are (i, L, o) side by side.

    >>> keys, counts = table_cells(Ids.of([[0, 1]]), Ids.of([[2, 2]]), 2, 3)
    >>> counts, table_of((keys, counts), 2, 3).rows.tolist()
    (array([2, 2]), [[0, 2, 2], [1, 2, 2]])
    """
    longest = int(sources.lengths.max(initial=0))
    for size, what in ((source_size, "source types"), (target_size, "target types"), (longest, "words in a sentence")):
        if size >= MOST:
            raise DataError(f"{size:,} {what}; a table has room for fewer than {MOST:,}")
    table = count_table(sources, targets, source_size=source_size, target_size=target_size)
    keys = table.rows[:, 0].astype(np.int64)
    for column in (1, 2):
        keys <<= BITS
        keys |= table.rows[:, column]
    return keys, table.counts


def table_of(cells: Cells, source_size: int, target_size: int) -> CountTable:
    """The count table that cells make up; to the last bit that of the whole corpus at once."""
    keys, counts = cells
    rows = np.stack([keys >> 2 * BITS, (keys >> BITS) & (MOST - 1), keys & (MOST - 1)], axis=1).astype(np.int32)
    return CountTable(rows, counts, source_size, target_size)


def together_cells(sources: Ids, targets: Ids, source_size: int, target_size: int) -> Cells:
    """In how many pairs i and o stand together, whatever the number of times; keys are (i, o) side by side.

    >>> together_cells(Ids.of([[0, 0]]), Ids.of([[1, 1]]), 1, 2)[1]
    array([1])
    """
    first, second = distinct(sources), distinct(targets)
    places = kernels.index(first.values, first.offsets, np.arange(len(first)), source_size)
    alike = np.ones(len(first), np.int64)  # lengths do not matter here
    rows, counts = kernels.count(*places, second.values, second.offsets, alike, target_size)
    return (rows[:, 0].astype(np.int64) << BITS) | rows[:, 2], counts


def distinct(ids: Ids) -> Ids:
    """Each word of a sentence once.

    >>> distinct(Ids.of([[3, 1, 3], []])).values
    array([3, 1], dtype=int32)
    """
    return Ids(*kernels.distinct(ids.values, ids.offsets, ids.size))


def together_of(cells: Cells, source_size: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """The columns of some outputs, dense: (source types, chosen)."""
    keys, counts = cells
    place = np.full(MOST, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    column = place[keys & (MOST - 1)]
    dense = np.zeros((source_size, len(chosen)))
    dense[(keys >> BITS)[column >= 0], column[column >= 0]] = counts[column >= 0]
    return dense
