"""Faithfulness and plausibility of an explanation (DeYoung et al. 2020, ERASER).

Faithfulness: does the model need the tokens that the explanation names? The model is one callable: `predict(keep)`
takes a boolean matrix (texts, longest text), false where a token is erased or the text has ended, and returns the
probability of the class predicted for the whole text.

Plausibility: does the explanation mark the tokens that people marked? A text without any marked token gives NaN, which
`bootstrap_mean` leaves out and counts.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.data.ragged import Ragged, as_ragged, paired
from heedful.errors import DataError
from heedful.metrics.agreement import Rows

PERCENTS = (1, 5, 10, 20, 50)
Floats = NDArray[np.float64]
Mask = ArrayLike | None
Predict = Callable[[NDArray[np.bool_]], ArrayLike]


def comprehensiveness(
    scores: Rows, predict: Predict, *, percents: Sequence[int] = PERCENTS, mask: Mask = None
) -> Floats:
    """Drop of the prediction without the top tokens: one row per text, one column per k %.

        m(x)_ŷ − m(x \\ r_k)_ŷ

    High if the explanation is faithful. NaN if nothing is left of the text.

    >>> weights = np.array([0.6, 0.3, 0.1])
    >>> comprehensiveness([weights], lambda keep: keep @ weights, percents=[50])
    array([[0.9]])
    """
    return _erased(scores, predict, percents, mask, keep_top=False)


def sufficiency(scores: Rows, predict: Predict, *, percents: Sequence[int] = PERCENTS, mask: Mask = None) -> Floats:
    """Drop of the prediction with only the top tokens: one row per text, one column per k %.

        m(x)_ŷ − m(r_k)_ŷ

    Low if the explanation is faithful.

    >>> weights = np.array([0.6, 0.3, 0.1])
    >>> sufficiency([weights], lambda keep: keep @ weights, percents=[10]).round(4)
    array([[0.4]])
    """
    return _erased(scores, predict, percents, mask, keep_top=True)


def aopc(differences: ArrayLike) -> Floats:
    """Area over the perturbation curve: the mean over k of either measure; NaN where any k is undefined.

    Departure: DeYoung et al. (Eq. 5) also count k = 0, whose difference is 0 for one measure and meaningless for the
    other; their code, like this, does not.

    >>> aopc([[0.2, 0.4], [0.0, 0.1]]).round(4)
    array([0.3 , 0.05])
    """
    table = np.asarray(differences, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"differences have shape {table.shape}; they must be (texts, percents), at least one percent")
    area: NDArray[np.float64] = table.mean(axis=1)
    return area


def top_percent(scores: Rows, percent: int, *, mask: Mask = None) -> list[NDArray[np.bool_]]:
    """Which positions hold the ⌈k % · L⌉ highest scores of each row; the first of equals.

    >>> top_percent([[0.1, 0.7, 0.2, 0.0]], 50)
    [array([False,  True,  True, False])]
    """
    rows = as_ragged(scores, mask)
    chosen = _in_top(rows, percent)
    return [chosen[start:end] for start, end in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]


def _erased(scores: Rows, predict: Predict, percents: Sequence[int], mask: Mask, *, keep_top: bool) -> Floats:
    rows = as_ragged(scores, mask)
    place = _places(scores, rows, mask)
    full = _probabilities(predict, place)
    table = np.full((len(rows), len(percents)), np.nan)
    for column, percent in enumerate(percents):
        chosen = _in_top(rows, percent)
        keep = np.zeros_like(place)
        keep[place] = chosen if keep_top else ~chosen
        empty = ~keep.any(axis=1)
        keep[empty] = place[empty]  # a model needs at least one token
        table[:, column] = np.where(empty, np.nan, full - _probabilities(predict, keep))
    return table


def _places(scores: Rows, rows: Ragged, mask: Mask) -> NDArray[np.bool_]:
    """The mask of the padded matrix that the values of the ragged rows fill, row by row."""
    if mask is not None:
        shape = np.shape(np.asarray(scores))
        return np.broadcast_to(np.asarray(mask, dtype=bool), shape).reshape(len(rows), shape[-1])
    place: NDArray[np.bool_] = np.arange(rows.lengths.max(initial=0)) < rows.lengths[:, None]
    return place


def _in_top(rows: Ragged, percent: int) -> NDArray[np.bool_]:
    if not 0 < percent <= 100:
        raise DataError(f"percent is {percent}; it must lie in 1 … 100")
    if np.isnan(rows.values).any():
        raise DataError(f"scores are NaN in row {int(rows.row_of[int(np.argmax(np.isnan(rows.values)))])}")
    order = np.lexsort((-rows.values, rows.row_of))  # stable: the first of equals comes first
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(rows.offsets[:-1], rows.lengths)
    allowed = -(-percent * rows.lengths // 100)
    return rank < np.repeat(allowed, rows.lengths)


def _probabilities(predict: Predict, keep: NDArray[np.bool_]) -> Floats:
    p = np.asarray(predict(keep), dtype=np.float64)
    if p.shape != (len(keep),):
        raise DataError(f"predict gave shape {p.shape} for {len(keep)} texts; it must give one probability for each")
    return p


def token_f1(predicted: Rows, gold: Rows, *, mask: Mask = None) -> Floats:
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


def iou_f1(predicted: Rows, gold: Rows, *, least: float = 0.5, mask: Mask = None) -> Floats:
    """F1 of the spans chosen against the spans that people marked (0 or 1 for each token), as in ERASER.

    A span is a run of neighbouring tokens. A chosen span is right if it has at least half of all tokens in common with
    some marked span (intersection over union). Precision is the share of chosen spans that are right; recall is their
    number as a share of the marked spans, and not more than 1.

    >>> iou_f1([[1, 1, 1, 0, 0, 1]], [[1, 1, 0, 0, 1, 0]]).round(4), iou_f1([[1, 0]], [[0, 0]])
    (array([0.5]), array([nan]))
    """
    chosen, marked = paired(predicted, gold, mask)
    _check_binary("predicted", chosen)
    _check_binary("gold", marked)
    result = np.full(len(chosen), np.nan)
    for i, (own, theirs) in enumerate(zip(chosen, marked, strict=True)):
        spans, wanted = spans_of(own), spans_of(theirs)
        if wanted:
            right = sum(any(_overlap(span, other) >= least for other in wanted) for span in spans)
            precision, recall = right / max(1, len(spans)), min(1.0, right / len(wanted))
            result[i] = 2 * precision * recall / (precision + recall) if right else 0.0
    return result


def spans_of(marks: ArrayLike) -> list[tuple[int, int]]:
    """The runs of marked tokens: the first of each, and the one after its last.

    >>> spans_of([1, 1, 0, 1])
    [(0, 2), (3, 4)]
    """
    changes = np.diff(np.concatenate([[0], np.asarray(marks, dtype=np.int64), [0]]))
    starts, ends = np.flatnonzero(changes == 1), np.flatnonzero(changes == -1)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> float:
    common = min(first[1], second[1]) - max(first[0], second[0])
    return common / (max(first[1], second[1]) - min(first[0], second[0])) if common > 0 else 0.0


def auprc(scores: Rows, gold: Rows, *, mask: Mask = None) -> Floats:
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
    hits = running[1:] - running[starts]
    seen = np.arange(1, len(hit) + 1) - starts
    last = np.ones(len(hit), dtype=bool)  # of its group of equal scores, whose end is the threshold
    last[:-1] = score[1:] != score[:-1]
    last[rows.offsets[1:] - 1] = True
    at = np.flatnonzero(last)
    new = np.diff(running[at + 1], prepend=0.0)
    total = np.add.reduceat(hit, rows.offsets[:-1])
    area = np.bincount(rows.row_of[at], weights=new * hits[at] / seen[at], minlength=len(rows))
    average = np.full(len(rows), np.nan)
    np.divide(area, total, out=average, where=total > 0)
    return average


def _check_binary(name: str, rows: Ragged) -> None:
    bad = (rows.values != 0) & (rows.values != 1)
    if bad.any():
        r = int(rows.row_of[int(np.argmax(bad))])
        raise DataError(f"{name} holds {rows.values[bad][0]:g} in row {r}; a token is marked (1) or not (0)")
