"""The page of a followed training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.vocabulary import EncodedSplit
from heedful.followed.result import FollowedDirectory, FollowedTraining, ProbeTexts
from heedful.html import concept, symbol
from heedful.reports.examples import RunWords, embed_views, embed_words, text_facts
from heedful.reports.html import Arrays, Payload, fill_training_page, interval, percent
from heedful.reports.study_page import drawn_agreement
from heedful.storage.serialization import digest
from heedful.studies.page_data import PageModel, text_examples
from heedful.studies.page_words import attended_words

_MODEL = "model"  # the one model of the page


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

    def agreements(self) -> list[dict[str, Any]]:
        """What the charts know of the agreements at the last recorded step."""
        last = self.result.steps[-1].agreements
        return [drawn_agreement(row.name, row.estimate, row.shuffle.value, self.result.curve(row.name)) for row in last]

    def accuracy(self, kind: str, title: str) -> list[dict[str, Any]]:
        """Its curve of accuracy; none where the right labels are not known."""
        curve = {"kind": kind, "title": title, **self._curve([step.accuracy for step in self.result.steps])}
        return [curve] if self.probe.right else []

    def entropy(self) -> dict[str, Any]:
        """The spread of its attention at each recorded step."""
        return self._curve([step.entropy.value for step in self.result.steps])

    def special_share(self) -> dict[str, Any]:
        """The share of its attention that special tokens get at each recorded step."""
        return self._curve([step.special for step in self.result.steps])

    def _curve(self, values: list[float]) -> dict[str, Any]:
        return {"steps": self.steps, "values": values}


def render_following(root: Path) -> str:
    """The page of a followed training as text."""
    training = FollowedRun.open(_MODEL, root)
    return fill_training_page(
        "following.html.j2",
        following_payload(training),
        result=training.result,
        stage=training.result.verdict.status == "answered",
        kicker=kicker(training),
        labelled=bool(training.probe.right),
        decisions=(*training.probe.decisions, *training.result.same_weights),
        agreements=agreement_lines(training.result),
        data_facts=data_facts(training.probe),
        training_facts=training_facts(training.result),
        provenance=provenance(training.run),
    )


def kicker(training: FollowedRun) -> str:
    """What was followed, in a few words."""
    result = training.result
    recorded = f"{len(result.steps):,} recorded step{'' if len(result.steps) == 1 else 's'}"
    return f"{len(training.probe.words):,} probe texts · {result.model} · {recorded}"


def following_payload(training: FollowedRun) -> Payload:
    """Everything the charts and the slider of a followed training need."""
    probe, result, arrays = training.probe, training.result, Arrays()
    content = {
        "task": result.task,
        "name": result.name,
        "labels": probe.labels,
        "steps": training.steps,
        "agreements": training.agreements(),
        "rows": result.to_rows(),
        "paper": {},
        "random": result.random_agreement,
        "control": "shuffle",
        "accuracy": training.accuracy("standard", "accuracy"),
        "references": [{"title": "most frequent label", "value": probe.majority}] if probe.right else [],
        "entropy": training.entropy(),
        "special_share": training.special_share(),
        "models": [{"name": _MODEL, "kind": "standard", "title": probe.model}],
    }
    return Payload.of(content | embedded_texts([training], arrays), arrays)


def embedded_texts(
    trainings: Sequence[FollowedRun],
    arrays: Arrays,
    names: Sequence[str] = ("",),
    places: Sequence[Sequence[int]] = ((),),
) -> dict[str, Any]:
    """The texts as every model saw them, and the words that draw attention in all of them.

    names, places: of each training, as in `RunWords`.
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
    polar = len(probe.labels) == 2 and bool(probe.right)
    tables = [attended_words(split, [model.trace], model.steps, polar=polar) for model in models]
    runs = [
        RunWords(table, tuple((words[i], "") for i in table.ids), name, tuple(own))
        for table, name, own in zip(tables, names, places, strict=True)
    ]
    return {
        "texts": text_facts(examples, labelled=bool(probe.right)),
        "words": [words[i] for i in used],
        "special": [""] * len(used),
    } | embed_words(runs, arrays)


def agreement_lines(result: FollowedTraining) -> list[dict[str, str]]:
    """The table of agreements at the last recorded step, every cell as text."""
    return [
        {
            "name": symbol(row.name),
            "concept": concept(row.name),
            "value": percent(row.estimate.value),
            "interval": interval(row.estimate),
            "n": f"{row.estimate.n:,}",
            "random": percent(result.random_agreement),
            "shuffle": percent(row.shuffle.value),
            "gain": f"{percent(row.gain.value)} ({interval(row.gain)})",
            "ties": f"{row.ties:,}",
        }
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
