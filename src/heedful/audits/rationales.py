"""Words that people marked become words of a passage, whatever its tokeniser calls a word."""

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.audits.passage import Passage
from heedful.errors import DataError

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
