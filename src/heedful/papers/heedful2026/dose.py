"""Dose and response: learning time of copying tasks against what preflight counts in their data (H1, H15)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from heedful.metrics.statistics import Estimate
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Panel, Points, ResultTable, Row, Value, exactly
from heedful.papers.heedful2026.config import CONFIRMATION_BUDGETS, DOSE_BUDGETS, EASY, DoseBudget
from heedful.papers.heedful2026.models import copying_unit, statistic_unit
from heedful.papers.snell2021.models import share_learned
from heedful.preflights.forecast import MeasuredTime, fit_curve, held_out_times

Key = tuple[str, str]  # ("runs" or "preflight", task)
Answers = Mapping[Key, Sequence[Answer]]
RESAMPLES = 1000
STATISTICS = ("contrast", "concentration", "information")
CANDIDATES = "candidates"  # found after contrast had failed; the larger, the later
HELD_OUT = "rank correlation, held-out families"
CONFIRMED = "rank correlation, new tasks"
COLUMNS = (
    "candidates",
    "contrast",
    "verdict of preflight",
    "runs",
    "learned within the budget",
    "median step to 99 %",
    "median step of attention",
    "times copy-dose:60",
    "forecast by the other families",
)


def dose_units(budget: str) -> dict[Key, list[Unit]]:
    """The runs of every dose, and the preflight of its data."""
    return _units(DOSE_BUDGETS[budget])


def _units(sizes: DoseBudget) -> dict[Key, list[Unit]]:
    runs = {
        ("runs", task): [copying_unit(task, seed, sizes.copying) for seed in range(sizes.seeds)] for task in sizes.tasks
    }
    return runs | {("preflight", task): [statistic_unit(task, sizes.pairs)] for task in sizes.tasks}


def find_dose(budget: str, answers: Answers) -> Finding:
    """H1: whether preflight's statistic tells how long a task takes, for families that the curve was not fitted on."""
    sizes = DOSE_BUDGETS[budget]
    measured = measured_times(sizes, answers, CANDIDATES)
    every = (*STATISTICS, CANDIDATES)  # the first is the claim's, fixed beforehand
    correlations = {name: held_out_correlation(sizes, answers, name) for name in every}
    values = [Value(HELD_OUT, correlations["contrast"])]
    values += [Value(f"{HELD_OUT}, by {name}", correlations[name]) for name in every[1:]]
    values += [Value(f"median step, {point.task}", exactly(point.time)) for point in measured]
    values += [Value(f"share learned, {task}", share_learned(answers["runs", task])) for task in sizes.tasks]
    return Finding(
        (
            _dose_table(sizes, answers, measured, held_out_times(measured)),
            _correlation_table(sizes, answers, correlations),
        ),
        _figures(sizes, answers),
        tuple(values),
        (
            f"At most {sizes.copying.steps} steps of {sizes.copying.batch_size} fresh sequences, {sizes.seeds} seeds a "
            "dose, fixed beforehand. A median beyond the budget is censored: it counts as the budget.",
            f"Preflight counts {sizes.pairs:,} training pairs of each task and sees no model. Tasks with noise are "
            "evaluated without it.",
            "Contrast was chosen before the first run and failed: it says how far words differ over the whole table, "
            "and rises where words come in blocks. Candidates, the source words that counts cannot tell apart as the "
            "origin of an output word, were thought of after that; `confirmation` tests them on tasks trained later.",
            "A forecast comes from a falling curve of the logarithm of time, fitted to the other families alone. Its "
            "interval is a bootstrap of the doses within each family and of the seeds within each dose.",
        ),
    )


def measured_times(sizes: DoseBudget, answers: Answers, statistic: str) -> list[MeasuredTime]:
    """The median time of every dose against one of preflight's statistics."""
    times = []
    for task, family in sizes.tasks.items():
        steps, censored = median_steps(answers["runs", task], "learned", sizes.copying.steps)
        counted = answers["preflight", task][0][statistic]
        x = 1 / counted if statistic == CANDIDATES else counted["value"]
        times.append(MeasuredTime(family, task, float(x), steps, censored))
    return times


def median_steps(runs: Sequence[Answer], event: str, budget: int) -> tuple[float, bool]:
    """The median of times that are censored at one budget (Kaplan and Meier's), at least 1, and whether it is censored.

    >>> median_steps([{"learned": 40}, {"learned": 60}, {"learned": None}], "learned", 200)
    (60.0, False)
    >>> median_steps([{"learned": 40}, {"learned": None}, {"learned": None}], "learned", 200)
    (200.0, True)
    """
    times = sorted(float(budget) if run[event] is None else float(run[event]) for run in runs)
    censored = sum(run[event] is None for run in runs)
    at = (len(times) + 1) // 2
    return max(1.0, times[at - 1]), len(times) - censored < at


def held_out_correlation(sizes: DoseBudget, answers: Answers, statistic: str, *, seed: int = 0) -> Estimate:
    """Spearman's ρ of the times forecast by the other families with those measured, and its bootstrap interval.

    Doses are drawn within each family, then runs within each dose. NaN where times do not differ.
    """
    rng = np.random.default_rng(seed)
    measured = measured_times(sizes, answers, statistic)
    times = {task: _run_times(answers["runs", task], sizes.copying.steps) for task in sizes.tasks}
    by_family = [[p for p in measured if p.family == family] for family in sizes.doses]
    drawn = []
    for _ in range(RESAMPLES):
        sample = [
            replace(point, time=_median(rng.choice(times[point.task], len(times[point.task]))))
            for points in by_family
            for point in (points[k] for k in rng.integers(len(points), size=len(points)))
        ]
        drawn.append(_correlation(sample))
    value = _correlation(measured)
    known = np.array([each for each in drawn if not np.isnan(each)])
    if np.isnan(value) or len(known) < RESAMPLES // 2:
        return Estimate(value, np.nan, np.nan, len(measured))
    low, high = np.quantile(known, (0.025, 0.975))
    return Estimate(value, float(low), float(high), len(measured))


def _correlation(measured: Sequence[MeasuredTime]) -> float:
    predicted = held_out_times(measured)
    observed = np.array([point.time for point in measured])
    if np.isnan(predicted).any() or np.ptp(predicted) == 0 or np.ptp(observed) == 0:
        return float("nan")
    return float(stats.spearmanr(predicted, observed).statistic)


def _run_times(runs: Sequence[Answer], budget: int) -> NDArray[np.float64]:
    return np.array([float(budget) if run["learned"] is None else float(run["learned"]) for run in runs])


def _median(times: NDArray[np.float64]) -> float:
    return max(1.0, float(np.sort(times)[(len(times) + 1) // 2 - 1]))


def _dose_table(
    sizes: DoseBudget, answers: Answers, measured: Sequence[MeasuredTime], predicted: NDArray[np.float64]
) -> ResultTable:
    budget = sizes.copying.steps
    easy = next(point.time for point in measured if point.task == EASY)
    rows = []
    for point, forecast in zip(measured, predicted.tolist(), strict=True):
        runs = answers["runs", point.task]
        more = "more than " if point.censored else ""
        attention, late = median_steps(runs, "attended", budget)
        cells = (
            Cell(text=f"{1 / point.statistic:.1f}"),
            Cell(text=f"{answers['preflight', point.task][0]['contrast']['value']:.3g}"),
            Cell(text=answers["preflight", point.task][0]["verdict"]),
            Cell(text=str(len(runs))),
            Cell(share_learned(runs), unit="%", digits=0),
            Cell(text=f"{more}{point.time:.0f}"),
            Cell(text=f"{'more than ' if late else ''}{attention:.0f}"),
            Cell(text=f"{more}{point.time / easy:.1f}"),
            Cell(text="" if np.isnan(forecast) else f"{forecast:.0f}"),
        )
        rows.append(Row(point.task, cells, group=point.family))
    return ResultTable("Learning time of every dose", COLUMNS, tuple(rows))


def _correlation_table(sizes: DoseBudget, answers: Answers, correlations: Mapping[str, Estimate]) -> ResultTable:
    rows = []
    for name, estimate in correlations.items():
        measured = measured_times(sizes, answers, name)
        predicted, observed = held_out_times(measured), np.array([point.time for point in measured])
        factor = float(np.exp(np.nanmedian(np.abs(np.log(predicted / observed)))))
        rows.append(Row(name, (Cell(estimate, digits=2), Cell(text=f"{factor:.2f}"))))
    columns = ("rank correlation of forecast and measured time", "median factor between them")
    caption = "Every family is forecast from the others. The claim is judged by contrast, on which the verdict rests."
    return ResultTable("Forecasts by each of preflight's statistics", columns, tuple(rows), caption)


def confirmation_units(budget: str) -> dict[Key, list[Unit]]:
    """The doses, which fit the curve, and the runs and the preflight of tasks that are none of them."""
    return dose_units(budget) | _units(CONFIRMATION_BUDGETS[budget])


def find_confirmation(budget: str, answers: Answers) -> Finding:
    """H15: whether the number of candidates ranks new tasks by learning time, by the curve of the other families."""
    sizes, new = DOSE_BUDGETS[budget], CONFIRMATION_BUDGETS[budget]
    fitted, measured = measured_times(sizes, answers, CANDIDATES), measured_times(new, answers, CANDIDATES)
    easy = next(point.time for point in fitted if point.task == EASY)
    predicted = np.array([float(_from_others(fitted, point)) for point in measured])
    observed = np.array([point.time for point in measured])
    rows = []
    for point, forecast in zip(measured, predicted.tolist(), strict=True):
        runs, more = answers["runs", point.task], "more than " if point.censored else ""
        cells = (
            Cell(text=f"{1 / point.statistic:.1f}"),
            Cell(text=str(len(runs))),
            Cell(share_learned(runs), unit="%", digits=0),
            Cell(text=f"{more}{point.time:.0f}"),
            Cell(text=f"{more}{point.time / easy:.1f}"),
            Cell(text=f"{forecast:.0f}"),
        )
        rows.append(Row(point.task, cells, group=point.family))
    columns = ("candidates", "runs", "learned within the budget", "median step to 99 %", f"times {EASY}", "forecast")
    table = ResultTable("New tasks: learning time and forecast", columns, tuple(rows))
    values = (Value(CONFIRMED, _rank_correlation(predicted, observed)),)
    notes = (
        f"{len(measured)} tasks, {new.seeds} seeds each, chosen together with the threshold before any of them was "
        "trained. Each is forecast by the curve that the doses of the other families give.",
        "The interval is a bootstrap of the tasks.",
    )
    counted = [replace(point, statistic=round(1 / point.statistic, 6)) for point in measured]
    panel = _panel("learning time of new tasks", "source words that counts leave open", counted, new.copying.steps)
    return Finding((table,), (Figure("confirmation", "New tasks against candidates", (panel,)),), values, notes)


def _from_others(fitted: Sequence[MeasuredTime], point: MeasuredTime) -> float:
    others = [each for each in fitted if each.family != point.family]
    return float(fit_curve(others).at([point.statistic])[0])


def _rank_correlation(predicted: NDArray[np.float64], observed: NDArray[np.float64], *, seed: int = 0) -> Estimate:
    """Spearman's ρ with the percentile interval of tasks drawn again; draws without any spread are left out."""

    def correlation(chosen: NDArray[np.int64]) -> float:
        x, y = predicted[chosen], observed[chosen]
        return float("nan") if np.ptp(x) == 0 or np.ptp(y) == 0 else float(stats.spearmanr(x, y).statistic)

    rng, count = np.random.default_rng(seed), len(predicted)
    drawn = np.array([correlation(rng.integers(count, size=count)) for _ in range(RESAMPLES)])
    value = correlation(np.arange(count))
    if np.isnan(value) or np.isnan(drawn).mean() > 0.5:
        return Estimate(value, np.nan, np.nan, count)
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return Estimate(value, float(low), float(high), count)


def _figures(sizes: DoseBudget, answers: Answers) -> tuple[Figure, Figure]:
    """One dot per dose, against candidates and against contrast; hollow where half of the runs did not learn."""
    budget = sizes.copying.steps
    candidates, contrast = (measured_times(sizes, answers, name) for name in (CANDIDATES, "contrast"))
    counted = [replace(point, statistic=round(1 / point.statistic, 6)) for point in candidates]
    open_words = _panel("learning time against candidates", "source words that counts leave open", counted, budget)
    by_contrast = _panel("learning time against contrast", "contrast, from the data alone", contrast, budget)
    caption = f"A dot per dose and family. Hollow ones: half of the runs or more did not learn within {budget} steps."
    return (
        Figure("dose", "Learning time against what counts tell before training", (open_words,), caption),
        Figure(
            "dose_contrast", "The same against contrast, the statistic that was chosen first", (by_contrast,), caption
        ),
    )


def _panel(title: str, x_label: str, measured: Sequence[MeasuredTime], budget: int) -> Panel:
    points = []
    for family in dict.fromkeys(point.family for point in measured):
        for censored in (True, False):  # the legend shows the last
            own = [point for point in measured if point.family == family and point.censored == censored]
            label = f"{family}, censored" if censored else family
            x, y = tuple(point.statistic for point in own), tuple(point.time for point in own)
            points.append(Points(label, x, y, group=family, large=True, hollow=censored))
    return Panel(
        title,
        points=tuple(points),
        x_label=x_label,
        y_label="median step to 99 %",
        x_log=True,
        reference=float(budget),
    )
