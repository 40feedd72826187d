"""What co-occurrence alone says about which word translates which: IBM Model 1 (snell2021 §4.2).

Input word i, output word o, input position l of L, output position t of T. One EM iteration from the uniform start
gives exactly Eq. 17; the paper stops there, `ibm_model_1` goes on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from heedful.data.ragged import Ragged, Sentences, paired_ids
from heedful.errors import DataError
from heedful.models import lexicon_kernels as kernels


@dataclass(frozen=True, eq=False)
class CountTable:
    """The count table C in whole numbers: how often o stood opposite i, kept apart by the length of the input.

        C_{i,o} = Σ_m Σ_l Σ_t 1[x_l = i] 1[y_t = o] / L^m  =  Σ_L N_L(i, o) / L        (Eq. 16 = Eq. 52)

    Whole numbers add up the same in any order, so tables of parts of a corpus (`tally`) make the table of the whole to
    the last bit. `rows` holds (i, L, o), sorted; `counts` holds N_L(i, o).
    """

    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    source_size: int
    target_size: int

    def matrix(self) -> sparse.csr_array:
        """C as a sparse matrix, input words by output words."""
        indptr, indices, data = kernels.combine(self.rows, self.counts, self.source_size, self.target_size)
        return _sorted(sparse.csr_array((data, indices, indptr), shape=(self.source_size, self.target_size)))

    def lexicon(self) -> "Lexicon":
        """Trans(o|i) of Eq. 17."""
        return Lexicon(translation_table(self.matrix()))


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Trans(o|i) as a sparse matrix whose rows sum to one (words that were never seen have empty rows).

    With a null word, its translations are the last row of `table`. `log_likelihood` holds the value before the first
    iteration and after each: it never falls.
    """

    table: sparse.csr_array
    null: bool = False
    log_likelihood: tuple[float, ...] = field(default=())

    def beta(self, sources: Sentences, targets: Sentences) -> Ragged:
        """β^IBM: one row per output word, one value per input position (Eq. 18).

            β_{t,l} = Trans(y_t | x_l)

        >>> count_table([[0, 1]], [[0, 1]]).lexicon().beta([[0, 1]], [[1]]).values
        array([0.5, 0.5])
        """
        first, second = paired_ids(sources, targets)
        rows = np.repeat(first.lengths, second.lengths)
        offsets = np.concatenate([[0], np.cumsum(rows)])
        values = np.empty(int(offsets[-1]))
        table = self.table[:-1] if self.null else self.table
        kernels.look_up(first.values, first.offsets, second.values, second.offsets, *_arrays(_sorted(table)), values)
        return Ragged(values, offsets)

    def alpha(self, sources: Sentences, targets: Sentences) -> Ragged:
        """α^IBM: β^IBM normalised over the input positions (Eq. 19).

            α(t, l) = β_{t,l} / Σ_l' β_{t,l'}

        Uniform where no word of the input was ever seen with the output word. The null word takes no share.

        >>> count_table([[0, 1], [0, 2]], [[5, 6], [5, 7]]).lexicon().alpha([[0, 1]], [[6]]).values.round(3)
        array([0.333, 0.667])
        """
        beta = self.beta(sources, targets)
        totals = np.add.reduceat(beta.values, beta.offsets[:-1]) if len(beta) else np.empty(0)
        uniform = np.repeat(totals == 0, beta.lengths)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = beta.values / np.repeat(totals, beta.lengths)
        return Ragged(np.where(uniform, 1 / np.repeat(beta.lengths, beta.lengths), values), beta.offsets)


def count_table(
    sources: Sentences, targets: Sentences, *, source_size: int | None = None, target_size: int | None = None
) -> CountTable:
    """The count table of a corpus (snell2021, Eq. 16); for classification, a target is the label alone.

    >>> count_table([[0, 1], [0, 2]], [[0, 1], [0, 2]]).matrix().toarray()
    array([[1. , 0.5, 0.5],
           [0.5, 0.5, 0. ],
           [0.5, 0. , 0.5]])
    """
    first, second = paired_ids(sources, targets)
    sizes = _size(first, source_size, "source"), _size(second, target_size, "target")
    places = *_index(first, sizes[0]), second.values, second.offsets
    return CountTable(*kernels.count(*places, first.lengths, sizes[1]), *sizes)


def translation_table(C: sparse.csr_array) -> sparse.csr_array:
    """Each row of C over its sum (snell2021, Eq. 17).

        Trans(o|i) = C_{i,o} / Σ_o' C_{i,o'}

    >>> translation_table(sparse.csr_array([[3.0, 1.0], [0.0, 0.0]])).toarray()
    array([[0.75, 0.25],
           [0.  , 0.  ]])
    """
    totals = np.asarray(C.sum(axis=1)).ravel()
    values = C.data / np.repeat(totals, np.diff(C.indptr))
    return sparse.csr_array((values, C.indices, C.indptr), shape=C.shape)


def ibm_model_1(
    sources: Sentences,
    targets: Sentences,
    iterations: int = 5,
    *,
    null: bool = False,
    source_size: int | None = None,
    target_size: int | None = None,
    on_iteration: Callable[[Lexicon], None] = lambda lexicon: None,
) -> Lexicon:
    """IBM Model 1 by expectation maximisation from the uniform start (Brown et al. 1993; snell2021 §4.2).

        E: α(t, l) = Trans(y_t|x_l) / Σ_l' Trans(y_t|x_l')
        M: Trans(o|i) = c(i, o) / Σ_o' c(i, o'),   c(i, o) = Σ_m Σ_t Σ_l α(t, l) 1[x_l = i] 1[y_t = o]
        log-likelihood = Σ_m Σ_t ln( Σ_l Trans(y_t|x_l) / L )

    `null` adds an empty word to every input, from which any output word may come; the paper has none. `on_iteration`
    gets the lexicon after each iteration.

    >>> lexicon = ibm_model_1([[0, 1], [0]], [[0, 1], [0]], iterations=200)
    >>> lexicon.table.toarray().round(1)
    array([[1., 0.],
           [0., 1.]])
    >>> bool(np.all(np.diff(lexicon.log_likelihood) >= 0))
    True
    """
    if iterations < 1:
        raise DataError(f"{iterations} iterations; at least one is needed")
    first, second = paired_ids(sources, targets)
    sizes = _size(first, source_size, "source"), _size(second, target_size, "target")
    if null:
        first, sizes = _with_null(first, sizes[0]), (sizes[0] + 1, sizes[1])
    places = *_index(first, sizes[0]), second.values, second.offsets
    indptr, indices, data = kernels.first_step(*places, first.lengths, sizes[1])
    constant = float(np.dot(np.log(first.lengths), second.lengths))
    history = [-math.log(max(1, sizes[1])) * len(second.values)]
    for iteration in range(1, iterations + 1):
        evidence = kernels.evidence(*places, indptr, indices, data, sizes[1])
        history.append(float(np.log(evidence).sum()) - constant)
        lexicon = Lexicon(sparse.csr_array((data, indices, indptr), shape=sizes), null, tuple(history))
        on_iteration(lexicon)
        if iteration < iterations:
            data = kernels.maximise(*places, indptr, indices, data, 1 / evidence, sizes[1])
    return lexicon


def _index(sources: Ragged, size: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    return kernels.index(sources.values, sources.offsets, np.argsort(sources.lengths, kind="stable"), size)


def _with_null(sources: Ragged, null: int) -> Ragged:
    """Every sentence with the null word after it."""
    values = np.insert(sources.values, sources.offsets[1:], np.int32(null))
    return Ragged(values, sources.offsets + np.arange(len(sources) + 1))


def _size(ids: Ragged, size: int | None, side: str) -> int:
    if size is None:
        return ids.size
    if ids.size > size:
        raise DataError(f"{side} id {ids.size - 1} does not fit a vocabulary of {size}")
    return size


def _sorted(table: sparse.csr_array) -> sparse.csr_array:
    """The columns of every row in rising order, in linear time."""
    return table if table.has_sorted_indices else table.tocsc().tocsr()


def _arrays(table: sparse.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """The three arrays of a sparse matrix, always of one type: each other type would be compiled anew."""
    return table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data.astype(np.float64)


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


def table_cells(sources: Ragged, targets: Ragged, source_size: int, target_size: int) -> Cells:
    """The count table of a part, as cells whose keys are (i, L, o) side by side.

    >>> from heedful.data.ragged import as_ids
    >>> keys, counts = table_cells(as_ids([[0, 1]]), as_ids([[2, 2]]), 2, 3)
    >>> counts, table_of((keys, counts), 2, 3).rows.tolist()
    (array([2, 2]), [[0, 2, 2], [1, 2, 2]])
    """
    longest = int(sources.lengths.max(initial=0))
    for size, what in ((source_size, "source types"), (target_size, "target types"), (longest, "words in a sentence")):
        if size >= MOST:
            raise DataError(f"{size:,} {what}; a count table must have fewer than {MOST:,}")
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


def together_cells(sources: Ragged, targets: Ragged, source_size: int, target_size: int) -> Cells:
    """In how many pairs i and o stand together, whatever the number of times; keys are (i, o) side by side.

    >>> from heedful.data.ragged import as_ids
    >>> together_cells(as_ids([[0, 0]]), as_ids([[1, 1]]), 1, 2)[1]
    array([1])
    """
    first, second = distinct(sources), distinct(targets)
    places = kernels.index(first.values, first.offsets, np.arange(len(first)), source_size)
    alike = np.ones(len(first), np.int64)  # lengths do not matter here
    rows, counts = kernels.count(*places, second.values, second.offsets, alike, target_size)
    return (rows[:, 0].astype(np.int64) << BITS) | rows[:, 2], counts


def distinct(ids: Ragged) -> Ragged:
    """Each word of a sentence once.

    >>> from heedful.data.ragged import as_ids
    >>> distinct(as_ids([[3, 1, 3], []])).values
    array([3, 1], dtype=int32)
    """
    return Ragged(*kernels.distinct(ids.values, ids.offsets, ids.size))


def together_of(cells: Cells, source_size: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """The columns of some outputs, dense: (source types, chosen)."""
    keys, counts = cells
    place = np.full(MOST, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    column = place[keys & (MOST - 1)]
    dense = np.zeros((source_size, len(chosen)))
    dense[(keys >> BITS)[column >= 0], column[column >= 0]] = counts[column >= 0]
    return dense
