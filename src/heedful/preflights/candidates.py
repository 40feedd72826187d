"""Candidates: how many words of a source counts cannot tell apart as the origin of an output word.

Attention is learned from words whose translation is already known. A count table may be far from flat and still leave
attention without a direction: where words always come in blocks, it says which block an output belongs to and nothing
more. So the candidates within one sentence are counted, not the differences over the whole table.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from heedful.data.ragged import Ragged, Sentences, paired_ids

COUNTED, EXAMINED = 2_000, 200  # pairs that are counted, and those of them whose output words are examined
WIDTH = 3 / math.sqrt(2)  # standard errors on each side: two equal proportions differ by 3 of their difference's


@dataclass(frozen=True)
class Candidates:
    """The mean number of candidates, that with the targets of other pairs (`by_chance`), and of `words` in a source."""

    value: float
    by_chance: float
    words: float


def candidates_and_chance(sources: Sentences, targets: Sentences, *, seed: int = 0) -> Candidates:
    """`mean_candidates` beside its control: every source with the target of the next pair.

    >>> rng = np.random.default_rng(0)
    >>> some = [rng.permutation(30)[:6] for _ in range(500)]
    >>> found = candidates_and_chance(some, some)
    >>> round(found.value, 1), found.by_chance > 5, found.words
    (1.0, True, 6.0)
    """
    first, second = paired_ids(sources, targets)
    others = second.take(np.roll(np.arange(len(second)), -1))
    words = np.diff(occurrences(first).indptr)
    value, chance = (mean_candidates(first, each, seed=seed) for each in (second, others))
    return Candidates(value, chance, float(words.mean()))


def mean_candidates(
    sources: Sentences, targets: Sentences, *, counted: int = COUNTED, examined: int = EXAMINED, seed: int = 0
) -> float:
    """The mean number of source words that may be the origin of an output word, as far as counts tell; at least 1.

        p_l = (n(x_l, y_t) + ½) / (n(x_l) + 1),   n: other pairs whose source has x_l, and whose target has y_t too

    Word x_l is a candidate unless p_l + w s_l lies below some p_k − w s_k, where s² = p(1 − p)/(n(x) + 1) and
    w = 3/√2. 1 where counts single out one word for every output, the number of words where they say nothing. It is
    counted on at most `counted` pairs, drawn under the seed, because more pairs tell more words apart.

    >>> rng = np.random.default_rng(0)
    >>> same, some = ([rng.permutation(n)[:6] for _ in range(500)] for n in (6, 30))
    >>> mean_candidates(same, same), round(mean_candidates(some, some), 1)
    (6.0, 1.0)
    """
    first, second = paired_ids(sources, targets)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(first))[:counted])
    inputs, outputs = (occurrences(side.take(chosen)).sign() for side in (first, second))
    together = sparse.csr_array(inputs.T @ outputs)
    n = np.asarray(inputs.sum(axis=0)).ravel()
    candidates = words = 0.0
    for row in rng.permutation(len(chosen))[:examined].tolist():
        x, y = (np.sort(side.indices[side.indptr[row] : side.indptr[row + 1]]) for side in (inputs, outputs))
        if not len(x) or not len(y):
            continue
        others = n[x][:, None] - 1
        p = (together[x][:, y].toarray() - 1 + 0.5) / (others + 1)
        error = WIDTH * np.sqrt(p * (1 - p) / (others + 1))
        candidates += float((p + error >= (p - error).max(axis=0)).sum())
        words += len(y)
    return candidates / words if words else float("nan")


def occurrences(ids: Ragged) -> sparse.csr_array:
    """How often each sentence has each word: (sentences, words)."""
    parts = np.ones(len(ids.values)), ids.values, ids.offsets
    counts = sparse.csr_array(parts, shape=(len(ids), ids.size), copy=True)
    counts.sum_duplicates()  # in place, hence the copy
    return counts
