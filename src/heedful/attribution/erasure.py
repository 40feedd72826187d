"""Erasure: does the prediction need the words that an explanation ranks first? Comprehensiveness and sufficiency."""

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.attribution.attention_maps import RANDOM
from heedful.attribution.interface import Keep, Numbers, Passage, Subject
from heedful.attribution.interventions import passage_rng
from heedful.metrics.faithfulness import aopc, comprehensiveness, sufficiency


def erasures(
    subject: Subject, passages: Sequence[Passage], rankings: Mapping[str, Sequence[Numbers]]
) -> dict[str, Numbers]:
    """Areas over the perturbation curves, as `comprehensiveness/<ranking>` and `sufficiency/<ranking>`.

    rankings: one row of scores per passage, a score for each word that is not special. NaN where all scores are equal,
    so that there is no order. A shortened text that several rankings need is predicted once.
    """
    index = [i for _ in rankings for i in range(len(passages))]
    rows = [row for ranking in rankings.values() for row in ranking]
    predict = _CachedPredictions(subject, passages, index)
    flat = np.array([np.ptp(row) == 0 for row in rows])
    result: dict[str, Numbers] = {}
    for measure, function in (("comprehensiveness", comprehensiveness), ("sufficiency", sufficiency)):
        areas = np.where(flat, np.nan, aopc(function(rows, predict))).reshape(len(rankings), len(passages))
        result |= {f"{measure}/{name}": area for name, area in zip(rankings, areas, strict=True)}
    return result


def random_orders(passages: Sequence[Passage], seed: int, number: int) -> dict[str, list[Numbers]]:
    """Random rankings of each passage's words, numbered by name."""
    return {
        f"{RANDOM} {k}": [passage_rng(p, seed, k).random(int(p.explained().sum())) for p in passages]
        for k in range(1, number + 1)
    }


def average_random_orders(values: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Replace the values of several random orders by their mean, under one name.

    >>> average_random_orders({"auprc/random order 1": np.array([0.2]), "auprc/random order 2": np.array([0.4])})
    {'auprc/random order': array([0.3])}
    """
    kept = {name: row for name, row in values.items() if f"/{RANDOM} " not in name}
    several: dict[str, list[Numbers]] = {}
    for name in (name for name in values if name not in kept):  # in their order: sums depend on it in the last bit
        several.setdefault(f"{name.split('/')[0]}/{RANDOM}", []).append(values[name])
    return kept | {name: np.mean(rows, axis=0) for name, rows in sorted(several.items())}


class _CachedPredictions:
    """`predict(keep)` for rows that may belong to the same passage; no text is predicted twice."""

    def __init__(self, subject: Subject, passages: Sequence[Passage], index: Sequence[int]) -> None:
        self.subject, self.passages, self.index = subject, passages, index
        self.known: dict[tuple[int, bytes], float] = {}

    def __call__(self, keep: Keep) -> Numbers:
        kept = [self._all_words(i, row) for i, row in zip(self.index, keep, strict=True)]
        keys = [(i, words.tobytes()) for i, words in zip(self.index, kept, strict=True)]
        new = {key: words for key, words in zip(keys, kept, strict=True) if key not in self.known}
        predicted = self.subject.predict([self.passages[i] for i, _ in new], list(new.values()))
        self.known |= dict(zip(new, predicted.tolist(), strict=True))
        return np.array([self.known[key] for key in keys])

    def _all_words(self, i: int, row: Keep) -> Keep:
        """Which of all words of a passage are kept, given which of those that are not special are."""
        kept = np.ones(len(self.passages[i].words), dtype=bool)
        plain = self.passages[i].explained()
        kept[plain] = row[: int(plain.sum())]
        return kept
