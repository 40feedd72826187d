"""The inner loops of the lexicon, compiled.

All of them go through the corpus one source word at a time: the scratch row of that word then stays in cache, and no
number has to be kept per pair of positions. `start` and `sentence` index the corpus: source word i stands in the
sentences `sentence[start[i]:start[i + 1]]`, once per occurrence, shortest sentence first.
"""

import numpy as np
from numpy.typing import NDArray

from heedful.metrics.rank import compiled

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]


@compiled
def index(values: Int32, offsets: Int64, order: Int64, size: int) -> tuple[Int64, Int32]:
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
def count(
    start: Int64, sentence: Int32, targets: Int32, target_offsets: Int64, source_lengths: Int64, size: int
) -> tuple[Int32, Int64]:
    """N_L(i, o): how often target word o met source word i in sources of length L; rows (i, L, o), in that order."""
    cells = 0
    for m in sentence:
        cells += target_offsets[m + 1] - target_offsets[m]
    capacity = max(1, min(cells, 1 << 24))  # memory that is never written to is never taken
    rows = np.empty((capacity, 3), np.int32)
    counts = np.empty(capacity, np.int64)
    used = 0
    tally = np.zeros(size, np.int32)  # half the cache of int64
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
def first_step(
    start: Int64, sentence: Int32, targets: Int32, target_offsets: Int64, source_lengths: Int64, size: int
) -> tuple[Int64, Int32, Floats]:
    """Trans after one iteration from the uniform start: C over its row sums, columns in order of appearance."""
    cells = 0
    for m in sentence:
        cells += target_offsets[m + 1] - target_offsets[m]
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
            share = 1.0 / source_lengths[m]
            for o in targets[target_offsets[m] : target_offsets[m + 1]]:
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
def evidence(
    start: Int64,
    sentence: Int32,
    targets: Int32,
    target_offsets: Int64,
    indptr: Int64,
    indices: Int32,
    data: Floats,
    size: int,
) -> Floats:
    """Σ_l Trans(y_t | x_l) for every target position."""
    total = np.zeros(len(targets), np.float64)
    row = np.zeros(size, np.float64)
    for i in range(len(start) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            row[indices[k]] = data[k]
        for place in range(start[i], start[i + 1]):
            m = sentence[place]
            for t in range(target_offsets[m], target_offsets[m + 1]):
                total[t] += row[targets[t]]
    return total


@compiled
def maximise(
    start: Int64,
    sentence: Int32,
    targets: Int32,
    target_offsets: Int64,
    indptr: Int64,
    indices: Int32,
    data: Floats,
    inverse: Floats,
    size: int,
) -> Floats:
    """One M-step: Trans(o | i) in proportion to Trans(o | i) · Σ 1/evidence over the places where i meets o."""
    new = np.empty(len(data), np.float64)
    row = np.zeros(size, np.float64)
    for i in range(len(start) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            row[indices[k]] = 0.0
        for place in range(start[i], start[i + 1]):
            m = sentence[place]
            for t in range(target_offsets[m], target_offsets[m + 1]):
                row[targets[t]] += inverse[t]
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            new[k] = data[k] * row[indices[k]]
            total += new[k]
        for k in range(indptr[i], indptr[i + 1]):
            new[k] /= total
    return new


@compiled
def add_sorted(keys: Int64, counts: Int64, other_keys: Int64, other_counts: Int64) -> tuple[Int64, Int64]:
    """Two lists of rising keys as one, the counts of equal keys added up."""
    merged = np.empty(len(keys) + len(other_keys), np.int64)
    sums = np.empty(len(merged), np.int64)
    i = 0
    j = 0
    used = 0
    while i < len(keys) or j < len(other_keys):
        if j == len(other_keys) or (i < len(keys) and keys[i] < other_keys[j]):
            merged[used] = keys[i]
            sums[used] = counts[i]
            i += 1
        elif i == len(keys) or other_keys[j] < keys[i]:
            merged[used] = other_keys[j]
            sums[used] = other_counts[j]
            j += 1
        else:
            merged[used] = keys[i]
            sums[used] = counts[i] + other_counts[j]
            i += 1
            j += 1
        used += 1
    return merged[:used].copy(), sums[:used].copy()


@compiled
def distinct(values: Int32, offsets: Int64, size: int) -> tuple[Int32, Int64]:
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
