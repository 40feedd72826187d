"""Forecast of learning time: monotone regression of measured times on a statistic of the data.

The measured times are those of `heedful reproduce heedful2026`; `papers.heedful2026.calibration` puts them into the
package.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from heedful.errors import DataError
from heedful.storage.serialization import Stored, from_mapping

Floats = NDArray[np.float64]
CALIBRATION = "calibration.json"
SLOW = 1.5  # times as long as copying 40 of 60 words: if that may be, advice is given
BELOW = 10.0  # a statistic of 0 is drawn and fitted so many times below the least above 0


@dataclass(frozen=True)
class MeasuredTime:
    """The median time in which a model learned a task, and a statistic of its data: the larger, the sooner.

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
        knots = _logarithms(np.array(self.statistic), self.statistic)
        times: Floats = np.exp(np.interp(x, knots, np.log(self.time)))
        return times


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
    logarithms: Floats = np.log(np.maximum(statistic, max(least / BELOW, float(np.finfo(np.float64).tiny))))
    return logarithms


@dataclass(frozen=True)
class MeasuredCure:
    """How many times as many steps a task took with a cure as without, with its interval."""

    name: str
    task: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class MeasuredCheck:
    """How many times as long as forecast a training on real sentence pairs took."""

    data: str
    ratio: float


@dataclass(frozen=True)
class Calibration(Stored):
    """Measured learning times and cures, from stored results. easy: the task whose time is 1.

    The statistic of the times is one over the number of candidates (`preflights.candidates`).
    """

    easy: str
    easy_time: float
    times: tuple[MeasuredTime, ...]
    cures: tuple[MeasuredCure, ...]
    made: str  # by which command, on which day
    checks: tuple[MeasuredCheck, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """Expected learning time as a multiple of copying 40 of 60 words; None where nothing is known.

    The interval covers 95 % of the errors of forecasts for families of tasks that were left out of the fit. advice:
    what shortened learning in measured trainings.
    """

    sentence: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    advice: tuple[str, ...] = ()


def forecast(candidates: float | None, calibration: Calibration | None = None) -> Forecast:
    """The learning time to expect where counts leave so many candidates, by a calibration; by default the package's.

    >>> times = tuple(MeasuredTime(f, f, x, t, False) for f, x, t in (("a", 1.0, 50.0), ("b", 0.1, 200.0)))
    >>> round(forecast(1.0, calibration=Calibration("copy-dose:60", 50.0, times, (), "today")).ratio, 6)
    1.0
    """
    known = packaged_calibration() if calibration is None else calibration
    if candidates is None:
        return Forecast("No forecast of learning time: it is calibrated for sentence pairs only.")
    if known is None:
        return Forecast("No forecast of learning time: it is not calibrated, because no measured times are stored.")
    statistic = 1 / candidates
    ratio = float(fit_curve(known.times).at([statistic])[0]) / known.easy_time
    errors = np.log([point.time for point in known.times]) - np.log(held_out_times(known.times))
    low, high = (ratio * float(np.exp(q)) for q in np.nanquantile(errors, (0.025, 0.975)))
    families = ", ".join(dict.fromkeys(point.family for point in known.times))
    sentence = (
        f"Forecast: attention should need {_times(ratio)} training steps as on an easy task, copying sequences of 40 "
        f"words drawn from 60 (between {low:.2g} and {high:.2g} times as many). This comes from trainings on "
        f"{len(known.times)} copying tasks ({families}), {known.made}."
    )
    least, most = min(p.statistic for p in known.times), max(p.statistic for p in known.times)
    if not least <= statistic <= most:
        beyond = "more" if statistic > most else "less"
        sentence += f" Your data are {beyond} informative than any of those tasks, so this is the nearest one's time."
    if known.checks:
        ratios = sorted(check.ratio for check in known.checks)
        sentence += (
            f" Real sentences are harder: on {', '.join(check.data for check in known.checks)} training took "
            f"{ratios[0]:.2g} to {ratios[-1]:.2g} times as long as forecast."
        )
    return Forecast(sentence, ratio, low, high, _advice(known) if high > SLOW else ())


def packaged_calibration() -> Calibration | None:
    """The calibration that comes with the package; None where there is none."""
    path = files("heedful.preflights") / CALIBRATION
    if not path.is_file():
        return None
    return from_mapping(Calibration, json.loads(path.read_text(encoding="utf-8")), where=CALIBRATION)


def _advice(known: Calibration) -> tuple[str, ...]:
    """The cures whose whole interval lies below 1, the best first."""
    worked = sorted((cure for cure in known.cures if cure.high < 1), key=lambda cure: cure.ratio)
    if not worked:
        return ("nothing that was tried clearly shortened learning",) if known.cures else ()
    return tuple(
        f"{cure.name}: {cure.ratio:.0%} of the steps ({cure.low:.0%} to {cure.high:.0%}) on {cure.task}"
        for cure in worked
    )


def _times(ratio: float) -> str:
    return "about as many" if 0.95 <= ratio <= 1.05 else f"about {ratio:.2g} times as many"
