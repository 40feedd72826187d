"""Measurements of an audit: what is measured of some passages, in the model and in random models of its shape."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, pairwise

import numpy as np

from heedful.attribution.attention_maps import (
    DELETION,
    NORM,
    ROLLOUT,
    WEIGHTED_GRADIENT,
    ZEROED,
    Importance,
    Reading,
    attention_maps,
    head_of,
    is_head,
    layer_name,
    layer_of,
    read_attention,
    shares,
    sink_shares,
    weights_of,
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
from heedful.attribution.weighted_maps import WeightedRows, gradient_map, norm_map, value_zeroing_map
from heedful.audits.given import GivenExplanation
from heedful.audits.human_labels import Rationales, plausibility, rationale_of
from heedful.audits.parts import MeasuredPart
from heedful.audits.ranking import GIVEN
from heedful.audits.result import AuditExample, Weights
from heedful.audits.scores import (
    CONCORDANCE,
    RANDOM_MODEL,
    Importances,
    concordance,
    importances,
    in_favour,
    orders,
)
from heedful.config import AuditSettings
from heedful.errors import ConfigError

WEIGHTED: dict[str, tuple[str, Callable[[Subject, Sequence[Passage], str], WeightedRows]]] = {
    "norm": (NORM, norm_map),
    "grad": (WEIGHTED_GRADIENT, gradient_map),
    "value-zeroing": (ZEROED, value_zeroing_map),
}
_MOST_WEIGHTS = 12_000  # of all maps of an example
_DIGITS = 4  # of these weights, which are only drawn


@dataclass(frozen=True)
class Measurements:
    """What is measured: the model, random models of the same shape, and the rationales of people, if any.

    models: how many random models there are; random: the one of a number. reads: how many of them read each text; they
    take turns. given: explanations that were computed elsewhere. with_maps: texts whose examples hold the map of every
    head. seconds: filled with the time that each explanation took.
    """

    subject: Subject
    settings: AuditSettings
    models: int
    random: Callable[[int], Subject]
    rationales: Rationales | None = None
    percent: int | None = None
    reads: int = 1
    given: Mapping[str, GivenExplanation] = field(default_factory=dict)
    with_maps: frozenset[int] = frozenset()
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    @property
    def headline(self) -> str:
        """The name of the map that the verdict is about."""
        return self.settings.headline or layer_name(self.subject.network.layers - 1)

    def measure(self, passages: Sequence[Passage]) -> MeasuredPart:
        """Measure some passages."""
        settings = self.settings
        if self.subject.memo is not None:
            self.subject.memo.clear()  # predictions of shortened texts, which leave-one-out and erasure share
        self._keep_states(self.subject)
        with timed(self.seconds, self.weights, ROLLOUT):
            reading, maps = _read(self.subject, passages, settings)
        targeted = self.subject.with_targets(passages, reading.probabilities)
        weighed = weights_of(self.headline) in maps
        explained = self._explanations(self.subject, targeted, maps, self.seconds) if weighed else {}
        maps |= explained
        if self.headline not in maps:
            raise ConfigError(f"there is no map {self.headline!r}; there are {', '.join(maps)}")
        measures = settings.measures
        layer = layer_of(self.headline) if "hidden" in measures else None
        important = Importances({}, {})
        if "tau" in measures:
            important = _important(self.subject, targeted, settings, layer, self.seconds)
        predicted = [self.subject.output_name(int(best)) for best in reading.probabilities.argmax(1)]
        given = self._given(targeted)
        favoured = {name: in_favour(rows) for name, rows in given.items()}
        shown = {self.headline: maps[self.headline], **explained, **given}
        compared = orders(maps | favoured, important.inputs, important.hidden, shown)
        ranked = self._ranked(targeted, shown | important.inputs)
        numbers = _facts(targeted, reading, predicted) | compared.numbers | ranked | self._sinks(targeted, reading)
        if "tau" in measures:
            for name in (self.headline, *explained):
                numbers[_concordance_of(name)] = concordance(maps[name], important)
        others: list[OtherMap] = []
        can_change = self.subject.network.can_change
        if can_change and "changes" in measures:
            numbers |= prediction_changes(self.subject, targeted, reading.probabilities, settings.seed, self.headline)
        if can_change and "adversary" in measures:
            others = self._adversary(targeted, self.headline)
        if others:
            numbers[f"adversary/{self.headline}"] = np.array([other.divergence for other in others])
        for k in range(self.models):
            turns = [i for i, p in enumerate(passages) if (p.text + k) % self.models < self.reads]
            if not turns:
                continue
            for name, values in self._of_random(self.random(k), [passages[i] for i in turns]).items():
                own = numbers[f"{RANDOM_MODEL}{k + 1} {name}"] = np.full(len(passages), np.nan)
                own[turns] = values
        return MeasuredPart(
            numbers,
            compared.important,
            [passage.output for passage in targeted],
            predicted,
            [
                replace(
                    self._example(passage, i, shown, important.inputs, probability, others[i] if others else None),
                    maps=_all_maps(maps, i) if passage.text in self.with_maps else (),
                )
                for i, (passage, probability) in enumerate(zip(targeted, numbers["probability"], strict=True))
            ],
        )

    def search(self, name: str, passages: Sequence[Passage]) -> MeasuredPart:
        """The search for another attention, for a map that is not the one shown."""
        probabilities = read_attention(self.subject, passages).probabilities
        targeted = self.subject.with_targets(passages, probabilities)
        others = self._adversary(targeted, name)
        numbers = {f"adversary/{name}": np.array([other.divergence for other in others])} if others else {}
        return MeasuredPart(numbers, {}, [passage.output for passage in targeted], [], [])

    @property
    def weights(self) -> str:
        """The name of the weights that other maps are made of: those of the map shown, or of the last layer."""
        own = weights_of(self.headline)
        return layer_name(self.subject.network.layers - 1) if own == ROLLOUT else own

    @property
    def methods(self) -> dict[str, str]:
        """How each explanation is made that is ranked, by name; the model may not allow some of them."""
        wanted = self.settings.maps if "maps" in self.settings.measures else ()
        several = self.subject.network.layers > 1
        known = {self.weights: "raw"} | ({ROLLOUT: "rollout"} if several else {})
        known |= {self.weights + suffix: method for method, (suffix, _) in WEIGHTED.items()}
        chosen = {name: method for name, method in known.items() if method in wanted or name == self.headline}
        return {self.headline: known.get(self.headline, "raw")} | chosen | dict.fromkeys(self.given, GIVEN)

    def _explanations(
        self,
        subject: Subject,
        passages: Sequence[Passage],
        maps: Mapping[str, Importance],
        seconds: dict[str, float],
    ) -> dict[str, Importance]:
        """The maps to rank, by name, raw weights first; those that the model does not allow are left out."""
        found: dict[str, Importance] = {}
        for name, method in self.methods.items():
            if method in WEIGHTED:
                with timed(seconds, name):
                    rows = WEIGHTED[method][1](subject, passages, self.weights)
                if rows is not None:
                    found[name] = shares(passages, rows, include_special=self.settings.include_special)
            elif name in maps:
                found[name] = maps[name]
        return found

    def _given(self, passages: Sequence[Passage]) -> dict[str, Importance]:
        special = self.settings.include_special
        return {
            name: shares(passages, [given.row(p) for p in passages], include_special=special, signed=True)
            for name, given in self.given.items()
        }

    def _keep_states(self, subject: Subject) -> None:
        """Keep the states below the map that others are made of: several measurements begin there."""
        layer = layer_of(self.weights)
        subject.keep(*() if layer is None else (layer,))

    def _sinks(self, passages: Sequence[Passage], reading: Reading) -> dict[str, Numbers]:
        """The share of the weights on sinks, and of words that are sinks."""
        layer, head = layer_of(self.weights), head_of(self.weights)
        rows = [
            alpha.mean((0, 1)) if layer is None else alpha[layer].mean(0) if head is None else alpha[layer, head]
            for alpha in reading.attention
        ]
        result: dict[str, Numbers] = {}
        for kind, (weight, places) in sink_shares(passages, rows).items():
            result |= {f"sink/{self.weights}/{kind}": weight, f"even share/{self.weights}/{kind}": places}
        return result

    def _of_random(self, random: Subject, passages: Sequence[Passage]) -> dict[str, Numbers]:
        """`tau/<map>/<importance>` of an untrained model, for its own predictions, however small importances are."""
        settings = self.settings
        self._keep_states(random)
        reading, maps = _read(random, passages, settings)
        targeted = random.with_targets(passages, reading.probabilities)
        important = importances(
            random, targeted, steps=0, include_special=settings.include_special, spans=settings.spans
        )
        explained = self._explanations(random, targeted, maps, {})
        shown = {name: rows for name, rows in maps.items() if not is_head(name) or name == self.headline} | explained
        compared = orders(shown, important.inputs, important.hidden)
        taus = {
            name: v for name, v in compared.numbers.items() if name.startswith("tau/") and name.split("/")[1] in shown
        }
        ranked = {self.headline: shown[self.headline]} | explained
        return taus | {_concordance_of(name): concordance(rows, important) for name, rows in ranked.items()}

    def _ranked(self, passages: Sequence[Passage], shown: Mapping[str, Importance]) -> dict[str, Numbers]:
        """Erasure and plausibility of the rankings of words, without the special ones."""
        rankings = {name: _plain(passages, rows, self.settings.include_special) for name, rows in shown.items()}
        rankings |= random_orders(passages, self.settings.seed, self.settings.random_orders)
        result = erasures(self.subject, passages, rankings) if "erasure" in self.settings.measures else {}
        if self.rationales is not None and self.percent is not None:
            result |= plausibility(passages, rankings, self.rationales, self.percent)
        return average_random_orders(result)

    def _adversary(self, passages: Sequence[Passage], name: str) -> list[OtherMap]:
        """Of raw weights and of norms; of other maps it is not looked for."""
        layer, norm = layer_of(name), name.endswith(NORM)
        if not self.settings.adversary_steps or layer is None or not (norm or name == weights_of(name)):
            return []
        return other_maps(
            self.subject,
            passages,
            layer=layer,
            head=head_of(name),
            norm=norm,
            steps=self.settings.adversary_steps,
            include_special=self.settings.include_special,
            seed=self.settings.seed,
        )

    def _example(
        self,
        passage: Passage,
        i: int,
        shown: Mapping[str, Importance],
        inputs: Mapping[str, Importance],
        probability: float,
        other: OtherMap | None,
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
            tuple(Weights(name, tuple(rows[i].tolist())) for name, rows in inputs.items()),
            () if marked is None else tuple(marked.tolist()),
            () if other is None else tuple(other.weights.tolist()),
            None if other is None else other.divergence,
            None if other is None else other.probability,
            explanations=tuple(Weights(name, values) for name, values in weights.items()),
            position=len(passage.before),
            fixed=fixed_words(passage.words, explained.tolist()),
        )


def fixed_words(words: Sequence[str], explained: Sequence[bool]) -> tuple[str, ...]:
    """What stands between one explained word and the next, before each of them; nothing at all if there is none.

    >>> fixed_words(["[CLS]", "so", "[SEP]", "not", "[SEP]"], [False, True, False, True, False])
    ('', '[SEP]')
    >>> fixed_words(["[CLS]", "so", "[SEP]"], [False, True, False])
    ()
    """
    places = [i for i, is_explained in enumerate(explained) if is_explained]
    between = [words[last + 1 : place] for last, place in pairwise(places)]
    return ("", *map(" ".join, between)) if any(between) else ()


def every_map_fits(subject: Subject, passage: Passage) -> bool:
    """Whether the maps of all heads and layers for one passage are few enough to show."""
    network = subject.network
    return network.layers * (network.heads + 1) * len(passage.words) <= _MOST_WEIGHTS


def _all_maps(maps: Mapping[str, Importance], i: int) -> tuple[Weights, ...]:
    """The map of every head and layer for one passage; none where there is but one."""
    own = {name: rows[i] for name, rows in maps.items() if layer_of(name) is not None and name == weights_of(name)}
    if len(own) < 2:
        return ()
    return tuple(Weights(name, tuple(np.round(row, _DIGITS).tolist())) for name, row in own.items())


def _read(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings
) -> tuple[Reading, dict[str, Importance]]:
    """Probabilities, and every map of attention by its name."""
    reading = read_attention(subject, passages)
    special = settings.include_special
    return reading, attention_maps(passages, reading.attention, reading.rollout, include_special=special)


@contextmanager
def timed(seconds: dict[str, float], *names: str) -> Iterator[None]:
    """Add the time of what is done meanwhile to the seconds of these names.

    >>> seconds = {}
    >>> with timed(seconds, "gradient"):
    ...     pass
    >>> seconds["gradient"] >= 0
    True
    """
    begun = time.perf_counter()
    yield
    for name in names:
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun


def _important(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings, layer: int | None, seconds: dict[str, float]
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
        timer=partial(timed, seconds),
    )


def _baseline_piece(subject: Subject, settings: AuditSettings) -> int | None:
    if settings.baseline == "zero":
        return None
    return special_piece(subject, settings.baseline, f"--baseline {settings.baseline}", "--baseline zero")


def _concordance_of(name: str) -> str:
    return f"{CONCORDANCE}/{name}/{DELETION}"


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
