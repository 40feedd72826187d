"""Which words draw attention: means over all validation texts and seeds, at every recorded step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from heedful.data.tokens import EncodedSplit
from heedful.trace.store import Trace

FEW_WORDS, MANY_WORDS = 20, 600


@dataclass(frozen=True)
class TokenTable:
    """Words that occur often enough, with n·α and β at each step, (steps, words) each.

    n·α is the weight a word draws over its share: 1 when attention is uniform, whatever the text's length (α itself
    would favour words of short texts).
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    least: int
    attention: NDArray[np.float32]
    beta: NDArray[np.float32]


def token_table(split: EncodedSplit, traces: Sequence[Trace], steps: Sequence[int]) -> TokenTable:
    """The words of a split seen five times or more, or less often where there are few such; at most `MANY_WORDS`."""
    every = np.bincount(split.ids)
    least = next((k for k in (5, 3, 2) if np.sum(every >= k) >= FEW_WORDS), 1)
    ids = np.flatnonzero(every >= least)
    ids = np.sort(ids[np.argsort(-every[ids], kind="stable")[:MANY_WORDS]])
    length = np.repeat(split.lengths, split.lengths)
    attention, beta = [], []
    for step in steps:
        weights = np.mean([trace.quantity("alpha", step).values for trace in traces], axis=0) * length
        known = np.mean([expit(trace.quantity("beta_logit", step).values) for trace in traces], axis=0)
        attention.append(_means(split.ids, weights, every)[ids])
        beta.append(_means(split.ids, known, every)[ids])
    return TokenTable(ids, every[ids], least, np.array(attention, np.float32), np.array(beta, np.float32))


def _means(ids: NDArray[np.int32], values: NDArray[np.floating], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.bincount(ids, weights=values, minlength=len(counts)) / np.maximum(counts, 1)
    return means
