"""IBM Model 1: which words translate which, learned from co-occurrence alone (snell2021 §4.2).

Input word i, output word o, input position l of L, output position t of T. One EM iteration from the uniform start
gives exactly Eq. 17; the paper stops there, `ibm_model_1` goes on.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from heedful.data.ragged import Ragged, Sentences, paired_ids
from heedful.errors import DataError
from heedful.metrics.numba_kernels import compiled

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]
Cells = tuple[Int64, Int64]  # increasing keys, and how often each was counted

BITS = 21  # of an id or a length in a key
MOST = 1 << BITS
BLOCK = 1 << 22  # numbers held at once while EM goes through the corpus


@dataclass(frozen=True, eq=False)
class CountTable:
    """The count table C as whole numbers: how often o occurred with i, for each length of the input.

        C_{i,o} = Σ_m Σ_l Σ_t 1[x_l = i] 1[y_t = o] / L^m  =  Σ_L N_L(i, o) / L        (Eq. 16 = Eq. 52)

    Sums of whole numbers do not depend on their order, so the tables of parts of a corpus (`Tally`) add up to the table
    of all of it, exactly. `rows` holds (i, L, o), sorted; `counts` holds N_L(i, o).
    """

    rows: Int32
    counts: Int64
    source_size: int
    target_size: int

    def matrix(self) -> sparse.csr_array:
        """C as a sparse matrix, input words by output words."""
        keys = self.rows[:, 0] * np.int64(self.target_size) + self.rows[:, 2]
        pairs, cell = np.unique(keys, return_inverse=True)
        values = np.bincount(cell, weights=self.counts / self.rows[:, 1], minlength=len(pairs))
        where = pairs // max(1, self.target_size), pairs % max(1, self.target_size)
        return sparse.csr_array((values, where), shape=(self.source_size, self.target_size))

    def lexicon(self) -> "Lexicon":
        """Trans(o|i) of Eq. 17."""
        return Lexicon(translation_table(self.matrix()))


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Trans(o|i) as a sparse matrix whose rows sum to one; rows of words that never occurred are empty.

    With a null word, its translations are the last row of `table`. `log_likelihood` has its value before the first
    iteration and after each; it never decreases.
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
        lengths = np.repeat(first.lengths, second.lengths)  # of each row
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        starts = np.repeat(first.offsets[:-1], second.lengths)
        i = first.values[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)]
        o = np.repeat(second.values, lengths)
        return Ragged(self._look_up(i, o), offsets)

    def _look_up(self, i: Int32, o: Int32) -> Floats:
        """Trans(o|i); 0 for words that never occurred together."""
        table = (self.table[:-1] if self.null else self.table).sorted_indices()
        inputs, outputs = table.shape
        keys = np.repeat(np.arange(inputs), np.diff(table.indptr)) * outputs + table.indices
        wanted = np.where((i < inputs) & (o < outputs), i * np.int64(outputs) + o, -1)
        at = np.searchsorted(keys, wanted)
        return np.where(np.append(keys, -2)[at] == wanted, np.append(table.data, 0.0)[at], 0.0)

    def alpha(self, sources: Sentences, targets: Sentences) -> Ragged:
        """α^IBM: β^IBM normalised over the input positions (Eq. 19).

            α(t, l) = β_{t,l} / Σ_l' β_{t,l'}

        Uniform if no word of the input occurred with the output word. The null word has no share.

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
    """Count table of a corpus (snell2021, Eq. 16); in classification a target is the label alone.

    >>> count_table([[0, 1], [0, 2]], [[0, 1], [0, 2]]).matrix().toarray()
    array([[1. , 0.5, 0.5],
           [0.5, 0.5, 0. ],
           [0.5, 0. , 0.5]])
    """
    first, second = paired_ids(sources, targets)
    sizes = _size(first, source_size, "source"), _size(second, target_size, "target")
    places = *_index(first, sizes[0]), second.values, second.offsets
    return CountTable(*_count(*places, first.lengths, sizes[1]), *sizes)


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
) -> Lexicon:
    """IBM Model 1 by expectation maximisation from a uniform start (Brown et al. 1993; snell2021 §4.2).

        E: α(t, l) = Trans(y_t|x_l) / Σ_l' Trans(y_t|x_l')
        M: Trans(o|i) = c(i, o) / Σ_o' c(i, o'),   c(i, o) = Σ_m Σ_t Σ_l α(t, l) 1[x_l = i] 1[y_t = o]
        log-likelihood = Σ_m Σ_t ln( Σ_l Trans(y_t|x_l) / L )

    `null` adds a null word to every input, which can generate any output word; the paper has none.

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
    table = translation_table(CountTable(*_count(*places, first.lengths, sizes[1]), *sizes).matrix())
    constant = float(np.dot(np.log(first.lengths), second.lengths))
    history = [-math.log(max(1, sizes[1])) * len(second.values)]
    for iteration in range(iterations):
        evidence = _evidence(table, *places)
        history.append(float(np.log(evidence).sum()) - constant)
        if iteration + 1 < iterations:
            table = _maximise(table, 1 / evidence, *places)
    return Lexicon(table, null, tuple(history))


def _evidence(table: sparse.csr_array, start: Int64, sentence: Int64, targets: Int32, offsets: Int64) -> Floats:
    """Σ_l Trans(y_t|x_l) of every target position t."""
    total = np.zeros(len(targets))
    for words, i, t in _blocks(table.shape[1], start, sentence, offsets):
        np.add.at(total, t, table[words].toarray()[i, targets[t]])
    return total


def _maximise(
    table: sparse.csr_array, inverse: Floats, start: Int64, sentence: Int64, targets: Int32, offsets: Int64
) -> sparse.csr_array:
    """One M-step: Trans(o|i) times Σ 1/evidence over the places where o occurs with i, normalised."""
    data, size = np.empty_like(table.data), table.shape[1]
    for words, i, t in _blocks(size, start, sentence, offsets):
        sums = np.bincount(i * size + targets[t], weights=inverse[t], minlength=(words.stop - words.start) * size)
        part = slice(table.indptr[words.start], table.indptr[words.stop])
        rows = np.repeat(np.arange(words.stop - words.start), np.diff(table.indptr[words.start : words.stop + 1]))
        data[part] = table.data[part] * sums[rows * size + table.indices[part]]
    return translation_table(sparse.csr_array((data, table.indices, table.indptr), shape=table.shape))


def _blocks(size: int, start: Int64, sentence: Int64, offsets: Int64) -> Iterator[tuple[slice, Int64, Int64]]:
    """Source words in blocks: for each pair of positions the word's number in the block, and the target position.

    Memory stays bounded, unless a single word has more than `BLOCK` pairs: a block has about as many pairs, and its
    dense table of target words as many cells.
    """
    lengths = np.diff(offsets)[sentence]
    pairs = np.concatenate([[0], np.cumsum(lengths)])[start]  # before each word
    first = 0
    while first < len(start) - 1:
        last = int(np.searchsorted(pairs, pairs[first] + BLOCK, side="right")) - 1
        last = max(first + 1, min(last, first + BLOCK // max(1, size), len(start) - 1))
        places = slice(start[first], start[last])
        n = lengths[places]
        i = np.repeat(np.repeat(np.arange(last - first), np.diff(start[first : last + 1])), n)
        shift = offsets[sentence[places]] - (np.cumsum(n) - n)
        yield slice(first, last), i, np.arange(len(i)) + np.repeat(shift, n)
        first = last


def _index(sources: Ragged, size: int, order: Int64 | None = None) -> tuple[Int64, Int64]:
    """(start, sentence): word i occurs in the sentences `sentence[start[i]:start[i + 1]]`, shortest first."""
    order = np.argsort(sources.lengths, kind="stable") if order is None else order
    ones = np.ones(len(sources.values), np.int8)
    words = sparse.csr_array((ones, sources.values, sources.offsets), shape=(len(sources), size))
    by_word = words[order].tocsc()  # linear in the number of words; keeps repeated ones
    return by_word.indptr.astype(np.int64), order[by_word.indices]


def _with_null(sources: Ragged, null: int) -> Ragged:
    """Append the null word to every sentence."""
    values = np.insert(sources.values, sources.offsets[1:], np.int32(null))
    return Ragged(values, sources.offsets + np.arange(len(sources) + 1))


def _size(ids: Ragged, size: int | None, side: str) -> int:
    if size is None:
        return ids.size
    if ids.size > size:
        raise DataError(f"{side} id {ids.size - 1} does not fit a vocabulary of {size}")
    return size


@dataclass
class Tally:
    """A sum of many `Cells` that are added one by one.

    Parts of similar size are merged first, so each cell is merged only log₂ n times.

    >>> total = Tally()
    >>> for key in (5, 3, 5):
    ...     total.add((np.array([key]), np.array([2])))
    >>> total.cells()
    (array([3, 5]), array([2, 4]))
    """

    parts: list[Cells] = field(default_factory=list)

    def add(self, cells: Cells) -> None:
        """Add the cells of another part."""
        self.parts.append(cells)
        while len(self.parts) > 1 and len(self.parts[-2][0]) <= 2 * len(self.parts[-1][0]):
            self._merge()

    def cells(self) -> Cells:
        """The cells of all parts so far."""
        while len(self.parts) > 1:
            self._merge()
        return self.parts[0] if self.parts else (np.empty(0, np.int64), np.empty(0, np.int64))

    def _merge(self) -> None:
        (keys, counts), (other_keys, other_counts) = self.parts.pop(), self.parts.pop()
        joined = np.concatenate([other_keys, keys])
        order = np.argsort(joined, kind="stable")
        joined = joined[order]
        starts = np.flatnonzero(np.diff(joined, prepend=-1))
        sums = np.add.reduceat(np.concatenate([other_counts, counts])[order], starts) if len(joined) else joined
        self.parts.append((joined[starts], sums))


def table_cells(sources: Ragged, targets: Ragged, source_size: int, target_size: int) -> Cells:
    """The count table of a part of a corpus, as cells whose keys are the bits of (i, L, o).

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
    """The count table of cells; exactly that of the whole corpus counted at once."""
    keys, counts = cells
    rows = np.stack([keys >> 2 * BITS, (keys >> BITS) & (MOST - 1), keys & (MOST - 1)], axis=1).astype(np.int32)
    return CountTable(rows, counts, source_size, target_size)


def together_cells(sources: Ragged, targets: Ragged, source_size: int, target_size: int) -> Cells:
    """In how many pairs of sentences i and o occur together; keys are the bits of (i, o).

    >>> from heedful.data.ragged import as_ids
    >>> together_cells(as_ids([[0, 0]]), as_ids([[1, 1]]), 1, 2)[1]
    array([1])
    """
    first, second = distinct(sources), distinct(targets)
    places = *_index(first, source_size, np.arange(len(first))), second.values, second.offsets
    rows, counts = _count(*places, np.ones(len(first), np.int64), target_size)  # the lengths do not matter here
    return (rows[:, 0].astype(np.int64) << BITS) | rows[:, 2], counts


def distinct(ids: Ragged) -> Ragged:
    """The distinct words of each sentence, in increasing order.

    >>> from heedful.data.ragged import as_ids
    >>> distinct(as_ids([[3, 1, 3], []])).values
    array([1, 3], dtype=int32)
    """
    size = max(1, ids.size)
    keys = np.sort(np.repeat(np.arange(len(ids)) * size, ids.lengths) + ids.values)
    keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique hashes, which is ten times slower here
    lengths = np.bincount(keys // size, minlength=len(ids))
    return Ragged((keys % size).astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]))


def together_of(cells: Cells, source_size: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """The counts of `together_cells` for some outputs, as a dense matrix (source types, chosen)."""
    keys, counts = cells
    number = np.full(MOST, -1, np.int64)
    number[chosen] = np.arange(len(chosen))
    column = number[keys & (MOST - 1)]
    dense = np.zeros((source_size, len(chosen)))
    dense[(keys >> BITS)[column >= 0], column[column >= 0]] = counts[column >= 0]
    return dense


@compiled
def _count(
    start: Int64, sentence: Int64, targets: Int32, target_offsets: Int64, source_lengths: Int64, size: int
) -> tuple[Int32, Int64]:
    """N_L(i, o): how often target word o occurs with source word i in sources of length L; rows (i, L, o), sorted.

    Compiled: streaming a large corpus takes half the time that sorting all pairs of positions in numpy does. One source
    word at a time, so that its counts stay in the processor's cache and no number is kept per pair of positions.
    """
    cells = 0
    for m in sentence:
        cells += target_offsets[m + 1] - target_offsets[m]
    capacity = max(1, min(cells, 1 << 24))  # pages that are never written take no memory
    rows = np.empty((capacity, 3), np.int32)
    counts = np.empty(capacity, np.int64)
    used = 0
    tally = np.zeros(size, np.int32)  # int32: half the cache
    touched = np.empty(size, np.int32)
    for i in range(len(start) - 1):
        begin = start[i]
        while begin < start[i + 1]:
            length = source_lengths[sentence[begin]]
            found = 0
            end = begin
            while end < start[i + 1] and source_lengths[sentence[end]] == length:
                m = sentence[end]
                for t in range(target_offsets[m], target_offsets[m + 1]):
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
            if 16 * found > size:  # a scan of all words is then cheaper than a sort
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
