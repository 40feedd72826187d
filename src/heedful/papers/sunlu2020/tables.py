"""Tables 1 and 2 of sunlu2020: the data, and how well each model does at each λ, beside the published numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.data.corpus import Split
from heedful.data.vocabulary import tokenise
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, exactly, nested_value
from heedful.papers.judge import sign_flip
from heedful.papers.published import published_lines
from heedful.papers.sunlu2020.config import BUDGETS, HUGE, KINDS, MODERATE, ONE, SMALL, SunLuBudget, TrainingPlan
from heedful.papers.sunlu2020.data import open_corpus, with_test_split
from heedful.papers.sunlu2020.models import Kind, TrainingJob

Answers = Mapping[TrainingJob, Answer]  # what was measured on each model
Hits = dict[tuple[str, Kind, float], NDArray[np.float64]]  # by corpus, model and λ: (seeds, test texts)
NAMES = {"train": "train", "validation": "dev", "test": "test"}


def find_accuracies(budget: SunLuBudget, answers: Answers) -> Finding:
    """Table 2: test accuracy at the best dev epoch, every model at every λ, and what mean pooling does."""
    reached: Hits = {}
    for plan in budget.plans:
        for kind in plan.kinds:
            for scale in plan.scales_of(kind):
                right = [answers[job]["hits"] for job in plan.jobs(budget.recipe, kind, scale)]
                reached.setdefault((plan.data, kind, scale), np.array(right, dtype=np.float64))
    first_plans = {plan.data: plan for plan in reversed(budget.plans) if len(plan.scales) > 1}
    rows, values, panels = [], [], []
    for plan in reversed(first_plans.values()):
        rows += _rows(plan, reached)
        values += _values(plan, reached)
        panels.append(_panel(plan, reached))
    caption = "One line of DP's has uniform weights in place of α."
    table = ResultTable("Table 2: test accuracy", KINDS, tuple(rows), caption)
    caption = "Means over seeds with 95 % intervals; the dotted line is mean pooling."
    figure = Figure("table2", "Table 2 as curves: accuracy against the scale λ", tuple(panels), caption)
    plans = [plan for plan in budget.plans if len(plan.scales) > 1]
    seeds = ", ".join(f"{plan.data} {plan.seeds} ({', '.join(plan.kinds)})" for plan in plans)
    note = f"Seeds: {seeds}. Intervals are over seeds; the paper has one run of each."
    return Finding((table,), (figure,), tuple(values), (note,))


def _rows(plan: TrainingPlan, reached: Hits) -> list[Row]:
    printed = {
        (line["model"], float(line["lambda"])): float(line["value"])
        for line in published_lines("sunlu2020", "2")
        if line["dataset"] == plan.row
    }
    rows = []
    for scale in plan.scales:
        cells = [_cell(reached.get((plan.data, kind, scale)), printed.get((kind, scale))) for kind in KINDS]
        rows.append(Row(f"λ = {scale:g}", tuple(cells), plan.name))
    pooled = _cell(reached.get((plan.data, "mean", 1.0)))
    if pooled.measured is not None:
        rows.append(Row("mean pooling", (pooled, *[Cell(text="")] * (len(KINDS) - 1)), plan.name))
    return rows


def _cell(right: NDArray[np.float64] | None, published: float | None = None) -> Cell:
    """An accuracy over seeds."""
    if right is None:
        return Cell(None, published, "%")
    return Cell(_over_seeds(right), published, "%", seeds=len(right), texts=right.shape[1])


def _over_seeds(right: NDArray[np.float64]) -> Estimate:
    return mean_over_seeds(right.mean(axis=1), (0.0, 1.0))


def _values(plan: TrainingPlan, reached: Hits) -> list[Value]:
    """Accuracies, and what claims are judged by: how much they change with λ, on the same texts."""
    values = []
    for kind in KINDS:
        for scale in plan.scales:
            if (plan.data, kind, scale) in reached:
                right = reached[plan.data, kind, scale]
                values.append(nested_value(f"accuracy, {kind}, λ = {scale:g}, {plan.data}", right, (0.0, 1.0)))
    compared: list[tuple[str, Kind, tuple[Kind, float], tuple[Kind, float]]] = [
        *(("lost at small λ", kind, (kind, MODERATE), (kind, SMALL)) for kind in KINDS),
        ("lost at λ = 1", "DP", ("DP", MODERATE), ("DP", ONE)),
        ("large λ less moderate", "DP", ("DP", HUGE), ("DP", MODERATE)),
        ("large λ less mean pooling", "DP", ("DP", HUGE), ("mean", 1.0)),
    ]
    for name, kind, above, below in compared:
        one, other = (reached.get((plan.data, *which)) for which in (above, below))
        if one is not None and other is not None:
            values.append(nested_value(f"{name}, {kind}, {plan.data}", one - other))
    return values


def _panel(plan: TrainingPlan, reached: Hits) -> Panel:
    lines = []
    for kind in KINDS:
        scales = [scale for scale in plan.scales if (plan.data, kind, scale) in reached]
        if scales:
            lines.append(curve(kind, scales, [_over_seeds(reached[plan.data, kind, scale]) for scale in scales]))
    return Panel(
        plan.name,
        tuple(lines),
        x_label="λ",
        y_label="test accuracy",
        x_log=True,
        y_percent=True,
        reference=float(reached[plan.data, "mean", 1.0].mean()),
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


def over_seeds(
    answers: Answers, jobs: Sequence[TrainingJob], *path: str, within: tuple[float, float] | None = None
) -> Estimate:
    """The mean of that number over seeds, with its interval; within: its range."""
    return mean_over_seeds(per_seed(answers, jobs, *path), within)


def p_over_seeds(values: Sequence[float]) -> float:
    """Two-sided test over seeds that the mean is 0, by flipping signs; NaN below two seeds.

    >>> p_over_seeds([0.2, 0.3, 0.4]), p_over_seeds([1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    (0.25, 0.03125)
    """
    x = np.asarray([value for value in values if not np.isnan(value)])
    return min(1.0, 2 * sign_flip(x), 2 * sign_flip(-x)) if len(x) > 1 else float("nan")
