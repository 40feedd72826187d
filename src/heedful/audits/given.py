"""Given explanations: scores of words that were computed elsewhere (SHAP, LIME, Captum, Inseq, LXT …), to be ranked.

Scores above 0 speak for the predicted output. They may be of words, of the model's pieces, or of any other tokens of
the same text that come with the scores; scores of tokens are summed into words.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from heedful.attribution.interface import Numbers, Passage
from heedful.audits.human_labels import letters_of
from heedful.data.files.text_files import read_lines
from heedful.errors import ConfigError, DataError
from heedful.storage.atomic_files import reason

MARKS = ("##", "▁", "Ġ", "Ċ")  # signs of tokenisers at the beginning of a token
FORM = '{"explainer": "shap", "text": 0, "scores": [0.1, …]}, with "words" and "seconds" if you have them'


@dataclass(frozen=True)
class GivenExplanation:
    """Scores by text (and output word, for translations). seconds: the time it took to compute them, if known."""

    name: str
    rows: Mapping[int, Any]
    seconds: float | None = None
    outputs: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def row(self, passage: Passage) -> Numbers:
        """The scores of all words of a passage; special words have 0 unless they were given.

        >>> passage = Passage(0, ("<s>", "so-so", "film"), (True, False, False), (1, 5, 6, 7), (0, 1, 1, 2))
        >>> GivenExplanation("shap", {0: [0.5, -0.25]}).row(passage)
        array([ 0.  ,  0.5 , -0.25])
        >>> GivenExplanation("shap", {0: (["so", "-", "so", "film"], [0.25, 0.0, 0.25, 1.0])}).row(passage)
        array([0. , 0.5, 1. ])
        """
        where = f"explanation {self.name!r}, text {passage.text}"
        if passage.text not in self.rows:
            raise DataError(f"{where}: there are no scores; give some for every text of the audit")
        tokens, scores = self._scores(self.rows[passage.text], passage, where)
        if tokens is not None:
            return _aligned(passage, tokens, scores, where)
        plain = passage.explained()
        ordinary = np.array([not passage.special[word] for word in passage.word], dtype=bool)
        row = np.zeros(len(passage.words))
        if len(scores) == int(plain.sum()):
            row[plain] = scores
        elif len(scores) == len(passage.words):
            row[:] = scores
        elif len(scores) == len(passage.pieces):
            row = passage.words_of(scores)
        elif len(scores) == int(ordinary.sum()):
            pieces = np.zeros(len(passage.pieces))
            pieces[ordinary] = scores
            row = passage.words_of(pieces)
        else:
            raise DataError(
                f"{where}: {len(scores)} scores, but {int(plain.sum())} words in {len(passage.pieces)} pieces; give "
                "the words or tokens that the scores are of beside them"
            )
        return row

    def _scores(self, given: Any, passage: Passage, where: str) -> tuple[list[str] | None, Numbers]:
        tokens = None
        if isinstance(given, Mapping):
            tokens, given = given.get("words"), given.get("scores")
        elif isinstance(given, tuple) and len(given) == 2 and len(given[0]) and isinstance(given[0][0], str):
            tokens, given = given
        plain = given.detach().cpu().double() if hasattr(given, "detach") else given
        try:
            scores = np.asarray(plain, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: the scores are not numbers ({reason(error)})") from None
        if scores.ndim == 2 and passage.before:  # one row for each output word
            scores = scores[self.outputs[passage.text, len(passage.before)]]
        elif scores.ndim == 2:  # one column for each label
            if not 0 <= passage.target < scores.shape[1]:
                raise DataError(f"{where}: scores of {scores.shape[1]} labels, but label {passage.target} is explained")
            scores = scores[:, passage.target]
        if scores.ndim != 1 or not np.isfinite(scores).all():
            raise DataError(f"{where}: scores of shape {scores.shape} must be one finite number for each word")
        if tokens is not None and len(tokens) != len(scores):
            raise DataError(f"{where}: {len(tokens)} words, but {len(scores)} scores")
        return None if tokens is None else [str(token) for token in tokens], scores


def _aligned(passage: Passage, tokens: Sequence[str], scores: Numbers, where: str) -> Numbers:
    """Scores of tokens as scores of words, letter by letter: a token's score is shared by its letters."""
    special = {word for word, is_special in zip(passage.words, passage.special, strict=True) if is_special}
    row = np.zeros(len(passage.words))
    named = {word: i for i, word in enumerate(passage.words) if passage.special[i]}
    letters: list[tuple[str, float]] = []
    for token, score in zip(tokens, scores, strict=True):
        if token in special:
            row[named[token]] += score
            continue
        for mark in MARKS:
            token = token.removeprefix(mark)
        own = letters_of(token)
        letters += [(letter, float(score) / len(own)) for letter in own]
    at = 0
    for i, word in enumerate(passage.words):
        if passage.special[i]:
            continue
        for letter in letters_of(word):
            if at == len(letters) or letters[at][0] != letter:
                there = "".join(letter for letter, _ in letters[at : at + 12])
                raise DataError(f"{where}: the text continues with {word!r}, the explained words with {there!r}")
            row[i] += letters[at][1]
            at += 1
    return row


def given_explanations(
    explanations: Any, passages: Sequence[Passage], outputs: Mapping[tuple[int, int], int]
) -> dict[str, GivenExplanation]:
    """Explanations by name, from whatever form they were given in.

    A mapping of names to rows (by number of text: a list or mapping), or to a function that takes the words of each
    text and returns the rows; or a file of JSON lines. An object with `values` and `data`, such as SHAP's, is read as
    scores and tokens.

    >>> passages = [Passage.of_pieces(0, [7, 8])]
    >>> given_explanations({"last": lambda texts: [range(len(words)) for words in texts]}, passages, {})["last"].rows
    {0: range(0, 2)}
    """
    if isinstance(explanations, str | Path):
        named = read_explanations(Path(explanations))
    elif isinstance(explanations, Mapping):
        named = {str(name): _given(str(name), rows, passages) for name, rows in explanations.items()}
    else:
        raise ConfigError("explanations are given by name: explanations={'shap': rows}, or as a file of JSON lines")
    for name in named:
        if "/" in name or not name.strip():
            raise ConfigError(f"{name!r} cannot be the name of an explanation; it needs letters, and no /")
    return {name: GivenExplanation(name, g.rows, g.seconds, outputs) for name, g in named.items()}


def _given(name: str, rows: Any, passages: Sequence[Passage]) -> GivenExplanation:
    if isinstance(rows, GivenExplanation):
        return rows
    if hasattr(rows, "values") and hasattr(rows, "data") and not callable(rows.values):
        return GivenExplanation(name, dict(enumerate(zip(map(list, rows.data), rows.values, strict=True))))
    if callable(rows):
        return _computed(name, rows, passages)
    if isinstance(rows, Mapping):
        return GivenExplanation(name, {int(text): row for text, row in rows.items()})
    return GivenExplanation(name, dict(enumerate(rows)))


def _computed(name: str, function: Callable[[list[list[str]]], Any], passages: Sequence[Passage]) -> GivenExplanation:
    """Rows of a function of texts, timed; each text is explained once."""
    texts = {p.text: [w for w, special in zip(p.words, p.special, strict=True) if not special] for p in passages}
    begun = time.perf_counter()
    rows = list(function(list(texts.values())))
    seconds = time.perf_counter() - begun
    if len(rows) != len(texts):
        raise DataError(f"explanation {name!r}: the function returned {len(rows)} rows for {len(texts)} texts")
    return GivenExplanation(name, dict(zip(texts, rows, strict=True)), seconds)


def read_explanations(path: Path) -> dict[str, GivenExplanation]:
    """The explanations in a file of JSON lines, one text of one explainer to a line."""
    rows: dict[str, dict[int, Any]] = {}
    seconds: dict[str, float] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            name, text, scores = str(entry["explainer"]), int(entry["text"]), entry["scores"]
            words = entry.get("words")
            rows.setdefault(name, {})[text] = scores if words is None else {"words": words, "scores": scores}
            if entry.get("seconds") is not None:
                seconds[name] = seconds.get(name, 0.0) + float(entry["seconds"])
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            why = f"there is no {error}" if isinstance(error, KeyError) else reason(error)
            raise DataError(f"{path}:{number}: {why}; each line is {FORM}") from None
    if not rows:
        raise DataError(f"{path}: no explanations; each line is {FORM}")
    return {name: GivenExplanation(name, own, seconds.get(name)) for name, own in rows.items()}


def plain_rows(given: GivenExplanation) -> dict[str, Any]:
    """The rows as plain values, by which an audit knows whether they are the same as before."""

    def plain(row: Any) -> Any:
        if isinstance(row, Mapping):
            return {str(key): plain(value) for key, value in row.items()}
        if isinstance(row, tuple) and len(row) == 2 and len(row[0]) and isinstance(row[0][0], str):
            return [list(row[0]), plain(row[1])]
        return np.asarray(row.detach().cpu() if hasattr(row, "detach") else row).tolist()

    return {str(text): plain(row) for text, row in given.rows.items()}
