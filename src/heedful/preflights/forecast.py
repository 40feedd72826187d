"""Forecast of learning time: monotone regression of measured times on preflight's statistic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from heedful.errors import DataError

Floats = NDArray[np.float64]
BELOW = 10.0  # a statistic of 0 is drawn and fitted so many times below the least above 0


@dataclass(frozen=True)
class MeasuredTime:
    """The median time in which a model learned a task, and the statistic of its data.

    censored: half of the runs or more did not learn; `time` is then the budget, below the median.
    """

    family: str
    task: str
    statistic: float
    time: float
    censored: bool


@dataclass(frozen=True)
class TimeCurve:
    """A time that never rises with the statistic: knots, between which the logarithms of both are interpolated."""

    statistic: tuple[float, ...]
    time: tuple[float, ...]

    def at(self, statistic: ArrayLike) -> Floats:
        """The times that the curve gives; outside of its knots, that of the nearest.

        >>> TimeCurve((0.01, 1.0), (400.0, 100.0)).at([0.001, 0.1, 1.0]).round()
        array([400., 200., 100.])
        """
        x = _logarithms(np.asarray(statistic, dtype=np.float64), self.statistic)
        return np.exp(np.interp(x, _logarithms(np.array(self.statistic), self.statistic), np.log(self.time)))


def fit_curve(measured: Sequence[MeasuredTime]) -> TimeCurve:
    """The falling curve nearest to the measured times, by least squares of their logarithms.

    Times of tasks with the same statistic count as their geometric mean. A censored time counts as the budget.

    >>> points = [MeasuredTime("a", f"a:{x}", x, t, False) for x, t in ((0.1, 80.0), (0.2, 20.0), (0.4, 45.0))]
    >>> fit_curve(points).time
    (80.0, 30.0, 30.0)
    """
    if not measured:
        raise DataError("a curve needs one measured time or more; there are none")
    x = np.array([point.statistic for point in measured])
    y = np.log([point.time for point in measured])
    knots, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=y) / counts
    fitted = optimize.isotonic_regression(means, weights=counts, increasing=False).x
    return TimeCurve(tuple(knots.tolist()), tuple(float(f"{math.exp(value):.12g}") for value in fitted))


def held_out_times(measured: Sequence[MeasuredTime]) -> Floats:
    """The time of each task from the curve of the other families alone; NaN where there is no other family.

    >>> points = [MeasuredTime(f, f, x, t, False) for f, x, t in (("a", 0.1, 80.0), ("b", 0.2, 20.0))]
    >>> held_out_times(points).round(6)
    array([20., 80.])
    """
    times = np.full(len(measured), np.nan)
    for family in {point.family for point in measured}:
        others = [point for point in measured if point.family != family]
        own = [k for k, point in enumerate(measured) if point.family == family]
        if others:
            times[own] = fit_curve(others).at([measured[k].statistic for k in own])
    return times


def _logarithms(statistic: Floats, knots: Sequence[float]) -> Floats:
    least = min((knot for knot in knots if knot > 0), default=1.0)
    return np.log(np.maximum(statistic, max(least / BELOW, np.finfo(np.float64).tiny)))
