"""From one value per passage to means with intervals, and to comparisons that are tested and corrected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.audits.asking import Numbers
from heedful.audits.names import (
    DELETION,
    GRADIENT,
    HIDDEN,
    HIDDEN_DELETION,
    HIDDEN_INTEGRATED,
    HIDDEN_PRODUCT,
    INTEGRATED,
    PRODUCT,
    RANDOM,
    is_hidden,
    layer_of,
)
from heedful.audits.orders import TOP, hidden_name
from heedful.audits.result import Contrast, Score
from heedful.measure.agreement import random_agreement, shuffled_agreement
from heedful.measure.ragged import Ragged
from heedful.measure.uncertainty import (
    RESAMPLES,
    Estimate,
    benjamini_hochberg,
    bootstrap_difference,
    bootstrap_mean,
    paired_permutation,
)

STATES = {  # beside the same of the inputs
    HIDDEN: GRADIENT,
    HIDDEN_PRODUCT: PRODUCT,
    HIDDEN_INTEGRATED: INTEGRATED,
    HIDDEN_DELETION: DELETION,
}
INTERNAL = ("top", "correct", "probability")  # quantities that are not scores


@dataclass(frozen=True)
class Table:
    """All passages of an audit: numbers and important words by name (see `measuring.Part`).

    text: whose passage it is, the unit of every interval. words: how many an explanation speaks of. position: how much
    output came before, which the matched shuffle has to match.
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

    def per_text(self, values: Numbers) -> Numbers:
        """The mean of each text's passages that have a value; NaN where none has."""
        _, which = np.unique(self.text, return_inverse=True)
        defined = ~np.isnan(values)
        total = np.bincount(which, weights=np.where(defined, values, 0.0))
        count = np.bincount(which, weights=defined.astype(np.float64))
        means = np.full(len(total), np.nan)
        np.divide(total, count, out=means, where=count > 0)
        return means


def scores(table: Table) -> tuple[Score, ...]:
    """Every quantity with its interval; agreements with that of the matched shuffle, and what lies beyond it."""
    found = []
    for name, values in table.numbers.items():
        quantity, of, against, *_ = (*name.split("/"), "", "")
        if quantity in INTERNAL:
            continue
        found.append(Score(quantity, of, against, table.mean(values)))
        if quantity == "agreement":
            shuffled = _shuffled(table, of, against)
            found.append(Score("shuffled agreement", of, against, table.mean(shuffled)))
            found.append(Score("excess agreement", of, against, table.mean(values - shuffled)))
    return tuple(found)


def chance(table: Table) -> float:
    """The agreement of a word drawn at random."""
    return random_agreement(table.words, percent=TOP)


def contrasts(table: Table, headline: str) -> tuple[Contrast, ...]:
    """What is compared on the same texts, each tested by permutation, all corrected together.

    The headline map against random order and against each importance in what they are good for; its τ with each
    importance against that of a random model, and against its τ with leave one out; its τ with an importance of states
    against that with the same of inputs (M1 of meister2021).
    """
    importances = [name for name in table.important if not is_hidden(name)]
    pairs = [
        (quantity, headline, f"{quantity}/{headline}", other, f"{quantity}/{other}")
        for quantity in ("comprehensiveness", "sufficiency", "token f1", "auprc")
        for other in (RANDOM, *importances)
    ]
    for name in (*importances, *STATES):
        own = f"tau/{headline}/{name}"
        pairs.append((f"tau with {name}", "trained model", own, "random model", f"random {own}"))
    deleted = f"tau/{headline}/{DELETION}"
    pairs += [("tau", DELETION, deleted, name, f"tau/{headline}/{name}") for name in importances if name != DELETION]
    pairs += [
        ("tau", name, f"tau/{headline}/{name}", other, f"tau/{headline}/{other}") for name, other in STATES.items()
    ]
    known = [pair for pair in pairs if pair[2] in table.numbers and pair[4] in table.numbers]
    tests = [_tested(table, table.numbers[a], table.numbers[b]) for _, _, a, _, b in known]
    corrected = benjamini_hochberg([p for _, p in tests])
    return tuple(
        Contrast(quantity, first, second, difference, p, float(q))
        for (quantity, first, _, second, _), (difference, p), q in zip(known, tests, corrected, strict=True)
    )


def _tested(table: Table, a: Numbers, b: Numbers) -> tuple[Estimate, float]:
    difference = bootstrap_difference(a, b, groups=table.text, seed=table.seed, resamples=table.resamples)
    both = np.where(np.isnan(a) | np.isnan(b), np.nan, a - b)
    texts = table.per_text(both)
    return difference, paired_permutation(texts, np.zeros(len(texts)), seed=table.seed, resamples=5 * table.resamples).p


def _shuffled(table: Table, of: str, against: str) -> Numbers:
    """The matched shuffle of one map with one importance; NaN where either has no order, or no text has its length."""
    layer = layer_of(of)
    important = table.important[hidden_name(against, layer) if is_hidden(against) and layer is not None else against]
    rows = np.flatnonzero(~np.isnan(table.numbers[f"agreement/{of}/{against}"])).tolist()
    result = np.full(len(table.text), np.nan)
    if not rows:
        return result
    tops = table.numbers[f"top/{of}"]
    u = Ragged.of([_marked(int(table.words[r]), [int(tops[r])]) for r in rows])
    v = Ragged.of([_marked(int(table.words[r]), important[r]) for r in rows])
    result[rows] = shuffled_agreement(u, v, position=table.position[rows], text=table.text[rows], percent=TOP)
    return result


def _marked(length: int, places: Sequence[int]) -> Numbers:
    row = np.zeros(length)
    row[list(places)] = 1.0
    return row
