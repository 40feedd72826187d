"""Counts of one chunk of a large file: first its words, then its word pairs with the words that are kept."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import TokenRules
from heedful.data.files.chunks import Chunk
from heedful.data.parallel import sort_pairs
from heedful.data.ragged import Ragged, as_ids
from heedful.data.vocabulary import BOS, SPECIALS, UNK, Vocabulary, normalise, split_token, tokenise
from heedful.models.lexicon import Cells, distinct, table_cells, together_cells
from heedful.preflights.information import MAX_CELLS
from heedful.preflights.preflight import MAX_LENGTH

MAX_CACHED = 1 << 18  # tokens whose words are cached
MIN_SAMPLE = 100
MAX_PLACES = 5  # of rows left out that are named


@dataclass(frozen=True)
class LeftOut:
    """The number of rows left out, and the places of the first of them."""

    count: int = 0
    first: tuple[int, ...] = ()

    @classmethod
    def of(cls, lines: list[int]) -> "LeftOut":
        """From their places."""
        return cls(len(lines), tuple(lines[:MAX_PLACES]))

    def __add__(self, other: "LeftOut") -> "LeftOut":
        return LeftOut(self.count + other.count, (self.first + other.first)[:MAX_PLACES])


@dataclass(frozen=True)
class WordCounts:
    """The counts of the words of both sides of a chunk; of texts, the second side are the labels as written."""

    first: dict[str, int]
    second: dict[str, int]
    rows: int
    empty: LeftOut = field(default_factory=LeftOut)
    numerical: LeftOut = field(default_factory=LeftOut)
    cut: int = 0


@dataclass(frozen=True, eq=False)
class CountSample:
    """Pairs sampled by the hash of their number, so that each chunk can choose without knowing the others."""

    rank: NDArray[np.uint64]
    number: NDArray[np.int64]
    sources: Ragged
    targets: Ragged

    def __add__(self, other: "CountSample") -> "CountSample":
        both = CountSample(
            np.concatenate([self.rank, other.rank]),
            np.concatenate([self.number, other.number]),
            *(_concatenated(a, b) for a, b in ((self.sources, other.sources), (self.targets, other.targets))),
        )
        return both.trimmed()

    def trimmed(self) -> "CountSample":
        """The first by rank that have at most `MAX_CELLS` pairs of words in total; at least 100."""
        order = np.argsort(self.rank, kind="stable")
        cells = np.cumsum((self.sources.lengths * self.targets.lengths)[order])
        fits = int(np.searchsorted(cells, MAX_CELLS, side="right"))
        kept = np.sort(order[: max(MIN_SAMPLE, fits)])
        return CountSample(self.rank[kept], self.number[kept], self.sources.take(kept), self.targets.take(kept))


@dataclass(frozen=True, eq=False)
class PairCounts:
    """The count table C, the number of pairs with each word and with each two words, and a sample of pairs."""

    table: Cells
    together: Cells
    n_i: NDArray[np.int64]
    n_o: NDArray[np.int64]
    pairs: int
    wordless: LeftOut
    sample: CountSample


@dataclass(frozen=True)
class CountingPlan:
    """How chunks are counted; `labels` maps labels to ids, words are counted with the first `tracked` outputs."""

    rules: TokenRules
    source: Vocabulary | None = None
    target: Vocabulary | None = None
    labels: dict[str, int] | None = None
    tracked: int = 0
    seed: int = 0


def count_words(plan: CountingPlan, chunk: Chunk) -> WordCounts:
    """Count the words of a chunk."""
    first, second, lines = chunk.rows()
    if chunk.stream.task == "translation":
        pairs = sort_pairs(first, second, lines)
        one, other = (_word_counts([side[i] for i in pairs.kept], plan.rules) for side in (first, second))
        left_out = LeftOut.of(pairs.empty), LeftOut.of(pairs.numerical)
        return WordCounts(one, other, len(pairs.kept), *left_out)
    kept = [i for i, text in enumerate(first) if text.strip()]
    empty = [line for line, text in zip(lines, first, strict=True) if not text.strip()]
    words, cut = _word_counts_of_texts([first[i] for i in kept], plan.rules)
    return WordCounts(words, dict(Counter(second[i] for i in kept)), len(kept), LeftOut.of(empty), cut=cut)


def count_pairs(plan: CountingPlan, chunk: Chunk) -> PairCounts:
    """Count the word pairs of a chunk; a word that is not kept is `<unk>`."""
    assert plan.source is not None
    first, second, lines = chunk.rows()
    if chunk.stream.task == "translation":
        assert plan.target is not None
        kept = sort_pairs(first, second, lines).kept
        sources = _ids([first[i] for i in kept], plan.source, plan.rules)
        targets = _ids([second[i] for i in kept], plan.target, plan.rules)
        outputs = len(plan.target)
        worded = np.flatnonzero(sources.lengths > 0)
        wordless = LeftOut.of([lines[kept[i]] for i in np.flatnonzero(sources.lengths == 0)])
        sources, targets = sources.take(worded), targets.take(worded)
    else:
        assert plan.labels is not None
        kept = [i for i, text in enumerate(first) if text.strip()]
        sources = _with_a_word(_ids([first[i] for i in kept], plan.source, plan.rules, MAX_LENGTH))
        targets = as_ids([[plan.labels[second[i]]] for i in kept])
        outputs, wordless, worded = max(plan.labels.values()) + 1, LeftOut(), np.arange(len(kept))
    numbers = chunk.start + np.asarray(kept, dtype=np.int64)[worded]
    inputs = len(plan.source)
    tracked = _most_frequent(targets, plan.tracked)
    return PairCounts(
        table_cells(sources, targets, inputs, outputs),
        together_cells(sources, tracked, inputs, outputs),
        np.bincount(distinct(sources).values, minlength=inputs),
        np.bincount(distinct(targets).values, minlength=outputs),
        len(sources),
        wordless,
        _sampled(numbers, sources, targets, plan.seed),
    )


class _TokenIds(dict[str, tuple[int, ...]]):
    """A cache of the ids of the words of each token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.index = {word: i for i, word in enumerate(vocabulary.words) if i >= len(SPECIALS)}

    def __missing__(self, token: str) -> tuple[int, ...]:
        if len(self) > MAX_CACHED:
            self.clear()
        ids = self[token] = tuple(self.index.get(word, UNK) for word in split_token(token))
        return ids


def _ids(texts: list[str], vocabulary: Vocabulary, rules: TokenRules, max_length: int | None = None) -> Ragged:
    """`vocabulary.ids(tokenise(text))` of every text; each token is split into words only once."""
    ids_of = _TokenIds(vocabulary).__getitem__
    values: list[int] = []
    ends = [0]
    for text in texts:
        ids: Iterable[int] = chain.from_iterable(map(ids_of, normalise(text, rules).split()))
        values += ids if max_length is None else list(ids)[:max_length]
        ends.append(len(values))
    return Ragged(np.array(values, dtype=np.int32), np.array(ends, dtype=np.int64))


def _word_counts(texts: list[str], rules: TokenRules) -> dict[str, int]:
    tokens: Counter[str] = Counter()
    for text in texts:
        tokens.update(normalise(text, rules).split())
    words: dict[str, int] = {}
    for token, times in tokens.items():
        for word in split_token(token):
            words[word] = words.get(word, 0) + times
    return words


def _word_counts_of_texts(texts: list[str], rules: TokenRules) -> tuple[dict[str, int], int]:
    """The words of texts cut to `MAX_LENGTH` words, and how many were cut."""
    short = [text for text in texts if len(text) <= MAX_LENGTH]
    words, cut = Counter(_word_counts(short, rules)), 0
    for text in texts:
        if len(text) > MAX_LENGTH:
            all_words = tokenise(text, rules)
            cut += len(all_words) > MAX_LENGTH
            words.update(all_words[:MAX_LENGTH])
    return dict(words), cut


def _with_a_word(ids: Ragged) -> Ragged:
    """Texts without any word get a single `<bos>`."""
    if len(ids) == 0 or ids.lengths.min() > 0:
        return ids
    lengths = np.maximum(ids.lengths, 1)
    values = np.insert(ids.values, ids.offsets[:-1][ids.lengths == 0], np.int32(BOS))
    return Ragged.from_lengths(values, lengths)


def _most_frequent(targets: Ragged, tracked: int) -> Ragged:
    """The outputs with the lowest ids, which are the most frequent."""
    keep = targets.values < tracked
    starts = np.concatenate([[0], np.cumsum(keep)])
    return Ragged(targets.values[keep], starts[targets.offsets].astype(np.int64))


def _sampled(numbers: NDArray[np.int64], sources: Ragged, targets: Ragged, seed: int) -> CountSample:
    worded = np.flatnonzero(targets.lengths > 0)
    rank = hashed(numbers[worded].astype(np.uint64), seed)
    return CountSample(rank, numbers[worded], sources.take(worded), targets.take(worded)).trimmed()


def hashed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A hash of each number and the seed (the finaliser of SplitMix64).

    >>> len(set((hashed(np.arange(1000, dtype=np.uint64), 0) >> np.uint64(40)).tolist())) > 990
    True
    """
    golden: Any = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        x = (numbers + np.uint64((seed % (1 << 32)) << 31) + np.uint64(1)) * golden
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def _concatenated(a: Ragged, b: Ragged) -> Ragged:
    return Ragged(np.concatenate([a.values, b.values]), np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]]))
