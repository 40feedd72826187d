"""Preflight of files larger than memory: read twice, counted in chunks, the counts merged.

The first pass finds the words to keep, the second counts them exactly. Memory is bounded by the words kept and the
lengths of sentences, whatever the size of the corpus; counts are whole numbers, so they do not depend on the chunks.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.files.chunks import ROWS, FileStream, chunks
from heedful.data.files.columns import class_names, label_names, left_out
from heedful.data.files.tables import QuoteError, format_of, unquoted_decision
from heedful.data.ragged import as_ids
from heedful.data.vocabulary import SPECIALS, FrequentWords
from heedful.data.words import TokenRules
from heedful.errors import ConfigError, DataError
from heedful.execution.pool import OnEvent, Place, parallel_map
from heedful.models.lexicon import MOST, Cells, CountTable, Tally, table_of, together_of
from heedful.preflights.chunk_counts import CountingPlan, CountSample, LeftOut, WordCounts, count_pairs, count_words
from heedful.preflights.information import PERMUTATIONS, informativeness
from heedful.preflights.preflight import MAX_LENGTH, Preflight, assemble, enough, most_frequent, rank, wordless

MAX_TYPES = 2000  # words kept on each side
TRACKED = 256  # most frequent outputs, whose words are counted
CAPACITY = 1_000_000  # words counted at a time while the most frequent are found
MAX_LABELS = 10_000  # distinct labels before it is clear that they are not classes


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
    telling = rank(
        counted.pairs,
        n_i,
        n_o,
        chosen,
        together_of(counted.together, len(counted.names), chosen),
        C[:, chosen].toarray(),
        np.asarray(C.sum(axis=1)).ravel(),
        top=words + len(SPECIALS),
    )
    names = counted.names, counted.outputs
    result = assemble(stream.name, translating, statistics, C, telling, *names, words, counted.decisions)
    return replace(result, statistics=replace(result.statistics, pairs=counted.pairs))


def count_streamed(stream: FileStream, settings: Settings, *, on_progress: OnEvent = lambda line: None) -> CorpusCounts:
    """The count table and what else a preflight needs, from two passes over the files."""
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
    report = _reporter(stream, "counting", on_progress)
    for chunk, part in parallel_map(count_pairs, plan, chunks(stream, settings.rows), **_workers(settings)):
        table.add(part.table)
        together.add(part.together)
        n_i += part.n_i
        n_o += part.n_o
        pairs, without_words, sample = pairs + part.pairs, without_words + part.wordless, sample + part.sample
        report(chunk.done)
    on_progress({"model": "counting", "done": True})
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
    report = _reporter(stream, "reading words", on_progress)
    plan = CountingPlan(rules)
    for chunk, part in parallel_map(count_words, plan, chunks(stream, settings.rows), **_workers(settings)):
        seen.add(part, stream)
        report(chunk.done)
    on_progress({"model": "reading words", "done": True})
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


def _workers(settings: Settings) -> dict[str, Any]:
    return {"jobs": settings.jobs, "on": settings.on, "address": settings.address}


def _reporter(stream: FileStream, stage: str, on_progress: OnEvent) -> Callable[[int], None]:
    """Progress in megabytes; of a packed file the total is an estimate."""
    total = max(1, stream.bytes >> 20)
    on_progress({"model": stage, "step": 0, "steps": total})

    def report(done: int) -> None:
        on_progress({"model": stage, "step": min(done >> 20, total), "steps": total})

    return report
