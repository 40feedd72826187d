"""Transformers: whether what snell2021 found in LSTMs holds for them (H9 to H11)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heedful.metrics.statistics import Estimate
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import (
    Cell,
    Figure,
    Finding,
    Line,
    Panel,
    ResultTable,
    Row,
    Sizes,
    Value,
    nested_value,
    seed_value,
)
from heedful.papers.heedful2026.config import (
    EASY,
    EIGHT_HEADS,
    HARD,
    NO_POSITIONS,
    ONE_HEAD,
    TRANSFORMER_BUDGETS,
)
from heedful.papers.heedful2026.models import copying_unit
from heedful.papers.heedful2026.recipes import time_ratio
from heedful.papers.snell2021.models import median_time, share_learned, slower
from heedful.papers.snell2021.study_numbers import StudyNumbers, study_unit
from heedful.papers.snell2021.tables import PAIRS, excess_value, heading
from heedful.storage.serialization import from_mapping
from heedful.studies.result import Convention

Key = tuple[str, str]  # model, task
CONVENTION: Convention = "cross"


def copying_units(budget: str) -> dict[Key, list[Unit]]:
    """The runs of every copying Transformer on each of its tasks."""
    sizes = TRANSFORMER_BUDGETS[budget]
    return {
        (name, task): [
            copying_unit(task, seed, replace(sizes.copying, translator=config), model=f"transformer {name}")
            for seed in range(sizes.seeds)
        ]
        for name, config in sizes.copiers.items()
        for task in sizes.tasks[name]
    }


def find_copying(budget: str, answers: Mapping[Key, Sequence[Answer]]) -> Finding:
    """H9 and H11: permutations against 40 of 60 words, one head against eight; without positions nothing is learned."""
    sizes = TRANSFORMER_BUDGETS[budget]
    steps, rows, values = sizes.copying.steps, [], []
    for (name, task), runs in answers.items():
        median = median_time(runs)
        values.append(Value(f"share learned, {name}, {task}", share_learned(runs)))
        p = float("nan")
        if task in HARD:
            z, p = slower(runs, answers[name, EASY], steps)
            count = len(runs) + len(answers[name, EASY])
            values.append(Value(f"slower (z), {name}, {task}", Estimate(z, z - 1.96, z + 1.96, count)))
        cells = (
            Cell(text=str(len(runs))),
            Cell(share_learned(runs), unit="%", digits=0),
            Cell(text=f"more than {steps}" if median != median else f"{median:.0f}"),
            Cell(text="" if p != p else f"{p:.2g}"),
        )
        rows.append(Row(task, cells, name))
    for task in HARD:
        ratio = time_ratio(answers[EIGHT_HEADS, task], answers[ONE_HEAD, task], "learned", steps)
        values.append(Value(f"eight heads over one, {task}", ratio))
    columns = ("runs", "learned within the budget", "median step to 99 %", f"log-rank p against {EASY}")
    notes = (
        f"At most {steps} steps of {sizes.copying.batch_size} fresh sequences, {sizes.seeds} seeds, fixed beforehand. "
        "One layer on each side, of the same width in every model.",
        f"A Transformer {NO_POSITIONS} cannot know the order that it is to copy: a control.",
    )
    panels = tuple(
        Panel(
            name,
            tuple(_mean_line(task, answers[name, task], steps) for task in sizes.tasks[name]),
            x_label="training step",
            y_label="token accuracy",
            y_percent=True,
        )
        for name in sizes.copiers
    )
    title = "Copying by Transformers"
    table = ResultTable(title, columns, tuple(rows))
    return Finding((table,), (Figure("transformer_copying", title, panels),), tuple(values), notes)


def _mean_line(label: str, runs: Sequence[Answer], steps: int) -> Line:
    """Mean accuracy over runs; one that learned stays at its last accuracy."""
    at = sorted({step for run in runs for step in run["steps"]} | {steps})

    def accuracy(run: Answer, step: int) -> float:
        reached = [value for k, value in zip(run["steps"], run["accuracy"], strict=True) if k <= step]
        return float(reached[-1])

    means = (sum(accuracy(run, step) for run in runs) / len(runs) for step in at)
    return Line(label, tuple(float(step) for step in at), tuple(means))


def study_units(budget: str) -> dict[str, list[Unit]]:
    """The numbers of every study."""
    return {
        data: [replace(study_unit(study), name=f"transformer-{study_unit(study).name}")]
        for data, study in TRANSFORMER_BUDGETS[budget].studies(budget).items()
    }


def find_studies(budget: str, answers: Mapping[str, Sequence[Answer]]) -> Finding:
    """H10 and H11: S1 to S5 and S17 on Transformers, as Table 5 and A.7 of snell2021 have them."""
    studies = {data: from_mapping(StudyNumbers, each[0], where=data) for data, each in answers.items()}
    rows, values, lines = [], [], []
    for data, study in studies.items():
        measured, gate = study.validation, study.gate
        sizes: Sizes = {"seeds": measured.seeds, "texts": measured.texts}
        cells = []
        for name in PAIRS:
            row = measured.agreement(name, CONVENTION)
            values.append(excess_value(f"{name} above controls, {data}", row, gate))
            cells += [Cell(row.estimate, unit="%", **sizes), Cell(values[-1].estimate, unit="%", **sizes)]
        above = study.under(CONVENTION).xi_above
        chosen = above if gate.passed else [float("nan")] * len(above)
        values.append(seed_value(f"xi above untrained and majority, {data}", chosen, gate.texts))
        cells += [Cell(values[-1].estimate, unit="%", **sizes), Cell(measured.final, unit="%", **sizes)]
        rows.append(Row(data, tuple(cells)))
        if study.twin is not None:
            ends = (("rise", study.twin.rise), ("fall", study.twin.fall))
            values += [nested_value(f"{name}, {data}", margins) for name, margins in ends]
            lines.append(Line(data, tuple(map(float, study.twin.steps)), study.twin.curve))
    columns = [text for name in PAIRS for text in (heading(name), f"{heading(name)} above controls")]
    table = ResultTable("S1 to S5 on Transformers", (*columns, "ξ above baselines", "accuracy"), tuple(rows))
    panel = Panel(
        "A(α, β^uf(τ)), cross", tuple(lines), x_label="step τ of the uniform twin", y_label="agreement", y_percent=True
    )
    figure = Figure("transformer_studies", "S17 on Transformers: rise and fall", (panel,))
    notes = (
        "Translators: two layers of four heads on each side; α is the mean over heads of the last layer's "
        "cross-attention, and the uniform twin has uniform cross-attention in every layer. Classifiers: two layers of "
        "self-attention of four heads below one pooling attention, which is α.",
        "Conventions, controls and intervals are those of snell2021's Table 5 (cross).",
    )
    return Finding((table,), (figure,), tuple(values), notes)
