"""Do explanations mark the words that people marked? Agreement with human rationales, where there are any."""

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.attribution.attention_maps import asked
from heedful.attribution.interface import Passage
from heedful.attribution.model_queries import Numbers
from heedful.errors import DataError
from heedful.metrics.faithfulness import top_percent
from heedful.metrics.plausibility import auprc, token_f1

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


UNSEEN = {"Cc", "Cf"}  # control and format characters: tokenisers drop them


def marked_words(passage: Passage, words: Sequence[str], marked: ArrayLike) -> NDArray[np.bool_]:
    """Which words of a passage (special ones apart) hold a character of a word that was marked.

    words: the text as the people saw it, word by word, and `marked` one truth value for each. Both sides are compared
    letter by letter, case, spaces and control characters aside; the passage may end early, where it was cut.

    >>> passage = Passage(0, ("<s>", "n't", "so-so"), (True, False, False), (0, 1, 2), (0, 1, 2))
    >>> marked_words(passage, ["n't", "so", "-", "so"], [False, True, False, False])
    array([False,  True])
    """
    truth = np.asarray(marked, dtype=bool)
    if len(truth) != len(words):
        raise DataError(f"text {passage.text}: {len(words)} words, but {len(truth)} say if they were marked")
    seen = [(letter, mark) for word, mark in zip(words, truth, strict=True) for letter in _letters(word)]
    own = [word for word, special in zip(passage.words, passage.special, strict=True) if not special]
    found, at = np.zeros(len(own), dtype=bool), 0
    for i, word in enumerate(own):
        for letter in _letters(word):
            if at == len(seen) or seen[at][0] != letter:
                there = "".join(letter for letter, _ in seen[at : at + 12])
                raise DataError(
                    f"text {passage.text}: the passage goes on with {word!r}, the marked text with {there!r}"
                )
            found[i] |= seen[at][1]
            at += 1
    return found


def _letters(word: str) -> str:
    return "".join(c for c in word.casefold() if not c.isspace() and unicodedata.category(c) not in UNSEEN)
