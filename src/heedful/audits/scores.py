"""Scores of an audit: importances of words, their agreement with attention maps, intervals and contrasts."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from heedful.attribution.attention_maps import (
    DELETION,
    GRADIENT,
    HIDDEN,
    HIDDEN_DELETION,
    HIDDEN_INTEGRATED,
    HIDDEN_PRODUCT,
    INTEGRATED,
    PRODUCT,
    RANDOM,
    Importance,
    is_head,
    is_hidden,
    layer_of,
    shares,
)
from heedful.attribution.importance import (
    can_integrate,
    d_y_h,
    d_y_x,
    gradients,
    hidden_integrated_gradients,
    integrated_gradients,
)
from heedful.attribution.interface import Numbers, Passage, Subject
from heedful.audits.result import Contrast, Score
from heedful.config import RESAMPLES
from heedful.data.ragged import Ragged
from heedful.metrics.agreement import agreement, random_agreement, shuffled_agreement
from heedful.metrics.entropy import normalised_entropy
from heedful.metrics.rank import kendall_tau_b, somers_d
from heedful.metrics.statistics import (
    Estimate,
    SeedsAndTexts,
    benjamini_hochberg,
    bootstrap_difference,
    bootstrap_mean,
    mean_over_seeds,
    nested_share,
    paired_permutation,
)

TRAINED, RANDOM_MODELS = "this model", "random models"
CONCORDANCE = "concordance"
MINOR = 0.1  # a word that matters less than this share of what the most important word does counts as unimportant
TOP = 5  # percent of a passage's words that count as its most important


@dataclass(frozen=True)
class Importances:
    """Importances of the explained words: of inputs by name, of hidden states by name and layer.

    deletions: leave-one-out however small its differences are; None where it was not computed.
    """

    inputs: dict[str, Importance]
    hidden: dict[str, dict[int, Importance]]
    deletions: Importance | None = None


def importances(
    subject: Subject,
    passages: Sequence[Passage],
    *,
    steps: int = 50,
    include_special: bool = False,
    layer: int | None = None,
    smallest: float = 0.0,
    baseline: int | None = None,
    spans: int | None = None,
    timer: Callable[..., AbstractContextManager[None]] = lambda *names: nullcontext(),
) -> Importances:
    """Importance of words for the target of each passage; below 0 where a word speaks against it.

    gradient               Σ ‖∂ŷ/∂e‖₂ over the pieces of a word; a length, which has no sign
    gradient × input       Σ e · ∂ŷ/∂e
    integrated gradients   Σ ∫ e · ∂ŷ/∂e, from the baseline, at `steps` points; left out if that is 0, or if captum
                           is not installed
    leave one out          ŷ − ŷ without the word, the rest encoded anew; 0 for special words, which always stay

    and of the states that each layer's attention reads:

    hidden gradient              Σ ‖∂ŷ/∂h‖₂
    hidden gradient × state      Σ h · ∂ŷ/∂h
    hidden integrated gradients  Σ ∫ (h − h⁰) · ∂ŷ/∂h, h⁰ for the baseline; of `layer` only, where possible
    hidden leave one out         ŷ − ŷ with its states masked, see `d_y_h`; of `layer` only, where possible

    baseline: the piece in the place of every word where integrals start; None for embeddings of 0. spans: see `d_y_x`.
    smallest: a text in which no deletion moves ŷ by so much has no leave-one-out importance (undefined), and a deletion
    that moves it by less than a tenth of that counts as 0. timer: entered with the names of what is computed meanwhile.
    """

    def share(rows: Sequence[Numbers], *, signed: bool = True) -> Importance:
        return shares(passages, rows, include_special=include_special, signed=signed)

    def deletion(rows: Sequence[Numbers]) -> Importance:
        return share([_worth_having(row, smallest) for row in rows])

    with timer(GRADIENT, PRODUCT):
        by_gradient = gradients(subject, passages)
    inputs = {GRADIENT: share(by_gradient.g_y_x, signed=False), PRODUCT: share(by_gradient.x_product)}
    integrates = steps > 0 and can_integrate()
    if integrates:
        with timer(INTEGRATED):
            inputs[INTEGRATED] = share(integrated_gradients(subject, passages, steps, baseline=baseline))
    with timer(DELETION):
        by_deletion = d_y_x(subject, passages, spans=spans)
    inputs[DELETION] = deletion(by_deletion)
    hidden = {
        name: {number: share([row[number] for row in rows]) for number in range(len(rows[0]))}
        for name, rows in ((HIDDEN, by_gradient.g_y_h), (HIDDEN_PRODUCT, by_gradient.h_product))
    }
    if layer is not None and integrates:
        states = hidden_integrated_gradients(subject, passages, layer, steps, baseline=baseline)
        if states is not None:
            hidden[HIDDEN_INTEGRATED] = {layer: share(states)}
    if layer is not None and subject.network.can_change:
        hidden[HIDDEN_DELETION] = {layer: deletion(d_y_h(subject, passages, layer, spans=spans))}
    return Importances(inputs, hidden, share(by_deletion))


def _worth_having(row: Numbers, smallest: float) -> Numbers:
    """Differences of probabilities without those that are too small to matter; all 0 where none matters."""
    sizes = np.abs(row)
    return np.where((sizes >= smallest / 10) & (sizes.max(initial=0.0) >= smallest), row, 0.0)


@dataclass(frozen=True)
class Orders:
    """Numbers of each passage, NaN where undefined, and what the matched shuffle needs: the top of each row.

    numbers: `tau/<map>/<importance>`, `agreement/<map>/<importance>`, `entropy/<map>`, and `top/<map>`, the position of
    its highest word. important: for each importance (of hidden states, with the number of their layer), the positions
    of the words among the top 5 %.
    """

    numbers: dict[str, Numbers]
    important: dict[str, list[list[int]]]


def orders(
    maps: Mapping[str, Importance],
    inputs: Mapping[str, Importance],
    hidden: Mapping[str, Mapping[int, Importance]] | None = None,
    shown: Collection[str] = (),
) -> Orders:
    """Every map against every importance of the inputs, and against that of its own layer's hidden states.

    What is compared is importance in favour of the output: words that speak against it count as 0, like words that do
    not matter. Importances are also compared with each other, which shows how well any explanation could do. Agreement
    is not computed for single heads, unless one is among those `shown`.

    >>> from heedful.attribution.attention_maps import normalised
    >>> alpha, gradient = (normalised(np.array(row), np.array([3])) for row in ([0.2, 0.7, 0.1], [3.0, 6.0, 1.0]))
    >>> found = orders({"layer 1": alpha}, {"gradient": gradient})
    >>> found.numbers["tau/layer 1/gradient"], found.important
    (array([1.]), {'gradient': [[1]]})
    """
    numbers: dict[str, Numbers] = {}
    inputs = {name: in_favour(rows) for name, rows in inputs.items()}
    names = list(inputs)
    hidden = {kind: {n: in_favour(rows) for n, rows in of.items()} for kind, of in (hidden or {}).items()}
    for name, rows in maps.items():
        layer = layer_of(name)
        own = {} if layer is None else {kind: of[layer] for kind, of in hidden.items() if layer in of}
        for other, importance in (*inputs.items(), *own.items()):
            numbers[f"tau/{name}/{other}"] = tau(rows, importance)
            if not is_head(name) or name in shown:
                numbers[f"agreement/{name}/{other}"] = _agreement(rows, importance)
        numbers[f"entropy/{name}"] = np.where(rows.undefined, np.nan, normalised_entropy(rows))
        numbers[f"top/{name}"] = _highest(rows)
    for i, name in enumerate(names):
        numbers[f"top/{name}"] = _highest(inputs[name])
        for other in names[i + 1 :]:
            numbers[f"tau/{name}/{other}"] = tau(inputs[name], inputs[other])
    important = {name: _top(rows) for name, rows in inputs.items()}
    important |= {f"{kind} {layer + 1}": _top(rows) for kind, of in hidden.items() for layer, rows in of.items()}
    return Orders(numbers, important)


def in_favour(rows: Importance) -> Importance:
    """Importance without words that speak against the output; undefined where no word speaks for it.

    >>> from heedful.attribution.attention_maps import normalised
    >>> in_favour(normalised(np.array([3.0, -1.0]), np.array([2]))).values
    array([0.75, 0.  ])
    """
    values = np.maximum(rows.values, 0)
    tops = np.maximum.reduceat(values, rows.offsets[:-1]) if len(rows.lengths) else np.empty(0)
    return Importance(values, rows.offsets, rows.undefined | (tops == 0))


def tau(rows: Importance, others: Importance) -> Numbers:
    """τ-b of each row; NaN where either is constant or undefined."""
    return np.where(_flat(rows) | _flat(others), np.nan, kendall_tau_b(rows, others))


def concordance(rows: Importance, important: Importances) -> Numbers:
    """Somers' d of a map given leave-one-out in favour of the output: +1 where it orders all pairs of words rightly.

    What counts as 0 is relative to each text: a word that matters less than `MINOR` of what the most important one
    does. So a model can be compared with random ones, in which every difference is small. NaN where no deletion is
    worth having (see `importances`).
    """
    assert important.deletions is not None
    others = in_favour(important.deletions)
    tops = np.repeat(np.maximum.reduceat(others.values, others.offsets[:-1]), others.lengths)
    others = Importance(np.where(others.values < MINOR * tops, 0.0, others.values), others.offsets, others.undefined)
    undefined = _flat(rows) | _flat(others) | in_favour(important.inputs[DELETION]).undefined
    return np.where(undefined, np.nan, somers_d(rows, others))


def _agreement(rows: Importance, others: Importance) -> Numbers:
    return np.where(_flat(rows) | _flat(others), np.nan, agreement(rows, others, percent=TOP))


def _highest(rows: Importance) -> Numbers:
    """The position of each row's (first) maximum; NaN where the row is constant."""
    return np.where(_flat(rows), np.nan, [float(np.argmax(row)) for row in rows])


def _top(rows: Importance) -> list[list[int]]:
    """The positions in each row that fewer than `TOP` percent of its words exceed."""
    allowed = -(-TOP * rows.lengths // 100)
    return [np.flatnonzero(row >= np.sort(row)[-n]).tolist() for row, n in zip(rows, allowed, strict=True)]


def _flat(rows: Importance) -> NDArray[np.bool_]:
    """Which rows are constant or undefined."""
    starts = rows.offsets[:-1]
    highest, lowest = np.maximum.reduceat(rows.values, starts), np.minimum.reduceat(rows.values, starts)
    flat: NDArray[np.bool_] = (highest == lowest) | rows.undefined
    return flat


STATES = {  # each beside the same importance of the inputs
    HIDDEN: GRADIENT,
    HIDDEN_PRODUCT: PRODUCT,
    HIDDEN_INTEGRATED: INTEGRATED,
    HIDDEN_DELETION: DELETION,
}
INTERNAL = ("top", "correct", "probability")  # quantities that are not scores
RANKED = ("comprehensiveness", "sufficiency", "token f1", "iou f1", "auprc")  # of every order of words
Test = tuple[str, str, str, Estimate, float]  # quantity, first, second, difference, p-value
RANDOM_MODEL = "random model "  # before the number of a re-initialised model and the name of what it was measured for


@dataclass(frozen=True)
class ScoreTable:
    """All passages of an audit: numbers and important words by name (see `Orders`).

    text: the text of each passage, the unit of every interval. words: how many words an explanation covers. position:
    how many output pieces come before, which the matched shuffle has to match.
    """

    text: NDArray[np.int64]
    words: NDArray[np.int64]
    position: NDArray[np.int64]
    numbers: Mapping[str, Numbers]
    important: Mapping[str, Sequence[Sequence[int]]]
    seed: int = 0
    resamples: int = RESAMPLES

    def mean(self, values: Numbers) -> Estimate:
        """Mean over passages with its interval over texts."""
        return bootstrap_mean(values, groups=self.text, seed=self.seed, resamples=self.resamples)

    def share(self, values: Numbers) -> Estimate:
        """Mean of values from 0 to 1 with Wilson's limits over texts, so that 40 of 40 has a lower limit below 1."""
        return nested_share(SeedsAndTexts.of([values[None]], [(0,)], self.text), seed=self.seed).texts

    def of_random_models(self, name: str) -> list[Numbers]:
        """The same numbers of each re-initialised model that has any."""
        return self._random_rows.get(name, [])

    @cached_property
    def _random_rows(self) -> dict[str, list[Numbers]]:
        rows: dict[str, list[Numbers]] = {}
        for key, row in self.numbers.items():
            if key.startswith(RANDOM_MODEL) and not np.isnan(row).all():
                rows.setdefault(key.split(" ", 3)[3], []).append(row)
        return rows

    def per_text(self, values: Numbers) -> Numbers:
        """The mean of each text's passages that have a value; NaN where none has."""
        _, which = np.unique(self.text, return_inverse=True)
        defined = ~np.isnan(values)
        total = np.bincount(which, weights=np.where(defined, values, 0.0))
        count = np.bincount(which, weights=defined.astype(np.float64))
        means = np.full(len(total), np.nan)
        np.divide(total, count, out=means, where=count > 0)
        return means


def scores(table: ScoreTable) -> tuple[Score, ...]:
    """Every quantity with its interval; for agreements also the matched shuffle and the excess over it."""
    result = []
    for name, values in table.numbers.items():
        quantity, of, against, *_ = (*name.split("/"), "", "")
        if quantity in INTERNAL or quantity.startswith(RANDOM_MODEL):
            continue
        result.append(Score(quantity, of, against, table.mean(values)))
        if quantity == "agreement":
            shuffled = _shuffled(table, of, against)
            result.append(Score("shuffled agreement", of, against, table.mean(shuffled)))
            result.append(Score("excess agreement", of, against, table.mean(values - shuffled)))
        random = table.of_random_models(name)
        if random:
            over_models = mean_over_seeds([np.nanmean(v) for v in random])
            result.append(Score(f"random {quantity}", of, against, over_models))
    return tuple(result)


def chance(table: ScoreTable) -> float:
    """The agreement of a word drawn at random."""
    return random_agreement(table.words, percent=TOP)


def contrasts(table: ScoreTable, headline: str) -> tuple[Contrast, ...]:
    """Differences on the same texts, each tested by permutation, all corrected together.

    The headline map against random order and each importance, in erasure and plausibility; its τ with each importance
    against those of re-initialised models (see `above_random_models`; with leave one out, its concordance), and against
    its τ with leave one out; its τ with an importance of states against that with the same importance of inputs (M1 of
    meister2021).
    """
    importances = [name for name in table.important if not is_hidden(name)]
    pairs = [
        (quantity, headline, f"{quantity}/{headline}", other, f"{quantity}/{other}")
        for quantity in RANKED
        for other in (RANDOM, *importances)
    ]
    deleted = f"tau/{headline}/{DELETION}"
    pairs += [("tau", DELETION, deleted, name, f"tau/{headline}/{name}") for name in importances if name != DELETION]
    pairs += [
        ("tau", name, f"tau/{headline}/{name}", other, f"tau/{headline}/{other}") for name, other in STATES.items()
    ]
    return _corrected(_all_tested(table, pairs, headline, (*importances, *STATES)))


def explanation_contrasts(table: ScoreTable, names: Sequence[str], headline: str) -> dict[str, tuple[Contrast, ...]]:
    """Differences of several explanations, by name; the tests of all of them are corrected together.

    Each against random order and against the map shown, in erasure and plausibility; its τ with leave one out against
    those of re-initialised models.
    """
    tests = {
        name: _all_tested(
            table,
            [
                (quantity, name, f"{quantity}/{name}", other, f"{quantity}/{other}")
                for quantity in RANKED
                for other in (RANDOM, headline)
            ],
            name,
            (DELETION,),
        )
        for name in names
    }
    corrected = iter(_corrected([test for of in tests.values() for test in of]))
    return {name: tuple(next(corrected) for _ in of) for name, of in tests.items()}


def _all_tested(
    table: ScoreTable, pairs: Sequence[tuple[str, str, str, str, str]], name: str, importances: Sequence[str]
) -> list[Test]:
    """The differences of pairs (quantity, first, its numbers, second, its numbers), and of τ from random models'."""
    known = [pair for pair in pairs if pair[2] in table.numbers and pair[4] in table.numbers]
    tests = [
        (quantity, first, second, *_tested(table, table.numbers[a], table.numbers[b]))
        for quantity, first, a, second, b in known
    ]
    for importance in importances:
        quantity = CONCORDANCE if importance == DELETION else "tau"
        own = f"{quantity}/{name}/{importance}"
        if len(random := table.of_random_models(own)) > 1:
            tested = above_random_models(table.mean(table.numbers[own]), [table.per_text(row) for row in random])
            tests.append((f"{quantity} with {importance}", TRAINED, RANDOM_MODELS, *tested))
    return tests


def _corrected(tests: Sequence[Test]) -> tuple[Contrast, ...]:
    corrected = benjamini_hochberg([p for *_, p in tests])
    return tuple(
        Contrast(quantity, first, second, difference, p, float(q))
        for (quantity, first, second, difference, p), q in zip(tests, corrected, strict=True)
    )


def above_random_models(own: Estimate, random: Sequence[Numbers]) -> tuple[Estimate, float]:
    """How far a model's value lies above those of re-initialised models, and the p-value of that difference.

    random: of each random model, its value on every text that it read. The question is whether the model is one of
    them, so the interval is that of a further random model. Their means have the mean m and the variance s². A part w²
    of that is due to the few texts that each of them read (the mean squared standard error over texts), and the rest
    b² = max(0, s² − w²) lies between models. With the standard error e of the model's own value over texts,

        (own − m) ± t_{k−1} √(b² + s²/k + e²)

    >>> values = [np.array([0.0, 0.1]), np.array([0.2, 0.1]), np.array([-0.2, 0.0]), np.array([0.1, -0.1])]
    >>> difference, p = above_random_models(Estimate(0.5, 0.46, 0.54, 99), values)
    >>> round(difference.value, 3), round(difference.low, 3), p < 0.05
    (0.475, 0.196, True)
    """
    known = [row[~np.isnan(row)] for row in random]
    means, k = [float(row.mean()) for row in known], len(known)
    difference, variance = own.value - float(np.mean(means)), float(np.var(means, ddof=1))
    by_texts = float(np.mean([row.var(ddof=1) / len(row) if len(row) > 1 else 0.0 for row in known]))
    error = (own.high - own.low) / (2 * stats.norm.ppf(0.975))
    spread = math.sqrt(max(0.0, variance - by_texts) + variance / k + error**2)
    half = float(stats.t.ppf(0.975, k - 1)) * spread
    estimate = Estimate(difference, difference - half, difference + half, own.n, own.undefined)
    if not spread > 0:
        return estimate, math.nan if math.isnan(difference) else 1.0 if difference == 0 else 0.0
    return estimate, float(2 * stats.t.sf(abs(difference) / spread, k - 1))


def _tested(table: ScoreTable, a: Numbers, b: Numbers) -> tuple[Estimate, float]:
    difference = bootstrap_difference(a, b, groups=table.text, seed=table.seed, resamples=table.resamples)
    both = np.where(np.isnan(a) | np.isnan(b), np.nan, a - b)
    texts = table.per_text(both)
    return difference, paired_permutation(texts, np.zeros(len(texts)), seed=table.seed, resamples=5 * table.resamples).p


def _shuffled(table: ScoreTable, of: str, against: str) -> Numbers:
    """The matched shuffle of a map with an importance; NaN where either is constant, or no text has its length."""
    layer = layer_of(of)
    important = table.important[f"{against} {layer + 1}" if is_hidden(against) and layer is not None else against]
    rows = np.flatnonzero(~np.isnan(table.numbers[f"agreement/{of}/{against}"])).tolist()
    result = np.full(len(table.text), np.nan)
    if not rows:
        return result
    tops = table.numbers[f"top/{of}"]
    u = Ragged.of([_marked(int(table.words[r]), [int(tops[r])]) for r in rows])
    v = Ragged.of([_marked(int(table.words[r]), important[r]) for r in rows])
    result[rows] = shuffled_agreement(u, v, position=table.position[rows], text=table.text[rows], percent=TOP)
    return result


def _marked(length: int, positions: Sequence[int]) -> Numbers:
    row = np.zeros(length)
    row[list(positions)] = 1.0
    return row
