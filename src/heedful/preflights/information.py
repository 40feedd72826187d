"""Informativeness: what co-occurrence can teach attention before any training (snell2021 §3.3, §4).

Attention learns from knowledge of which word translates which, and that comes from co-occurrence. Where all words of a
sentence co-occur equally with its outputs, as in permutations of one set of words, there is nothing to start from. A
label is an output sentence of one word.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.ragged import Ragged, Sentences, offsets_of, paired_ids, ranges
from heedful.errors import DataError
from heedful.metrics.rank import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Verdict = Literal["learnable", "uninformative", "unclear"]

PERMUTATIONS = 100
MAX_CELLS = 1_000_000  # pairs of an input and an output word examined in each permutation
ROUNDING = 1e-12  # a contrast of 0 may come out as large as this
P_LEARNABLE, P_UNINFORMATIVE = 0.01, 0.05


@dataclass(frozen=True)
class Statistic:
    """A value, its distribution when inputs and outputs are paired at random, and a permutation p-value.

    p = (1 + permutations at or above the value) / (1 + permutations)
    """

    value: float
    null_mean: float
    null_sd: float
    p: float
    permutations: int

    def __str__(self) -> str:
        return f"{self.value:.4g} (by chance {self.null_mean:.4g} ± {self.null_sd:.2g}, p = {self.p:.2g})"


@dataclass(frozen=True)
class Informativeness:
    """The statistics of a corpus and their verdict, from a sample (`examined`) of its sentence pairs (`pairs`).

    `information` is the mutual information of input and output words in nats; `contrast` how much more probable the
    right output becomes when attention follows α^IBM instead of being uniform; `concentration` the mean
    KL(α^IBM ‖ uniform) in nats. The last two use counts without the sentence at hand. The verdict rests on contrast.
    """

    information: Statistic
    contrast: Statistic
    concentration: Statistic
    pairs: int
    examined: int
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def informativeness(
    sources: Sentences,
    targets: Sentences,
    *,
    permutations: int = PERMUTATIONS,
    max_cells: int = MAX_CELLS,
    seed: int = 0,
) -> Informativeness:
    """Whether attention has anything to learn from; the null distribution pairs sources with permuted targets.

        contrast = mean over outputs of  Σ_l α_{t,l} β_{t,l} − (1/L) Σ_l β_{t,l},    α = β / Σ_l β    (Eqs 17–19)

    It is 0 exactly where the words of a sentence co-occur equally with each of its outputs: attention can prefer none.
    Departure from Eq. 17: β comes from counts without the sentence itself, and one token's worth of the output's
    overall share is added. With plain counts every rare word points to the few outputs it was seen with, under any
    labels, and on small corpora chance contrasts more than language does.

    "learnable" (p ≤ 0.01) says that co-occurrence can tell words apart, not that a model will get there: the fixed
    permutation of §6.2 is learnable in this sense. "uninformative": the contrast is 0, or p > 0.05.

    >>> rng = np.random.default_rng(0)
    >>> copies = [rng.permutation(6) for _ in range(50)]
    >>> informativeness(copies, copies).verdict
    'uninformative'
    >>> samples = [rng.permutation(9)[:6] for _ in range(50)]
    >>> informativeness(samples, samples).verdict
    'learnable'
    """
    first, second = paired_ids(sources, targets)
    worded = np.flatnonzero(second.lengths > 0)
    if len(worded) < 2:
        raise DataError(f"{len(worded)} pairs with an output; at least two are needed to compare with chance")
    if permutations < 1:
        raise DataError(f"{permutations} permutations; at least one is needed")
    rng = np.random.default_rng(seed)
    chosen = _sample(first, second, worded, max_cells, rng)
    corpus = _corpus(first.take(chosen), second.take(chosen))
    observed = _measure(corpus, np.arange(len(chosen)))
    null = np.array(_null(corpus, permutations, rng))
    values = [_statistic(value, null[:, k]) for k, value in enumerate(observed)]
    return Informativeness(values[0], values[1], values[2], len(first), len(chosen), _verdict(values[1]))


def _null(corpus: "_Corpus", permutations: int, rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """The statistics of random pairings, one per core at a time: the compiled kernel releases the interpreter lock."""
    measured: list[tuple[float, float, float]] = []
    width = os.cpu_count() or 1
    with ThreadPoolExecutor(width) as pool:
        while len(measured) < permutations:
            drawn = [rng.permutation(len(corpus.L)) for _ in range(min(width, permutations - len(measured)))]
            measured += pool.map(lambda pairing: _measure(corpus, pairing), drawn)
    return measured


def label_targets(labels: Sequence[int] | NDArray[np.integer[Any]]) -> Ragged:
    """Labels as output sentences of one word.

    >>> label_targets([1, 0]).lengths
    array([1, 1])
    """
    values = np.asarray(labels, dtype=np.int32)
    return Ragged.from_lengths(values, np.ones(len(values), dtype=np.int64))


class _Corpus(NamedTuple):
    """A sample of the corpus, indexed: input word i is in `sentence[start[i]:start[i + 1]]`, each so many `times`.

    The distinct outputs of target m are `target[target_starts[m]:target_starts[m + 1]]`, each so many `repeats`.
    """

    start: Integers
    sentence: Integers
    times: Floats
    L: Floats
    target: Integers
    repeats: Floats
    target_starts: Integers


def _corpus(first: Ragged, second: Ragged) -> _Corpus:
    source, times, starts = _distinct(first)
    order = np.argsort(source, kind="stable")
    start = np.searchsorted(source[order], np.arange(int(source.max()) + 2))
    sentence = np.repeat(np.arange(len(first)), np.diff(starts))
    L = np.asarray(first.lengths, dtype=np.float64)
    return _Corpus(start, sentence[order], times[order], L, *_distinct(second))


def _measure(corpus: _Corpus, pairing: Integers) -> tuple[float, float, float]:
    """(information, contrast, concentration) when source m is paired with target `pairing[m]`."""
    L, target, repeats = corpus.L, corpus.target, corpus.repeats
    begin, heights = corpus.target_starts[:-1][pairing], np.diff(corpus.target_starts)[pairing]
    T: Floats = np.add.reduceat(repeats, corpus.target_starts[:-1])[pairing]
    by_input = np.add.reduceat(corpus.times * (T / L)[corpus.sentence], corpus.start[:-1])
    by_output = np.asarray(np.bincount(target, weights=repeats), dtype=np.float64)
    index = corpus.start, corpus.sentence, corpus.times
    information, sums = _cells(*index, target, repeats, begin, offsets_of(heights), L, T, by_input, by_output)
    sentence, weight = np.repeat(np.arange(len(L)), heights), repeats[ranges(begin, heights)]
    mean = sums[0] / L[sentence]
    contrast = float(np.dot(weight, sums[1] / sums[0] - mean) / weight.sum())
    concentration = float(np.dot(weight, sums[2] / sums[0] - np.log(mean)) / weight.sum())
    return _or_zero(information), _or_zero(contrast), _or_zero(concentration)


@compiled
def _cells(
    start: Integers,
    sentence: Integers,
    times: Floats,
    target: Integers,
    repeats: Floats,
    target_begin: Integers,
    row_offsets: Integers,
    L: Floats,
    T: Floats,
    by_input: Floats,
    by_output: Floats,
) -> tuple[float, Floats]:
    """The information, and Σ_l β, Σ_l β², Σ_l β ln β for every distinct output of every sentence.

    Input word i is in the sentences `sentence[start[i]:start[i + 1]]`, each so many `times`.
    """
    mass = by_output.sum()
    token = mass / times.sum()
    information = 0.0
    sums = np.zeros((3, row_offsets[-1]), np.float64)
    C = np.zeros(len(by_output), np.float64)
    touched = np.empty(len(by_output), np.int64)
    for i in range(len(by_input)):
        count = 0
        for place in range(start[i], start[i + 1]):
            m = sentence[place]
            for k in range(row_offsets[m + 1] - row_offsets[m]):
                at = target_begin[m] + k
                if C[target[at]] == 0.0:
                    touched[count] = target[at]
                    count += 1
                C[target[at]] += times[place] * repeats[at] / L[m]
        for place in range(start[i], start[i + 1]):
            m, n = sentence[place], times[place]
            others = max(by_input[i] - n * T[m] / L[m], 0.0) + token
            for k in range(row_offsets[m + 1] - row_offsets[m]):
                at, row = target_begin[m] + k, row_offsets[m] + k
                o = target[at]
                beta = (max(C[o] - n * repeats[at] / L[m], 0.0) + token * by_output[o] / mass) / others
                sums[0, row] += n * beta
                sums[1, row] += n * beta * beta
                sums[2, row] += n * beta * np.log(beta)
        for o in touched[:count]:
            information += C[o] * np.log(C[o] * mass / (by_input[i] * by_output[o]))
            C[o] = 0.0
    return information / mass, sums


def _sample(first: Ragged, second: Ragged, worded: Integers, max_cells: int, rng: np.random.Generator) -> Integers:
    """A random sample of pairs, in order, with at most `max_cells` pairs of words in total; at least 100 pairs."""
    cells = first.lengths[worded] * second.lengths[worded]
    if cells.sum() <= max_cells:
        return worded
    order = rng.permutation(len(worded))
    fits = int(np.searchsorted(np.cumsum(cells[order]), max_cells))
    return worded[np.sort(order[: max(100, fits)])]


def _distinct(ids: Ragged) -> tuple[Integers, Floats, Integers]:
    known, values = np.unique(ids.values, return_inverse=True)
    sentence = np.repeat(np.arange(len(ids)), ids.lengths)
    key, times = np.unique(sentence * len(known) + values, return_counts=True)
    return key % len(known), times.astype(np.float64), offsets_of(np.bincount(key // len(known), minlength=len(ids)))


def _or_zero(value: float) -> float:
    return value if value > ROUNDING else 0.0


def _statistic(value: float, null: Floats) -> Statistic:
    tied = null >= value - 1e-9 * abs(value)  # sums in another order differ in their last digits
    p = (1 + int(tied.sum())) / (1 + len(null))
    return Statistic(float(value), float(null.mean()), float(null.std()), p, len(null))


def _verdict(contrast: Statistic) -> Verdict:
    if contrast.value == 0 or contrast.p > P_UNINFORMATIVE or math.isnan(contrast.value):
        return "uninformative"
    return "learnable" if contrast.p <= P_LEARNABLE else "unclear"
