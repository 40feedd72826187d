"""The page of a followed training: its numbers, and its parts that are words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.data.vocabulary import EncodedSplit
from heedful.followed.result import FollowedDirectory, FollowedTraining, ProbeTexts, StepAgreement
from heedful.reports.examples import add_examples, choose_examples
from heedful.reports.formatting import interval, percent, symbol
from heedful.reports.html import Arrays
from heedful.reports.study_payload import FORMAT, Payload
from heedful.reports.word_tables import Told, attended_words, token_table
from heedful.storage.atomic_files import read_json, without_nan
from heedful.storage.serialization import digest
from heedful.tracing.store import Trace

_MODEL = "model"  # the one model of the page
_BYTES_PER_POSITION = 3


@dataclass(frozen=True)
class FollowedLine:
    """One row of the table of agreements at the last step, each cell as it is read."""

    name: str
    value: str
    interval: str
    n: str
    random: str
    shuffle: str
    gain: str
    ties: str


def following_payload(run: FollowedDirectory) -> Payload:
    """Everything the charts and the slider of a followed training need."""
    probe, result, trace = run.probe(), run.result(), run.trace()
    arrays, steps = Arrays(), [step.step for step in result.steps]
    content = {
        "format": FORMAT,
        "task": result.task,
        "name": result.name,
        "labels": probe.labels,
        "steps": steps,
        "agreements": [last_agreement(row, result) for row in result.steps[-1].agreements],
        "rows": result.to_rows(),
        "paper": {},
        "random": result.random_agreement,
        "accuracy": _accuracy(result, probe),
        "references": [{"title": "most frequent label", "value": probe.majority}] if probe.right else [],
        "entropy": {"steps": steps, "values": [step.entropy.value for step in result.steps]},
        "special_share": {"steps": steps, "values": [step.special for step in result.steps]},
        "models": [{"name": _MODEL, "kind": "standard", "title": probe.model}],
    }
    texts, words = probe_texts(probe, [(_MODEL, trace, steps)], arrays)
    content |= texts | attended_words(words, arrays)
    return Payload(without_nan(content) | {"arrays": arrays.directory}, arrays)


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
    """The probe texts in pairs of word and value."""
    facts = [
        ("texts", f"{len(probe.words):,}, the same at every step"),
        ("labels", ", ".join(probe.labels)),
        ("most frequent label", f"{percent(probe.majority)} of the texts" if probe.right else ""),
        ("right labels", "" if probe.right else "not given: the label that is predicted stands in"),
        ("median length", f"{np.median([len(text) for text in probe.words]):,.0f} words"),
    ]
    return [(name, value) for name, value in facts if value]


def training_facts(result: FollowedTraining) -> list[tuple[str, str]]:
    """The training in pairs of word and value."""
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
    manifest = read_json(run.manifest_path)
    facts = [
        ("begun", manifest["begun"]),
        ("commit", manifest["commit"] or ""),
        ("versions", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())),
        ("texts", digest(run.probe())),
    ]
    return [(name, value) for name, value in facts if value]


def last_agreement(row: StepAgreement, result: FollowedTraining) -> dict[str, Any]:
    """What the charts know of an agreement at the last recorded step."""
    curve = result.curve(row.name)
    return {
        "key": row.name,
        "symbol": symbol(row.name),
        "convention": "own",
        "value": row.estimate.value,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "shuffle": row.shuffle.value,
        "maximised": False,
        "curve": {"steps": curve.steps, "values": curve.values},
    }


def _accuracy(result: FollowedTraining, probe: ProbeTexts) -> list[dict[str, Any]]:
    if not probe.right:
        return []
    steps = [step.step for step in result.steps]
    return [{"kind": "standard", "title": "accuracy", "steps": steps, "values": [s.accuracy for s in result.steps]}]


def probe_texts(
    probe: ProbeTexts, told_by: Sequence[tuple[str, Trace, Sequence[int]]], arrays: Arrays
) -> tuple[dict[str, Any], list[Told]]:
    """The texts that are shown as every model saw them, and the words that draw attention in all of them.

    told_by: name, trace and steps of each model, all followed on these texts; the first decides which are shown.
    """
    vocabulary: dict[str, int] = {}
    numbered = [[vocabulary.setdefault(word, len(vocabulary)) for word in text] for text in probe.words]
    split = EncodedSplit.of(numbered, probe.right or [0] * len(numbered))
    words = list(vocabulary)
    bytes_per_position = sum(len(steps) for _, _, steps in told_by) * _BYTES_PER_POSITION
    chosen = choose_examples(told_by[0][1], split.lengths, bytes_per_position)
    for name, trace, steps in told_by:
        add_examples(arrays, name, trace, steps, chosen, attends=True)
    places = np.concatenate([split.text(int(i)) for i in chosen])
    used, inverse = np.unique(places, return_inverse=True)
    arrays.add("places", inverse.astype(np.uint32))
    tables = [token_table(split, [trace], steps) for _, trace, steps in told_by]
    content = {
        "texts": {
            "index": chosen.tolist(),
            "label": split.labels[chosen].tolist() if probe.right else [None] * len(chosen),
            "length": split.lengths[chosen].tolist(),
            "of": len(split),
        },
        "words": [words[i] for i in used],
        "special": [""] * len(used),
    }
    return content, [Told(table, tuple((words[i], "") for i in table.ids), 1) for table in tables]
