"""Tables 1 and 2 of sunlu2020: the data, and how well each model does at each λ, beside the published numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy import stats

from heedful.data.corpus import Split
from heedful.data.vocabulary import tokenise
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, exactly, extremes
from heedful.papers.published import published_lines
from heedful.papers.sunlu2020.config import BUDGETS, HUGE, KINDS, MODERATE, SMALL, SunLuBudget, TrainingPlan
from heedful.papers.sunlu2020.data import open_corpus, with_test_split
from heedful.papers.sunlu2020.models import Kind, TrainingJob

Answers = Mapping[TrainingJob, Answer]  # what was measured on each model
Accuracies = dict[tuple[str, Kind, float], list[float]]  # of every seed, by corpus, model and λ
NAMES = {"train": "train", "validation": "dev", "test": "test"}


def find_accuracies(budget: SunLuBudget, answers: Answers) -> Finding:
    """Table 2: test accuracy at the best dev epoch, every model at every λ, and what mean pooling does."""
    reached: Accuracies = {}
    for plan in budget.plans:
        for kind in plan.kinds:
            for scale in plan.scales_of(kind):
                accuracies = per_seed(answers, plan.jobs(budget.recipe, kind, scale), "test")
                reached.setdefault((plan.data, kind, scale), accuracies)
    first_plans = {plan.data: plan for plan in reversed(budget.plans) if len(plan.scales) > 1}
    rows, values, panels = [], [], []
    for plan in reversed(first_plans.values()):
        rows += _rows(plan, reached)
        values += _values(plan, reached)
        panels.append(_panel(plan, reached))
    lost = [value for value in values if value.name.startswith("lost at small λ, DP, ")]
    first = budget.first.data
    values += [
        extremes("lost at small λ, DP", lost)[0],
        *(Value(f"lost at small λ, {kind}", _lost(reached, first, kind)) for kind in KINDS),
        Value("large λ less mean pooling, DP", _from_mean(reached, first)),
    ]
    caption = "One line of DP's has uniform weights in place of α."
    table = ResultTable("Table 2: test accuracy", KINDS, tuple(rows), caption)
    caption = "Means over seeds with 95 % intervals; the dotted line is mean pooling."
    figure = Figure("table2", "Table 2 as curves: accuracy against the scale λ", tuple(panels), caption)
    plans = [plan for plan in budget.plans if len(plan.scales) > 1]
    seeds = ", ".join(f"{plan.data} {plan.seeds} ({', '.join(plan.kinds)})" for plan in plans)
    note = f"Seeds: {seeds}. Intervals are over seeds; the paper has one run of each."
    return Finding((table,), (figure,), tuple(values), (note,))


def _rows(plan: TrainingPlan, reached: Accuracies) -> list[Row]:
    printed = {
        (line["model"], float(line["lambda"])): float(line["value"])
        for line in published_lines("sunlu2020", "2")
        if line["dataset"] == plan.row
    }
    rows = []
    for scale in plan.scales:
        seen = {kind: reached.get((plan.data, kind, scale)) for kind in KINDS}
        cells = [Cell(mean_over_seeds(s) if s else None, printed.get((kind, scale)), "%") for kind, s in seen.items()]
        rows.append(Row(f"λ = {scale:g}", tuple(cells), plan.name))
    if pooled := reached.get((plan.data, "mean", 1.0)):
        cell = Cell(mean_over_seeds(pooled), unit="%")
        rows.append(Row("mean pooling", (cell, *[Cell(text="")] * (len(KINDS) - 1)), plan.name))
    return rows


def _values(plan: TrainingPlan, reached: Accuracies) -> list[Value]:
    values = []
    for kind in KINDS:
        for scale in plan.scales:
            if seen := reached.get((plan.data, kind, scale)):
                values.append(Value(f"accuracy, {kind}, λ = {scale:g}, {plan.data}", mean_over_seeds(seen)))
        if (plan.data, kind, SMALL) in reached:
            values.append(Value(f"lost at small λ, {kind}, {plan.data}", _lost(reached, plan.data, kind)))
    return [*values, Value(f"large λ less mean pooling, DP, {plan.data}", _from_mean(reached, plan.data))]


def _lost(reached: Accuracies, data: str, kind: Kind) -> Estimate:
    """Accuracy at λ = 10 less that at λ = 0.001, seed by seed."""
    return paired(reached[data, kind, MODERATE], reached[data, kind, SMALL])


def _from_mean(reached: Accuracies, data: str) -> Estimate:
    """Accuracy of DP at λ = 10,000 less that of mean pooling, seed by seed."""
    return paired(reached[data, "DP", HUGE], reached[data, "mean", 1.0])


def _panel(plan: TrainingPlan, reached: Accuracies) -> Panel:
    lines = []
    for kind in KINDS:
        scales = [scale for scale in plan.scales if (plan.data, kind, scale) in reached]
        if scales:
            lines.append(curve(kind, scales, [mean_over_seeds(reached[plan.data, kind, scale]) for scale in scales]))
    return Panel(
        plan.name,
        tuple(lines),
        x_label="λ",
        y_label="test accuracy",
        x_log=True,
        y_percent=True,
        reference=mean_over_seeds(reached[plan.data, "mean", 1.0]).value,
    )


def statistics_units(budget: str) -> dict[str, list[Unit]]:
    """The numbers of Table 1, by corpus."""
    plans = (*BUDGETS[budget].plans, *BUDGETS[budget].synthetic)
    return {p.data: [Unit(f"statistics-{p.data}", f"{__name__}:statistics", {"data": p.data})] for p in plans}


def find_statistics(budget: str, answers: Mapping[str, Sequence[Answer]]) -> Finding:
    """Table 1: average length, vocabulary, and how many texts of each label every split has; nothing is cut."""
    rows = []
    for data, (ours,) in answers.items():
        row = next((plan.row for plan in BUDGETS[budget].plans if plan.data == data), None)
        lines = published_lines("sunlu2020", "1")
        printed = {line["quantity"]: line["value"] for line in lines if line["dataset"] == row}
        sizes = {"average length": ours["average_length"], "vocabulary size": ours["vocabulary"]}
        cells = [
            Cell(exactly(float(size)), float(printed[name]) if name in printed else None, digits=0)
            for name, size in sizes.items()
        ]
        for split, counts in ours["sizes"].items():
            cells.append(Cell(text=f"{counts} · {printed[split]}" if split in printed else counts))
        rows.append(Row(row or data, tuple(cells)))
    columns = ("average length", "vocabulary of all splits", *NAMES.values())
    notes = (
        "Texts of each label stand in the paper's order, positive first. The paper's vocabulary is that of all splits; "
        "the models here know the words of their training texts.",
        "20 Newsgroups are divided anew, by-date splits pooled, in the paper's proportions.",
    )
    return Finding((ResultTable("Table 1: the data", columns, tuple(rows)),), notes=notes)


def statistics(data: str, *, device: torch.device | None = None, report: OnEvent | None = None) -> dict[str, Any]:
    """A unit: `average_length`, `vocabulary` and `sizes` of a corpus, all of it and uncut.

    `sizes` has, for each split, the number of texts of each label, positive first.

    >>> numbers = statistics("polarity")
    >>> numbers["average_length"], numbers["vocabulary"]
    (12.0, 1100)
    """
    corpus = with_test_split(open_corpus(data))
    splits: dict[str, Split] = {theirs: getattr(corpus, name) for name, theirs in NAMES.items()}
    words = [tokenise(text, corpus.rules) for split in splits.values() for text in split.texts]
    counts = {name: np.bincount(split.labels, minlength=len(corpus.labels)) for name, split in splits.items()}
    return {
        "average_length": float(np.mean([len(text) for text in words])),
        "vocabulary": len({word for text in words for word in text}),
        "sizes": {name: "/".join(map(str, each[::-1] if len(each) == 2 else each)) for name, each in counts.items()},
    }


def per_seed(answers: Answers, jobs: Sequence[TrainingJob], *path: str) -> list[float]:
    """One number of each answer, such as `("classes", "positive", "score")`; NaN where it was not defined."""
    values = []
    for job in jobs:
        value: Any = answers[job]
        for key in path:
            value = value[key]
        values.append(float("nan") if value is None else float(value))
    return values


def lowest_class(answers: Answers, jobs: Sequence[TrainingJob], key: str) -> list[float]:
    """For each seed, the lowest value of `key` among the classes of tokens that go with a label."""
    names = answers[jobs[0]]["classes"]
    table = [per_seed(answers, jobs, "classes", name, key) for name in names]
    return [float(value) for value in np.min(table, axis=0)]


def over_seeds(answers: Answers, jobs: Sequence[TrainingJob], *path: str) -> Estimate:
    """The mean of that number over seeds, with its interval."""
    return mean_over_seeds(per_seed(answers, jobs, *path))


def paired(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """The mean over seeds of a difference, seed by seed.

    >>> paired([0.9, 0.8], [0.5, 0.4]).n
    2
    """
    return mean_over_seeds(np.subtract(above, below))


def p_over_seeds(values: Sequence[float]) -> float:
    """Student's test over seeds that the mean is 0, two-sided; the one that the interval of `mean_over_seeds` is of.

    NaN below two seeds; where all seeds agree to the last digit, 0, or 1 if what they agree on is 0.

    >>> round(p_over_seeds([0.2, 0.3, 0.4]), 3), p_over_seeds([1.0, 1.0])
    (0.035, 0.0)
    """
    x = np.asarray([value for value in values if not np.isnan(value)])
    if len(x) < 2:
        return float("nan")
    if np.ptp(x) == 0:
        return float(x[0] == 0)
    return float(stats.ttest_1samp(x, 0.0).pvalue)
