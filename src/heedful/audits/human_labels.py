"""Comparison with people: marked rationales of texts, and gold word alignments of translations."""

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.attribution.attention_maps import RANDOM
from heedful.attribution.interface import Numbers, Passage
from heedful.audits.result import Score
from heedful.config import AuditSettings
from heedful.data.parallel import Alignment, Link
from heedful.errors import DataError
from heedful.metrics.faithfulness import auprc, iou_f1, token_f1, top_percent
from heedful.metrics.statistics import Estimate
from heedful.metrics.translation_quality import alignment_scores, chance_aer

Rationales = Mapping[int, ArrayLike]  # text → one truth value for each word that is not special
OutputPosition = tuple[int, int]  # of a passage: its text, and how many output pieces come before it
INVISIBLE = {"Cc", "Cf"}  # control and format characters: tokenisers drop them


def rationale_of(passage: Passage, rationales: Rationales) -> NDArray[np.bool_] | None:
    """Which words of a passage people marked; a text that was cut has lost the last of them.

    >>> passage = Passage(4, ("<s>", "a", "good"), (True, False, False), (0, 1, 2), (0, 1, 2), cut=1)
    >>> rationale_of(passage, {4: [0, 1, 1]})
    array([False,  True])
    """
    if passage.text not in rationales:
        return None
    marked = np.asarray(rationales[passage.text], dtype=bool).ravel()
    n = int(passage.explained().sum())
    if len(marked) < n or (len(marked) > n and not passage.cut):
        raise DataError(f"text {passage.text} has {n} words, but its rationale has {len(marked)}")
    return marked[:n]


def marked_percent(passages: Sequence[Passage], rationales: Rationales) -> int:
    """The share of words that people mark in a text, in percent; an explanation may mark as many.

    >>> passage = Passage(0, ("a", "good", "film"), (False,) * 3, (0, 1, 2), (0, 1, 2))
    >>> marked_percent([passage], {0: [False, True, False]})
    33
    """
    rows = [rationale_of(passage, rationales) for passage in passages]
    shares = [marked.mean() for marked in rows if marked is not None and marked.any()]
    if not shares:
        raise DataError("there are rationales, but none of a text in this audit has a marked word")
    return max(1, round(100 * float(np.mean(shares))))


def plausibility(
    passages: Sequence[Passage], rankings: Mapping[str, Sequence[Numbers]], rationales: Rationales, percent: int
) -> dict[str, Numbers]:
    """`token f1/<ranking>` and `iou f1/<ranking>` of the top words, and `auprc/<ranking>`.

    NaN where no word was marked, or without order.
    """
    marks = [rationale_of(passage, rationales) for passage in passages]
    gold = [
        np.zeros(int(p.explained().sum())) if m is None else m.astype(np.float64)
        for p, m in zip(passages, marks, strict=True)
    ]
    result: dict[str, Numbers] = {}
    for name, rows in rankings.items():
        flat = np.array([np.ptp(row) == 0 for row in rows])
        top = [row.astype(np.float64) for row in top_percent(rows, percent)]
        result[f"token f1/{name}"] = np.where(flat, np.nan, token_f1(top, gold))
        result[f"iou f1/{name}"] = np.where(flat, np.nan, iou_f1(top, gold))
        result[f"auprc/{name}"] = np.where(flat, np.nan, auprc(rows, gold))
    return result


def marked_words(passage: Passage, words: Sequence[str], marked: ArrayLike) -> NDArray[np.bool_]:
    """Which words of a passage (without special ones) contain a character of a marked word.

    words: the text as people saw it, word by word; marked: one truth value for each. Both sides are compared letter by
    letter, ignoring case, spaces and control characters; the passage may end early, where it was cut.

    >>> passage = Passage(0, ("<s>", "n't", "so-so"), (True, False, False), (0, 1, 2), (0, 1, 2))
    >>> marked_words(passage, ["n't", "so", "-", "so"], [False, True, False, False])
    array([False,  True])
    """
    marks = np.asarray(marked, dtype=bool)
    if len(marks) != len(words):
        raise DataError(f"text {passage.text}: {len(words)} words, but {len(marks)} marks")
    letters = [(letter, mark) for word, mark in zip(words, marks, strict=True) for letter in letters_of(word)]
    own = [word for word, special in zip(passage.words, passage.special, strict=True) if not special]
    result, at = np.zeros(len(own), dtype=bool), 0
    for i, word in enumerate(own):
        for letter in letters_of(word):
            if at == len(letters) or letters[at][0] != letter:
                there = "".join(letter for letter, _ in letters[at : at + 12])
                raise DataError(
                    f"text {passage.text}: the passage continues with {word!r}, the marked text with {there!r}"
                )
            result[i] |= letters[at][1]
            at += 1
    return result


def letters_of(word: str) -> str:
    """The characters of a word that tokenisers keep, ignoring case.

    >>> letters_of("So so")
    'soso'
    """
    return "".join(c for c in word.casefold() if not c.isspace() and unicodedata.category(c) not in INVISIBLE)


def output_words(passages: Sequence[Passage]) -> dict[OutputPosition, int]:
    """Which output word of its text each passage explains: the passages of a text, in order, are its output words.

    >>> two = [Passage(7, ("a",), (False,), (1,), (0,), before=before) for before in ((0,), (0, 5, 6))]
    >>> output_words(two)
    {(7, 1): 0, (7, 3): 1}
    """
    positions = sorted({(passage.text, len(passage.before)) for passage in passages})
    first = {text: i for i, (text, _) in reversed(list(enumerate(positions)))}
    return {position: i - first[position[0]] for i, position in enumerate(positions)}


def alignment_errors(
    passages: Sequence[Passage],
    numbers: Mapping[str, Numbers],
    links: Mapping[int, Alignment],
    words: Mapping[OutputPosition, int],
    settings: AuditSettings,
) -> tuple[Score, ...]:
    """`aer` of every map and importance against gold links of the output words in the audit, and of random links.

    Each output word is linked to the source word with the highest weight. links: of each text, (source word, output
    word). Texts without gold links are left out.
    """
    texts = sorted({passage.text for passage in passages} & links.keys())
    if not texts:
        raise DataError("there are gold links, but none of a text in this audit")
    target = [words[passage.text, len(passage.before)] for passage in passages]
    covered = {text: {t for p, t in zip(passages, target, strict=True) if p.text == text} for text in texts}
    sure = [_links_to(links[text].sure, covered[text]) for text in texts]
    possible = [_links_to(links[text].possible, covered[text]) for text in texts]
    scores = []
    for name, tops in numbers.items():
        if not name.startswith("top/"):
            continue
        predicted: dict[int, set[Link]] = {text: set() for text in texts}
        for passage, t, top in zip(passages, target, tops, strict=True):
            source = None if np.isnan(top) else _source_word(passage, int(top), settings.include_special)
            if source is not None and passage.text in predicted:
                predicted[passage.text].add((source, t))
        score = alignment_scores([predicted[text] for text in texts], sure, possible, seed=settings.seed)
        scores.append(Score("aer", name.removeprefix("top/"), "", score.aer))
    lengths = {passage.text: int(passage.explained().sum()) for passage in passages}
    value = chance_aer(sure, [lengths[text] for text in texts], [len(covered[text]) for text in texts], possible)
    return (*scores, Score("aer", RANDOM, "", Estimate(value, value, value, len(texts))))


def _links_to(links: frozenset[Link], outputs: set[int]) -> set[Link]:
    return {(s, t) for s, t in links if t in outputs}


def _source_word(passage: Passage, top: int, include_special: bool) -> int | None:
    """The number of a word among those that are not special, from its number among the explained words."""
    plain = passage.explained()
    word = int(np.flatnonzero(passage.explained(include_special=include_special))[top])
    return int(plain[:word].sum()) if plain[word] else None
