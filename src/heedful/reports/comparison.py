"""Several studies side by side: what they share, where they differ, and one slider over the training of all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import RunError
from heedful.followed.result import FollowedDirectory, FollowedTraining, ProbeTexts
from heedful.metrics.statistics import Estimate
from heedful.reports import followed_page as following
from heedful.reports import study_page as summary
from heedful.reports.formatting import NONE, symbol
from heedful.reports.html import Arrays
from heedful.reports.study_page import with_interval
from heedful.reports.study_payload import (
    FORMAT,
    Payload,
    Shown,
    accuracy_curves,
    agreement_key,
    bleu_curves,
    choose_models,
    curve_content,
    drawn_agreement,
    saved_row,
    shown_pairs,
    shown_texts,
)
from heedful.reports.word_tables import attended_words, told, translated, translated_words
from heedful.storage.atomic_files import without_nan
from heedful.studies.result import Question, StudyResult, Verdict
from heedful.studies.run_directory import ModelSpec, RunDirectory

MOST = 6  # as many marks can be told apart


@dataclass(frozen=True)
class Compared:
    """What a result brings to a comparison; its name is short and no other's.

    figures: what can be held against the same of another, by name; facts: what it was made of, in pairs.
    """

    name: str
    verdict: Verdict
    figures: Mapping[str, Estimate]
    facts: Mapping[str, str]


def check_sides(runs: Sequence[Path]) -> list[str]:
    """Short names of the runs, which must be few enough to be told apart, and none named twice."""
    if len(runs) > MOST:
        raise RunError(f"{len(runs)} runs; a page compares {MOST} at most, whose marks can be told apart")
    if len({run.resolve() for run in runs}) < len(runs):
        raise RunError("the same run is named twice; a run is compared with others")
    return short_names(runs)


def short_names(runs: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many before it as it takes to tell them apart.

    >>> short_names([Path("runs/a"), Path("runs/b")]), short_names([Path("x/demo"), Path("y/demo")])
    (['a', 'b'], ['x/demo', 'y/demo'])
    """
    parts = [run.resolve().parts for run in runs]
    for many in range(1, max(map(len, parts)) + 1):
        names = ["/".join(of[-many:]) for of in parts]
        if len(set(names)) == len(names):
            break
    return names


def headline(sides: Sequence[Compared], what: str = "agreements") -> str:
    """What the intervals say about one another, in one sentence; what: the figures, in the plural."""
    apart, all_of = differing(sides), len(common(sides))
    names = " and ".join([", ".join(side.name for side in sides[:-1]), sides[-1].name])
    if not all_of:
        return f"{names} have none of their {what} in common."
    if not apart:
        return f"{names} are not shown to differ in any of {all_of} {what}."
    return f"{names} differ in {len(apart)} of {all_of} {what}: their intervals do not meet."


def differing(sides: Sequence[Compared], spell: Callable[[Estimate], str] = with_interval) -> list[str]:
    """The figures of which two results have intervals that do not meet, each with the value of all."""
    found = []
    for name, estimates in common(sides).items():
        if max(e.low for e in estimates) > min(e.high for e in estimates):
            said = (f"{side.name} {spell(estimate)}" for side, estimate in zip(sides, estimates, strict=True))
            found.append(f"{symbol(name)}: {', '.join(said)}")
    return found


def common(sides: Sequence[Compared]) -> dict[str, list[Estimate]]:
    """The figures that all have."""
    first, *others = [side.figures for side in sides]
    return {name: [first[name], *(one[name] for one in others)] for name in first if all(name in o for o in others)}


def questions(sides: Sequence[Compared]) -> list[tuple[str, list[Question | None]]]:
    """Every question of the verdicts, with each one's answer; None where it was not asked."""
    asked = [{q.question: q for q in side.verdict.questions} for side in sides]
    every = dict.fromkeys(question for answers in asked for question in answers)
    return [(question, [answers.get(question) for answers in asked]) for question in every]


def facts(sides: Sequence[Compared]) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
    """What differs, a value for each; and what all have in common."""
    names = list(dict.fromkeys(name for side in sides for name in side.facts))
    columns = [(name, [side.facts.get(name, NONE) for side in sides]) for name in names]
    different = [(name, values) for name, values in columns if len(set(values)) > 1]
    return different, [(name, values[0]) for name, values in columns if len(set(values)) == 1]


@dataclass(frozen=True)
class Side:
    """One of the studies that are compared; its name is short and no other's."""

    name: str
    run: RunDirectory
    result: StudyResult

    def compared(self) -> Compared:
        """Its own agreements, its verdict and what it was made of."""
        own = {agreement_key(row.name): row.estimate for row in self.result.agreements if row.convention == "own"}
        facts = [
            *summary.data_facts(self.result),
            *summary.training_facts(self.run, self.result),
            *summary.provenance(self.run, self.result),
        ]
        return Compared(self.name, self.result.verdict, own, dict(facts))


def open_sides(runs: Sequence[Path]) -> list[Side]:
    """The studies in those folders, which must be finished and of one task."""
    sides = []
    for name, root in zip(check_sides(runs), runs, strict=True):
        run = RunDirectory(root)
        run.config()
        if not run.result_path.exists():
            raise RunError(f"{root}: the study is not finished (it has no result.json)")
        sides.append(Side(name, run, StudyResult.load(run.result_path)))
    if len(tasks := {side.result.task for side in sides}) > 1:
        said = ", ".join(f"{side.name} is of {side.result.task}" for side in sides)
        raise RunError(f"studies of {' and '.join(sorted(tasks))} have no agreement in common to compare: {said}")
    return sides


def comparison_payload(sides: Sequence[Side]) -> Payload:
    """The page's numbers: every run's agreements and curves, and the same examples as each run's models saw them."""
    arrays = Arrays()
    shown = [_models(side) for side in sides]
    steps = sorted({step for models in shown for step in models[0].steps})
    first = sides[0].result
    randoms = {round(side.result.random_agreement, 12) for side in sides}
    content: dict[str, Any] = {
        "format": FORMAT,
        "task": first.task,
        "name": " beside ".join(side.name for side in sides),
        "runs": [side.name for side in sides],
        "labels": first.data["labels"],
        "steps": steps,
        "agreements": [
            drawn_agreement(row) | {"run": i} for i, side in enumerate(sides) for row in side.result.agreements
        ],
        "rows": [{"run": side.name, **saved_row(row)} for side in sides for row in side.result.agreements],
        "random": first.random_agreement if len(randoms) == 1 else None,
        "accuracy": [curve for side in sides for curve in _of_standard(accuracy_curves(side.result), side)],
        "entropies": [curve_content(side.result.entropy) for side in sides],
        "models": [_model(model, steps) for models in shown for model in models],
    }
    if first.task == "translation":
        content["bleu"] = [curve for side in sides for curve in _of_standard(bleu_curves(side.result), side)]
    if same_examples(sides):
        content["beside"] = shown[1][0].name
        shelf = shown_pairs if first.task == "translation" else shown_texts
        content |= shelf([model for models in shown for model in models], arrays)
        content |= _words(sides, [models[0].steps for models in shown], steps, arrays)
    return Payload(content | {"arrays": arrays.directory}, arrays)


def same_examples(sides: Sequence[Side]) -> bool:
    """Whether all models of all runs were shown the same validation texts, position by position."""
    if sides[0].result.task == "translation":
        pairs = [side.run.pairs("validation") for side in sides]
        tokenisers = [side.run.tokeniser() for side in sides]
        return all(
            tokeniser == tokenisers[0]
            and np.array_equal(one.source.values, pairs[0].source.values)
            and np.array_equal(one.target.values, pairs[0].target.values)
            for one, tokeniser in zip(pairs, tokenisers, strict=True)
        )
    splits, words = [side.run.split("validation") for side in sides], [side.run.words() for side in sides]
    return all(
        labels == sides[0].result.data["labels"]
        and texts == words[0]
        and np.array_equal(split.offsets, splits[0].offsets)
        and np.array_equal(split.labels, splits[0].labels)
        for labels, texts, split in zip((s.result.data["labels"] for s in sides), words, splits, strict=True)
    )


def _words(sides: Sequence[Side], own: Sequence[Sequence[int]], steps: Sequence[int], arrays: Arrays) -> dict[str, Any]:
    """The table of words of all runs, each over its own seeds and at its own steps."""
    each = [(side.run, side.result, at, side.name, last_before(at, steps)) for side, at in zip(sides, own, strict=True)]
    if sides[0].result.task == "translation":
        seeds = max(len(side.result.seeds) for side in sides)
        return translated_words([translated(*one) for one in each], sides[0].run, seeds, arrays)
    return attended_words([told(*one) for one in each], arrays)


def _models(side: Side) -> list[Shown]:
    """The first seed's standard model and its uniform twin."""
    seed = side.result.seeds[0]
    return choose_models(side.run, side.result, [ModelSpec("standard", seed), ModelSpec("uniform", seed)], of=side.name)


def _model(model: Shown, steps: Sequence[int]) -> dict[str, Any]:
    """A model, and which of its own steps is shown at each step of the slider: the last that is not after it."""
    return {
        "name": model.name,
        "kind": model.spec.kind,
        "title": model.title,
        "places": last_before(model.steps, steps),
    }


def last_before(own: Sequence[int], steps: Sequence[int]) -> list[int]:
    """For each step of the slider, the place among a model's own of the last that is not after it.

    >>> last_before([0, 4, 8], [0, 2, 4, 9])
    [0, 0, 1, 2]
    """
    return [int(place) for place in np.maximum(np.searchsorted(own, steps, side="right") - 1, 0)]


def _of_standard(curves: Sequence[dict[str, Any]], side: Side) -> list[dict[str, Any]]:
    """The curves of a run's standard models, called by the run's name."""
    return [curve | {"kind": side.name, "title": side.name} for curve in curves if curve["kind"] == "standard"]


@dataclass(frozen=True)
class FollowedSide:
    """One of the trainings that are compared; its name is short and no other's."""

    name: str
    run: FollowedDirectory
    probe: ProbeTexts
    result: FollowedTraining

    @property
    def steps(self) -> list[int]:
        """Where it was recorded."""
        return [step.step for step in self.result.steps]

    def compared(self) -> Compared:
        """Its agreements at its last recorded step, its verdict and what it was made of."""
        last = {row.name: row.estimate for row in self.result.steps[-1].agreements}
        facts = [
            ("training", self.result.name),
            *following.data_facts(self.probe),
            *following.training_facts(self.result),
            *((name, value) for name, value in following.provenance(self.run) if name != "texts"),
        ]
        return Compared(self.name, self.result.verdict, last, dict(facts))


def open_followed(runs: Sequence[Path]) -> list[FollowedSide]:
    """The followed trainings in those folders, each recorded once at least."""
    opened = [FollowedDirectory(root) for root in runs]
    return [
        FollowedSide(name, run, run.probe(), run.result()) for name, run in zip(check_sides(runs), opened, strict=True)
    ]


def same_texts(sides: Sequence[FollowedSide]) -> bool:
    """Whether all were followed on the same texts, word by word, under the same labels."""
    seen = {(side.probe.labels, side.probe.words, side.probe.right) for side in sides}
    return len(seen) == 1


def followed_payload(sides: Sequence[FollowedSide]) -> Payload:
    """The page's numbers: every training's agreements and curves, and the same texts as each model saw them."""
    arrays, steps = Arrays(), sorted({step for side in sides for step in side.steps})
    places = {side.name: last_before(side.steps, steps) for side in sides}
    randoms = {round(side.result.random_agreement, 12) for side in sides}
    content: dict[str, Any] = {
        "format": FORMAT,
        "task": "following",
        "name": " beside ".join(side.name for side in sides),
        "runs": [side.name for side in sides],
        "labels": sides[0].probe.labels,
        "steps": steps,
        "agreements": [
            following.last_agreement(row, side.result) | {"run": i}
            for i, side in enumerate(sides)
            for row in side.result.steps[-1].agreements
        ],
        "rows": [{"run": side.name, **row} for side in sides for row in side.result.to_rows()],
        "random": sides[0].result.random_agreement if len(randoms) == 1 else None,
        "accuracy": [
            {"kind": side.name, "title": side.name, **_curve(side, [step.accuracy for step in side.result.steps])}
            for side in sides
            if side.probe.right
        ],
        "entropies": [_curve(side, [step.entropy.value for step in side.result.steps]) for side in sides],
        "special_shares": [_curve(side, [step.special for step in side.result.steps]) for side in sides],
        "models": [
            {"name": side.name, "kind": "standard", "title": side.name, "places": places[side.name]} for side in sides
        ],
    }
    if same_texts(sides):
        told_by = [(side.name, side.run.trace(), side.steps) for side in sides]
        texts, words = following.probe_texts(sides[0].probe, told_by, arrays)
        named = [
            replace(told, name=side.name, places=tuple(places[side.name]))
            for told, side in zip(words, sides, strict=True)
        ]
        content |= {"beside": sides[1].name} | texts | attended_words(named, arrays)
    return Payload(without_nan(content) | {"arrays": arrays.directory}, arrays)


def _curve(side: FollowedSide, values: Sequence[float]) -> dict[str, Any]:
    return {"steps": side.steps, "values": list(values)}
