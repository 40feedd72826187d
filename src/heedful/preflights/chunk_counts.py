"""What is counted in one chunk of a large file: first its words, then, with the words to be kept known, its pairs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.files.chunks import Chunk
from heedful.data.parallel import sort_out
from heedful.data.ragged import Ragged, as_ids, offsets_of
from heedful.data.vocabulary import BOS, SPECIALS, UNK, Vocabulary
from heedful.data.words import TokenRules, spaced, split_chunk, tokenise
from heedful.models.lexicon import Cells, distinct, table_cells, together_cells
from heedful.preflights.information import MAX_CELLS
from heedful.preflights.preflight import MAX_LENGTH

REMEMBERED = 1 << 18  # stretches of text whose words are kept at hand
SAMPLED_AT_LEAST = 100
PLACES = 5  # of rows left out that are named


@dataclass(frozen=True)
class Left:
    """How many rows were left out, and where the first stand."""

    count: int = 0
    first: tuple[int, ...] = ()

    @classmethod
    def of(cls, lines: list[int]) -> "Left":
        """From their places."""
        return cls(len(lines), tuple(lines[:PLACES]))

    def __add__(self, other: "Left") -> "Left":
        return Left(self.count + other.count, (self.first + other.first)[:PLACES])


@dataclass(frozen=True)
class Seen:
    """The words of a chunk and how often each occurs, on both sides; of texts, the labels as they stand."""

    first: dict[str, int]
    second: dict[str, int]
    rows: int
    empty: Left = field(default_factory=Left)
    numerical: Left = field(default_factory=Left)
    cut: int = 0


@dataclass(frozen=True, eq=False)
class CountSample:
    """Pairs chosen by the rank of their number's scramble, so that every part can choose without knowing the others."""

    rank: NDArray[np.uint64]
    number: NDArray[np.int64]
    sources: Ragged
    targets: Ragged

    def __add__(self, other: "CountSample") -> "CountSample":
        both = CountSample(
            np.concatenate([self.rank, other.rank]),
            np.concatenate([self.number, other.number]),
            *(_joined(a, b) for a, b in ((self.sources, other.sources), (self.targets, other.targets))),
        )
        return both.trimmed()

    def trimmed(self) -> "CountSample":
        """As many of the first by rank as have `MAX_CELLS` pairs of words between them; at least 100."""
        order = np.argsort(self.rank, kind="stable")
        cells = np.cumsum((self.sources.lengths * self.targets.lengths)[order])
        fits = int(np.searchsorted(cells, MAX_CELLS, side="right"))
        kept = np.sort(order[: max(SAMPLED_AT_LEAST, fits)])
        return CountSample(self.rank[kept], self.number[kept], self.sources.take(kept), self.targets.take(kept))


@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted: the table C, in how many pairs words stand (together or at all), and some pairs themselves."""

    table: Cells
    together: Cells
    n_i: NDArray[np.int64]
    n_o: NDArray[np.int64]
    pairs: int
    wordless: Left
    sample: CountSample


@dataclass(frozen=True)
class CountingPlan:
    """How chunks are counted; `labels` gives each label's number, `tracked` how many outputs are counted with words."""

    rules: TokenRules
    source: Vocabulary | None = None
    target: Vocabulary | None = None
    labels: dict[str, int] | None = None
    tracked: int = 0
    seed: int = 0


def see(plan: CountingPlan, chunk: Chunk) -> Seen:
    """The words of a chunk, counted."""
    first, second, lines = chunk.rows()
    if chunk.of.task == "translation":
        found = sort_out(first, second, lines)
        one, other = (_counted([side[i] for i in found.kept], plan.rules) for side in (first, second))
        left = Left.of(found.empty), Left.of(found.numerical)
        return Seen(one, other, len(found.kept), *left)
    kept = [i for i, text in enumerate(first) if text.strip()]
    empty = [line for line, text in zip(lines, first, strict=True) if not text.strip()]
    words, cut = _counted_texts([first[i] for i in kept], plan.rules)
    return Seen(words, dict(Counter(second[i] for i in kept)), len(kept), Left.of(empty), cut=cut)


def count(plan: CountingPlan, chunk: Chunk) -> Counts:
    """The pairs of a chunk, counted with the words that are kept; every other word is `<unk>`."""
    assert plan.source is not None
    first, second, lines = chunk.rows()
    if chunk.of.task == "translation":
        assert plan.target is not None
        kept = sort_out(first, second, lines).kept
        sources = _numbered([first[i] for i in kept], plan.source, plan.rules)
        targets = _numbered([second[i] for i in kept], plan.target, plan.rules)
        outputs = len(plan.target)
        spoken = np.flatnonzero(sources.lengths > 0)
        silent = Left.of([lines[kept[i]] for i in np.flatnonzero(sources.lengths == 0)])
        sources, targets = sources.take(spoken), targets.take(spoken)
    else:
        assert plan.labels is not None
        kept = [i for i, text in enumerate(first) if text.strip()]
        sources = _ended(_numbered([first[i] for i in kept], plan.source, plan.rules, MAX_LENGTH))
        targets = as_ids([[plan.labels[second[i]]] for i in kept])
        outputs, silent, spoken = max(plan.labels.values()) + 1, Left(), np.arange(len(kept))
    numbers = chunk.start + np.asarray(kept, dtype=np.int64)[spoken]
    inputs = len(plan.source)
    tracked = _only(targets, plan.tracked)
    return Counts(
        table_cells(sources, targets, inputs, outputs),
        together_cells(sources, tracked, inputs, outputs),
        np.bincount(distinct(sources).values, minlength=inputs),
        np.bincount(distinct(targets).values, minlength=outputs),
        len(sources),
        silent,
        _sampled(numbers, sources, targets, plan.seed),
    )


class _Words(dict[str, tuple[int, ...]]):
    """The numbers of the words of a stretch without spaces, worked out once."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.index = {word: i for i, word in enumerate(vocabulary.words) if i >= len(SPECIALS)}

    def __missing__(self, stretch: str) -> tuple[int, ...]:
        if len(self) > REMEMBERED:
            self.clear()
        numbers = self[stretch] = tuple(self.index.get(word, UNK) for word in split_chunk(stretch))
        return numbers


def _numbered(texts: list[str], vocabulary: Vocabulary, rules: TokenRules, most: int | None = None) -> Ragged:
    """`vocabulary.ids(tokenise(text))` of every text; each stretch without spaces is cut into words only once."""
    words = _Words(vocabulary).__getitem__
    values: list[int] = []
    ends = [0]
    for text in texts:
        numbers: Iterable[int] = chain.from_iterable(map(words, spaced(text, rules).split()))
        values += numbers if most is None else list(numbers)[:most]
        ends.append(len(values))
    return Ragged(np.array(values, dtype=np.int32), np.array(ends, dtype=np.int64))


def _counted(texts: list[str], rules: TokenRules) -> dict[str, int]:
    stretches: Counter[str] = Counter()
    for text in texts:
        stretches.update(spaced(text, rules).split())
    words: dict[str, int] = {}
    for stretch, times in stretches.items():
        for word in split_chunk(stretch):
            words[word] = words.get(word, 0) + times
    return words


def _counted_texts(texts: list[str], rules: TokenRules) -> tuple[dict[str, int], int]:
    """The words of texts cut to `MAX_LENGTH` words, and how many were cut."""
    short = [text for text in texts if len(text) <= MAX_LENGTH]
    words, cut = Counter(_counted(short, rules)), 0
    for text in texts:
        if len(text) > MAX_LENGTH:
            all_words = tokenise(text, rules)
            cut += len(all_words) > MAX_LENGTH
            words.update(all_words[:MAX_LENGTH])
    return dict(words), cut


def _ended(ids: Ragged) -> Ragged:
    """A text without any word has its beginning alone."""
    if len(ids) == 0 or ids.lengths.min() > 0:
        return ids
    lengths = np.maximum(ids.lengths, 1)
    values = np.insert(ids.values, ids.offsets[:-1][ids.lengths == 0], np.int32(BOS))
    return Ragged(values, offsets_of(lengths))


def _only(targets: Ragged, tracked: int) -> Ragged:
    """The outputs with the lowest numbers, which are the most frequent."""
    keep = targets.values < tracked
    starts = np.concatenate([[0], np.cumsum(keep)])
    return Ragged(targets.values[keep], starts[targets.offsets].astype(np.int64))


def _sampled(numbers: NDArray[np.int64], sources: Ragged, targets: Ragged, seed: int) -> CountSample:
    spoken = np.flatnonzero(targets.lengths > 0)
    rank = scramble(numbers[spoken].astype(np.uint64), seed)
    return CountSample(rank, numbers[spoken], sources.take(spoken), targets.take(spoken)).trimmed()


def scramble(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A number for each that looks random and depends on it and the seed alone (the finaliser of SplitMix64).

    >>> len(set((scramble(np.arange(1000, dtype=np.uint64), 0) >> np.uint64(40)).tolist())) > 990
    True
    """
    golden: Any = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        x = (numbers + np.uint64((seed % (1 << 32)) << 31) + np.uint64(1)) * golden
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def _joined(a: Ragged, b: Ragged) -> Ragged:
    return Ragged(np.concatenate([a.values, b.values]), np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]]))
