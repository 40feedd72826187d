"""Causes and cures: copying runs with a change against the same runs without it (H2 to H8)."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from heedful.metrics.statistics import Estimate
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Line, Panel, ResultTable, Row, Value
from heedful.papers.heedful2026.config import CAUSE_BUDGETS, CURE_BUDGETS, EASY, PLAIN, RecipeBudget
from heedful.papers.heedful2026.models import copying_unit
from heedful.papers.snell2021.models import share_learned

Key = tuple[str, str]  # task, recipe
Answers = Mapping[Key, Sequence[Answer]]
RESAMPLES = 2000
COLUMNS = (
    "runs",
    "learned within the budget",
    "mean step to 99 %",
    "ratio to plain",
    "mean step of attention",
    "ratio",
)


def recipe_units(sizes: RecipeBudget) -> dict[Key, list[Unit]]:
    """The runs of every recipe on every task."""
    return {
        (task, name): [copying_unit(task, seed, sizes.copying, recipe) for seed in range(sizes.seeds)]
        for task, recipes in sizes.recipes.items()
        for name, recipe in recipes.items()
    }


def cause_units(budget: str) -> dict[Key, list[Unit]]:
    """The runs of the causal tests."""
    return recipe_units(CAUSE_BUDGETS[budget])


def cure_units(budget: str) -> dict[Key, list[Unit]]:
    """The runs of the cures."""
    return recipe_units(CURE_BUDGETS[budget])


def find_causes(budget: str, answers: Answers) -> Finding:
    """H2 to H5: whether knowledge of words, learned before attention or put in, makes attention faster.

    Times are counted from the release of attention: what a head start or a donor costs is not the question here.
    """
    sizes = CAUSE_BUDGETS[budget]
    steps = sizes.copying.steps
    compared = {
        "head start over plain": ("head start", PLAIN),
        "knowledge over plain": ("knowledge transplanted", PLAIN),
        "knowledge and encoders over plain": ("knowledge and encoders transplanted", PLAIN),
        "attention over plain": ("attention transplanted", PLAIN),
        "knowledge over attention": ("knowledge transplanted", "attention transplanted"),
        "true over scrambled head start": ("head start", "scrambled head start"),
    }
    values = tuple(
        Value(f"{what}, {name}", time_ratio(answers[EASY, first], answers[EASY, second], event, steps))
        for name, (first, second) in compared.items()
        for what, event in (("attention", "attended"), ("accuracy", "learned"))
    )
    notes = (
        f"{sizes.seeds} seeds each; runs of one seed start from the same weights and see the same sequences. Steps are "
        "counted from the release of attention; those of a donor or under uniform attention are not counted.",
        _note(steps),
        "Knowledge and encoders: everything of the uniform twin but its attention, which it never trained. This was "
        "added after the transplant of knowledge alone had failed, to see whether knowledge needs the encoder that it "
        "was learned with; no claim rests on it.",
        "Scrambled: each source stands beside the target of another sequence while attention is uniform, so that "
        "co-occurrence is flat. The task after the release is the same.",
    )
    figure = _figure(
        "causes", "Copying 40 of 60 words after each kind of start", {EASY: list(sizes.recipes[EASY])}, answers
    )
    return Finding((_table(EASY, sizes, answers),), (figure,), values, notes)


def find_cures(budget: str, answers: Answers) -> Finding:
    """H6 to H8: what shortens learning where counts tell nothing, or little."""
    sizes = CURE_BUDGETS[budget]
    steps = sizes.copying.steps
    values = tuple(
        Value(f"{name}, {task}", time_ratio(answers[task, name], answers[task, PLAIN], "learned", steps, total=True))
        for task, recipes in sizes.recipes.items()
        for name in recipes
        if name != PLAIN
    )
    notes = (
        f"{sizes.seeds} seeds each; runs of one seed see the same sequences. All steps count, those under uniform "
        "attention included.",
        _note(steps),
        "α^IBM of permutations is uniform: there a guide by counts has nothing to say.",
    )
    tables = tuple(_table(task, sizes, answers, total=True) for task in sizes.recipes)
    panels = {task: list(recipes) for task, recipes in sizes.recipes.items()}
    return Finding(tables, (_figure("cures", "What helps where counts tell little", panels, answers),), values, notes)


def time_ratio(
    first: Sequence[Answer], second: Sequence[Answer], event: str, budget: int, *, total: bool = False, seed: int = 0
) -> Estimate:
    """Mean steps of the first runs over those of the second, runs that did not learn counted as the budget.

    Runs of one seed are drawn together (95 % percentile bootstrap). Censoring draws the ratio towards 1. total: steps
    before the release of attention count too. NaN where no run of either learned.

    >>> slow, fast = ([{"learned": t, "before": 0} for t in times] for times in ((40, 60), (20, 30)))
    >>> time_ratio(slow, fast, "learned", 100)
    Estimate(value=2.0, low=2.0, high=2.0, n=2, undefined=0)
    """
    if all(run[event] is None for run in (*first, *second)):
        return Estimate(float("nan"), float("nan"), float("nan"), len(first))
    x, y = (_times(runs, event, budget, total=total) for runs in (first, second))
    drawn = np.random.default_rng(seed).integers(len(x), size=(RESAMPLES, len(x)))
    below = np.maximum(y[drawn].mean(axis=1), 1.0)
    low, high = np.quantile(x[drawn].mean(axis=1) / below, (0.025, 0.975))
    return Estimate(float(x.mean() / max(1.0, y.mean())), float(low), float(high), len(x))


def _times(runs: Sequence[Answer], event: str, budget: int, *, total: bool) -> NDArray[np.float64]:
    return np.array([float(budget if r[event] is None else r[event]) + (r["before"] if total else 0) for r in runs])


def _table(task: str, sizes: RecipeBudget, answers: Answers, *, total: bool = False) -> ResultTable:
    rows = []
    for name in sizes.recipes[task]:
        runs = answers[task, name]
        cells: list[Cell] = []
        for event in ("learned", "attended"):
            mean = float(_times(runs, event, sizes.copying.steps, total=total).mean())
            late = any(run[event] is None for run in runs)
            ratio = time_ratio(runs, answers[task, PLAIN], event, sizes.copying.steps, total=total)
            cells += [Cell(text=f"{'at least ' if late else ''}{mean:.0f}")]
            cells += [Cell(text="") if name == PLAIN else Cell(ratio, digits=2)]
        learned = (Cell(text=str(len(runs))), Cell(share_learned(runs), unit="%", digits=0))
        rows.append(Row(name, (*learned, *cells)))
    return ResultTable(task, COLUMNS, tuple(rows))


def _figure(name: str, title: str, panels: Mapping[str, Sequence[str]], answers: Answers) -> Figure:
    """The share of runs that have learned, over training."""
    drawn = []
    for task, recipes in panels.items():
        lines = []
        for recipe in recipes:
            runs = answers[task, recipe]
            last = max(run["steps"][-1] for each in panels[task] for run in answers[task, each])
            steps = sorted({0, last, *(run["learned"] for run in runs if run["learned"] is not None)})
            share = [np.mean([r["learned"] is not None and r["learned"] <= step for r in runs]) for step in steps]
            lines.append(Line(recipe, tuple(map(float, steps)), tuple(map(float, share))))
        drawn.append(
            Panel(task, tuple(lines), x_label="step after the release", y_label="runs that learned", y_percent=True)
        )
    return Figure(name, title, tuple(drawn))


def _note(steps: int) -> str:
    return (
        f"Ratios are of mean steps, with 95 % intervals over seeds; a run that did not learn within {steps} steps "
        "counts as that, which draws a ratio towards 1."
    )
