"""Everything an audit asks about some passages, as plain numbers: one value per passage and quantity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.audits.adversary import adversarial_divergence
from heedful.audits.asking import Numbers, Reading, Subject
from heedful.audits.changes import movements
from heedful.audits.erasing import averaged, erasures, random_orders
from heedful.audits.importances import Importances, importances
from heedful.audits.maps import asked, attention_maps
from heedful.audits.names import head_of, is_head, layer_name, layer_of
from heedful.audits.orders import orders
from heedful.audits.passage import Passage
from heedful.audits.plausible import Rationales, plausibility, rationale_of
from heedful.audits.result import Example, Weights
from heedful.audits.settings import AuditSettings
from heedful.errors import ConfigError
from heedful.measure.importance_batch import Importance


@dataclass(frozen=True)
class Part:
    """Some passages, measured: numbers by name (`tau/layer 2/gradient`), each with one value per passage.

    important: see `Orders`. outputs: what was asked about, by name; predicted: the model's own answer.
    """

    numbers: dict[str, Numbers]
    important: dict[str, list[list[int]]]
    outputs: list[str]
    predicted: list[str]
    examples: list[Example]


@dataclass(frozen=True)
class Examination:
    """Who is asked what: the model, a random one of the same shape, and what is known beside them."""

    subject: Subject
    frozen: Subject | None
    settings: AuditSettings
    rationales: Rationales | None = None
    percent: int | None = None

    @property
    def headline(self) -> str:
        """The map that a reader is shown."""
        return self.settings.headline or layer_name(self.subject.network.layers - 1)

    def measure(self, passages: Sequence[Passage], *, examples: Sequence[bool] = ()) -> Part:
        """Ask everything about some passages; of those that `examples` names, keep words and weights."""
        settings, decided = self.settings, self.subject.decide(passages)
        reading, maps = _read(self.subject, decided, settings)
        if self.headline not in maps:
            raise ConfigError(f"there is no map {self.headline!r}; there are {', '.join(maps)}")
        important = _important(self.subject, decided, settings, layer_of(self.headline))
        predicted = [self.subject.name_of(int(best)) for best in reading.probabilities.argmax(1)]
        found = orders(maps, important.inputs, important.hidden)
        shown = {self.headline: maps[self.headline], **important.inputs}
        numbers = _facts(decided, reading, predicted) | found.numbers | self._ranked(decided, shown)
        if self.subject.network.can_change:
            numbers |= movements(self.subject, decided, reading.probabilities, settings.seed)
            numbers |= self._adversary(decided)
        if self.frozen is not None:
            numbers |= _of_random(self.frozen, passages, settings, self.headline)
        kept = [i for i, wanted in enumerate(examples) if wanted]
        return Part(
            numbers,
            found.important,
            [passage.output for passage in decided],
            predicted,
            [self._example(decided[i], i, shown, numbers["probability"][i]) for i in kept],
        )

    def _ranked(self, passages: Sequence[Passage], shown: Mapping[str, Importance]) -> dict[str, Numbers]:
        """Erasure and rationales: what orders of the words, special ones apart, are good for."""
        rankings = {name: _plain(passages, rows, self.settings.include_special) for name, rows in shown.items()}
        rankings |= random_orders(passages, self.settings.seed, self.settings.random_orders)
        found = erasures(self.subject, passages, rankings)
        if self.rationales is not None and self.percent is not None:
            found |= plausibility(passages, rankings, self.rationales, self.percent)
        return averaged(found)

    def _adversary(self, passages: Sequence[Passage]) -> dict[str, Numbers]:
        layer = layer_of(self.headline)
        if not self.settings.adversary_steps or layer is None:
            return {}
        divergence = adversarial_divergence(
            self.subject,
            passages,
            layer=layer,
            head=head_of(self.headline),
            steps=self.settings.adversary_steps,
            include_special=self.settings.include_special,
            seed=self.settings.seed,
        )
        return {f"adversary/{self.headline}": divergence}

    def _example(self, passage: Passage, i: int, shown: Mapping[str, Importance], probability: float) -> Example:
        told = asked(passage, include_special=self.settings.include_special)
        marked = None if self.rationales is None else rationale_of(passage, self.rationales)
        weights = {name: tuple(rows.row(i).tolist()) for name, rows in shown.items()}
        return Example(
            passage.text,
            tuple(word for word, wanted in zip(passage.words, told, strict=True) if wanted),
            passage.output,
            passage.label,
            float(probability),
            weights.pop(self.headline),
            tuple(Weights(name, values) for name, values in weights.items()),
            () if marked is None else tuple(marked.tolist()),
        )


def _read(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings
) -> tuple[Reading, dict[str, Importance]]:
    """Probabilities, and every map of attention by its name."""
    reading = subject.read(passages)
    special = settings.include_special
    return reading, attention_maps(passages, reading.attention, reading.rollout, include_special=special)


def _important(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings, layer: int | None = None
) -> Importances:
    steps, special = settings.integrated_steps, settings.include_special
    return importances(subject, passages, steps=steps, include_special=special, layer=layer)


def _of_random(
    frozen: Subject, passages: Sequence[Passage], settings: AuditSettings, headline: str
) -> dict[str, Numbers]:
    """`random tau/<map>/<importance>`: of a model that has learned nothing, about its own predictions."""
    decided = frozen.decide(passages)
    _, maps = _read(frozen, decided, settings)
    important = _important(frozen, decided, settings)
    shown = {name: rows for name, rows in maps.items() if not is_head(name) or name == headline}
    found = orders(shown, important.inputs, important.hidden)
    return {
        f"random {name}": v
        for name, v in found.numbers.items()
        if name.startswith("tau/") and name.split("/")[1] in maps
    }


def _facts(passages: Sequence[Passage], reading: Reading, predicted: Sequence[str]) -> dict[str, Numbers]:
    correct = [
        np.nan if p.label is None else float(p.label == name) for p, name in zip(passages, predicted, strict=True)
    ]
    probability = [row[passage.target] for passage, row in zip(passages, reading.probabilities, strict=True)]
    return {"correct": np.array(correct), "probability": np.array(probability)}


def _plain(passages: Sequence[Passage], rows: Importance, include_special: bool) -> list[Numbers]:
    """Rows of the words asked about, without the special ones."""
    result = []
    for i, passage in enumerate(passages):
        told = asked(passage, include_special=include_special)
        result.append(np.asarray(rows.row(i)[asked(passage)[told]], dtype=np.float64))
    return result
