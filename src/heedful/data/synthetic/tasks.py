"""Generated tasks with known answers: endless streams and corpora of any size, under a seed.

Each shows one thing about how attention is learned. Translation tasks come with gold alignments.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import Corpus, Split
from heedful.data.parallel import Alignment, ParallelCorpus, ParallelSplit
from heedful.data.synthetic.doses import FAMILIES, Family, Numbers, dose_generator, family_of, replace_words
from heedful.data.synthetic.doses import LENGTH as LENGTH
from heedful.data.synthetic.doses import TYPES as TYPES
from heedful.data.synthetic.toy_grammar import SyntheticPair, sentence_pairs
from heedful.errors import DataError

NEUTRAL, POLAR = 1000, 50
CHUNK = 4096  # sequences drawn at a time; a stream is the same however it is consumed


@dataclass(frozen=True)
class Task:
    """A generated task; `kind` says whether `stream_pairs` or `stream_texts` makes it."""

    name: str
    kind: Literal["translation", "classification"]
    description: str
    size: int = 10_000  # training examples of the corpus by default


TASKS = {
    task.name: task
    for task in (
        Task(
            "copy-vocab",
            "translation",
            "copy 40 of 60 words in random order: co-occurrence identifies words",
        ),
        Task(
            "copy-permutation", "translation", "copy the same 40 words in random order: co-occurrence reveals nothing"
        ),
        Task(
            "copy-mixture",
            "translation",
            "copy {1…40} or {41…80} in random order: co-occurrence reveals nothing in each",
        ),
        Task("permute", "translation", "40 of 60 words through one fixed permutation: learnable words, hard positions"),
        Task("toy-de-en", "translation", "a German-English grammar with gold word alignments"),
        Task("keyword", "classification", "positive if and only if the word 1 occurs, once, among 40"),
        Task("polarity", "classification", "10 of 1,000 neutral words and 2 of 50 positive or 50 negative ones"),
    )
}


def find_task(name: str) -> Task | None:
    """The generated task of that name, one with a dose included (see `heedful.data.synthetic.doses`).

    >>> find_task("copy-dose:45").description
    'copy 40 of K words: co-occurrence reveals nothing at K = 40, more with larger K; K = 45'
    >>> find_task("sst") is None
    True
    """
    if name in TASKS:
        return TASKS[name]
    if (found := family_of(name)) is None:
        return None
    family, dose = found
    return Task(name, "translation", f"{family.description}; {family.letter} = {dose:g}")


def types_of(name: str) -> int:
    """How many different words a copying task has.

    >>> types_of("copy-vocab"), types_of("copy-mixture"), types_of("copy-dose:45")
    (60, 80, 45)
    """
    if found := family_of(name):
        family, dose = found
        return family.types(dose)
    return {"copy-permutation": LENGTH, "copy-mixture": 2 * LENGTH}.get(name, TYPES)


def stream_pairs(name: str, *, seed: int = 0) -> Iterator[SyntheticPair]:
    """Sentence pairs of a translation task, endlessly.

    >>> example = next(stream_pairs("copy-permutation"))
    >>> example.source == example.target, len(set(example.source.split()))
    (True, 40)
    """
    _task(name, "translation")
    if name == "toy-de-en":
        return sentence_pairs(seed)
    return _number_pairs(name, seed)


def _number_pairs(name: str, seed: int) -> Iterator[SyntheticPair]:
    order = (permutation() if name == "permute" else np.arange(LENGTH)).tolist()
    alignment = Alignment.of((source, target) for target, source in enumerate(order))
    spelt = [str(number) for number in range(types_of(name) + 1)]
    noisy = name.startswith("copy-noise")
    for sources, targets in stream_numbers(name, seed=seed):
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            gold = Alignment.of((t, t) for t in order if source[t] == target[t]) if noisy else alignment
            yield SyntheticPair(" ".join([spelt[x] for x in source]), " ".join([spelt[y] for y in target]), gold)


def stream_numbers(name: str, *, seed: int = 0) -> Iterator[tuple[Numbers, Numbers]]:
    """The copying tasks as numbers from 1, many sequences at a time: (sources, targets), each (sequences, 40).

        copying: y_t = x_t;   permuting: y_t = x_{π(t)}        (snell2021 §3.3, A.3 and Eq. 25)

    >>> sources, targets = next(stream_numbers("permute"))
    >>> np.array_equal(targets, sources[:, permutation()])
    True
    """
    _task(name, "translation")
    if name == "toy-de-en":
        raise DataError("toy-de-en is made of sentences, not of numbers; use stream_pairs")
    if found := family_of(name):
        yield from _stream_dose(*found, seed)
        return
    rng = _rng(name, seed)
    order = permutation() if name == "permute" else np.arange(LENGTH)
    types = LENGTH if name in ("copy-permutation", "copy-mixture") else TYPES
    deck = np.tile(np.arange(1, types + 1, dtype=np.int32), (CHUNK, 1))
    while True:
        sources = rng.permuted(deck, axis=1)[:, :LENGTH]
        if name == "copy-mixture":
            sources = sources + np.int32(LENGTH) * rng.integers(2, size=(CHUNK, 1), dtype=np.int32)
        yield sources, sources[:, order]


def _stream_dose(family: Family, dose: float, seed: int) -> Iterator[tuple[Numbers, Numbers]]:
    rng = dose_generator(family, dose, seed)
    while True:
        sources = family.draw(rng, dose, CHUNK)
        yield sources, replace_words(rng, sources, dose) if family.name == "copy-noise" else sources


def permutation() -> NDArray[np.int64]:
    """π of Eq. 25, from 0: random, and the same for every seed, as training and test must share it.

    >>> sorted(permutation()) == list(range(40))
    True
    """
    return np.random.default_rng(25).permutation(LENGTH)


def stream_texts(name: str, *, seed: int = 0) -> Iterator[tuple[str, int]]:
    """Texts and labels (0 negative, 1 positive) of a classification task, endlessly, as many of each.

    >>> text, label = next(stream_texts("keyword"))
    >>> text.split().count("1") == label
    True
    """
    _task(name, "classification")
    rng = _rng(name, seed)
    draw = _keyword if name == "keyword" else _polarity
    while True:
        texts, labels = draw(rng)
        order = rng.permutation(len(labels))
        yield from zip([texts[i] for i in order], labels[order].tolist(), strict=True)


@lru_cache(maxsize=2)
def generated_pairs(name: str, *, size: int | None = None, seed: int = 0) -> ParallelCorpus:
    """A translation task as a corpus: `size` training pairs, a tenth as many (at least 100) to validate and to test.

    >>> corpus = generated_pairs("toy-de-en", size=50)
    >>> len(corpus.train), len(corpus.validation), corpus.train.alignments is not None
    (50, 100, True)
    """
    task = _task(name, "translation")
    splits = []
    for k, count in enumerate(_sizes(task, size)):
        sources, targets, gold = zip(*itertools.islice(stream_pairs(name, seed=3 * seed + k), count), strict=True)
        splits.append(ParallelSplit(sources, targets, gold))
    train, validation, test = splits
    known = set(zip(train.sources, train.targets, strict=True))
    shared = sum(pair in known for pair in zip(test.sources, test.targets, strict=True))
    languages = ("de", "en") if name == "toy-de-en" else ("source", "target")
    return ParallelCorpus(
        name,
        train,
        validation,
        test,
        *languages,
        licence="MIT",
        source=f"generated, seed {seed}",
        decisions=(f"{shared:,} test pairs are also in training; they are kept",) if shared else (),
        in_words=True,
    )


def generated_texts(name: str, *, size: int | None = None, seed: int = 0) -> Corpus:
    """A classification task as a corpus, of sizes as in `generated_pairs`.

    >>> generated_texts("polarity", size=20).labels
    ('negative', 'positive')
    """
    task = _task(name, "classification")
    splits = []
    for k, count in enumerate(_sizes(task, size)):
        texts, labels = zip(*itertools.islice(stream_texts(name, seed=3 * seed + k), count), strict=True)
        splits.append(Split(texts, labels))
    return Corpus(
        name, ("negative", "positive"), splits[0], splits[1], splits[2], licence="MIT", source=f"generated, seed {seed}"
    )


def _keyword(rng: np.random.Generator) -> tuple[list[str], NDArray[np.int64]]:
    """Sequences without the keyword, and as many that have it once; others are rejected (snell2021 §6.1)."""
    drawn = rng.integers(1, LENGTH + 1, size=(CHUNK, LENGTH))
    times = (drawn == 1).sum(axis=1)
    without, once = drawn[times == 0], drawn[times == 1]
    half = min(len(without), len(once))
    chosen = np.concatenate([without[:half], once[:half]])
    return [" ".join(map(str, row)) for row in chosen.tolist()], np.repeat([0, 1], half)


def _polarity(rng: np.random.Generator) -> tuple[list[str], NDArray[np.int64]]:
    """Ten neutral words and two of the label's polarity, in random order (sunlu2020, synthetic data)."""
    labels = np.repeat([0, 1], CHUNK // 2)
    neutral = rng.integers(NEUTRAL, size=(CHUNK, 10))
    polar = NEUTRAL + POLAR * labels[:, None] + rng.integers(POLAR, size=(CHUNK, 2))
    spelt = [*(f"n{i}" for i in range(NEUTRAL)), *(f"neg{i}" for i in range(POLAR)), *(f"pos{i}" for i in range(POLAR))]
    rows = rng.permuted(np.concatenate([neutral, polar], axis=1), axis=1)
    return [" ".join([spelt[x] for x in row]) for row in rows.tolist()], labels


def _sizes(task: Task, size: int | None) -> tuple[int, int, int]:
    count = task.size if size is None else size
    if count < 1:
        raise DataError(f"{task.name}: {count} training examples; at least one is needed")
    return count, max(100, count // 10), max(100, count // 10)


def _rng(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, list(TASKS).index(name)])


def _task(name: str, kind: str) -> Task:
    task = find_task(name)
    if task is None or task.kind != kind:
        fitting = [task.name for task in TASKS.values() if task.kind == kind]
        doses = [family.form for family in FAMILIES.values()] if kind == "translation" else []
        raise DataError(f"there is no {kind} task {name!r}; there are {', '.join(fitting + doses)}")
    return task
