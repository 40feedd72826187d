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
from heedful.reports.sides import Compared, check_sides
from heedful.reports.vocabularies import attended_words, told, translated, translated_words
from heedful.studies.result import StudyResult
from heedful.studies.run import ModelSpec, Run


@dataclass(frozen=True)
class Side:
    """One of the studies that are compared; its name is short and no other's."""

    name: str
    run: Run
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
        run = Run(root)
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
