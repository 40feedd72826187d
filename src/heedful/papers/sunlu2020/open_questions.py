"""Differences from the accuracies of sunlu2020's Table 2, and candidates that may explain them, each trained.

A published number is that of one run. It excludes a candidate if it lies outside the candidate's 95 % prediction
interval for one more run, m ± t·s·√(1 + 1/n), of n runs with mean m and standard deviation s. Of three runs that
interval is wide, so that lying inside it proves nothing.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import stats

from heedful.execution.pool import OnEvent
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Finding, ResultTable, Row, Value, seed_value
from heedful.papers.published import published_lines
from heedful.papers.sunlu2020.data import TOPICS, Sample, read_texts
from heedful.papers.sunlu2020.models import Kind, Recipe, TrainingJob, accuracy, build_model, train_epochs
from heedful.storage.serialization import content, from_mapping

Question = tuple[str, Kind, float]  # a cell of Table 2: corpus, model and λ
PATIENCE = 6  # of `quick`; longer trainings are also read as if they had ended by it


@dataclass(frozen=True)
class Candidate:
    """Models that differ from ours in what may explain a difference; one run each.

    question: the cell of Table 2 that differs.
    """

    question: Question
    name: str
    jobs: tuple[TrainingJob, ...]


@dataclass(frozen=True)
class DifferenceBudget:
    """Sizes of the experiment. seeds: of each candidate; divisions: ways to divide a corpus, one seed each."""

    three: str
    three_bare: str
    sport: str
    sentiment: str
    seeds: int
    divisions: int
    cut: Sample
    whole: Sample
    recipe: Recipe


DIFFERENCE_BUDGETS = {
    "smoke": DifferenceBudget(
        TOPICS,
        TOPICS,
        "polarity",
        "polarity",
        2,
        2,
        Sample(100, 20, 20, 8),
        Sample(100, 20, 20, 20),
        Recipe(epochs=2, batch_size=20, width=8),
    ),
    "quick": DifferenceBudget(
        "20news-three",
        "20news-three-sklearn",
        "20news-sport",
        "sst",
        3,
        3,
        Sample(max_length=160),
        Sample(),
        Recipe(),
    ),
    "paper": DifferenceBudget(
        "20news-three",
        "20news-three-sklearn",
        "20news-sport",
        "sst",
        5,
        20,
        Sample(),
        Sample(max_length=10_000),
        Recipe(),
    ),
}


def candidates(budget: str) -> list[Candidate]:
    """What is tried within a budget; the first of each question is what Table 2 has at `quick`, ended by patience."""
    sizes = DIFFERENCE_BUDGETS[budget]
    every = range(sizes.seeds)
    topics: Question = ("20News II", "DP", 100.0)

    def three(data: str, sample: Sample, seed: int) -> TrainingJob:
        return TrainingJob(data, "DP", topics[2], seed, sample=sample, recipe=sizes.recipe)

    apart = [replace(sizes.cut, division=division) for division in range(1, sizes.divisions + 1)]
    cut, whole = (f"{sample.max_length} words" for sample in (sizes.cut, sizes.whole))
    found = [
        Candidate(topics, cut, tuple(three(sizes.three, sizes.cut, seed) for seed in every)),
        Candidate(topics, whole, tuple(three(sizes.three, sizes.whole, seed) for seed in every)),
        Candidate(topics, f"{cut}, divided otherwise", tuple(three(sizes.three, sample, 0) for sample in apart)),
        Candidate(
            topics,
            f"{cut}, stripped as by sklearn, divided otherwise",
            tuple(three(sizes.three_bare, sample, 0) for sample in apart),
        ),
    ]
    stopped = replace(sizes.recipe, patience=PATIENCE)
    tried: list[tuple[Question, str, dict[str, Recipe]]] = [
        (("20News I", "DP-A", 0.001), sizes.sport, _penalties(sizes.recipe) | _without(sizes.recipe)),
        (("20News I", "DP-L", 0.001), sizes.sport, _penalties(stopped) | _to_the_end(sizes.recipe)),
        (("SST", "AD", 10.0), sizes.sentiment, _penalties(stopped)),
    ]
    others = []
    for question, data, recipes in tried:
        sample = sizes.whole if data == "sst" else sizes.cut
        for name, recipe in recipes.items():
            jobs = [TrainingJob(data, *question[1:], seed, sample=sample, recipe=recipe) for seed in every]
            others.append(Candidate(question, name, tuple(jobs)))
    return [*found, *others]


def _penalties(recipe: Recipe) -> dict[str, Recipe]:
    """Where the L2 penalty may be."""
    return {
        "L2 on all parameters": recipe,
        "L2 on the layer alone": replace(recipe, penalised="layer"),
    }


def _without(recipe: Recipe) -> dict[str, Recipe]:
    return {"no L2": replace(recipe, decay=0.0)}


def _to_the_end(recipe: Recipe) -> dict[str, Recipe]:
    return {f"L2 on the layer alone, all {recipe.epochs} epochs": replace(recipe, penalised="layer")}


def difference_units(budget: str) -> dict[Candidate, list[Unit]]:
    """The trainings of every candidate."""
    return {candidate: [_unit(job) for job in candidate.jobs] for candidate in candidates(budget)}


def _unit(job: TrainingJob) -> Unit:
    sample, recipe = job.sample, job.recipe
    name = f"accuracy-{job.unit.name}-words{sample.max_length}-division{sample.division}-l2-{recipe.penalised}"
    name += f"-{recipe.decay:g}" + ("" if recipe.patience is None else "-stopped")
    return Unit(name, f"{__name__}:follow_accuracy", content(job))


def follow_accuracy(*, device: torch.device, report: OnEvent, **settings: Any) -> dict[str, Any]:
    """A unit: train one model; `dev` and `test` accuracy after every epoch, `texts` tested, `norm` of word vectors.

    norm: the median of ∥e∥ over the vocabulary at the end.
    """
    job = from_mapping(TrainingJob, settings)
    texts = read_texts(job.data, job.sample)
    model = build_model(job, texts).to(device)
    dev: list[float] = []
    test: list[float] = []

    def at_epoch(epoch: int, loss: float) -> bool:
        dev.append(accuracy(model, texts.validation))
        test.append(accuracy(model, texts.test))
        report({"step": epoch, "steps": job.recipe.epochs, "accuracy": dev[-1]})
        return job.recipe.patience is not None and epoch - 1 - int(np.argmax(dev)) >= job.recipe.patience

    train_epochs(model, texts, job, at_epoch)
    norm = float(model.embedding.weight.detach().norm(dim=1).median())
    return {"dev": dev, "test": test, "texts": len(texts.test), "norm": norm}


def find_differences(budget: str, answers: Mapping[Candidate, Sequence[Answer]]) -> Finding:
    """Every candidate beside the published number, and whether it fits."""
    printed = {
        (line["dataset"], line["model"], float(line["lambda"])): float(line["value"])
        for line in published_lines("sunlu2020", "2")
    }
    rows, values, notes = [], [], []
    for question in dict.fromkeys(candidate.question for candidate in answers):
        row, kind, scale = question
        published = None if budget == "smoke" else printed[question]
        printed_cell = Cell(text="" if published is None else f"{published:g}")
        excluded: list[str] = []
        means: dict[str, float] = {}
        for candidate, runs in answers.items():
            if candidate.question != question:
                continue
            name = f"{row}, {kind}, λ = {scale:g}: {candidate.name}"
            measured = {reading: _measured(name, reading, runs) for reading in READINGS}
            interval = prediction_interval([READINGS["dev's best epoch"](run) for run in runs])
            cells = [
                Cell(value.estimate, unit="%", seeds=value.seeds, texts=value.texts) for value in measured.values()
            ]
            low, high = (f"{100 * end:.0f}" for end in interval)
            norm = seed_value("", [run["norm"] for run in runs])
            rows.append(
                Row(
                    candidate.name,
                    (*cells, Cell(text=f"{low} to {high}"), printed_cell, Cell(norm.estimate)),
                    name[: -len(candidate.name) - 2],
                )
            )
            values += [measured["dev's best epoch"], measured["ended by patience"]]
            means.setdefault("ours", 100 * measured["ended by patience"].estimate.value)
            means[candidate.name] = 100 * measured["dev's best epoch"].estimate.value
            if published is not None and not interval[0] <= published / 100 <= interval[1]:
                excluded.append(candidate.name)
        if published is not None:
            notes.append(f"{row}, {kind}, λ = {scale:g}: {_verdict(published, means.pop('ours'), means, excluded)}")
    columns = (*READINGS, "one more run", "published", "median ∥e∥")
    caption = (
        "Accuracy on test texts at an epoch chosen by dev accuracy, by it and patience, or by test accuracy itself; "
        "intervals are over runs. “One more run” is a 95 % prediction interval: a published run outside of it excludes "
        "the candidate; inside proves nothing, since of few runs it is wide."
    )
    table = ResultTable("Candidates that may explain a difference", columns, tuple(rows), caption)
    return Finding((table, split_table()), values=tuple(values), notes=tuple(notes))


def _verdict(published: float, ours: float, means: Mapping[str, float], excluded: Sequence[str]) -> str:
    """Which candidate lies nearest to the published accuracy, and which cannot have it as one more run.

    >>> _verdict(90.0, 80.0, {"a": 82.0, "b": 89.5}, ["a"])
    'published 90, ours 80.0; nearest is “b” with 89.5. Excluded: “a”.'
    """
    nearest = min(means, key=lambda name: abs(means[name] - published))
    begin = f"published {published:g}, ours {ours:.1f}; nearest is “{nearest}” with {means[nearest]:.1f}."
    if len(excluded) == len(means):
        return f"{begin} All of them are excluded: the difference is unexplained."
    return f"{begin} Excluded: {', '.join(f'“{name}”' for name in excluded) or 'none'}."


def split_table() -> ResultTable:
    """Which split the printed accuracies of Table 2 can be of, by the number of texts that Table 1 prints.

    A share of n texts is a multiple of 1/n; with few texts not every number of three digits is one. Corpora so large
    that every such number is possible with the test texts are left out.
    """
    sizes = {
        (line["dataset"], line["quantity"]): sum(map(int, line["value"].split("/")))
        for line in published_lines("sunlu2020", "1")
        if line["quantity"] in ("dev", "test")
    }
    printed: dict[tuple[str, str], list[float]] = {}
    for line in published_lines("sunlu2020", "2"):
        printed.setdefault((line["dataset"], line["model"]), []).append(float(line["value"]))
    tenths = [at / 10 for at in range(1001)]
    rows = []
    for (data, model), accuracies in printed.items():
        texts = {split: sizes[data, split] for split in ("test", "dev")}
        chance = {split: sum(is_possible(at, n) for at in tenths) / len(tenths) for split, n in texts.items()}
        if max(chance.values()) < 1:
            cells = [
                Cell(text=f"{sum(is_possible(at, n) for at in accuracies)} of {len(accuracies)}")
                for n in texts.values()
            ]
            by_chance = [Cell(text=f"{len(accuracies) * share:.1f}") for share in chance.values()]
            rows.append(Row(model, (*cells, *by_chance), data))
    columns = ("of the test texts", "of the dev texts", "test, by chance", "dev, by chance")
    caption = "How many of the printed accuracies are a share of so many texts, rounded to a tenth of a per cent."
    return ResultTable("Which split a printed accuracy can be of", columns, tuple(rows), caption)


def is_possible(percent: float, texts: int) -> bool:
    """Whether a share of so many texts rounds to this number with one decimal.

    >>> is_possible(94.9, 274), is_possible(94.9, 240), is_possible(92.9, 274), is_possible(92.9, 240)
    (True, False, False, True)
    """
    nearest = round(percent * texts / 100)
    return abs(100 * nearest / texts - percent) <= 0.05 + 1e-9


def _stopped(run: Answer) -> float:
    """Test accuracy at the best dev epoch, had training ended once that lay `PATIENCE` epochs behind."""
    dev = run["dev"]
    ends = (epoch for epoch in range(len(dev)) if epoch - int(np.argmax(dev[: epoch + 1])) >= PATIENCE)
    end = next(ends, len(dev) - 1)
    return float(run["test"][int(np.argmax(dev[: end + 1]))])


READINGS: dict[str, Callable[[Answer], float]] = {
    "dev's best epoch": lambda run: float(run["test"][int(np.argmax(run["dev"]))]),
    "ended by patience": _stopped,
    "dev in place of test": lambda run: float(max(run["dev"])),
    "test's best epoch": lambda run: float(max(run["test"])),
}


def _measured(name: str, reading: str, runs: Sequence[Answer]) -> Value:
    return seed_value(f"{name}, {reading}", [READINGS[reading](run) for run in runs], runs[0]["texts"], (0.0, 1.0))


def prediction_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's interval for one more value of the kind, within [0, 1].

    >>> [round(end, 3) for end in prediction_interval([0.8, 0.82, 0.84])]
    [0.721, 0.919]
    """
    n, mean = len(values), float(np.mean(values))
    reach = float(stats.t.ppf((1 + level) / 2, n - 1)) * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / n)
    return max(0.0, mean - reach), min(1.0, mean + reach)
