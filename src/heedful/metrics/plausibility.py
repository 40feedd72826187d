"""Does an explanation look like a person's? Agreement with human rationales, one value per text.

A text without any marked token has no rationale to find: NaN, which `bootstrap_mean` leaves out and counts.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.data.ragged import Ragged, paired
from heedful.errors import DataError
from heedful.metrics.agreement import Rows


def token_f1(predicted: Rows, gold: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """F1 of the tokens chosen against the tokens that people marked (0 or 1 each).

        F1 = 2 TP / (2 TP + FP + FN)

    Choose tokens from scores with `faithfulness.top_percent`.

    >>> token_f1([[1, 1, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 0]]).round(4)
    array([0.6667,    nan])
    """
    chosen, marked = paired(predicted, gold, mask)
    _check_binary("predicted", chosen)
    _check_binary("gold", marked)
    starts = chosen.offsets[:-1]
    hits = np.add.reduceat(chosen.values * marked.values, starts)
    size = np.add.reduceat(marked.values, starts)
    return np.where(size > 0, 2 * hits / np.maximum(np.add.reduceat(chosen.values, starts) + size, 1), np.nan)


def auprc(scores: Rows, gold: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Area under the precision–recall curve of scores against marked tokens: average precision.

        AP = Σ_n (R_n − R_{n−1}) P_n   over the distinct scores, highest first

    As sklearn.metrics.average_precision_score, for all rows at once; equal scores count as one threshold.

    >>> auprc([[0.9, 0.1, 0.5]], [[1, 0, 1]])
    array([1.])
    """
    rows, marked = paired(scores, gold, mask)
    _check_binary("gold", marked)
    order = np.lexsort((-rows.values, rows.row_of))
    score, hit = rows.values[order], marked.values[order].astype(np.float64)
    starts = np.repeat(rows.offsets[:-1], rows.lengths)
    running = np.concatenate([[0.0], np.cumsum(hit)])
    found = running[1:] - running[starts]
    seen = np.arange(1, len(hit) + 1) - starts
    last = np.ones(len(hit), dtype=bool)  # of its group of equal scores, whose end is the threshold
    last[:-1] = score[1:] != score[:-1]
    last[rows.offsets[1:] - 1] = True
    at = np.flatnonzero(last)
    new = np.diff(running[at + 1], prepend=0.0)
    total = np.add.reduceat(hit, rows.offsets[:-1])
    area = np.bincount(rows.row_of[at], weights=new * found[at] / seen[at], minlength=len(rows))
    average = np.full(len(rows), np.nan)
    np.divide(area, total, out=average, where=total > 0)
    return average


def _check_binary(name: str, rows: Ragged) -> None:
    bad = (rows.values != 0) & (rows.values != 1)
    if bad.any():
        r = int(rows.row_of[int(np.argmax(bad))])
        raise DataError(f"{name} holds {rows.values[bad][0]:g} in row {r}; a token is marked (1) or not (0)")
