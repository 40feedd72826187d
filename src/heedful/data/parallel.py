"""Sentence pairs in three splits, and how they are read from two text files or a table."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import SPLITS
from heedful.data.files.columns import left_out, sources_and_targets
from heedful.data.files.tables import Table
from heedful.data.files.text_files import read_lines
from heedful.errors import DataError

MAX_SENTENCES = 1_000_000
Link = tuple[int, int]  # source position, target position, both from 0


@dataclass(frozen=True)
class Alignment:
    """The links of one sentence pair: those an annotator was sure of, and all that are acceptable.

    >>> Alignment.of([(0, 0)], [(1, 0)]).possible == {(0, 0), (1, 0)}
    True
    """

    sure: frozenset[Link]
    possible: frozenset[Link]

    def __post_init__(self) -> None:
        if not self.sure <= self.possible:
            raise DataError(f"sure links must be possible links too; {sorted(self.sure - self.possible)} are not")

    @classmethod
    def of(cls, sure: Iterable[Link], possible: Iterable[Link] = ()) -> "Alignment":
        """From links; sure ones need not be repeated among the possible."""
        firm = frozenset(sure)
        return cls(firm, firm | frozenset(possible))

    def reversed(self) -> "Alignment":
        """The same links, target to source.

        >>> Alignment.of([(0, 1)]).reversed().sure
        frozenset({(1, 0)})
        """
        return Alignment(frozenset((t, s) for s, t in self.sure), frozenset((t, s) for s, t in self.possible))

    def __str__(self) -> str:
        return " ".join(f"{s}{'-' if (s, t) in self.sure else 'p'}{t}" for s, t in sorted(self.possible))


def parse_links(line: str, *, first: int = 0, where: str = "") -> Alignment:
    """One line of `i-j` (sure) and `ipj` (possible) links (the Pharaoh format); positions count from `first`.

    >>> str(parse_links("1-1 2p3", first=1))
    '0-0 1p2'
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise DataError(
                f"{where or 'alignment'}: {item[:40]!r} is not a link; links are i-j (sure) or ipj (possible)"
            )
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise DataError(f"{where or 'alignment'}: {item!r} counts from 0; pass first=0")
        (sure if match[2] == "-" else possible).add(link)
    return Alignment.of(sure, possible)


def read_alignments(path: str | Path, *, first: int | None = None, count: int | None = None) -> tuple[Alignment, ...]:
    """A file of gold alignments, one sentence pair a line, or in the NAACL form `sentence source target [S|P]`.

    `first` is what positions count from: 0 or 1; left out, it is 0 where a 0 occurs, else 1 in the NAACL form and in
    files without any 0. `count` is how many sentence pairs there must be.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "gold.wa"
    ...     _ = file.write_text("1-1 2p1\\n2-2\\n")
    ...     [str(alignment) for alignment in read_alignments(file)]
    ['0-0 1p0', '1-1']
    """
    path = Path(path)
    lines = read_lines(path)
    if lines and all(_NAACL.fullmatch(line.strip()) for line in lines if line.strip()) and any(map(str.strip, lines)):
        alignments = _naacl(path, lines, first)
    else:
        base = _base(re.findall(r"\d+", " ".join(lines))) if first is None else first
        alignments = tuple(parse_links(line, first=base, where=f"{path}:{n}") for n, line in enumerate(lines, start=1))
    if count is not None and len(alignments) != count:
        raise DataError(f"{path}: {len(alignments)} alignments for {count} sentence pairs; write a line for each pair")
    return alignments


_LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})")
_NAACL = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SP]))?(?:\s+[\d.]+)?")


def _naacl(path: Path, lines: list[str], first: int | None) -> tuple[Alignment, ...]:
    """Sentences count from 1; sentences without a line have no links."""
    rows = []
    for n, line in enumerate(lines, start=1):
        match = _NAACL.fullmatch(line.strip())
        if match is not None:
            if not 1 <= int(match[1]) <= MAX_SENTENCES:
                raise DataError(f"{path}:{n}: sentence {match[1]}; sentences count from 1 to {MAX_SENTENCES:,} at most")
            rows.append((n, int(match[1]), int(match[2]), int(match[3]), match[4] or "S"))
    base = _base([str(position) for row in rows for position in row[2:4]]) if first is None else first
    links: list[tuple[set[Link], set[Link]]] = [(set(), set()) for _ in range(max(row[1] for row in rows))]
    for n, sentence, source, target, sureness in rows:
        if min(source, target) < base:
            raise DataError(f"{path}:{n}: position 0, but positions count from {base}; pass first=0")
        links[sentence - 1][sureness == "P"].add((source - base, target - base))
    return tuple(Alignment.of(*pair) for pair in links)


def _base(numbers: Iterable[str]) -> int:
    return 0 if "0" in set(numbers) else 1


_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class ParallelSplit:
    """Source sentence m translates into target sentence m; `alignments` are gold word alignments, if there are any."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    alignments: tuple[Alignment, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise DataError(f"{len(self.sources)} source sentences but {len(self.targets)} target sentences")
        if self.alignments is not None and len(self.alignments) != len(self.sources):
            raise DataError(f"{len(self.alignments)} alignments for {len(self.sources)} sentence pairs")

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def strata(self) -> tuple[int, ...]:
        """Sentence pairs have no classes: all are of one."""
        return (0,) * len(self)

    def take(self, indices: Sequence[int] | NDArray[np.int64]) -> "ParallelSplit":
        """The pairs at `indices`, in that order.

        >>> ParallelSplit(("ein", "zwei"), ("one", "two")).take([1]).targets
        ('two',)
        """
        gold = None if self.alignments is None else tuple(self.alignments[i] for i in indices)
        return ParallelSplit(tuple(self.sources[i] for i in indices), tuple(self.targets[i] for i in indices), gold)

    def reversed(self) -> "ParallelSplit":
        """The other direction.

        >>> ParallelSplit(("ein",), ("one",)).reversed().sources
        ('one',)
        """
        gold = None if self.alignments is None else tuple(alignment.reversed() for alignment in self.alignments)
        return ParallelSplit(self.targets, self.sources, gold)


NO_PAIRS = ParallelSplit((), ())


@dataclass(frozen=True)
class ParallelCorpus:
    """A translation task. With `in_words` its sentences are words separated by spaces, and need no subwords."""

    name: str
    train: ParallelSplit
    validation: ParallelSplit
    test: ParallelSplit
    source_language: str = "source"
    target_language: str = "target"
    licence: str = "unknown"
    source: str = ""
    decisions: tuple[str, ...] = ()
    in_words: bool = False

    def digest(self) -> str:
        """SHA-256 of everything a result depends on: the sentences of each split in order, and how they are cut.

        >>> corpus = ParallelCorpus("tiny", ParallelSplit(("ein",), ("one",)), NO_PAIRS, NO_PAIRS)
        >>> corpus.digest() == replace(corpus, name="other").digest() != replace(corpus, in_words=True).digest()
        True
        """
        sha = hashlib.sha256(repr(self.in_words).encode())
        for name in SPLITS:
            split: ParallelSplit = getattr(self, name)
            sha.update(f"\n{name} {len(split)}\n".encode())
            for sentence in (*split.sources, *split.targets):
                content = sentence.encode("utf-8", "surrogatepass")
                sha.update(b"%d " % len(content) + content)
        return sha.hexdigest()

    def reversed(self) -> "ParallelCorpus":
        """The other direction."""
        return replace(
            self,
            train=self.train.reversed(),
            validation=self.validation.reversed(),
            test=self.test.reversed(),
            source_language=self.target_language,
            target_language=self.source_language,
        )


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs of one file or table, the languages as far as names tell them, and what was left out."""

    name: str
    pairs: ParallelSplit
    languages: tuple[str, str]
    decisions: tuple[str, ...]


def pairs_of_files(source: Path, target: Path, *, drop_numerical: bool = True) -> Pairs:
    """Line n of one file with line n of the other.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     german, english = Path(folder) / "a.de", Path(folder) / "a.en"
    ...     _ = german.write_text("ein\\n\\n3\\n"), english.write_text("one\\ntwo\\n3.0\\n")
    ...     [decision.split(": ")[1] for decision in pairs_of_files(german, english).decisions]
    ['1 pair with an empty side left out (line 2)', '1 pair of numbers alone left out (line 3)']
    """
    sides = read_lines(source), read_lines(target)
    first, second = map(len, sides)
    if first != second:
        short, long = (source, target) if first < second else (target, source)
        raise DataError(
            f"{source} has {first:,} lines, {target} has {second:,}; {short} ends before "
            f"{long}:{min(first, second) + 1}. Line n of one must translate line n of the other"
        )
    name = source.name.removesuffix(".gz")
    pairs, decisions = _usable_pairs(name, sides, range(1, first + 1), "line", drop_numerical)
    return Pairs(name, pairs, (_language(source, "source"), _language(target, "target")), decisions)


def pairs_of_table(
    table: Table, source: str | None = None, target: str | None = None, *, drop_numerical: bool = True
) -> Pairs:
    """Two columns of a table, or two languages of its column `translation`.

    >>> table = Table("a.tsv", {"de": ["ein"], "en": ["one"]}, [2])
    >>> pairs_of_table(table).languages, pairs_of_table(table, "en", "de").pairs.sources
    (('de', 'en'), ('one',))
    """
    (first, second), sides = sources_and_targets(table, source, target)
    guessed = () if source and target else (f"{table.name}: from column {first!r} into column {second!r}",)
    pairs, decisions = _usable_pairs(table.name, sides, table.lines, table.unit, drop_numerical)
    return Pairs(Path(table.name).name, pairs, (first, second), table.decisions + guessed + decisions)


@dataclass(frozen=True)
class SortedPairs:
    """The indices of the pairs to keep, and the lines of pairs with an empty side and of numbers alone."""

    kept: list[int]
    empty: list[int]
    numerical: list[int]


def sort_pairs(
    sources: Sequence[str], targets: Sequence[str], lines: Sequence[int], *, drop_numerical: bool = True
) -> SortedPairs:
    """Which pairs are used: those with words on both sides (snell2021, A.5).

    >>> sort_pairs(["ein", "", "3"], ["one", "two", "3"], [1, 2, 3])
    SortedPairs(kept=[0], empty=[2], numerical=[3])
    """
    kept, empty, numerical = [], [], []
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if not (source.strip() and target.strip()):
            empty.append(lines[i])
        elif not (_LETTER.search(source) or _LETTER.search(target)) and _DIGIT.search(source + target):
            numerical.append(lines[i])
            if not drop_numerical:
                kept.append(i)
        else:
            kept.append(i)
    return SortedPairs(kept, empty, numerical)


def _usable_pairs(
    place: str, sides: tuple[list[str], list[str]], lines: Sequence[int], unit: str, drop_numerical: bool
) -> tuple[ParallelSplit, tuple[str, ...]]:
    pairs = sort_pairs(*sides, lines, drop_numerical=drop_numerical)
    if not pairs.kept:
        hint = "; keep pairs of numbers with drop_numerical=False" if pairs.numerical else ""
        raise DataError(f"{place}: there is no pair with words on both sides{hint}")
    fate = "left out" if drop_numerical else "kept"
    decisions = [
        left_out(place, len(places), places, unit, "pair", why, fate)
        for places, why, fate in (
            (pairs.empty, "with an empty side", "left out"),
            (pairs.numerical, "of numbers alone", fate),
        )
        if places
    ]
    sources, targets = (tuple(side[i].strip() for i in pairs.kept) for side in sides)
    return ParallelSplit(sources, targets), tuple(decisions)


def _language(path: Path, otherwise: str) -> str:
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix != ".gz"]
    return suffixes[-1] if suffixes and suffixes[-1] != "txt" and _LANGUAGE.fullmatch(suffixes[-1]) else otherwise
