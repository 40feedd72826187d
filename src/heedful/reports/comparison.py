"""Several studies side by side: what they share, where they differ, and one slider over the training of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import RunError
from heedful.reports import summary
from heedful.reports.packing import Arrays
from heedful.reports.payload import (
    FORMAT,
    Payload,
    accuracy_curves,
    agreement_key,
    bleu_curves,
    curve_content,
    drawn_agreement,
    saved_row,
)
from heedful.reports.shown import Shown, choose_models, shown_pairs, shown_texts
from heedful.reports.words import symbol
from heedful.studies.result import AgreementResult, Question, StudyResult
from heedful.studies.run import ModelSpec, Run

MOST = 6  # as many marks can be told apart


@dataclass(frozen=True)
class Side:
    """One of the studies that are compared; its name is short and no other's."""

    name: str
    run: Run
    result: StudyResult


def open_sides(runs: Sequence[Path]) -> list[Side]:
    """The studies in those folders, which must be finished and of one task."""
    if len(runs) > MOST:
        raise RunError(f"{len(runs)} runs; a page compares {MOST} at most, whose marks can be told apart")
    if len({run.resolve() for run in runs}) < len(runs):
        raise RunError("the same run is named twice; a run is compared with others")
    sides = []
    for name, root in zip(short_names(runs), runs, strict=True):
        run = Run(root)
        run.config()
        if not run.result_path.exists():
            raise RunError(f"{root}: the study is not finished (it has no result.json)")
        sides.append(Side(name, run, StudyResult.load(run.result_path)))
    if len(tasks := {side.result.task for side in sides}) > 1:
        said = ", ".join(f"{side.name} is of {side.result.task}" for side in sides)
        raise RunError(f"studies of {' and '.join(sorted(tasks))} have no agreement in common to compare: {said}")
    return sides


def short_names(runs: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many before it as it takes to tell them apart.

    >>> short_names([Path("runs/a"), Path("runs/b")]), short_names([Path("x/demo"), Path("y/demo")])
    (['a', 'b'], ['x/demo', 'y/demo'])
    """
    parts = [run.resolve().parts for run in runs]
    for many in range(1, max(map(len, parts)) + 1):
        names = ["/".join(of[-many:]) for of in parts]
        if len(set(names)) == len(names):
            return names
    return names


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


def headline(sides: Sequence[Side]) -> str:
    """What the intervals of the runs say about one another, in one sentence."""
    apart, both = differing(sides), len(_common(sides))
    names = " and ".join([", ".join(side.name for side in sides[:-1]), sides[-1].name])
    if not apart:
        return f"{names} are not shown to differ in any of {both} agreements."
    return f"{names} differ in {len(apart)} of {both} agreements: their intervals do not meet."


def differing(sides: Sequence[Side]) -> list[str]:
    """The agreements (own) of which two runs have intervals that do not meet, each with its ends."""
    found = []
    for key, rows in _common(sides).items():
        low = max(rows, key=lambda row: row.estimate.low)
        high = min(rows, key=lambda row: row.estimate.high)
        if low.estimate.low > high.estimate.high:
            said = (f"{side.name} {summary.with_interval(row.estimate)}" for side, row in zip(sides, rows, strict=True))
            found.append(f"{symbol(key)}: {', '.join(said)}")
    return found


def questions(sides: Sequence[Side]) -> list[tuple[str, list[Question | None]]]:
    """Every question of the verdicts, with each run's answer; None where a run was not asked."""
    asked = [{q.question: q for q in side.result.verdict.questions} for side in sides]
    every = dict.fromkeys(question for answers in asked for question in answers)
    return [(question, [answers.get(question) for answers in asked]) for question in every]


def facts(sides: Sequence[Side]) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
    """What differs between the runs, a value for each; and what all have in common."""
    each = [
        dict(
            [
                *summary.data_facts(side.result),
                *summary.training_facts(side.run, side.result),
                *summary.provenance(side.run, side.result),
            ]
        )
        for side in sides
    ]
    names = list(dict.fromkeys(name for one in each for name in one))
    columns = [(name, [one.get(name, "–") for one in each]) for name in names]
    different = [(name, values) for name, values in columns if len(set(values)) > 1]
    return different, [(name, values[0]) for name, values in columns if len(set(values)) == 1]


def _common(sides: Sequence[Side]) -> dict[str, list[AgreementResult]]:
    """The agreements (own) that every run has."""
    each = [
        {agreement_key(row.name): row for row in side.result.agreements if row.convention == "own"} for side in sides
    ]
    return {key: [one[key] for one in each] for key in each[0] if all(key in one for one in each)}


def _models(side: Side) -> list[Shown]:
    """The first seed's standard model and its uniform twin."""
    seed = side.result.seeds[0]
    return choose_models(side.run, side.result, [ModelSpec("standard", seed), ModelSpec("uniform", seed)], of=side.name)


def _model(model: Shown, steps: Sequence[int]) -> dict[str, Any]:
    """A model, and which of its own steps is shown at each step of the slider: the last that is not after it."""
    places = np.maximum(np.searchsorted(model.steps, steps, side="right") - 1, 0)
    return {"name": model.name, "kind": model.spec.kind, "title": model.title, "places": places.tolist()}


def _of_standard(curves: Sequence[dict[str, Any]], side: Side) -> list[dict[str, Any]]:
    """The curves of a run's standard models, called by the run's name."""
    return [curve | {"kind": side.name, "title": side.name} for curve in curves if curve["kind"] == "standard"]
