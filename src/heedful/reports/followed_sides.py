"""Several followed trainings side by side: the same probe texts, one slider over the training of all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.audits.followed import FollowedTraining, ProbeTexts
from heedful.audits.followed_run import FollowedRun
from heedful.files import without_nan
from heedful.reports import following
from heedful.reports.comparison import last_before
from heedful.reports.packing import Arrays
from heedful.reports.payload import FORMAT, Payload
from heedful.reports.sides import Compared, check_sides
from heedful.reports.vocabularies import attended_words


@dataclass(frozen=True)
class FollowedSide:
    """One of the trainings that are compared; its name is short and no other's."""

    name: str
    run: FollowedRun
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
    opened = [FollowedRun(root) for root in runs]
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
