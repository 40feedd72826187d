"""Audit of a model's attention: measures passages in chunks, then computes estimates and a verdict."""

import copy
import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from heedful.attribution.importance import can_integrate, captum_missing
from heedful.attribution.interface import Numbers, Passage, Subject
from heedful.attribution.network import Network
from heedful.audits.given import given_explanations, plain_rows
from heedful.audits.human_labels import Rationales, alignment_errors, marked_percent, output_words
from heedful.audits.measurements import WEIGHTED, Measurements, every_map_fits, special_piece
from heedful.audits.parts import MeasuredPart, measured
from heedful.audits.ranking import Search, rank
from heedful.audits.result import AuditExample, AuditResult, LabelCount, Score
from heedful.audits.scores import ScoreTable, chance, contrasts, scores
from heedful.audits.verdict import judge
from heedful.audits.words import write_words
from heedful.config import MEASURES, AuditSettings
from heedful.data.parallel import Alignment
from heedful.errors import ConfigError, DamagedError, DataError
from heedful.execution.pool import Event, OnEvent
from heedful.storage.atomic_files import valid_path
from heedful.storage.locks import directory_lock
from heedful.storage.manifest import KIND_NAMES, MANIFEST, RunClock, run_kind
from heedful.storage.serialization import digest

RANDOM_TEXTS = 4  # a random model reads at least so many texts, if there are as many
RANDOM_BYTES = 2**30  # random models of more bytes in all are not kept, but drawn anew for every chunk
RandomModel = Callable[[int], Subject]
WHY_NOT = {
    "norm": "it is not known what the model's attention takes over from each word",
    "grad": "the model's attention cannot be replaced",
    "value-zeroing": "it is made for the map of one layer or head, and needs the states that the layer returns",
}
LONG = 512  # words of a text that is announced before it is measured
EXAMPLES_WITH_MAPS = 8  # in a result: examples with the maps of every head
BEAT = 1.0  # seconds between two events of progress within a chunk


def run_audit(
    subject: Subject,
    passages: Sequence[Passage],
    *,
    out: Path | str,
    settings: AuditSettings | None = None,
    rationales: Rationales | None = None,
    links: Mapping[int, Alignment] | None = None,
    model: str = "",
    data: str = "",
    command: str | None = None,
    explanations: Any = None,
    on_progress: OnEvent = lambda line: None,
) -> AuditResult:
    """Audit a model's attention on some passages; the model is left as it was found.

    explanations: computed elsewhere, to be ranked beside the model's maps; see `given_explanations`.
    out: the folder of `result.json`, `manifest.json` and `parts/`, from which an interrupted audit resumes. rationales:
    by text number, which of its words (without special ones) people marked. links: by text number, its gold alignment
    (source word, output word), where the passages of a text are its output words in order. model, data: their names.
    command: for the manifest.
    """
    settings, out, clock = settings or AuditSettings(), Path(out), RunClock("audit", command)
    explainable = [passage for passage in passages if passage.pieces and passage.explained().any()]
    if not explainable:
        raise DataError(f"none of {len(passages)} passages has a word to explain")
    drawn = sampled(explainable, settings)
    left_out = _left_out(settings)
    for sentence in (*left_out, *_long_texts(drawn, settings)):
        on_progress({"model": "audit", "notice": sentence})
    heartbeat = _Heartbeat(on_progress)
    subject = prepared(subject, settings, heartbeat.run)
    measurements = _measurements(subject, drawn, settings, rationales)
    if explanations is not None:
        given = given_explanations(explanations, drawn, output_words(explainable))
        measurements = replace(measurements, given=given)
    short = [p.text for p in drawn[: settings.examples] if every_map_fits(subject, p)]
    measurements = replace(measurements, with_maps=frozenset(short[:EXAMPLES_WITH_MAPS]))
    texts: dict[int, list[Passage]] = {}
    for passage in drawn:
        texts.setdefault(passage.text, []).append(passage)
    # Longest first: too little memory shows at once.
    ordered = sorted(texts.values(), key=lambda own: (len(own[0].pieces), len(own[-1].before)), reverse=True)
    with directory_lock(out):
        clock.begin(out)
        key = _key(measurements)
        parts = measured(
            out / "parts",
            ordered,
            measurements.measure,
            key=key,
            more=measurements.with_maps,
            chunk=settings.chunk,
            on_progress=heartbeat.progress,
        )
        read = [passage for own in ordered for passage in own]
        table = _table(parts, read, settings)

        def search(name: str) -> Numbers | None:
            """The divergence of another attention, looked for in every text."""
            found = measured(
                out / "parts",
                ordered,
                partial(measurements.search, name),
                key=digest([key, name]),
                name=f"other weights for {name}",
                chunk=settings.chunk,
                on_progress=heartbeat.progress,
            )
            rows = [part.numbers[f"adversary/{name}"] for part in found if f"adversary/{name}" in part.numbers]
            return np.concatenate(rows) if len(rows) == len(found) else None

        errors: tuple[Score, ...] = ()
        if links is not None:
            errors = alignment_errors(read, table.numbers, links, output_words(explainable), settings)
        result = replace(
            _result(measurements, read, parts, table, errors, search),
            model=model,
            data=data,
            wordless=len(passages) - len(explainable),
            left_out=(*left_out, *_maps_left_out(measurements, table)),
        )
        words = write_words(out, _by_text(parts), result.headline)
        seconds = measurements.seconds | {g.name: g.seconds for g in measurements.given.values() if g.seconds}
        clock.finish(out, result, [words], seconds={name: round(s, 3) for name, s in seconds.items()})
    return result.at(out)


def prepared(
    subject: Subject, settings: AuditSettings, on_run: Callable[[int, int], None] = lambda inputs, length: None
) -> Subject:
    """A copy of the subject that erases words as the settings say, and predicts no shortened text twice."""
    own = copy.copy(subject)
    own.on_run, own.memo, own.visible = on_run, {}, {}
    if settings.erase == "mask":
        own.mask = special_piece(subject, "mask", "--erase mask", "--erase delete")
    return own


class _Heartbeat:
    """Reports progress while passages are measured, at most once per `BEAT`; counts forward passes."""

    def __init__(self, on_progress: OnEvent) -> None:
        self.on_progress, self.passes, self.last = on_progress, 0, time.monotonic()
        self.event: Event = {}
        self.first = 0  # passages that were done before

    def progress(self, event: Event) -> None:
        """Pass on an event of progress, and remember it; all passages may need as many passes as those so far."""
        if "step" in event:
            step, steps = event["step"], event["steps"]
            if event["model"] != self.event.get("model"):
                self.passes, self.first = 0, step
            self.event = {"model": event["model"], "step": step, "steps": steps}
            if step > self.first:
                self.event["expected"] = self.passes * (steps - self.first) // (step - self.first)
        self.on_progress(event)

    def run(self, inputs: int, length: int) -> None:
        """The network is run on some inputs."""
        self.passes += inputs
        now = time.monotonic()
        if self.event and now - self.last >= BEAT:
            self.last = now
            self.on_progress({**self.event, "passes": self.passes})


def _left_out(settings: AuditSettings) -> tuple[str, ...]:
    """A sentence for each measure that was skipped or whose package is missing."""
    skipped = [f"{name} was skipped: {what}" for name, what in MEASURES.items() if name not in settings.measures]
    needs_captum = settings.integrated_steps and {"tau", "hidden"} & set(settings.measures)
    return (*skipped, *(() if can_integrate() or not needs_captum else (captum_missing(),)))


def _long_texts(passages: Sequence[Passage], settings: AuditSettings) -> list[str]:
    """A sentence about the longest text, if leave-one-out takes long for it."""
    longest = max(passages, key=lambda passage: len(passage.words))
    words = int(longest.explained().sum())
    if words <= LONG or (settings.spans is not None and settings.spans <= LONG) or "tau" not in settings.measures:
        return []
    return [
        f"text {longest.text} has {len(longest.pieces):,} pieces: leave one out runs the model on it {words:,} times; "
        "--dry-run estimates the time, and --spans 100 would leave out 100 spans of words in place of single words"
    ]


def free_folder(out: Path | str) -> Path:
    """The folder for an audit: new, or that of an earlier audit; an error if it holds something else.

    >>> free_folder("runs/audit-mine").name
    'audit-mine'
    """
    folder = Path(out)
    if valid_path(folder).exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; an audit needs a folder")
    other = "a model" if (folder / "config.json").exists() else None
    with suppress(DamagedError):  # an audit then starts again
        if (folder / MANIFEST).exists() and (kind := run_kind(folder)) != "audit":
            other = KIND_NAMES[kind]
    if other is not None:
        raise ConfigError(f"{folder} holds {other}; choose another folder for the audit")
    return folder


def fingerprint(network: Network) -> str:
    """SHA-256 of a network's shape, parameters and buffers.

    >>> from heedful.attribution.modules import ModuleNetwork
    >>> def with_weight(value):
    ...     module = torch.nn.Linear(1, 1, bias=False)
    ...     torch.nn.init.constant_(module.weight, value)
    ...     return ModuleNetwork((module,), module, lambda embedded, change: None, layers=1, heads=1)
    >>> [fingerprint(with_weight(1.0)) == fingerprint(with_weight(value)) for value in (1.0, 2.0)]
    [True, False]
    """
    sha = hashlib.sha256(repr((network.query, network.layers, network.heads, network.can_change)).encode())
    for module in network.modules:
        sha.update(type(module).__qualname__.encode())
        for name, tensor in module.state_dict().items():
            if isinstance(tensor, torch.Tensor):
                sha.update(repr((name, tensor.dtype, tuple(tensor.shape))).encode())
                sha.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def sampled(passages: Sequence[Passage], settings: AuditSettings) -> list[Passage]:
    """The passages of a random sample of texts, in their order."""
    texts = sorted({passage.text for passage in passages})
    kept = set(np.random.default_rng(settings.seed).permutation(texts)[: settings.sample].tolist())
    return [passage for passage in passages if passage.text in kept]


def _measurements(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings, rationales: Rationales | None
) -> Measurements:
    models = settings.random_models if {"tau", "random"} <= set(settings.measures) else 0
    options: dict[str, Any] = {"max_tokens": subject.max_tokens, "mask": subject.mask, "on_run": subject.on_run}
    first = subject.network.randomised(settings.seed) if models else None  # a quantised model is smaller than this one
    weights = [weight for module in (first.modules if first else ()) for weight in module.parameters()]
    size = sum(weight.numel() * weight.element_size() for weight in weights)

    @lru_cache(max(1, RANDOM_BYTES // max(1, size)))
    def random(number: int) -> Subject | None:
        network = subject.network.randomised(settings.seed + number)
        return None if network is None else Subject(network, subject.reader, **options)

    models = 0 if first is None else models
    percent = None if rationales is None else marked_percent(passages, rationales)
    turns = turns_of_random_models(models, len(passages))
    return Measurements(subject, settings, models, cast(RandomModel, random), rationales, percent, turns)


def turns_of_random_models(models: int, passages: int) -> int:
    """How many random models read each text, so that each of them reads `RANDOM_TEXTS` passages or a fair share.

    >>> turns_of_random_models(10, 5), turns_of_random_models(10, 30), turns_of_random_models(10, 999)
    (8, 2, 1)
    """
    return max(1, min(models, math.ceil(models * RANDOM_TEXTS / passages)))


def _key(measurements: Measurements) -> str:
    """Everything that the measurements of a passage depend on."""
    rationales = measurements.rationales or {}
    random = [measurements.random(0)] if measurements.models else []  # all are drawn alike, by the settings' seed
    irrelevant: dict[str, Any] = {"sample": None, "resamples": 1, "chunk": 1, "examples": 0}
    irrelevant |= {f"smallest_{name}": 0.5 for name in ("movement", "tau", "excess", "divergence")}
    return digest(
        {
            "settings": replace(measurements.settings, **irrelevant),
            "networks": [fingerprint(subject.network) for subject in (measurements.subject, *random)],
            "labels": measurements.subject.labels,
            "rationales": {text: np.asarray(marked, dtype=bool).tolist() for text, marked in rationales.items()},
            "percent": measurements.percent,
            "reads": measurements.reads,
            "integrates": can_integrate(),
            "given": {name: plain_rows(given) for name, given in measurements.given.items()},
        }
    )


def _table(parts: Sequence[MeasuredPart], passages: Sequence[Passage], settings: AuditSettings) -> ScoreTable:
    """All parts concatenated; a number that a part lacks is NaN there."""
    names = dict.fromkeys(name for part in parts for name in part.numbers)
    special = settings.include_special
    return ScoreTable(
        text=np.array([passage.text for passage in passages]),
        words=np.array([int(passage.explained(include_special=special).sum()) for passage in passages]),
        position=np.array([len(passage.before) for passage in passages]),
        numbers={
            name: np.concatenate([part.numbers.get(name, np.full(len(part.outputs), np.nan)) for part in parts])
            for name in names
        },
        important={name: [row for part in parts for row in part.important[name]] for name in parts[0].important},
        seed=settings.seed,
        resamples=settings.resamples,
    )


def _result(
    measurements: Measurements,
    passages: Sequence[Passage],
    parts: Sequence[MeasuredPart],
    table: ScoreTable,
    errors: tuple[Score, ...],
    search: Search,
) -> AuditResult:
    network, headline, right = measurements.subject.network, measurements.headline, table.numbers["correct"]
    all_scores = scores(table) + errors
    differences = contrasts(table, headline)
    chance_agreement = chance(table)
    labels = _labels(measurements.subject.labels, passages, parts)
    accuracy = None if np.isnan(right).all() else table.share(right)
    facts: dict[str, Any] = {
        "layers": network.layers,
        "random_agreement": chance_agreement,
        "settings": measurements.settings,
        "accuracy": accuracy,
        "labels": labels,
    }
    verdict = judge(all_scores, differences, headline=headline, **facts)
    methods = {name: method for name, method in measurements.methods.items() if f"top/{name}" in table.numbers}
    ranked, found = rank(table, all_scores, methods, headline, verdict, facts, search)
    return AuditResult(
        settings=asdict(measurements.settings),
        fingerprint=fingerprint(network),
        layers=network.layers,
        heads=network.heads,
        query=network.query,
        headline=headline,
        texts=len(np.unique(table.text)),
        passages=len(passages),
        cut=sum(passage.cut > 0 for passage in passages),
        cut_pieces=sum(passage.cut for passage in passages),
        labels=labels,
        accuracy=accuracy,
        random_agreement=chance_agreement,
        rationale_percent=measurements.percent,
        scores=all_scores + found,
        contrasts=differences,
        verdict=verdict,
        examples=_examples(parts, measurements.settings.examples),
        explanations=ranked,
    )


def _by_text(parts: Sequence[MeasuredPart]) -> list[AuditExample]:
    """All passages with their words and weights, in the order of the texts."""
    return sorted((e for part in parts for e in part.examples), key=lambda example: (example.text, example.position))


def _maps_left_out(measurements: Measurements, table: ScoreTable) -> tuple[str, ...]:
    """A sentence for each map that this model does not allow."""
    settings, names = measurements.settings, set(table.numbers)
    if "maps" not in settings.measures:
        return ()
    return tuple(
        f"{method} was left out: {WHY_NOT[method]}"
        for method in settings.maps
        if method in WEIGHTED and f"top/{measurements.weights}{WEIGHTED[method][0]}" not in names
    )


def _examples(parts: Sequence[MeasuredPart], most: int) -> tuple[AuditExample, ...]:
    """The first examples by their numbers; maps of every head are kept for a few."""
    examples = _by_text(parts)[:most]
    with_maps = [i for i, example in enumerate(examples) if example.maps][:EXAMPLES_WITH_MAPS]
    return tuple(e if i in with_maps else replace(e, maps=()) for i, e in enumerate(examples))


def _labels(names: Sequence[str], passages: Sequence[Passage], parts: Sequence[MeasuredPart]) -> tuple[LabelCount, ...]:
    gold = Counter(passage.label for passage in passages)
    predicted = Counter(name for part in parts for name in part.predicted)
    known = dict.fromkeys((*names, *sorted(label for label in gold if label is not None))) if names else {}
    return tuple(LabelCount(name, gold[name], predicted[name]) for name in known)
