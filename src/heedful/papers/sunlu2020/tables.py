"""Tables 1 and 2 of sunlu2020: the data, and how well each model does at each λ, beside the published numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy import stats

from heedful.data.corpus import Split
from heedful.data.words import tokenise
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.experiment import Needs, Unit, Workspace
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, exactly
from heedful.papers.published import published_accuracies, published_sizes
from heedful.papers.sunlu2020.config import BUDGETS, HUGE, KINDS, MODERATE, SMALL, SunLuBudget, TrainingPlan
from heedful.papers.sunlu2020.data import open_corpus, with_test_split
from heedful.papers.sunlu2020.models import Kind, TrainingJob

Answers = Mapping[TrainingJob, Mapping[str, Any]]
NAMES = {"train": "train", "validation": "dev", "test": "test"}
MEAN = "mean pooling"


def job_needs(jobs: Iterable[TrainingJob]) -> Needs:
    """What `read_answers` reads."""
    return Needs(units=tuple(job.unit for job in dict.fromkeys(jobs)))


def read_answers(workspace: Workspace, jobs: Iterable[TrainingJob]) -> Answers:
    """What was measured on each model."""
    return {job: workspace.answers([job.unit])[job.unit.name] for job in dict.fromkeys(jobs)}


def find_accuracies(workspace: Workspace) -> Finding:
    """Table 2: test accuracy at the best dev epoch, every model at every λ, and what mean pooling does."""
    budget = BUDGETS[workspace.budget]
    answers = read_answers(workspace, budget.table2())
    rows, values = [], []
    for plan in _corpora(budget):
        rows += _rows(budget, plan, answers)
        values += _values(budget, plan, answers)
    lost = [value.estimate for value in values if value.name.startswith("lost at small λ, DP, ")]
    first = budget.first.data
    values += [
        Value("lost at small λ, DP, lowest", min(lost, key=lambda e: e.value)),
        *(Value(f"lost at small λ, {kind}", _lost(budget, first, kind, answers)) for kind in KINDS),
        Value("large λ less mean pooling, DP", _from_mean(budget, first, answers)),
    ]
    table = ResultTable(
        "Table 2: test accuracy", KINDS, tuple(rows), "One line of DP's has uniform weights in place of α."
    )
    return Finding((table,), (_figure(budget, answers),), tuple(values), (_note(budget),))


def _corpora(budget: SunLuBudget) -> list[TrainingPlan]:
    """The first plan of every corpus that has several λ."""
    first = {plan.data: plan for plan in reversed(budget.plans) if len(plan.scales) > 1}
    return list(first.values())[::-1]


def _rows(budget: SunLuBudget, plan: TrainingPlan, answers: Answers) -> list[Row]:
    group = plan.row or plan.data
    rows = []
    for scale in plan.scales:
        cells = []
        for kind in KINDS:
            printed = published_accuracies().get((plan.row or "", kind, scale))
            jobs = budget.jobs(plan.data, kind, scale)
            cells.append(Cell(over_seeds(answers, jobs, "test") if jobs else None, printed, "%"))
        rows.append(Row(f"λ = {scale:g}", tuple(cells), group))
    pooled = budget.jobs(plan.data, "mean", 1.0)
    if pooled:
        cells = [Cell(over_seeds(answers, pooled, "test"), unit="%")]
        rows.append(Row(MEAN, (*cells, *[Cell(text="")] * (len(KINDS) - 1)), group))
    return rows


def _values(budget: SunLuBudget, plan: TrainingPlan, answers: Answers) -> list[Value]:
    values = []
    for kind in KINDS:
        for scale in plan.scales:
            jobs = budget.jobs(plan.data, kind, scale)
            if jobs:
                name = f"accuracy, {kind}, λ = {scale:g}, {plan.data}"
                values.append(Value(name, over_seeds(answers, jobs, "test")))
        if budget.jobs(plan.data, kind, SMALL):
            values.append(Value(f"lost at small λ, {kind}, {plan.data}", _lost(budget, plan.data, kind, answers)))
    values.append(Value(f"large λ less mean pooling, DP, {plan.data}", _from_mean(budget, plan.data, answers)))
    return values


def _lost(budget: SunLuBudget, data: str, kind: Kind, answers: Answers) -> Estimate:
    """Accuracy at λ = 10 less that at λ = 0.001, seed by seed."""
    return _difference(answers, budget.jobs(data, kind, MODERATE), budget.jobs(data, kind, SMALL))


def _from_mean(budget: SunLuBudget, data: str, answers: Answers) -> Estimate:
    """Accuracy of DP at λ = 10,000 less that of mean pooling, seed by seed."""
    return _difference(answers, budget.jobs(data, "DP", HUGE), budget.jobs(data, "mean", 1.0))


def _difference(answers: Answers, above: list[TrainingJob], below: list[TrainingJob]) -> Estimate:
    return paired(per_seed(answers, above, "test"), per_seed(answers, below, "test"))


def _figure(budget: SunLuBudget, answers: Answers) -> Figure:
    panels = []
    for plan in _corpora(budget):
        lines = []
        for kind in KINDS:
            known = [(scale, jobs) for scale in plan.scales if (jobs := budget.jobs(plan.data, kind, scale))]
            if known:
                scales, seen = zip(*((scale, over_seeds(answers, jobs, "test")) for scale, jobs in known), strict=True)
                lines.append(curve(kind, scales, seen))
        pooled = over_seeds(answers, budget.jobs(plan.data, "mean", 1.0), "test").value
        panels.append(
            Panel(
                plan.row or plan.data,
                tuple(lines),
                x_label="λ",
                y_label="test accuracy",
                x_log=True,
                y_percent=True,
                reference=pooled,
            )
        )
    caption = "Means over seeds with 95 % intervals; the dotted line is mean pooling."
    return Figure("table2", "Table 2 as curves: accuracy against the scale λ", tuple(panels), caption)


def _note(budget: SunLuBudget) -> str:
    seeds = ", ".join(
        f"{plan.data} {plan.seeds} ({', '.join(plan.kinds)})" for plan in budget.plans if len(plan.scales) > 1
    )
    return f"Seeds: {seeds}. Intervals are over seeds; the paper has one run of each."


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def corpus_names(budget: SunLuBudget) -> list[str]:
    """All corpora of a budget."""
    return list(dict.fromkeys(plan.data for plan in (*budget.plans, *budget.synthetic)))


def statistics_needs(budget: str) -> Needs:
    """What Table 1 reads."""
    return Needs(units=tuple(statistics_unit(data) for data in corpus_names(BUDGETS[budget])))


def find_statistics(workspace: Workspace) -> Finding:
    """Table 1: average length, vocabulary, and how many texts of each label every split has; nothing is cut."""
    budget = BUDGETS[workspace.budget]
    rows = []
    for data in corpus_names(budget):
        row = next((plan.row for plan in budget.plans if plan.data == data), None)
        unit = statistics_unit(data)
        ours = workspace.answers([unit])[unit.name]
        printed = {quantity: value for (name, quantity), value in published_sizes().items() if name == row}
        cells = [
            Cell(exactly(ours["average_length"]), _number(printed.get("average length")), digits=0),
            Cell(exactly(float(ours["vocabulary"])), _number(printed.get("vocabulary size")), digits=0),
        ]
        for split, sizes in ours["sizes"].items():
            cells.append(Cell(text=f"{sizes} · {printed[split]}" if split in printed else sizes))
        rows.append(Row(row or data, tuple(cells)))
    columns = ("average length", "vocabulary of all splits", *NAMES.values())
    notes = (
        "Texts of each label stand in the paper's order, positive first. The paper's vocabulary is that of all splits; "
        "the models here know the words of their training texts.",
        "20 Newsgroups are divided anew, by-date splits pooled, in the paper's proportions.",
    )
    return Finding((ResultTable("Table 1: the data", columns, tuple(rows)),), notes=notes)


def statistics_unit(data: str) -> Unit:
    """The numbers of Table 1 for one corpus."""
    return Unit(f"statistics-{data}", f"{__name__}:statistics", {"data": data})


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
