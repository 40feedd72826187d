"""The calibration of preflight's forecast, from the stored results of heedful2026.

`python -m heedful.papers.heedful2026.calibration results quick` writes it into the package.
"""

import math
import sys
from pathlib import Path

from heedful.errors import RunError
from heedful.papers.experiment import Result, result_path
from heedful.papers.heedful2026.config import EASY
from heedful.preflights import forecast
from heedful.preflights.forecast import CALIBRATION, Calibration, MeasuredCheck, MeasuredCure, MeasuredTime


def calibration_of(results: Path, budget: str = "quick") -> Calibration:
    """The measured times of `dose` and, where they are stored, the ratios of `cures` and the checks of `forecast`."""
    path = result_path(results, "heedful2026", budget, "dose")
    if not path.exists():
        raise RunError(f"{path}: no such file; run `heedful reproduce heedful2026 dose cures --budget {budget}` first")
    dose = Result.load(path)
    steps = {value.name: value.estimate.value for value in dose.finding.values}
    times = tuple(
        MeasuredTime(points.group, f"{points.group}, {x:.3g} candidates", 1 / x, y, points.hollow)
        for points in dose.finding.figures[0].panels[0].points
        for x, y in zip(points.x, points.y, strict=True)
    )
    made = f"{dose.manifest.command}, {(dose.manifest.finished or '')[:10]}"
    return Calibration(
        EASY, steps[f"median step, {EASY}"], times, _cures(results, budget), made, _checks(results, budget)
    )


def _cures(results: Path, budget: str) -> tuple[MeasuredCure, ...]:
    path = result_path(results, "heedful2026", budget, "cures")
    if not path.exists():
        return ()
    named = ((value.name.rpartition(", "), value.estimate) for value in Result.load(path).finding.values)
    return tuple(MeasuredCure(name, task, e.value, e.low, e.high) for (name, _, task), e in named)


def _checks(results: Path, budget: str) -> tuple[MeasuredCheck, ...]:
    path, prefix = result_path(results, "heedful2026", budget, "forecast"), "measured over forecast, "
    values = Result.load(path).finding.values if path.exists() else ()
    return tuple(
        MeasuredCheck(value.name.removeprefix(prefix), value.estimate.value)
        for value in values
        if value.name.startswith(prefix) and not math.isnan(value.estimate.value)
    )


def main(results: str = "results", budget: str = "quick") -> None:
    """Write the calibration into the package."""
    calibration_of(Path(results), budget).save(Path(forecast.__file__).with_name(CALIBRATION))


if __name__ == "__main__":
    main(*sys.argv[1:])
