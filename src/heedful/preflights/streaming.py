"""Preflight of a file larger than memory: read twice, counted chunk by chunk, the parts merged.

The first reading finds the words to keep, the second counts them exactly. Memory is bounded by the words kept and the
lengths of sentences, whatever the size of the corpus; the counts are whole numbers, so they do not depend on how the
work was divided.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.files.chunks import ROWS, QuoteError, Streamed, chunks
from heedful.data.files.columns import order_classes, settle
from heedful.data.files.tables import format_of
from heedful.data.parallel import left_out
from heedful.data.ragged import as_ids
from heedful.data.vocabulary import SPECIALS, Frequent, Vocabulary
from heedful.data.words import TokenRules
from heedful.errors import ConfigError, DataError
from heedful.execution.parallel_map import Place, parallel_map
from heedful.execution.worker import OnEvent
from heedful.models.lexicon import MOST, Cells, CountTable, Tally, table_of, together_of
from heedful.preflights.chunk_counts import CountingPlan, CountSample, Left, Seen, count, see
from heedful.preflights.information import PERMUTATIONS, informativeness
from heedful.preflights.preflight import MAX_LENGTH, Preflight, assemble, enough, most_frequent, rank, wordless

MAX_TYPES = 2000  # words kept on each side
TRACKED = 256  # of the most frequent outputs, whose words are counted
ROOM = 1_000_000  # words held while the most frequent are looked for
MOST_LABELS = 10_000  # spellings of labels, before they are judged


@dataclass(frozen=True)
class Settings:
    """How a file is streamed: what is kept, in how large chunks, by how many workers, and where."""

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
class Counted:
    """Everything counted in a corpus, with the words kept (`names`) and the outputs, which are words or labels."""

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
    of: Streamed,
    settings: Settings,
    *,
    permutations: int = PERMUTATIONS,
    words: int = 10,
    on_progress: OnEvent = lambda line: None,
) -> Preflight:
    """What `run_preflight` says, of files of any size. All their rows are counted: nothing is held out.

    The verdict rests on a sample of pairs, drawn under the seed, as that of `run_preflight` does (on all, if they are
    few). Outputs shown are the 20 that stand in most texts, among the 256 words that occur most.
    """
    counted = count_streamed(of, settings, on_progress=on_progress)
    sample, translating = counted.sample, of.task == "translation"
    statistics = informativeness(sample.sources, sample.targets, permutations=permutations, seed=settings.seed)
    C = counted.table.matrix()
    n_i, n_o = counted.n_i.astype(np.float64), counted.n_o.astype(np.float64)
    chosen = most_frequent(n_o[: counted.tracked]) if translating else np.arange(len(counted.outputs))
    found = rank(
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
    said = assemble(of.name, translating, statistics, C, found, *names, words, counted.decisions)
    return replace(said, statistics=replace(said.statistics, pairs=counted.pairs))


def count_streamed(of: Streamed, settings: Settings, *, on_progress: OnEvent = lambda line: None) -> Counted:
    """The count table and what else preflight needs, from two readings of the files."""
    rules = TokenRules(lower=settings.lower)
    try:
        seen = _see(of, settings, rules, on_progress)
    except QuoteError:
        if format_of(of.path) != ".tsv" or not of.quoted:
            raise
        of = replace(of, quoted=False)
        seen = _see(of, settings, rules, on_progress)
    plan, outputs = _plan(of, settings, rules, seen)
    assert plan.source is not None
    table, together = Tally(), Tally()
    n_i, n_o = np.zeros(len(plan.source), np.int64), np.zeros(len(outputs), np.int64)
    nothing = as_ids([])
    sample = CountSample(np.empty(0, np.uint64), np.empty(0, np.int64), nothing, nothing)
    pairs, silent = 0, Left()
    report = _reporter(of, "counting", on_progress)
    for chunk, part in parallel_map(count, plan, chunks(of, settings.rows), **_workers(settings)):
        table.add(part.table)
        together.add(part.together)
        n_i += part.n_i
        n_o += part.n_o
        pairs, silent, sample = pairs + part.pairs, silent + part.wordless, sample + part.sample
        report(chunk.done)
    on_progress({"model": "counting", "done": True})
    enough(of.name, pairs)
    return Counted(
        table=table_of(table.cells(), len(plan.source), len(outputs)),
        together=together.cells(),
        n_i=n_i,
        n_o=n_o,
        pairs=pairs,
        sample=sample,
        names=plan.source.words,
        outputs=outputs,
        tracked=plan.tracked,
        decisions=(*_decisions(of, seen, plan, settings), *wordless(of.name, silent.count)),
    )


@dataclass
class _Seen:
    """What the first reading found."""

    first: Frequent
    second: Frequent
    labels: Counter[str]
    rows: int = 0
    cut: int = 0
    empty: Left = field(default_factory=Left)
    numerical: Left = field(default_factory=Left)

    def add(self, part: Seen, of: Streamed) -> None:
        self.first.add(part.first)
        if of.task == "translation":
            self.second.add(part.second)
        else:
            self.labels.update(part.second)
            if len(self.labels) > MOST_LABELS:
                raise DataError(
                    f"{of.path}: column {of.second!r} has more than {MOST_LABELS:,} distinct labels, which looks like "
                    "a regression or ID column; name a column of classes with --label"
                )
        self.rows += part.rows
        self.cut += part.cut
        self.empty += part.empty
        self.numerical += part.numerical


def _see(of: Streamed, settings: Settings, rules: TokenRules, on_progress: OnEvent) -> _Seen:
    room = max(ROOM, 2 * settings.max_types)
    seen = _Seen(Frequent(room), Frequent(room), Counter())
    report = _reporter(of, "reading words", on_progress)
    for chunk, part in parallel_map(see, CountingPlan(rules), chunks(of, settings.rows), **_workers(settings)):
        seen.add(part, of)
        report(chunk.done)
    on_progress({"model": "reading words", "done": True})
    if seen.rows == 0:
        what = "pair with words on both sides" if of.task == "translation" else "row with a text"
        raise DataError(f"{of.path}: there is no {what}; is it the right file, and are these the right columns?")
    return seen


def _plan(of: Streamed, settings: Settings, rules: TokenRules, seen: _Seen) -> tuple[CountingPlan, tuple[str, ...]]:
    source = seen.first.vocabulary(settings.max_types, settings.min_count)
    if of.task == "translation":
        target = seen.second.vocabulary(settings.max_types, settings.min_count)
        return CountingPlan(rules, source, target, tracked=TRACKED + len(SPECIALS), seed=settings.seed), target.words
    called = settle(str(of.path), of.second, seen.labels)
    outputs = order_classes(str(of.path), set(called.values()), seen.rows)
    labels = {raw: outputs.index(name) for raw, name in called.items()}
    return CountingPlan(rules, source, labels=labels, tracked=len(outputs), seed=settings.seed), outputs


def _decisions(of: Streamed, seen: _Seen, plan: CountingPlan, settings: Settings) -> tuple[str, ...]:
    place, said = str(of.path), []
    if not of.quoted:
        said.append(f"{place}: quotes do not pair up, so they are taken as part of the text")
    if of.first:
        said.append(f"{place}: from column {of.first!r} and column {of.second!r}")
    if of.task == "translation":
        for left, what in ((seen.empty, "with an empty side"), (seen.numerical, "of numbers alone")):
            if left.count:
                said.append(left_out(of.name, left.count, left.first, of.unit, what))
    else:
        if seen.empty.count:
            named = ", ".join(map(str, seen.empty.first)) + (", …" if seen.empty.count > len(seen.empty.first) else "")
            said.append(f"{place}: {seen.empty.count:,} rows with an empty text left out ({of.unit}s {named})")
        if seen.cut:
            said.append(f"{seen.cut:,} of {seen.rows:,} texts cut to {MAX_LENGTH:,} words")
    said.append(f"streamed: all {seen.rows:,} rows counted, none held out")
    for side, found, kept in (("source", seen.first, plan.source), ("target", seen.second, plan.target)):
        if kept is not None:
            said += _kept(side, found, kept, settings)
    return tuple(said)


def _kept(side: str, found: Frequent, kept: Vocabulary, settings: Settings) -> list[str]:
    size, known = len(kept) - len(SPECIALS), len(found.counts)
    said = []
    if size == settings.max_types < known:
        said.append(f"the {size:,} most frequent {side} words kept, the others counted as one (--max-types)")
    if found.missed:
        said.append(f"a {side} word is sure to have been considered if it occurs more than {found.missed:,} times")
    return said


def _workers(settings: Settings) -> dict[str, Any]:
    return {"jobs": settings.jobs, "on": settings.on, "address": settings.address}


def _reporter(of: Streamed, stage: str, on_progress: OnEvent) -> Callable[[int], None]:
    """Progress in megabytes; a packed file tells only roughly how much is left."""
    packed = 4 if of.path.suffix.lower() == ".gz" else 1
    total = max(1, of.size * packed >> 20)
    on_progress({"model": stage, "step": 0, "steps": total})

    def report(done: int) -> None:
        on_progress({"model": stage, "step": min(done >> 20, total), "steps": total})

    return report
