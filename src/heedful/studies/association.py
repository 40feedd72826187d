"""Which words each output will be learned from: association between input and output words, before any training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from heedful.data.ids import Ids, Sentences, pairs_of
from heedful.errors import DataError


@dataclass(frozen=True)
class Association:
    """An input word and an output word (or label): in how many texts they stand together, each alone, and what follows.

    `trans` is Trans(o|i) of snell2021, Eq. 17; `z` how many standard deviations `together` lies above what independence
    would give, so that a rare word cannot stand out by chance.
    """

    source: int
    target: int
    together: int
    source_count: int
    target_count: int
    trans: float
    z: float


@dataclass(frozen=True)
class Determinants:
    """The input words that speak most strongly for an output, and those that speak most strongly against it."""

    target: int
    most: tuple[Association, ...]
    least: tuple[Association, ...]


def determinants(
    sources: Sentences,
    targets: Sentences,
    *,
    outputs: Sequence[int] | None = None,
    top: int = 10,
) -> dict[int, Determinants]:
    """For each output that occurs (unless named: the 20 most frequent), the words that most and least determine it.

        z = (n_io − n_i n_o / N) / √(n_i n_o (N − n_i)(N − n_o) / (N² (N − 1)))

    the standardised count of texts with both, given the counts of each (the hypergeometric moments).

    >>> found = determinants([[0, 1], [0, 2], [0, 1], [0, 2]], [[1], [0], [1], [0]], top=1)
    >>> found[1].most[0].source, round(found[1].most[0].z, 3), found[1].least[0].source
    (1, 1.732, 2)
    """
    if top < 1:
        raise DataError(f"top is {top}; it must be 1 or more")
    first, second = pairs_of(sources, targets)
    there, said = _presence(first), _presence(second)
    N = len(first)
    n_i, n_o = (np.asarray(matrix.sum(axis=0)).ravel().astype(np.float64) for matrix in (there, said))
    chosen = most_frequent(n_o) if outputs is None else np.asarray(outputs, dtype=np.int64)
    chosen = chosen[chosen < len(n_o)]
    mass = (_shares(first).T @ _occurrences(second)[:, chosen]).toarray()
    totals = _shares(first).T @ second.lengths.astype(np.float64)
    together = (there.T @ said[:, chosen]).toarray().astype(np.float64)
    return rank(N, n_i, n_o, chosen, together, mass, totals, top=top)


def most_frequent(n_o: NDArray[np.float64], count: int = 20) -> NDArray[np.int64]:
    """The outputs that stand in most texts, the first of equals first.

    >>> most_frequent(np.array([1.0, 3.0, 3.0]), 2)
    array([1, 2])
    """
    return np.argsort(-n_o, kind="stable")[:count].astype(np.int64)


def rank(
    N: int,
    n_i: NDArray[np.float64],
    n_o: NDArray[np.float64],
    chosen: NDArray[np.int64],
    together: NDArray[np.float64],
    mass: NDArray[np.float64],
    totals: NDArray[np.float64],
    *,
    top: int,
) -> dict[int, Determinants]:
    """The same from counts: of texts (N), with each word (n_i, n_o), with both (words × chosen), and from C.

    mass: the columns of C that were chosen; totals: the sums of its rows.
    """
    trans = mass / np.maximum(totals, np.finfo(np.float64).tiny)[:, None]
    expected = np.outer(n_i, n_o[chosen]) / max(1, N)
    spread = np.sqrt(expected * np.outer(N - n_i, N - n_o[chosen]) / max(1, N * (N - 1)))
    z = np.divide(together - expected, spread, out=np.zeros_like(expected), where=spread > 0)
    result = {}
    for k, o in enumerate(chosen.tolist()):
        if n_o[o] == 0:
            continue
        order = np.lexsort((-n_i, -z[:, k]))
        order = order[n_i[order] > 0]
        named = [
            [
                Association(
                    int(i), o, int(together[i, k]), int(n_i[i]), int(n_o[o]), float(trans[i, k]), float(z[i, k])
                )
                for i in part
            ]
            for part in (order[:top], order[::-1][:top])
        ]
        result[o] = Determinants(o, tuple(a for a in named[0] if a.z > 0), tuple(a for a in named[1] if a.z < 0))
    return result


def _occurrences(ids: Ids) -> sparse.csr_array:
    parts = np.ones(len(ids.values)), ids.values, ids.offsets
    counts = sparse.csr_array(parts, shape=(len(ids), ids.size), copy=True)
    counts.sum_duplicates()  # in place, hence the copy
    return counts


def _shares(ids: Ids) -> sparse.csr_array:
    counts = _occurrences(ids)
    lengths: NDArray[np.float64] = np.repeat(ids.lengths, np.diff(counts.indptr)).astype(np.float64)
    return sparse.csr_array((counts.data / lengths, counts.indices, counts.indptr), shape=counts.shape)


def _presence(ids: Ids) -> sparse.csr_array:
    counts = _occurrences(ids)
    return sparse.csr_array(
        (np.ones(len(counts.data), dtype=np.int64), counts.indices, counts.indptr), shape=counts.shape
    )
