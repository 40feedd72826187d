"""Figures 2 to 5 of sunlu2020 and its supplement: scores and weights of the classes of tokens.

A case is one model on one corpus. Beside every scatter stand effect sizes: Cliff's δ of a class of tokens over the
neutral ones, in [−1, 1], seed by seed. Polarity is taken towards the class's own label, so that δ > 0 is what the paper
expects of every class, in polarity and in attention.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heedful.metrics.statistics import benjamini_hochberg, mean_over_seeds
from heedful.papers.findings import (
    Cell,
    Figure,
    Finding,
    Line,
    Panel,
    Points,
    ResultTable,
    Row,
    Sizes,
    Value,
    nested_value,
    seed_value,
)
from heedful.papers.sunlu2020.config import LARGE, MODERATE, SunLuBudget
from heedful.papers.sunlu2020.models import TrainingJob
from heedful.papers.sunlu2020.tables import Answers, lowest_class, over_seeds, p_over_seeds, per_seed

DELTA = (-1.0, 1.0)  # the range of Cliff's δ

COLUMNS = {
    "polarity": "polarity",
    "score": "attention",
    "polarity_delta": "δ polarity",
    "score_delta": "δ attention",
    "score_delta_frequent": "δ attention, frequent",
    "score_gap": "d attention",
}
NOTE = (
    "Polarity is towards a class's own label. δ is Cliff's, of a class over the neutral tokens; d the difference of "
    "their means in pooled standard deviations. Means over seeds with 95 % intervals; p is of δ attention, by flipping "
    "the signs of seeds, adjusted for the number of lines (Benjamini & Hochberg). Most neutral tokens are rare while "
    "the others occur more than five times, so δ is also taken over the neutral tokens that do so too (frequent)."
)


@dataclass(frozen=True)
class ModelGroup:
    """A model under a name, from every seed; `panels` says which scores are drawn."""

    name: str
    jobs: tuple[TrainingJob, ...]
    panels: tuple[str, ...] = ("polarity", "score")


ModelGroups = Callable[[SunLuBudget], list[ModelGroup]]


def figure2_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """Figure 2: DP at λ = 10 on the corpora with two labels."""
    names = {plan.data: plan.name for plan in budget.plans}
    return [ModelGroup(names[data], tuple(budget.jobs(data, "DP", MODERATE))) for data in budget.binary]


def figure3_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """Figure 3: DP at λ = 100 on the corpora with two labels (the paper's: on SST), and with three labels at λ = 10."""
    return [
        *large_cases(budget),
        ModelGroup("three labels", tuple(budget.jobs(budget.three, "DP", MODERATE)), ("score",)),
    ]


def large_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """DP at λ = 100 on the corpora with two labels."""
    names = {plan.data: plan.name for plan in budget.plans}
    jobs = {data: tuple(budget.jobs(data, "DP", LARGE)) for data in budget.binary}
    return [ModelGroup(f"λ = 100, {names[data]}", each) for data, each in jobs.items() if each]


def find_figure3(budget: SunLuBudget, answers: Answers) -> Finding:
    """Figure 3; and at λ = 100 the attention scores of both kinds of tokens, told apart by the sign of VᵀW.

    The class *with* VᵀW is that of the positive tokens where VᵀW > 0, else that of the negative ones.
    """
    title = "Figure 3: a large λ, and three labels"
    finding = find_cases(budget, answers, "figure3", title, figure3_cases)
    values = []
    for case in large_cases(budget):
        for side, on_top in (("with", "positive"), ("against", "negative")):
            below = {"positive": "negative", "negative": "positive"}[on_top]
            tokens = [answers[job]["classes"][on_top if answers[job]["dot"] > 0 else below] for job in case.jobs]
            score, delta = ([_number(each[key]) for each in tokens] for key in ("score", "score_delta"))
            values.append(seed_value(f"attention score {side} VᵀW, {case.name}", score))
            values.append(seed_value(f"attention δ {side} VᵀW, {case.name}", delta, within=DELTA))
    return replace(finding, values=(*finding.values, *values))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def figure4_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """Figure 4: additive attention on SST, V as the released code draws it, and drawn smaller."""
    return [
        ModelGroup("AD", tuple(budget.jobs(budget.first.data, "AD", MODERATE))),
        ModelGroup("AD, λ = 100", tuple(budget.jobs(budget.first.data, "AD", LARGE))),
        ModelGroup(
            f"AD, V ~ N(0, {budget.narrow:g}²)",
            tuple(replace(job, spread=budget.narrow) for job in budget.jobs(budget.first.data, "AD", MODERATE)),
        ),
    ]


def encoder_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """DP-L and DP-A at λ = 10 on SST (the paper's supplement)."""
    return [ModelGroup(kind, tuple(budget.jobs(budget.first.data, kind, MODERATE))) for kind in ("DP-L", "DP-A")]


SHARES = (0.5, 0.25, 0.1)  # of positive texts in training


def imbalance_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """DP at λ = 10 on SST where positive texts are rarer and rarer; the paper's argument takes labels to be balanced.

    The test texts stay as they are, and tokens keep the class that they have in all training texts.
    """
    jobs = budget.jobs(budget.first.data, "DP", MODERATE)
    samples = {share: replace(jobs[0].sample, positive=None if share == 0.5 else share) for share in SHARES}
    return [
        ModelGroup(f"{share:.0%} positive", tuple(replace(job, sample=sample) for job in jobs))
        for share, sample in samples.items()
    ]


def find_imbalance(budget: SunLuBudget, answers: Answers) -> Finding:
    """Polarity and attention of both kinds of tokens where the labels are not balanced, and what it costs."""
    title = "Unbalanced labels: polarity and attention scores"
    finding = find_cases(budget, answers, "imbalance", title, imbalance_cases)
    values = []
    for case in imbalance_cases(budget):
        for kind in ("positive", "negative"):
            deltas = [_number(answers[job]["classes"][kind]["score_delta"]) for job in case.jobs]
            values.append(seed_value(f"attention δ of {kind} tokens, {case.name}", deltas, within=DELTA))
    return replace(finding, values=(*finding.values, *values))


def synthetic_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """DP on generated data."""
    return [
        ModelGroup(f"{labels} labels, λ = {scale:g}", tuple(plan.jobs(budget.recipe, "DP", scale)))
        for labels, plan in zip(("two", "three"), budget.synthetic, strict=True)
        for scale in (MODERATE, LARGE)
        if scale in plan.scales
    ]


def find_synthetic(budget: SunLuBudget, answers: Answers) -> Finding:
    """Generated data, two and three labels (the paper's supplement has two)."""
    title = "Generated data: polarity and attention scores"
    return find_cases(budget, answers, "synthetic", title, synthetic_cases)


def regulariser_cases(budget: SunLuBudget) -> list[ModelGroup]:
    """∣VᵀW∣ in the loss of DP at λ = 100 on SST, at several coefficients."""
    return [
        ModelGroup(f"coefficient {c:g}", tuple(budget.first.jobs(budget.recipe, "DP", LARGE, coefficient=c)))
        for c in budget.coefficients
    ]


def find_regulariser(budget: SunLuBudget, answers: Answers) -> Finding:
    """The V·W regulariser at λ = 100, at several coefficients."""
    finding = find_cases(budget, answers, "regulariser", "The V·W regulariser at λ = 100", regulariser_cases)
    without, *_, strongest = regulariser_cases(budget)
    attention = [np.array(lowest_class(answers, case.jobs, "score_delta")) for case in (strongest, without)]
    right = [np.array([answers[job]["hits"] for job in case.jobs], dtype=np.float64) for case in (strongest, without)]
    values = (
        seed_value("attention δ, strongest", attention[0].tolist(), within=DELTA),
        seed_value("attention δ, strongest less none", (attention[0] - attention[1]).tolist(), within=(-2.0, 2.0)),
        nested_value("accuracy, strongest less none", right[0] - right[1]),
    )
    return replace(finding, values=(*finding.values, *values))


def find_cases(budget: SunLuBudget, answers: Answers, name: str, title: str, cases_of: ModelGroups) -> Finding:
    """Tables, scatter and values of some cases: `polarity δ, …` and `attention δ, …` are of the lower class."""
    cases = cases_of(budget)
    values: dict[str, list[Value]] = {"polarity δ": [], "attention δ": [], "accuracy": []}
    for case in cases:
        for kind, key in (("polarity δ", "polarity_delta"), ("attention δ", "score_delta")):
            lowest = lowest_class(answers, case.jobs, key)
            values[kind].append(seed_value(f"{kind}, {case.name}", lowest, within=DELTA))
        right = np.array([answers[job]["hits"] for job in case.jobs], dtype=np.float64)
        values["accuracy"].append(nested_value(f"accuracy, {case.name}", right, (0.0, 1.0)))
    tables = (_effects(f"{title}: effects", cases, answers), _models(cases, answers))
    caption = f"Seed {cases[0].jobs[0].seed}; at most 300 tokens of each class, drawn at random."
    figure = Figure(name, title, _scatter(cases, answers), caption)
    return Finding(tables, (figure,), tuple(v for each in values.values() for v in each), (NOTE,))


def _effects(title: str, cases: Sequence[ModelGroup], answers: Answers) -> ResultTable:
    tested = [(case, name) for case in cases for name in answers[case.jobs[0]]["classes"]]
    p = benjamini_hochberg(
        [p_over_seeds(per_seed(answers, case.jobs, "classes", name, "score_delta")) for case, name in tested]
    )
    adjusted = dict(zip(tested, p.tolist(), strict=True))
    rows = []
    for case in cases:
        first = answers[case.jobs[0]]
        for name, summary in first["classes"].items():
            cells = [_cell(answers, case, key, "classes", name) for key in COLUMNS]
            p_value = adjusted[case, name]
            p_cell = Cell(text="" if np.isnan(p_value) else f"{p_value:.2g}")
            rows.append(Row(name, (Cell(text=str(summary["tokens"])), *cells, p_cell), case.name))
        even = [_cell(answers, case, key, "neutral") for key in ("polarity", "score")]
        count = f"{first['neutral']['tokens']} ({first['neutral']['frequent']} frequent)"
        rows.append(Row("neutral", (Cell(text=count), *even, *[Cell(text="")] * 5), case.name))
    return ResultTable(title, ("tokens", *COLUMNS.values(), "p"), tuple(rows))


def _cell(answers: Answers, case: ModelGroup, key: str, *path: str) -> Cell:
    estimate = over_seeds(answers, case.jobs, *path, key, within=DELTA if "delta" in key else None)
    return Cell(estimate, digits=3 if key == "score" else 2, seeds=len(case.jobs))


def _models(cases: Sequence[ModelGroup], answers: Answers) -> ResultTable:
    rows = []
    for case in cases:
        dots = np.abs(per_seed(answers, case.jobs, "dot"))
        sizes: Sizes = {"seeds": len(case.jobs), "texts": len(answers[case.jobs[0]]["hits"])}
        cells = (
            Cell(text=str(len(case.jobs))),
            Cell(over_seeds(answers, case.jobs, "test", within=(0.0, 1.0)), unit="%", **sizes),
            Cell(text="") if np.isnan(dots).all() else Cell(mean_over_seeds(dots), digits=2, seeds=len(case.jobs)),
            Cell(over_seeds(answers, case.jobs, "best"), seeds=len(case.jobs)),
        )
        rows.append(Row(case.name, cells))
    return ResultTable("The models", ("seeds", "test accuracy", "∣VᵀW∣", "best epoch"), tuple(rows))


def _scatter(cases: Sequence[ModelGroup], answers: Answers) -> tuple[Panel, ...]:
    labels = {"polarity": "polarity score", "score": "attention score"}
    return tuple(
        Panel(
            f"{case.name}: {labels[key]}s",
            x_label="times in training texts",
            y_label=labels[key],
            x_log=True,
            reference=0.0,
            points=_points(answers[case.jobs[0]]["tokens"], key),
        )
        for key in labels
        for case in cases
        if key in case.panels
    )


def _points(tokens: Mapping[str, Mapping[str, Sequence[Any]]], key: str) -> tuple[Points, ...]:
    """Neutral tokens first, so that the others lie over them."""
    clouds = []
    for name in sorted(tokens, key=lambda name: name != "neutral"):
        known = [(f, y) for f, y in zip(tokens[name]["frequency"], tokens[name][key], strict=True) if y is not None]
        x, y = zip(*known, strict=True) if known else ((), ())
        clouds.append(Points(name, tuple(float(f) for f in x), tuple(float(v) for v in y), name))
    return tuple(clouds)


NUMBERS = ("minimum", "first quartile", "median", "third quartile", "maximum", "mean")
KINDS = {"alpha": "α", "relative": "n·α"}


def figure5_jobs(budget: SunLuBudget) -> list[TrainingJob]:
    """DP at λ = 10 on SST."""
    return budget.first.jobs(budget.recipe, "DP", MODERATE)


def find_figure5(budget: SunLuBudget, answers: Answers) -> Finding:
    """Figure 5: average weights on the test texts, DP at λ = 10 on SST: plain, as the paper has them, and n·α."""
    jobs = figure5_jobs(budget)
    rows = [
        Row(name, _five(answers, jobs, name, kind), heading)
        for kind, heading in KINDS.items()
        for name in answers[jobs[0]]["weights"]
    ]
    table = ResultTable(
        "Figure 5 in numbers", NUMBERS, tuple(rows), "Each number is the mean over seeds of that of one seed."
    )
    tokens = answers[jobs[0]]["tokens"]
    panels = tuple(
        Panel(
            f"average {heading}",
            tuple(_distribution(name, tokens[name][kind]) for name in tokens),
            x_label=f"average {heading} of a token",
            y_label="share of tokens below",
            y_percent=True,
            x_log=True,
        )
        for kind, heading in KINDS.items()
    )
    texts = len(answers[jobs[0]]["hits"])
    values = tuple(
        seed_value(f"{heading} over neutral, δ", lowest_class(answers, jobs, f"{kind}_delta"), texts, DELTA)
        for kind, heading in KINDS.items()
    )
    caption = "Distributions over tokens that occur in test texts, seed 0."
    return Finding((table,), (Figure("figure5", "Figure 5: average weights", panels, caption),), values)


def find_weights(budget: SunLuBudget, answers: Answers) -> Finding:
    """Average weights of each class over the neutral tokens, on every corpus and at every λ that DP is trained with."""
    rows, values = [], []
    for corpus, scale, jobs in _weight_cases(budget):
        texts = len(answers[jobs[0]]["hits"])
        for name in answers[jobs[0]]["classes"]:
            deltas = [over_seeds(answers, jobs, "classes", name, f"{kind}_delta", within=DELTA) for kind in KINDS]
            cells = tuple(Cell(e, digits=2, seeds=len(jobs), texts=texts) for e in deltas)
            rows.append(Row(f"λ = {scale:g}, {name}", cells, corpus))
        if scale == MODERATE:
            lowest = lowest_class(answers, jobs, "relative_delta")
            values.append(seed_value(f"n·α over neutral, δ, {corpus}", lowest, texts, DELTA))
    columns = tuple(f"{heading} over neutral, δ" for heading in KINDS.values())
    table = ResultTable("Average weights of each class over the neutral tokens", columns, tuple(rows))
    note = "Tokens that occur in test texts; Cliff's δ, means over seeds. Values are of the lower class, at λ = 10."
    return Finding((table,), values=tuple(values), notes=(note,))


def weight_jobs(budget: SunLuBudget) -> list[TrainingJob]:
    """The models whose average weights are shown."""
    return [job for _, _, jobs in _weight_cases(budget) for job in jobs]


def _weight_cases(budget: SunLuBudget) -> list[tuple[str, float, tuple[TrainingJob, ...]]]:
    return [
        (plan.name, scale, tuple(plan.jobs(budget.recipe, "DP", scale)))
        for plan in budget.plans
        if "DP" in plan.kinds
        for scale in plan.scales
    ]


def _five(answers: Answers, jobs: Sequence[TrainingJob], name: str, kind: str) -> tuple[Cell, ...]:
    """Minimum, quartiles, maximum and mean over tokens, each averaged over seeds."""
    table = [answers[job]["weights"][name][kind] for job in jobs]
    if not all(table):
        return (Cell(),) * len(NUMBERS)
    texts = len(answers[jobs[0]]["hits"])
    return tuple(Cell(mean_over_seeds(c), digits=3, seeds=len(jobs), texts=texts) for c in np.transpose(table))


def _distribution(name: str, values: Sequence[Any]) -> Line:
    known = sorted(float(value) for value in values if value is not None)
    return Line(name, tuple(known), tuple((k + 1) / len(known) for k in range(len(known))))
