"""Preflight of files larger than memory: read twice, counted in chunks, the counts merged.

The first pass finds the words to keep, the second counts them exactly. Memory is bounded by the words kept and the
lengths of sentences, whatever the size of the corpus; counts are whole numbers, so they do not depend on the chunks.
"""

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import TokenRules
from heedful.data.files.chunks import ROWS, Chunk, FileStream, chunks
from heedful.data.files.columns import class_names, label_names, left_out
from heedful.data.files.tables import QuoteError, format_of, unquoted_decision
from heedful.data.parallel import sort_pairs
from heedful.data.ragged import Ragged, as_ids
from heedful.data.vocabulary import (
    BOS,
    SPECIALS,
    FrequentWords,
    Vocabulary,
    is_tokenised,
    normalise,
    split_token,
    tokenise,
)
from heedful.errors import ConfigError, DataError
from heedful.execution.pool import OnEvent, Place, parallel_map
from heedful.models.lexicon import (
    MOST,
    Cells,
    CountTable,
    Tally,
    distinct,
    table_cells,
    table_of,
    together_cells,
    together_of,
)
from heedful.preflights.candidates import candidates_and_chance
from heedful.preflights.information import MAX_CELLS, PERMUTATIONS, informativeness
from heedful.preflights.preflight import MAX_LENGTH, Preflight, assemble, enough, most_frequent, telling_words, wordless

MAX_TYPES = 2000  # words kept on each side
TRACKED = 256  # most frequent outputs, whose words are counted
CAPACITY = 1_000_000  # words counted at a time while the most frequent are found
MAX_CACHED = 1 << 18  # tokens whose words are cached
MIN_SAMPLE = 100
MAX_PLACES = 5  # of rows left out that are named
MAX_LABELS = 10_000  # distinct labels before it is clear that they are not classes
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # options of glibc's mallopt
_LARGE, _LARGEST_KEPT = 1 << 17, 1 << 25  # bytes: of an array that is returned at once, and glibc's own highest limit
T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """Settings of a streamed preflight: what is kept, the rows of a chunk, the workers and where they run."""

    max_types: int = MAX_TYPES
    min_count: int = 3
    lower: bool = True
    seed: int = 0
    rows: int = ROWS
    jobs: int | None = None
    on: Place = "local"
    address: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_types", "min_count", "rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.max_types + len(SPECIALS) >= MOST:
            raise ConfigError(f"max_types is {self.max_types:,}; it must be below {MOST - len(SPECIALS):,}")


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


@dataclass(frozen=True, eq=False)
class CorpusCounts:
    """All counts of a corpus, the words kept (`names`) and the outputs, which are words or labels."""

    table: CountTable
    together: Cells
    n_i: NDArray[np.int64]
    n_o: NDArray[np.int64]
    pairs: int
    sample: CountSample
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    tracked: int
    decisions: tuple[str, ...]


def run_streamed(
    stream: FileStream,
    settings: Settings,
    *,
    permutations: int = PERMUTATIONS,
    words: int = 10,
    on_progress: OnEvent = lambda line: None,
) -> Preflight:
    """The preflight of files of any size. All rows are counted: nothing is held out.

    As in `run_preflight`, the verdict rests on a sample of pairs drawn under the seed (on all, if they are few). The
    outputs shown are the 20 that occur in most texts, among the 256 most frequent words.
    """
    counted = count_streamed(stream, settings, on_progress=on_progress)
    sample, translating = counted.sample, stream.task == "translation"
    statistics = informativeness(sample.sources, sample.targets, permutations=permutations, seed=settings.seed)
    C = counted.table.matrix()
    n_i, n_o = counted.n_i.astype(np.float64), counted.n_o.astype(np.float64)
    chosen = most_frequent(n_o[: counted.tracked]) if translating else np.arange(len(counted.outputs))
    together = together_of(counted.together, len(counted.names), chosen)
    totals = np.asarray(C.sum(axis=1)).ravel()
    counts = counted.pairs, n_i, n_o, chosen, together, C[:, chosen].toarray(), totals
    telling = telling_words(*counts, counted.names, counted.outputs, top=words, skip=len(SPECIALS))
    left = candidates_and_chance(sample.sources, sample.targets, seed=settings.seed) if translating else None
    result = assemble(stream.name, left, statistics, C, telling, counted.decisions)
    return replace(result, statistics=replace(result.statistics, pairs=counted.pairs))


def count_streamed(stream: FileStream, settings: Settings, *, on_progress: OnEvent = lambda line: None) -> CorpusCounts:
    """The count table and what else a preflight needs, from two passes over the files."""
    with _freed_at_once():
        return _count_streamed(stream, settings, on_progress)


@contextmanager
def _freed_at_once() -> Iterator[None]:
    """Let the C library return every large array to the system as soon as it is freed; nothing where it is not glibc.

    By itself glibc keeps arrays below 32 MiB for the next one. The arrays of a table that grows never fit the gap that
    the last one left, so that the gaps add up. Afterwards its thresholds are set where its own rule ends.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        yield
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)
    try:
        yield
    finally:
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_TRIM_THRESHOLD, 2 * _LARGEST_KEPT)


def _count_streamed(stream: FileStream, settings: Settings, on_progress: OnEvent) -> CorpusCounts:
    rules = TokenRules(lower=settings.lower)
    try:
        seen = _count_words(stream, settings, rules, on_progress)
    except QuoteError:
        if format_of(stream.path) != ".tsv" or not stream.quoted:
            raise
        stream = replace(stream, quoted=False)
        seen = _count_words(stream, settings, rules, on_progress)
    plan, outputs = _plan(stream, settings, rules, seen)
    assert plan.source is not None
    table, together = Tally(), Tally()
    n_i, n_o = np.zeros(len(plan.source), np.int64), np.zeros(len(outputs), np.int64)
    nothing = as_ids([])
    sample = CountSample(np.empty(0, np.uint64), np.empty(0, np.int64), nothing, nothing)
    pairs, without_words = 0, LeftOut()
    for part in _counted(count_pairs, plan, "counting", stream, settings, on_progress):
        table.add(part.table)
        together.add(part.together)
        n_i += part.n_i
        n_o += part.n_o
        pairs, without_words, sample = pairs + part.pairs, without_words + part.wordless, sample + part.sample
    enough(stream.name, pairs)
    return CorpusCounts(
        table=table_of(table.cells(), len(plan.source), len(outputs)),
        together=together.cells(),
        n_i=n_i,
        n_o=n_o,
        pairs=pairs,
        sample=sample,
        names=plan.source.words,
        outputs=outputs,
        tracked=plan.tracked,
        decisions=(*_decisions(stream, seen, plan, settings), *wordless(stream.name, without_words.count)),
    )


@dataclass
class _FirstPass:
    """The counts of the first pass, merged."""

    first: FrequentWords
    second: FrequentWords
    labels: Counter[str]
    rows: int = 0
    cut: int = 0
    empty: LeftOut = field(default_factory=LeftOut)
    numerical: LeftOut = field(default_factory=LeftOut)

    def add(self, part: WordCounts, stream: FileStream) -> None:
        self.first.add(part.first)
        if stream.task == "translation":
            self.second.add(part.second)
        else:
            self.labels.update(part.second)
            if len(self.labels) > MAX_LABELS:
                raise DataError(
                    f"{stream.path}: column {stream.label!r} has more than {MAX_LABELS:,} distinct labels, "
                    "which looks like a regression or ID column; name a column of classes with --label"
                )
        self.rows += part.rows
        self.cut += part.cut
        self.empty += part.empty
        self.numerical += part.numerical


def _count_words(stream: FileStream, settings: Settings, rules: TokenRules, on_progress: OnEvent) -> _FirstPass:
    capacity = max(CAPACITY, 2 * settings.max_types)
    seen = _FirstPass(FrequentWords(capacity), FrequentWords(capacity), Counter())
    for part in _counted(count_words, CountingPlan(rules), "reading words", stream, settings, on_progress):
        seen.add(part, stream)
    if seen.rows == 0:
        what = "pair with words on both sides" if stream.task == "translation" else "row with a text"
        raise DataError(f"{stream.path}: there is no {what}; is it the right file, and are these the right columns?")
    return seen


def _plan(
    stream: FileStream, settings: Settings, rules: TokenRules, seen: _FirstPass
) -> tuple[CountingPlan, tuple[str, ...]]:
    source = seen.first.vocabulary(settings.max_types, settings.min_count)
    if stream.task == "translation":
        target = seen.second.vocabulary(settings.max_types, settings.min_count)
        return CountingPlan(rules, source, target, tracked=TRACKED + len(SPECIALS), seed=settings.seed), target.words
    place = str(stream.path)
    names = label_names(stream.label, dict.fromkeys(seen.labels, place))
    outputs = class_names(place, names.values(), seen.rows)
    labels = {label: outputs.index(name) for label, name in names.items()}
    return CountingPlan(rules, source, labels=labels, tracked=len(outputs), seed=settings.seed), outputs


def _decisions(stream: FileStream, seen: _FirstPass, plan: CountingPlan, settings: Settings) -> tuple[str, ...]:
    place = str(stream.path)
    decisions = [] if stream.quoted else [unquoted_decision(stream.path)]
    if stream.text:
        decisions.append(f"{place}: from column {stream.text!r} and column {stream.label!r}")
    if stream.task == "translation":
        empty = stream.name, seen.empty, "pair", "with an empty side"
    else:
        empty = place, seen.empty, "row", "with an empty text"
    for name, rows, what, why in (empty, (stream.name, seen.numerical, "pair", "of numbers alone")):
        if rows.count:
            decisions.append(left_out(name, rows.count, rows.first, stream.unit, what, why))
    if seen.cut:
        decisions.append(f"{seen.cut:,} of {seen.rows:,} texts cut to {MAX_LENGTH:,} words")
    decisions.append(f"streamed: all {seen.rows:,} rows counted, none held out")
    for side, words, kept in (("source", seen.first, plan.source), ("target", seen.second, plan.target)):
        if kept is not None:
            size = len(kept) - len(SPECIALS)
            if size == settings.max_types < len(words.counts):
                decisions.append(
                    f"the {size:,} most frequent {side} words kept, the others counted as one (--max-types)"
                )
            if words.missed:
                decisions.append(f"every {side} word that occurs more than {words.missed:,} times was considered")
    return tuple(decisions)


def _counted(
    count: Callable[[CountingPlan, Chunk], T],
    plan: CountingPlan,
    stage: str,
    stream: FileStream,
    settings: Settings,
    on_progress: OnEvent,
) -> Iterator[T]:
    """The counts of every chunk, with progress in megabytes; of a packed file the total is an estimate."""
    total = max(1, stream.bytes >> 20)
    on_progress({"model": stage, "step": 0, "steps": total})
    parts = chunks(stream, settings.rows)
    workers = parallel_map(count, plan, parts, jobs=settings.jobs, on=settings.on, address=settings.address)
    for chunk, part in workers:
        yield part
        on_progress({"model": stage, "step": min(chunk.done >> 20, total), "steps": total})
    on_progress({"model": stage, "done": True})


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
        self.vocabulary = vocabulary

    def __missing__(self, token: str) -> tuple[int, ...]:
        if len(self) > MAX_CACHED:
            self.clear()
        ids = self[token] = tuple(self.vocabulary.ids(split_token(token)).tolist())
        return ids


def _ids(texts: list[str], vocabulary: Vocabulary, rules: TokenRules, max_length: int | None = None) -> Ragged:
    """`vocabulary.ids(tokenise(text))` of every text; each token is split into words only once."""
    ids_of = _TokenIds(vocabulary).__getitem__
    values: list[int] = []
    ends = [0]
    for text in texts:
        tokens = normalise(text, rules).split()
        whole = is_tokenised(tokens)
        ids = vocabulary.ids(tokens).tolist() if whole else list(chain.from_iterable(map(ids_of, tokens)))
        values += ids[:max_length]
        ends.append(len(values))
    return Ragged(np.array(values, dtype=np.int32), np.array(ends, dtype=np.int64))


def _word_counts(texts: list[str], rules: TokenRules) -> dict[str, int]:
    words: Counter[str] = Counter()
    unsplit: Counter[str] = Counter()
    for text in texts:
        tokens = normalise(text, rules).split()
        (words if is_tokenised(tokens) else unsplit).update(tokens)
    for token, times in unsplit.items():
        for word in split_token(token):
            words[word] += times
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
