"""The page of a followed training, and the page of several side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.vocabulary import EncodedSplit
from heedful.followed.result import FollowedDirectory, FollowedTraining, ProbeTexts
from heedful.html import symbol
from heedful.reports.comparison import (
    RunSummary,
    by_agreement,
    comparison_names,
    comparison_words,
    last_before,
    shared_content,
)
from heedful.reports.examples import RunWords, embed_views, embed_words, text_facts
from heedful.reports.html import Arrays, Payload, fill_training_page, interval, percent
from heedful.reports.study_page import TERMS
from heedful.reports.study_payload import FORMAT, drawn_agreement
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import digest
from heedful.studies.page_data import PageModel, attended_words, text_examples

_MODEL = "model"  # the one model of the page


@dataclass(frozen=True)
class FollowedLine:
    """One row of the table of agreements at the last step, every cell as text."""

    name: str
    value: str
    interval: str
    n: str
    random: str
    shuffle: str
    gain: str
    ties: str


@dataclass(frozen=True)
class FollowedRun:
    """A followed training that is shown; name: short, and no other's on the page."""

    name: str
    run: FollowedDirectory
    probe: ProbeTexts
    result: FollowedTraining

    @classmethod
    def open(cls, name: str, root: Path) -> "FollowedRun":
        """The training in that folder, recorded at least once."""
        run = FollowedDirectory(root)
        return cls(name, run, run.probe(), run.result())

    @property
    def steps(self) -> list[int]:
        """The recorded steps."""
        return [step.step for step in self.result.steps]

    def curve(self, values: Sequence[float]) -> dict[str, Any]:
        """A value at each recorded step."""
        return {"steps": self.steps, "values": list(values)}

    def agreements(self) -> list[dict[str, Any]]:
        """What the charts know of the agreements at the last recorded step."""
        return [
            drawn_agreement(row.name, row.estimate, row.shuffle, self.result.curve(row.name))
            for row in self.result.steps[-1].agreements
        ]

    def summary(self) -> RunSummary:
        """Its agreements at its last recorded step, its verdict and how it was made."""
        last = {row.name: row.estimate for row in self.result.steps[-1].agreements}
        facts = [
            ("training", self.result.name),
            *data_facts(self.probe),
            *training_facts(self.result),
            *((name, value) for name, value in provenance(self.run) if name != "texts"),
        ]
        return RunSummary(self.name, self.result.verdict, last, dict(facts))


def render_following(root: Path) -> str:
    """The page of a followed training as text."""
    training = FollowedRun.open(_MODEL, root)
    return fill_training_page(
        "following.html.j2",
        following_payload(training),
        result=training.result,
        labelled=bool(training.probe.right),
        decisions=training.probe.decisions,
        agreements=agreement_lines(training.result),
        terms=TERMS["classification"],
        alignment=[],
        has_paper=False,
        data_facts=data_facts(training.probe),
        training_facts=training_facts(training.result),
        provenance=provenance(training.run),
    )


def render_followed(roots: Sequence[Path]) -> str:
    """The page of several followed trainings as text."""
    trainings = [FollowedRun.open(name, root) for name, root in zip(comparison_names(roots), roots, strict=True)]
    labelled = all(training.probe.right for training in trainings)
    return fill_training_page(
        "comparison-following.html.j2",
        followed_payload(trainings),
        **comparison_words([training.summary() for training in trainings]),
        what="followed trainings",
        agreements=by_agreement([(training.name, agreement_lines(training.result)) for training in trainings]),
        same=same_texts(trainings),
        terms=TERMS["classification"],
        labelled=labelled,
        wide_curve=not labelled,
        alignment=[],
        has_paper=False,
    )


def following_payload(training: FollowedRun) -> Payload:
    """Everything the charts and the slider of a followed training need."""
    probe, result, arrays = training.probe, training.result, Arrays()
    accuracy = {"kind": "standard", "title": "accuracy", **training.curve([step.accuracy for step in result.steps])}
    content = {
        "format": FORMAT,
        "task": result.task,
        "name": result.name,
        "labels": probe.labels,
        "steps": training.steps,
        "agreements": training.agreements(),
        "rows": result.to_rows(),
        "paper": {},
        "random": result.random_agreement,
        "accuracy": [accuracy] if probe.right else [],
        "references": [{"title": "most frequent label", "value": probe.majority}] if probe.right else [],
        "entropy": training.curve([step.entropy.value for step in result.steps]),
        "special_share": training.curve([step.special for step in result.steps]),
        "models": [{"name": _MODEL, "kind": "standard", "title": probe.model}],
    }
    content |= _embedded([training], arrays)
    return Payload(without_nan(content) | {"arrays": arrays.directory}, arrays)


def followed_payload(trainings: Sequence[FollowedRun]) -> Payload:
    """Every training's agreements and curves, and the same texts as each model saw them."""
    arrays, steps = Arrays(), sorted({step for training in trainings for step in training.steps})
    places = {training.name: last_before(training.steps, steps) for training in trainings}
    content: dict[str, Any] = {
        **shared_content([t.name for t in trainings], [t.result.random_agreement for t in trainings]),
        "task": "following",
        "labels": trainings[0].probe.labels,
        "steps": steps,
        "agreements": [row | {"run": i} for i, training in enumerate(trainings) for row in training.agreements()],
        "rows": [{"run": training.name, **row} for training in trainings for row in training.result.to_rows()],
        "accuracy": [
            {"kind": t.name, "title": t.name, **t.curve([step.accuracy for step in t.result.steps])}
            for t in trainings
            if t.probe.right
        ],
        "entropies": [t.curve([step.entropy.value for step in t.result.steps]) for t in trainings],
        "special_shares": [t.curve([step.special for step in t.result.steps]) for t in trainings],
        "models": [{"name": t.name, "kind": "standard", "title": t.name, "places": places[t.name]} for t in trainings],
    }
    if same_texts(trainings):
        content |= {"beside": trainings[1].name} | _embedded(trainings, arrays, places)
    return Payload(without_nan(content) | {"arrays": arrays.directory}, arrays)


def same_texts(trainings: Sequence[FollowedRun]) -> bool:
    """Whether all were followed on the same texts, word by word, under the same labels."""
    return len({(one.probe.labels, one.probe.words, one.probe.right) for one in trainings}) == 1


def agreement_lines(result: FollowedTraining) -> list[FollowedLine]:
    """The table of agreements at the last recorded step."""
    return [
        FollowedLine(
            name=symbol(row.name),
            value=percent(row.estimate.value),
            interval=interval(row.estimate),
            n=f"{row.estimate.n:,}",
            random=percent(result.random_agreement),
            shuffle=percent(row.shuffle.value),
            gain=f"{percent(row.gain.value)} ({interval(row.gain)})",
            ties=f"{row.ties:,}",
        )
        for row in result.steps[-1].agreements
    ]


def data_facts(probe: ProbeTexts) -> list[tuple[str, str]]:
    """Facts about the probe texts: name and value."""
    facts = [
        ("texts", f"{len(probe.words):,}, the same at every step"),
        ("labels", ", ".join(probe.labels)),
        ("most frequent label", f"{percent(probe.majority)} of the texts" if probe.right else ""),
        ("right labels", "" if probe.right else "not given: the label that is predicted stands in"),
        ("median length", f"{probe.median_length:,.0f} words"),
    ]
    return [(name, value) for name, value in facts if value]


def training_facts(result: FollowedTraining) -> list[tuple[str, str]]:
    """Facts about the training: name and value."""
    first, last = result.steps[0], result.steps[-1]
    facts = [
        ("model", result.model),
        ("recorded", f"at {len(result.steps):,} steps from {first.step:,} to {last.step:,}"),
    ]
    if not math.isnan(last.accuracy):
        facts.append(("accuracy", f"{percent(first.accuracy)} at first, {percent(last.accuracy)} at last"))
        facts.append(("loss", f"{first.loss:.3f} at first, {last.loss:.3f} at last"))
    return facts


def provenance(run: FollowedDirectory) -> list[tuple[str, str]]:
    """When and with what it was recorded."""
    manifest = run.manifest()
    facts = [
        ("begun", manifest.started or ""),
        ("commit", manifest.commit or ""),
        ("versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())),
        ("texts", digest(run.probe())),
    ]
    return [(name, value) for name, value in facts if value]


def _embedded(
    trainings: Sequence[FollowedRun], arrays: Arrays, places: dict[str, list[int]] | None = None
) -> dict[str, Any]:
    """The texts as every model saw them, and the words that draw attention in all of them.

    places: by name, which of a training's own steps is shown at each step of the slider, where there are several.
    """
    probe = trainings[0].probe
    vocabulary: dict[str, int] = {}
    numbered = [[vocabulary.setdefault(word, len(vocabulary)) for word in text] for text in probe.words]
    split, words = EncodedSplit.of(numbered, probe.right or [0] * len(numbered)), list(vocabulary)
    models = [PageModel(t.name, "standard", 0, tuple(t.steps), t.run.trace()) for t in trainings]
    examples = text_examples(split, models)
    embed_views(examples, arrays)
    used, inverse = np.unique(np.concatenate([split.text(int(i)) for i in examples.index]), return_inverse=True)
    arrays.add("places", inverse.astype(np.uint32))
    content = {
        "texts": text_facts(examples, labelled=bool(probe.right)),
        "words": [words[i] for i in used],
        "special": [""] * len(used),
    }
    tables = [attended_words(split, [model.trace], model.steps) for model in models]
    spelt = [tuple((words[i], "") for i in table.ids) for table in tables]
    if places is None:
        return content | embed_words([RunWords(tables[0], spelt[0])], arrays)
    runs = [
        RunWords(table, row, model.name, tuple(places[model.name]))
        for table, row, model in zip(tables, spelt, models, strict=True)
    ]
    return content | embed_words(runs, arrays)
