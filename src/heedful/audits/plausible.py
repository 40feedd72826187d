"""Do explanations mark the words that people marked? Agreement with human rationales, where there are any."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.audits.asking import Numbers
from heedful.audits.maps import asked
from heedful.audits.passage import Passage
from heedful.errors import DataError
from heedful.measure.faithfulness import top_percent
from heedful.measure.plausibility import auprc, token_f1

Rationales = Mapping[int, ArrayLike]  # of a text: one truth value for each word that is not special


def rationale_of(passage: Passage, rationales: Rationales) -> NDArray[np.bool_] | None:
    """Which words of a passage people marked; a text that was cut has lost the last of them.

    >>> passage = Passage(4, ("<s>", "a", "good"), (True, False, False), (0, 1, 2), (0, 1, 2), cut=1)
    >>> rationale_of(passage, {4: [0, 1, 1]})
    array([False,  True])
    """
    if passage.text not in rationales:
        return None
    marked = np.asarray(rationales[passage.text], dtype=bool).ravel()
    n = int(asked(passage).sum())
    if len(marked) < n or (len(marked) > n and not passage.cut):
        raise DataError(f"text {passage.text} has {n} words, but its rationale speaks of {len(marked)}")
    return marked[:n]


def marked_percent(passages: Sequence[Passage], rationales: Rationales) -> int:
    """The share of words that people mark in a text, in percent: as many words an explanation may name.

    >>> passage = Passage(0, ("a", "good", "film"), (False,) * 3, (0, 1, 2), (0, 1, 2))
    >>> marked_percent([passage], {0: [False, True, False]})
    33
    """
    found = [rationale_of(passage, rationales) for passage in passages]
    shares = [marked.mean() for marked in found if marked is not None and marked.any()]
    if not shares:
        raise DataError("there are rationales, but none of a text in this audit has a marked word")
    return max(1, round(100 * float(np.mean(shares))))


def plausibility(
    passages: Sequence[Passage], rankings: Mapping[str, Sequence[Numbers]], rationales: Rationales, percent: int
) -> dict[str, Numbers]:
    """`token f1/<ranking>` of the top words and `auprc/<ranking>`; NaN where nobody marked a word, or without order."""
    found = [rationale_of(passage, rationales) for passage in passages]
    gold = [
        np.zeros(int(asked(p).sum())) if m is None else m.astype(np.float64)
        for p, m in zip(passages, found, strict=True)
    ]
    result: dict[str, Numbers] = {}
    for name, rows in rankings.items():
        flat = np.array([np.ptp(row) == 0 for row in rows])
        chosen = [top.astype(np.float64) for top in top_percent(rows, percent)]
        result[f"token f1/{name}"] = np.where(flat, np.nan, token_f1(chosen, gold))
        result[f"auprc/{name}"] = np.where(flat, np.nan, auprc(rows, gold))
    return result
