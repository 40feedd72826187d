"""Measurements of an audit: what is measured of some passages, in the model and in random models of its shape."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from heedful.attribution.attention_maps import (
    DELETION,
    Importance,
    Reading,
    attention_maps,
    head_of,
    is_head,
    layer_name,
    layer_of,
    read_attention,
)
from heedful.attribution.interface import Numbers, Passage, Subject
from heedful.attribution.interventions import (
    OtherMap,
    average_random_orders,
    erasures,
    other_maps,
    prediction_changes,
    random_orders,
)
from heedful.audits.human_labels import Rationales, plausibility, rationale_of
from heedful.audits.parts import MeasuredPart
from heedful.audits.result import AuditExample, Weights
from heedful.audits.scores import CONCORDANCE, RANDOM_MODEL, Importances, concordance, importances, orders
from heedful.config import AuditSettings
from heedful.errors import ConfigError

_MOST_WEIGHTS = 12_000  # of all maps of an example
_DIGITS = 4  # of these weights, which are only drawn


@dataclass(frozen=True)
class Measurements:
    """What is measured: the model, random models of the same shape, and the rationales of people, if any.

    models: how many random models there are; random: the one of a number. reads: how many of them read each text; they
    take turns.
    """

    subject: Subject
    settings: AuditSettings
    models: int
    random: Callable[[int], Subject]
    rationales: Rationales | None = None
    percent: int | None = None
    reads: int = 1

    @property
    def headline(self) -> str:
        """The name of the map that the verdict is about."""
        return self.settings.headline or layer_name(self.subject.network.layers - 1)

    def measure(self, passages: Sequence[Passage], *, examples: Sequence[bool] = ()) -> MeasuredPart:
        """Measure some passages; where `examples` is true, keep words and weights."""
        settings = self.settings
        if self.subject.memo is not None:
            self.subject.memo.clear()  # predictions of shortened texts, which leave-one-out and erasure share
        reading, maps = _read(self.subject, passages, settings)
        targeted = self.subject.with_targets(passages, reading.probabilities)
        if self.headline not in maps:
            raise ConfigError(f"there is no map {self.headline!r}; there are {', '.join(maps)}")
        measures = settings.measures
        layer = layer_of(self.headline) if "hidden" in measures else None
        important = Importances({}, {})
        if "tau" in measures:
            important = _important(self.subject, targeted, settings, layer)
        predicted = [self.subject.output_name(int(best)) for best in reading.probabilities.argmax(1)]
        compared = orders(maps, important.inputs, important.hidden, self.headline)
        shown = {self.headline: maps[self.headline], **important.inputs}
        numbers = _facts(targeted, reading, predicted) | compared.numbers | self._ranked(targeted, shown)
        if "tau" in measures:
            numbers[_concordance_of(self.headline)] = concordance(maps[self.headline], important)
        others: list[OtherMap] = []
        can_change = self.subject.network.can_change
        if can_change and "changes" in measures:
            numbers |= prediction_changes(self.subject, targeted, reading.probabilities, settings.seed, self.headline)
        if can_change and "adversary" in measures:
            others = self._adversary(targeted)
        if others:
            numbers[f"adversary/{self.headline}"] = np.array([other.divergence for other in others])
        for k in range(self.models):
            turns = [i for i, p in enumerate(passages) if (p.text + k) % self.models < self.reads]
            if not turns:
                continue
            there = _of_random(self.random(k), [passages[i] for i in turns], settings, self.headline)
            for name, values in there.items():
                own = numbers[f"{RANDOM_MODEL}{k + 1} {name}"] = np.full(len(passages), np.nan)
                own[turns] = values
        kept = [i for i, is_kept in enumerate(examples) if is_kept]
        return MeasuredPart(
            numbers,
            compared.important,
            [passage.output for passage in targeted],
            predicted,
            [
                replace(
                    self._example(targeted[i], i, shown, numbers["probability"][i], others[i] if others else None),
                    maps=_all_maps(maps, i),
                )
                for i in kept
            ],
        )

    def _ranked(self, passages: Sequence[Passage], shown: Mapping[str, Importance]) -> dict[str, Numbers]:
        """Erasure and plausibility of the rankings of words, without the special ones."""
        rankings = {name: _plain(passages, rows, self.settings.include_special) for name, rows in shown.items()}
        rankings |= random_orders(passages, self.settings.seed, self.settings.random_orders)
        result = erasures(self.subject, passages, rankings) if "erasure" in self.settings.measures else {}
        if self.rationales is not None and self.percent is not None:
            result |= plausibility(passages, rankings, self.rationales, self.percent)
        return average_random_orders(result)

    def _adversary(self, passages: Sequence[Passage]) -> list[OtherMap]:
        layer = layer_of(self.headline)
        if not self.settings.adversary_steps or layer is None:
            return []
        return other_maps(
            self.subject,
            passages,
            layer=layer,
            head=head_of(self.headline),
            steps=self.settings.adversary_steps,
            include_special=self.settings.include_special,
            seed=self.settings.seed,
        )

    def _example(
        self, passage: Passage, i: int, shown: Mapping[str, Importance], probability: float, other: OtherMap | None
    ) -> AuditExample:
        explained = passage.explained(include_special=self.settings.include_special)
        marked = None if self.rationales is None else rationale_of(passage, self.rationales)
        weights = {name: tuple(rows[i].tolist()) for name, rows in shown.items()}
        return AuditExample(
            passage.text,
            tuple(compress(passage.words, explained)),
            passage.output,
            passage.label,
            float(probability),
            weights.pop(self.headline),
            tuple(Weights(name, values) for name, values in weights.items()),
            () if marked is None else tuple(marked.tolist()),
            () if other is None else tuple(other.weights.tolist()),
            None if other is None else other.divergence,
            None if other is None else other.probability,
        )


def _all_maps(maps: Mapping[str, Importance], i: int) -> tuple[Weights, ...]:
    """The map of every head and layer for one passage; none where there is but one, or too many to show."""
    own = {name: rows[i] for name, rows in maps.items() if layer_of(name) is not None}
    if len(own) < 2 or sum(map(len, own.values())) > _MOST_WEIGHTS:
        return ()
    return tuple(Weights(name, tuple(np.round(row, _DIGITS).tolist())) for name, row in own.items())


def _read(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings
) -> tuple[Reading, dict[str, Importance]]:
    """Probabilities, and every map of attention by its name."""
    reading = read_attention(subject, passages)
    special = settings.include_special
    return reading, attention_maps(passages, reading.attention, reading.rollout, include_special=special)


def _important(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings, layer: int | None = None
) -> Importances:
    return importances(
        subject,
        passages,
        steps=settings.integrated_steps,
        include_special=settings.include_special,
        layer=layer,
        smallest=settings.smallest_drop,
        baseline=_baseline_piece(subject, settings),
        spans=settings.spans,
    )


def _baseline_piece(subject: Subject, settings: AuditSettings) -> int | None:
    if settings.baseline == "zero":
        return None
    return special_piece(subject, settings.baseline, f"--baseline {settings.baseline}", "--baseline zero")


def _of_random(
    random: Subject, passages: Sequence[Passage], settings: AuditSettings, headline: str
) -> dict[str, Numbers]:
    """`tau/<map>/<importance>` and concordance of an untrained model, however small the importances are.

    They are those of its own predictions.
    """
    reading, maps = _read(random, passages, settings)
    targeted = random.with_targets(passages, reading.probabilities)
    important = importances(random, targeted, steps=0, include_special=settings.include_special, spans=settings.spans)
    shown = {name: rows for name, rows in maps.items() if not is_head(name) or name == headline}
    compared = orders(shown, important.inputs, important.hidden)
    taus = {name: v for name, v in compared.numbers.items() if name.startswith("tau/") and name.split("/")[1] in maps}
    return taus | {_concordance_of(headline): concordance(maps[headline], important)}


def _concordance_of(headline: str) -> str:
    return f"{CONCORDANCE}/{headline}/{DELETION}"


def _facts(passages: Sequence[Passage], reading: Reading, predicted: Sequence[str]) -> dict[str, Numbers]:
    correct = [
        np.nan if p.label is None else float(p.label == name) for p, name in zip(passages, predicted, strict=True)
    ]
    probability = [row[passage.target] for passage, row in zip(passages, reading.probabilities, strict=True)]
    return {"correct": np.array(correct), "probability": np.array(probability)}


def _plain(passages: Sequence[Passage], rows: Importance, include_special: bool) -> list[Numbers]:
    """Rows of the explained words, without the special ones."""
    result = []
    for i, passage in enumerate(passages):
        explained = passage.explained(include_special=include_special)
        result.append(np.asarray(rows[i][passage.explained()[explained]], dtype=np.float64))
    return result


def special_piece(subject: Subject, name: str, option: str, instead: str) -> int:
    """The pad or mask piece of a subject's reader; an error names the option that needs it."""
    find = getattr(subject.reader, "special_piece", lambda name: None)
    piece: int | None = find(name)
    if piece is None:
        raise ConfigError(f"{option}: the model's tokeniser has no {name} token; use {instead}")
    return piece
