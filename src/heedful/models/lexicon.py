"""What co-occurrence alone says about which word translates which: IBM Model 1 (snell2021 §4.2).

Input word i, output word o, input position l of L, output position t of T. One EM iteration from the uniform start
gives exactly Eq. 17; the paper stops there, `ibm_model_1` goes on.

The compiled loops go through the corpus one source word at a time: the scratch row of that word then stays in cache,
and no number has to be kept per pair of positions. Source word i stands in the sentences
`sentence[start[i]:start[i + 1]]`, once per occurrence, shortest sentence first.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from heedful.data.ragged import Ragged, Sentences, paired_ids, ranges
from heedful.errors import DataError
from heedful.metrics.rank import compiled

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]
Places = tuple[Int64, Int32, Int32, Int64, Int64, int]  # start, sentence; targets, their offsets; lengths; types
Table = tuple[Int64, Int32, Floats]  # the arrays of a sparse matrix: indptr, indices, data
Cells = tuple[Int64, Int64]  # rising keys, and how often each was counted
BITS = 21  # of an id or a length in a key
MOST = 1 << BITS


@dataclass(frozen=True, eq=False)
class CountTable:
    """The count table C in whole numbers: how often o stood opposite i, kept apart by the length of the input.

        C_{i,o} = Σ_m Σ_l Σ_t 1[x_l = i] 1[y_t = o] / L^m  =  Σ_L N_L(i, o) / L        (Eq. 16 = Eq. 52)

    Whole numbers add up the same in any order, so tables of parts of a corpus (`tally`) make the table of the whole to
    the last bit. `rows` holds (i, L, o), sorted; `counts` holds N_L(i, o).
    """

    rows: Int32
    counts: Int64
    source_size: int
    target_size: int

    def matrix(self) -> sparse.csr_array:
        """C as a sparse matrix, input words by output words."""
        words, lengths, outputs = self.rows.T
        starts = np.searchsorted(words, np.arange(self.source_size + 1))
        table = sparse.csr_array((self.counts / lengths, outputs, starts), shape=(self.source_size, self.target_size))
        table = _sorted(table)  # of equal places, the shortest input still comes first
        table.sum_duplicates()
        return table

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
        lengths = np.repeat(first.lengths, second.lengths)
        source = first.values[ranges(np.repeat(first.offsets[:-1], second.lengths), lengths)]
        target = np.repeat(second.values, lengths)
        words, outputs = self.table.shape
        known = (source < words - self.null) & (target < outputs)
        values = np.zeros(len(known))
        if known.any():  # scipy's answer to no index at all is no array
            values[known] = self.table[source[known], target[known]]
        return Ragged.from_lengths(values, lengths)

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
    return CountTable(*_count(_places(first, second, *sizes)), *sizes)


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
    places = _places(first, second, *sizes)
    indptr, indices, data = _first_step(places)
    constant = float(np.dot(np.log(first.lengths), second.lengths))
    history = [-math.log(max(1, sizes[1])) * len(second.values)]
    for iteration in range(1, iterations + 1):
        evidence = _evidence(places, (indptr, indices, data))
        history.append(float(np.log(evidence).sum()) - constant)
        lexicon = Lexicon(_sorted(sparse.csr_array((data, indices, indptr), shape=sizes)), null, tuple(history))
        on_iteration(lexicon)
        if iteration < iterations:
            data = _maximise(places, (indptr, indices, data), 1 / evidence)
    return lexicon


def _places(sources: Ragged, targets: Ragged, source_size: int, target_size: int) -> Places:
    by_length = np.argsort(sources.lengths, kind="stable")
    start, sentence = _index(sources.values, sources.offsets, by_length, source_size)
    return start, sentence, targets.values, targets.offsets, sources.lengths, target_size


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
    """The columns of every row in rising order, in linear time; equal columns stay in their order."""
    return table.tocsc().tocsr()


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
        self.parts.append(_add_sorted(*first, *second))


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
    start, sentence = _index(first.values, first.offsets, np.arange(len(first)), source_size)
    alike = np.ones(len(first), np.int64)  # lengths do not matter here
    rows, counts = _count((start, sentence, second.values, second.offsets, alike, target_size))
    return (rows[:, 0].astype(np.int64) << BITS) | rows[:, 2], counts


def distinct(ids: Ragged) -> Ragged:
    """Each word of a sentence once.

    >>> from heedful.data.ragged import as_ids
    >>> distinct(as_ids([[3, 1, 3], []])).values
    array([3, 1], dtype=int32)
    """
    return Ragged(*_distinct(ids.values, ids.offsets, ids.size))


def together_of(cells: Cells, source_size: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """The columns of some outputs, dense: (source types, chosen)."""
    keys, counts = cells
    place = np.full(MOST, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    column = place[keys & (MOST - 1)]
    dense = np.zeros((source_size, len(chosen)))
    dense[(keys >> BITS)[column >= 0], column[column >= 0]] = counts[column >= 0]
    return dense


@compiled
def _index(values: Int32, offsets: Int64, order: Int64, size: int) -> tuple[Int64, Int32]:
    """(start, sentence): the sentences of each source word, in the given order of sentences."""
    start = np.zeros(size + 1, np.int64)
    for i in values:
        start[i + 1] += 1
    for i in range(size):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    sentence = np.empty(len(values), np.int32)
    for m in order:
        for position in range(offsets[m], offsets[m + 1]):
            i = values[position]
            sentence[fill[i]] = m
            fill[i] += 1
    return start, sentence


@compiled
def _count(places: Places) -> tuple[Int32, Int64]:
    """N_L(i, o): how often target word o met source word i in sources of length L; rows (i, L, o), in that order."""
    start, sentence, targets, offsets, lengths, size = places
    cells = 0
    for m in sentence:
        cells += offsets[m + 1] - offsets[m]
    capacity = max(1, min(cells, 1 << 24))  # memory that is never written to is never taken
    rows = np.empty((capacity, 3), np.int32)
    counts = np.empty(capacity, np.int64)
    used = 0
    tally = np.zeros(size, np.int32)  # half the cache of int64
    touched = np.empty(size, np.int32)
    for i in range(len(start) - 1):
        begin = start[i]
        while begin < start[i + 1]:
            length = lengths[sentence[begin]]
            found = 0
            end = begin
            while end < start[i + 1] and lengths[sentence[end]] == length:
                m = sentence[end]
                for t in range(offsets[m], offsets[m + 1]):
                    o = targets[t]
                    if tally[o] == 0:
                        touched[found] = o
                        found += 1
                    tally[o] += 1
                end += 1
            begin = end
            while used + found > capacity:
                rows = np.concatenate((rows, np.empty((capacity, 3), np.int32)))
                counts = np.concatenate((counts, np.empty(capacity, np.int64)))
                capacity *= 2
            if 16 * found > size:  # to look at every word is then less than to sort
                found = 0
                for o in range(size):
                    if tally[o] != 0:
                        touched[found] = o
                        found += 1
            else:
                touched[:found].sort()
            for o in touched[:found]:
                rows[used, 0] = i
                rows[used, 1] = length
                rows[used, 2] = o
                counts[used] = tally[o]
                tally[o] = 0
                used += 1
    return rows[:used], counts[:used]


@compiled
def _first_step(places: Places) -> Table:
    """Trans after one iteration from the uniform start: C over its row sums, columns in order of appearance."""
    start, sentence, targets, offsets, lengths, size = places
    cells = 0
    for m in sentence:
        cells += offsets[m + 1] - offsets[m]
    capacity = max(1, min(cells, 1 << 24))
    indptr = np.zeros(len(start), np.int64)
    indices = np.empty(capacity, np.int32)
    data = np.empty(capacity, np.float64)
    row = np.zeros(size, np.float64)
    used = 0
    for i in range(len(start) - 1):
        first = used
        while used + size > len(indices):
            indices = np.concatenate((indices, np.empty(len(indices), np.int32)))
            data = np.concatenate((data, np.empty(len(data), np.float64)))
        for place in range(start[i], start[i + 1]):
            m = sentence[place]
            share = 1.0 / lengths[m]
            for o in targets[offsets[m] : offsets[m + 1]]:
                if row[o] == 0.0:
                    indices[used] = o
                    used += 1
                row[o] += share
        total = 0.0
        for k in range(first, used):
            total += row[indices[k]]
        for k in range(first, used):
            data[k] = row[indices[k]] / total
            row[indices[k]] = 0.0
        indptr[i + 1] = used
    return indptr, indices[:used], data[:used]


@compiled
def _evidence(places: Places, table: Table) -> Floats:
    """Σ_l Trans(y_t | x_l) for every target position."""
    start, sentence, targets, offsets, _, size = places
    indptr, indices, data = table
    total = np.zeros(len(targets), np.float64)
    row = np.zeros(size, np.float64)
    for i in range(len(start) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            row[indices[k]] = data[k]
        for place in range(start[i], start[i + 1]):
            m = sentence[place]
            for t in range(offsets[m], offsets[m + 1]):
                total[t] += row[targets[t]]
    return total


@compiled
def _maximise(places: Places, table: Table, inverse: Floats) -> Floats:
    """One M-step: Trans(o | i) in proportion to Trans(o | i) · Σ 1/evidence over the places where i meets o."""
    start, sentence, targets, offsets, _, size = places
    indptr, indices, data = table
    new = np.empty(len(data), np.float64)
    row = np.zeros(size, np.float64)
    for i in range(len(start) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            row[indices[k]] = 0.0
        for place in range(start[i], start[i + 1]):
            m = sentence[place]
            for t in range(offsets[m], offsets[m + 1]):
                row[targets[t]] += inverse[t]
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            new[k] = data[k] * row[indices[k]]
            total += new[k]
        for k in range(indptr[i], indptr[i + 1]):
            new[k] /= total
    return new


@compiled
def _add_sorted(keys: Int64, counts: Int64, other_keys: Int64, other_counts: Int64) -> tuple[Int64, Int64]:
    """Two lists of rising keys as one, the counts of equal keys added up."""
    alike = 0
    j = 0
    for key in keys:
        while j < len(other_keys) and other_keys[j] < key:
            j += 1
        alike += j < len(other_keys) and other_keys[j] == key
    merged = np.empty(len(keys) + len(other_keys) - alike, np.int64)
    sums = np.empty(len(merged), np.int64)
    i = 0
    j = 0
    for place in range(len(merged)):
        if j == len(other_keys) or (i < len(keys) and keys[i] < other_keys[j]):
            merged[place] = keys[i]
            sums[place] = counts[i]
            i += 1
        elif i == len(keys) or other_keys[j] < keys[i]:
            merged[place] = other_keys[j]
            sums[place] = other_counts[j]
            j += 1
        else:
            merged[place] = keys[i]
            sums[place] = counts[i] + other_counts[j]
            i += 1
            j += 1
    return merged, sums


@compiled
def _distinct(values: Int32, offsets: Int64, size: int) -> tuple[Int32, Int64]:
    """(values, offsets) with each word of a sentence once, where it first stands."""
    last = np.full(size, -1, np.int64)
    kept = np.empty(len(values), np.int32)
    new_offsets = np.zeros(len(offsets), np.int64)
    used = 0
    for m in range(len(offsets) - 1):
        for position in range(offsets[m], offsets[m + 1]):
            i = values[position]
            if last[i] != m:
                last[i] = m
                kept[used] = i
                used += 1
        new_offsets[m + 1] = used
    return kept[:used].copy(), new_offsets
