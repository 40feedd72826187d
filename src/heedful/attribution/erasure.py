"""Does the prediction need the words that an explanation puts first? Many explanations are asked about at once."""

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.attribution.attention_maps import RANDOM, asked
from heedful.attribution.interface import Passage
from heedful.attribution.interventions import draw
from heedful.attribution.model_queries import Keep, Numbers, Subject
from heedful.metrics.faithfulness import aopc, comprehensiveness, sufficiency


def erasures(
    subject: Subject, passages: Sequence[Passage], rankings: Mapping[str, Sequence[Numbers]]
) -> dict[str, Numbers]:
    """Areas over the perturbation curves, as `comprehensiveness/<ranking>` and `sufficiency/<ranking>`.

    rankings: one row of scores per passage, a score for each word that is not special. NaN where all scores are the
    same, so that there is no order. Whatever several rankings ask for is asked of the model once.
    """
    who = [i for _ in rankings for i in range(len(passages))]
    rows = [row for ranking in rankings.values() for row in ranking]
    predict = _Remembering(subject, passages, who)
    flat = np.array([np.ptp(row) == 0 for row in rows])
    found: dict[str, Numbers] = {}
    for measure, function in (("comprehensiveness", comprehensiveness), ("sufficiency", sufficiency)):
        areas = np.where(flat, np.nan, aopc(function(rows, predict))).reshape(len(rankings), len(passages))
        found |= {f"{measure}/{name}": area for name, area in zip(rankings, areas, strict=True)}
    return found


def random_orders(passages: Sequence[Passage], seed: int, number: int) -> dict[str, list[Numbers]]:
    """That many random rankings of each passage's words, under names of their own."""
    return {
        f"{RANDOM} {k}": [draw(passage, seed, k).random(int(asked(passage).sum())) for passage in passages]
        for k in range(1, number + 1)
    }


def averaged(found: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Numbers of the same quantity of several random orders become their mean, under one name.

    >>> averaged({"auprc/random order 1": np.array([0.2]), "auprc/random order 2": np.array([0.4])})
    {'auprc/random order': array([0.3])}
    """
    kept = {name: values for name, values in found.items() if f"/{RANDOM} " not in name}
    several: dict[str, list[Numbers]] = {}
    for name in (name for name in found if name not in kept):  # in their order: sums depend on it in the last bit
        several.setdefault(f"{name.split('/')[0]}/{RANDOM}", []).append(found[name])
    return kept | {name: np.mean(values, axis=0) for name, values in sorted(several.items())}


class _Remembering:
    """`predict(keep)` for rows that may be of the same passage; no question is put to the model twice."""

    def __init__(self, subject: Subject, passages: Sequence[Passage], who: Sequence[int]) -> None:
        self.subject, self.passages, self.who = subject, passages, who
        self.known: dict[tuple[int, bytes], float] = {}

    def __call__(self, keep: Keep) -> Numbers:
        wanted = [self._words(i, row) for i, row in zip(self.who, keep, strict=True)]
        keys = [(i, words.tobytes()) for i, words in zip(self.who, wanted, strict=True)]
        new = {key: words for key, words in zip(keys, wanted, strict=True) if key not in self.known}
        answers = self.subject.predict([self.passages[i] for i, _ in new], list(new.values()))
        self.known |= dict(zip(new, answers.tolist(), strict=True))
        return np.array([self.known[key] for key in keys])

    def _words(self, i: int, row: Keep) -> Keep:
        """What is kept of all words of a passage, from what is kept of those that are not special."""
        kept = np.ones(len(self.passages[i].words), dtype=bool)
        plain = asked(self.passages[i])
        kept[plain] = row[: int(plain.sum())]
        return kept
