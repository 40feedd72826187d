"""Association of tokens with labels (sunlu2020 §5.2), by which polarity and attention scores are compared.

Counts: row e, column c is how often token e occurs in texts of label c.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.data.ragged import as_ragged
from heedful.errors import DataError
from heedful.metrics.agreement import Rows

EVEN, COUNT = 0.1, 5


def association(counts: ArrayLike) -> NDArray[np.float64]:
    """γ of each token from its counts in negative (column 0) and positive (column 1) texts (sunlu2020, Eq. 28).

        γ_e = (f⁺ − f⁻) / (f⁺ + f⁻)

    In [−1, 1]; NaN for a token that never occurs.

    >>> association([[0, 8], [6, 2], [0, 0]])
    array([ 1. , -0.5,  nan])
    """
    f = _counts(counts, labels=2)
    total = f.sum(axis=1)
    gamma = np.full(len(f), np.nan)
    np.divide(f[:, 1] - f[:, 0], total, out=gamma, where=total > 0)
    return gamma


def token_classes(counts: ArrayLike) -> NDArray[Any]:
    """`positive`, `negative`, `neutral` or `none` for each token, from the same counts.

        positive: γ ≥ 0.5, f⁺ > 5     negative: γ ≤ −0.5, f⁻ > 5     neutral: |γ| < 0.1, |f⁺ − f⁻| < 5

    Departure: the paper prints the open intervals (0.5, 1) and (−1, −0.5), which would drop its purest tokens. Rare
    tokens that occur on one side only are `none`.

    >>> token_classes([[0, 8], [9, 3], [50, 52], [0, 5], [0, 0]]).tolist()
    ['positive', 'negative', 'neutral', 'none', 'none']
    """
    f = _counts(counts, labels=2)
    label = token_labels(f)
    return np.select([label == 1, label == 0, even_tokens(f)], ["positive", "negative", "neutral"], "none")


def token_labels(counts: ArrayLike, *, threshold: float = 0.75) -> NDArray[np.int64]:
    """The label that each token belongs to where there are more than two, or −1 (sunlu2020, footnote 9).

    A token belongs to its most frequent label if that label's share of its counts is at least `threshold` (which the
    paper leaves open; 0.75 is γ = 0.5 for two labels) and it occurs there more than 5 times.

    >>> token_labels([[9, 0, 1], [3, 3, 3], [1, 0, 30], [2, 0, 0]])
    array([ 0, -1,  2, -1])
    """
    f = _counts(counts)
    if not 0 < threshold <= 1:
        raise DataError(f"threshold is {threshold}; it is a share, above 0 and at most 1")
    best = f.argmax(axis=1)
    height = f.max(axis=1, initial=0)
    return np.where((height > COUNT) & (height >= threshold * f.sum(axis=1)), best, -1).astype(np.int64)


def even_tokens(counts: ArrayLike) -> NDArray[np.bool_]:
    """Which tokens are neutral, among any number of labels.

        (max_c f_c − min_c f_c) / Σ_c f_c < 0.1   and   max_c f_c − min_c f_c < 5

    For two labels these are the tokens that `token_classes` calls neutral; the paper does not say which are for more.

    >>> even_tokens([[50, 52], [9, 3], [2, 2], [0, 0]])
    array([ True, False,  True, False])
    >>> even_tokens([[12, 11, 13], [0, 1, 0]])
    array([ True, False])
    """
    f = _counts(counts)
    gap, total = np.ptp(f, axis=1), f.sum(axis=1)
    even: NDArray[np.bool_] = (total > 0) & (gap < EVEN * total) & (gap < COUNT)
    return even


def dominance(a: ArrayLike, b: ArrayLike) -> float:
    """Cliff's δ: how much more often a value of a lies above one of b than below, over all pairs; in [−1, 1].

        δ = (#{a_i > b_j} − #{a_i < b_j}) / (|a| |b|)

    0 where neither tends to be larger, 0.5 where a's is the larger in three pairs of four, NaN where one is empty.

    >>> dominance([3.0, 4.0], [1.0, 2.0, 3.5])
    0.6666666666666666
    """
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (a, b))
    if not len(x) or not len(y):
        return float("nan")
    ordered = np.sort(y)
    below, above = np.searchsorted(ordered, x, "left"), len(y) - np.searchsorted(ordered, x, "right")
    return float((below - above).sum() / (len(x) * len(y)))


def token_counts(
    ids: Rows,
    labels: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    vocabulary: int | None = None,
    classes: int | None = None,
) -> NDArray[np.int64]:
    """How often each token occurs in texts of each label; the sizes are the largest seen unless given.

    >>> token_counts([[0, 1, 1], [1, 2]], labels=[0, 1])
    array([[1, 0],
           [2, 1],
           [0, 1]])
    """
    rows = as_ragged(_as_floats(ids), mask)
    token, label = rows.values.astype(np.int64), np.asarray(labels, dtype=np.int64).ravel()
    if len(label) != len(rows):
        raise DataError(f"{len(rows)} texts but {len(label)} labels")
    V = _size("token", token, vocabulary)
    C = _size("label", label, classes)
    cell = token * C + label[rows.row_of]
    return np.bincount(cell, minlength=V * C).reshape(V, C).astype(np.int64)


def _as_floats(ids: Any) -> Any:
    """Rows of integers as floats, which hold them exactly up to 2⁵³."""
    return [np.asarray(row, dtype=np.float64) for row in ids] if isinstance(ids, Sequence) else ids


def _size(name: str, values: NDArray[np.int64], size: int | None) -> int:
    low, high = int(values.min(initial=0)), int(values.max(initial=-1))
    if low < 0 or (size is not None and high >= size):
        raise DataError(
            f"{name} {low if low < 0 else high} is out of range: ids run from 0 to {(size or high + 1) - 1}"
        )
    return high + 1 if size is None else size


def _counts(counts: ArrayLike, labels: int | None = None) -> NDArray[np.float64]:
    f = np.asarray(counts, dtype=np.float64)
    if f.ndim != 2 or f.shape[1] < 1 or (labels is not None and f.shape[1] != labels):
        raise DataError(f"counts have shape {f.shape}; they must be (tokens, {labels or 'labels'})")
    if not (np.isfinite(f) & (f >= 0)).all():
        raise DataError("counts must be finite and 0 or more")
    return f
