"""Corpora whose truth is known: what a study of each must say, and must not say.

Each is generated from a seed. `must` holds the answers that follow from how the corpus is made; a question that is not
in it may be answered either way. "no praise" allows *no*, *unclear* and *not asked*, but not *yes*.

The questions, in the order of a verdict:

attends     Does attention look at words that predict the label (or next word) by themselves?
beforehand  Can that knowledge be learned without attention?
counting    Is it the knowledge that counting words together with labels (or translations) gives?
salient     Do the words that change the prediction most carry that knowledge?
stable      Does a model of another seed attend to the same words?
last        Texts: does attention fail to form when word knowledge is frozen? Pairs: does attention align words as
            co-occurrence counts do?
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from heedful.data.catalog import open_corpus
from heedful.data.corpus import Corpus, Split, divide
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit

QUESTIONS = ("attends", "beforehand", "counting", "salient", "stable", "last")
NEUTRAL, LENGTH, LEXICON = 60, 14, 24
TRAIN, VALIDATION = 600, 240
PAIRS, PAIRS_VALIDATION = 2000, 100

Must = Literal["yes", "no", "no praise"]
AnyCorpus = Corpus | ParallelCorpus


@dataclass(frozen=True)
class KnownCorpus:
    """A corpus, how it is made, and what a study of it must say.

    learnable: whether the gate must open (yes), must stay closed (no) or may do either (None).
    """

    name: str
    truth: str
    make: Callable[[int], AnyCorpus]
    learnable: bool | None
    must: Mapping[str, Must] = field(default_factory=dict)
    translation: bool = False


def one_keyword(seed: int) -> Corpus:
    """The label is whether the word `key` occurs."""
    rng = np.random.default_rng([seed, 1])

    def text(label: int) -> list[str]:
        words = _neutral(rng)
        if label:
            words[rng.integers(LENGTH)] = "key"
        return words

    return _texts("one-keyword", text, rng)


def two_keywords(seed: int, validation: int = VALIDATION, noise: float = 0.0) -> Corpus:
    """Every text has the word `plus` or the word `minus`, which is its label; a share `noise` has the other."""
    rng = np.random.default_rng([seed, 2])

    def text(label: int) -> list[str]:
        words = _neutral(rng)
        words[rng.integers(LENGTH)] = ("minus", "plus")[label if rng.random() >= noise else 1 - label]
        return words

    return _texts("two-keywords", text, rng, validation)


def polar_words(seed: int, validation: int = VALIDATION) -> Corpus:
    """Every text has two of thirty words that go with its label in three of four cases, so seeds differ."""
    rng = np.random.default_rng([seed, 3])

    def text(label: int) -> list[str]:
        words = _neutral(rng)
        for place in rng.choice(LENGTH, 2, replace=False):
            side = label if rng.random() < 0.75 else 1 - label
            words[place] = f"{('minus', 'plus')[side]}{rng.integers(15)}"
        return words

    return _texts("polar-words", text, rng, validation)


def word_order(seed: int) -> Corpus:
    """Every text has `left` and `right` once, next to each other; the label is which comes first."""
    rng = np.random.default_rng([seed, 4])

    def text(label: int) -> list[str]:
        words = _neutral(rng)
        place = rng.integers(LENGTH - 1)
        words[place : place + 2] = ("left", "right") if label else ("right", "left")
        return words

    return _texts("word-order", text, rng)


def word_position(seed: int) -> Corpus:
    """Every text has `mark` once; the label is whether it stands in the second half."""
    rng = np.random.default_rng([seed, 5])

    def text(label: int) -> list[str]:
        words = _neutral(rng)
        words[label * (LENGTH // 2) + rng.integers(LENGTH // 2)] = "mark"
        return words

    return _texts("word-position", text, rng)


def shuffled_labels(seed: int) -> Corpus:
    """Film reviews whose two labels are drawn at random."""
    return _reviews("shuffled-binary", ("no", "yes"), (0.5, 0.5), seed)


def shuffled_six(seed: int) -> Corpus:
    """Film reviews with one of six labels, of unequal shares, drawn at random."""
    return _reviews("shuffled-six", tuple("abcdef"), (0.23, 0.21, 0.2, 0.18, 0.12, 0.06), seed)


def rare_class(seed: int) -> Corpus:
    """Film reviews of which 2 %, drawn at random, have another label."""
    return _reviews("rare-class", ("common", "rare"), (0.98, 0.02), seed)


def translation(seed: int) -> ParallelCorpus:
    """Sentences of four to six words of two kinds; the target has their translations, those of the first kind first."""
    rng = np.random.default_rng([seed, 8])

    def split(size: int) -> ParallelSplit:
        sources, targets = [], []
        for length in rng.integers(4, 7, size=size):
            words = rng.integers(LEXICON, size=length)
            first = words < LEXICON // 2
            sources.append(" ".join(f"s{word}" for word in words))
            targets.append(" ".join(f"t{word}" for word in (*words[first], *words[~first])))
        return ParallelSplit(tuple(sources), tuple(targets))

    return ParallelCorpus("translation", split(PAIRS), split(PAIRS_VALIDATION), NO_PAIRS, in_words=True)


def shuffled_targets(seed: int) -> ParallelCorpus:
    """The same sentences, each beside the translation of another."""
    corpus, rng = translation(seed), np.random.default_rng([seed, 6])

    def shuffled(split: ParallelSplit) -> ParallelSplit:
        order = rng.permutation(len(split))
        return ParallelSplit(split.sources, tuple(split.targets[i] for i in order))

    train, validation = (shuffled(split) for split in (corpus.train, corpus.validation))
    return ParallelCorpus("shuffled-targets", train, validation, NO_PAIRS, in_words=True)


_PLANTED: dict[str, Must] = {
    "attends": "yes",
    "beforehand": "yes",
    "counting": "yes",
    "salient": "yes",
    "stable": "yes",
    "last": "no",
}
KNOWN = {
    corpus.name: corpus
    for corpus in (
        # The keyword alone gives the label, so counts, a model without attention and attention itself all find it. Even
        # random vectors tell it from other words, so attention also forms when word knowledge is frozen.
        KnownCorpus("one-keyword", "one word decides", one_keyword, True, _PLANTED),
        KnownCorpus("two-keywords", "one of two words decides", two_keywords, True, _PLANTED),
        KnownCorpus("shuffled-binary", "two labels drawn at random", shuffled_labels, False),
        KnownCorpus("shuffled-six", "six labels drawn at random", shuffled_six, False),
        KnownCorpus("rare-class", "2 % of labels differ, at random", rare_class, False),
        # Every word is as frequent under one label as under the other, so counting knows nothing. What a probe reads
        # off a hidden state may contain the order, so the other questions may be answered either way.
        KnownCorpus("word-order", "only the order of two words decides", word_order, None, {"counting": "no praise"}),
        KnownCorpus("word-position", "only the position decides", word_position, None, {"counting": "no praise"}),
        # Every word has a translation, which co-occurrence counts show.
        KnownCorpus(
            "translation",
            "every word has its translation",
            translation,
            True,
            dict.fromkeys(("attends", "beforehand", "counting", "last"), "yes"),
            translation=True,
        ),
        KnownCorpus("shuffled-targets", "targets of other sentences", shuffled_targets, False, translation=True),
    )
}


def _neutral(rng: np.random.Generator) -> list[str]:
    return [f"n{i}" for i in rng.integers(NEUTRAL, size=LENGTH)]


def _texts(
    name: str, text: Callable[[int], list[str]], rng: np.random.Generator, validation: int = VALIDATION
) -> Corpus:
    """A corpus of two labels, as many texts of each."""
    splits = []
    for size in (TRAIN, validation, 0):
        labels = rng.permutation(np.arange(size) % 2).tolist()
        splits.append(Split(tuple(" ".join(text(label)) for label in labels), tuple(labels)))
    return Corpus(name, ("no", "yes"), *splits, licence="MIT", source="generated")


def _reviews(name: str, labels: tuple[str, ...], shares: tuple[float, ...], seed: int) -> Corpus:
    """Film reviews with labels drawn at random, in fixed shares."""
    rng, reviews = np.random.default_rng([seed, 7]), open_corpus("rotten-tomatoes")
    assert isinstance(reviews, Corpus)
    chosen = rng.permutation(len(reviews.train))[: TRAIN + VALIDATION]
    counts = np.round(np.cumsum(shares) * len(chosen)).astype(int)
    drawn = np.searchsorted(counts, rng.permutation(len(chosen)), side="right")
    texts = Split(tuple(reviews.train.texts[i] for i in chosen), tuple(int(label) for label in drawn))
    train, validation = divide(texts, [TRAIN], seed)
    empty = Split((), ())
    return Corpus(name, labels, train, validation, empty, rules=reviews.rules, source="film reviews, labels at random")
