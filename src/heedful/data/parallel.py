"""Sentence pairs in three splits, from two files, a table, a `datasets.Dataset`, or a name."""

import difflib
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.alignments import Alignment
from heedful.data.corpus import splits_by_name, stratified_order
from heedful.data.files.tables import MISSING, Table, format_of, read_table, shown
from heedful.data.files.text_files import read_lines
from heedful.errors import DataError

SOURCE_NAMES = ("source", "src", "source_text", "sentence1", "input", "de")
TARGET_NAMES = ("target", "tgt", "target_text", "sentence2", "output", "en")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_NOT_CHARACTERS = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs, the languages as far as names tell them, and what was left out."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    languages: tuple[str, str]
    decisions: tuple[str, ...]


def pairs_of_files(source: Path, target: Path, *, drop_numerical: bool = True) -> Pairs:
    """Line n of one file beside line n of the other.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     german, english = Path(folder) / "a.de", Path(folder) / "a.en"
    ...     _ = german.write_text("ein\\n\\n3\\n"), english.write_text("one\\ntwo\\n3.0\\n")
    ...     [said.split(": ")[1] for said in pairs_of_files(german, english).decisions]
    ['1 pair with an empty side left out (line 2)', '1 pair of numbers alone left out (line 3)']
    """
    first, second = read_lines(source), read_lines(target)
    if len(first) != len(second):
        short, long = (source, target) if len(first) < len(second) else (target, source)
        raise DataError(
            f"{source} has {len(first):,} lines, {target} has {len(second):,}; {short} ends before "
            f"{long}:{min(len(first), len(second)) + 1}. Line n of one must translate line n of the other"
        )
    name = source.name.removesuffix(".gz")
    languages = _language(source, "source"), _language(target, "target")
    return _kept(name, first, second, list(range(1, len(first) + 1)), "line", languages, drop_numerical)


def pairs_of_table(
    table: Table, source: str | None = None, target: str | None = None, *, drop_numerical: bool = True
) -> Pairs:
    """Two columns of a table, or the two languages of its column `translation`.

    >>> table = Table("a.tsv", {"de": ["ein"], "en": ["one"]}, [2])
    >>> pairs_of_table(table).languages, pairs_of_table(table, "en", "de").sources
    (('de', 'en'), ('one',))
    """
    (first, second), sides = sides_of_table(table, source, target)
    guessed = () if source and target else (f"{table.name}: from column {first!r} into column {second!r}",)
    pairs = _kept(
        Path(table.name).name, sides[0], sides[1], table.lines, table.unit, (first, second), drop_numerical, table.name
    )
    return Pairs(pairs.name, pairs.sources, pairs.targets, (first, second), table.decisions + guessed + pairs.decisions)


def sides_of_table(
    table: Table, source: str | None = None, target: str | None = None
) -> tuple[tuple[str, str], list[list[str]]]:
    """The columns of the source and of the target, and the sentences of both.

    >>> sides_of_table(Table("a.tsv", {"en": ["one"], "de": ["ein"]}, [2]), "de")
    (('de', 'en'), [['ein'], ['one']])
    """
    columns = dict(table.columns)
    if "translation" in columns and "translation" not in (source, target):
        columns = _languages(table)
    chosen = _choose(table.name, list(columns), source, target)
    return chosen, [[_text(value, table, i, c) for i, value in enumerate(columns[c])] for c in chosen]


@dataclass(frozen=True)
class Sorted:
    """Which pairs have words on both sides, and the places of those that have not, or are numbers alone."""

    kept: list[int]
    empty: list[int]
    numerical: list[int]


def sort_out(
    sources: Sequence[str], targets: Sequence[str], lines: Sequence[int], *, drop_numerical: bool = True
) -> Sorted:
    """Which pairs are used.

    >>> sort_out(["ein", "", "3"], ["one", "two", "3"], [1, 2, 3])
    Sorted(kept=[0], empty=[2], numerical=[3])
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
    return Sorted(kept, empty, numerical)


def left_out(place: str, count: int, first: Sequence[int], unit: str, what: str, fate: str = "left out") -> str:
    """How it is said that pairs were left out; `first` are the places of some of them.

    >>> left_out("a.de", 2, [3, 9], "line", "with an empty side")
    'a.de: 2 pairs with an empty side left out (lines 3, 9)'
    """
    several = "s" * (count > 1)
    named = ", ".join(map(str, first[:5])) + (", …" if count > 5 else "")
    return f"{place}: {count:,} pair{several} {what} {fate} ({unit}{several} {named})"


def _kept(
    name: str,
    sources: Sequence[str],
    targets: Sequence[str],
    lines: Sequence[int],
    unit: str,
    languages: tuple[str, str],
    drop_numerical: bool,
    place: str = "",
) -> Pairs:
    found = sort_out(sources, targets, lines, drop_numerical=drop_numerical)
    if not found.kept:
        hint = "; keep pairs of numbers with drop_numerical=False" if found.numerical else ""
        raise DataError(f"{place or name}: there is no pair with words on both sides{hint}")
    decisions = [
        left_out(place or name, len(those), those, unit, what, fate)
        for those, what, fate in (
            (found.empty, "with an empty side", "left out"),
            (found.numerical, "of numbers alone", "left out" if drop_numerical else "kept"),
        )
        if those
    ]
    return Pairs(
        name,
        tuple(sources[i].strip() for i in found.kept),
        tuple(targets[i].strip() for i in found.kept),
        languages,
        tuple(decisions),
    )


def _languages(table: Table) -> dict[str, list[Any]]:
    """The column `translation` of {"de": …, "en": …} as one column per language."""
    values = table.columns["translation"]
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            raise DataError(
                f"{table.where(i)}: column 'translation' holds {shown(value)}, not one sentence per language"
            )
    names = list(dict.fromkeys(language for value in values for language in value))
    return {name: [value.get(name, MISSING) for value in values] for name in names}


def _choose(name: str, columns: list[str], source: str | None, target: str | None) -> tuple[str, str]:
    for wanted, option in ((source, "source_column"), (target, "target_column")):
        if wanted is not None and wanted not in columns:
            near = difflib.get_close_matches(wanted, columns, 1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"name one of them as {option}"
            listed = ", ".join(map(repr, columns[:20]))
            raise DataError(f"{name}: there is no column {wanted!r}; the columns are {listed}; {hint}")
    if source is not None and source == target:
        raise DataError(f"{name}: column {source!r} cannot be both source and target")
    if len(columns) == 2 and not (source and target):
        if source is None and target is None and columns[0].lower() in TARGET_NAMES[:5]:
            columns = columns[::-1]
        first = source or next(c for c in columns if c != target)
        return first, next(c for c in columns if c != first)
    lowered = {c.lower(): c for c in reversed(columns)}
    first = source or next((lowered[c] for c in SOURCE_NAMES if c in lowered and lowered[c] != target), "")
    second = target or next((lowered[c] for c in TARGET_NAMES if c in lowered and lowered[c] != first), "")
    if not first or not second:
        listed = ", ".join(map(repr, columns[:20])) or "none"
        raise DataError(f"{name}: the columns are {listed}; say which two with source_column and target_column")
    return first, second


def _text(value: Any, table: Table, i: int, column: str) -> str:
    if value is None or value is MISSING:
        return ""
    if not isinstance(value, str):
        raise DataError(
            f"{table.where(i)}: column {column!r} holds {value!r:.40}, which is not a sentence; name the columns that "
            "hold sentences with --text and --label"
        )
    if _NOT_CHARACTERS.search(value):
        raise DataError(f"{table.where(i)}: column {column!r} holds a NUL or half a surrogate pair; take them out")
    return value


def _language(path: Path, otherwise: str) -> str:
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix != ".gz"]
    return suffixes[-1] if suffixes and suffixes[-1] != "txt" and _LANGUAGE.fullmatch(suffixes[-1]) else otherwise


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
    """A translation task. `in_words` says that its sentences are words with spaces between: no subwords are needed."""

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
        for name, split in (("train", self.train), ("validation", self.validation), ("test", self.test)):
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


def load_parallel(
    data: Any,
    target: str | Path | None = None,
    *,
    source_column: str | None = None,
    target_column: str | None = None,
    validation: str | Path | tuple[str | Path, str | Path] | None = None,
    test: str | Path | tuple[str | Path, str | Path] | None = None,
    drop_numerical: bool = True,
    size: int | None = None,
    seed: int = 0,
) -> ParallelCorpus:
    """The sentence pairs of two text files, of one table, of a `datasets.Dataset`, or of that name.

    `load_parallel("train.de", "train.en")`, `load_parallel("pairs.tsv")`, `load_parallel("multi30k:en-de")`,
    `load_parallel("copy-vocab", size=1000)`. Columns are named, or found (`translation`; source and target; or the only
    two). `validation` and `test` are a table, or a pair of text files. What has no validation set of its own is split
    80/10/10 (90/10 with a test set) under `seed`. Pairs with an empty side, and pairs of numbers alone (snell2021 A.5),
    are left out and reported with their lines. `size` is the number of training pairs of a generated task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     german, english = Path(folder) / "a.de", Path(folder) / "a.en"
    ...     _ = german.write_text("ein Hund\\n" * 10), english.write_text("a dog\\n" * 10)
    ...     corpus = load_parallel(german, english)
    >>> corpus.source_language, corpus.target_language, len(corpus.train), len(corpus.validation)
    ('de', 'en', 8, 1)
    """
    if isinstance(data, ParallelCorpus):
        return data
    if isinstance(data, str):
        named = _named(data, size=size, seed=seed)
        if named is not None:
            if (target, source_column, target_column, validation, test) != (None,) * 5:
                raise DataError(f"{data} is a named corpus with its own columns and splits; it takes no other files")
            return named
    columns = source_column, target_column
    if isinstance(data, str | Path):
        found = {"train": _read(data, target, columns, drop_numerical)}
        source = str(data) if target is None else f"{data}, {target}"
    elif hasattr(data, "column_names"):
        found, source = _hub(data, columns, drop_numerical), "a datasets.Dataset"
    else:
        raise DataError(
            f"sentence pairs come from files, a datasets.Dataset or a name, not from a {type(data).__name__}"
        )
    for name, given in (("validation", validation), ("test", test)):
        if given is not None:
            first, second = given if isinstance(given, tuple) else (given, None)
            found[name] = _read(first, second, columns, drop_numerical)
    return _assemble(found, source, seed)


def _named(name: str, *, size: int | None, seed: int) -> ParallelCorpus | None:
    from heedful.data.multi30k import multi30k
    from heedful.data.synthetic.tasks import TASKS, generated_pairs

    corpus, _, direction = name.partition(":")
    if corpus == "multi30k":
        return multi30k(direction or "de-en")
    if name in TASKS:
        return generated_pairs(name, size=size, seed=seed)
    return None


def _read(first: str | Path, second: str | Path | None, columns: tuple[str | None, str | None], drop: bool) -> Pairs:
    path = Path(os.path.expanduser(first))
    if second is not None:
        return pairs_of_files(path, Path(os.path.expanduser(second)), drop_numerical=drop)
    if format_of(path) is None:
        raise DataError(
            f"{path}: one text file is half a corpus; give the file of the other side too, "
            "or a table (.csv, .tsv, .jsonl, .parquet)"
        )
    return pairs_of_table(read_table(path), *columns, drop_numerical=drop)


def _hub(data: Any, columns: tuple[str | None, str | None], drop: bool) -> dict[str, Pairs]:
    splits: Mapping[str, Any] = data if isinstance(data.column_names, dict) else {"train": data}
    found = {}
    for split, name in splits_by_name(splits).items():
        rows = splits[name]
        table = Table(
            f"dataset[{name!r}]", {c: list(rows[c]) for c in rows.column_names}, list(range(rows.num_rows)), "row"
        )
        found[split] = pairs_of_table(table, *columns, drop_numerical=drop)
    return found


def _assemble(found: dict[str, Pairs], source: str, seed: int) -> ParallelCorpus:
    decisions = [said for pairs in found.values() for said in pairs.decisions]
    splits = {name: ParallelSplit(pairs.sources, pairs.targets) for name, pairs in found.items()}
    train, test = splits["train"], splits.get("test")
    validation = splits.get("validation")
    if validation is None:
        n = len(train)
        if n < 10:
            raise DataError(f"{source}: {n} pairs are too few to split; give more, or a validation set of its own")
        order = stratified_order([0] * n, seed)
        ends = (n * 8 // 10, n * 9 // 10) if test is None else (n * 9 // 10, n)
        pieces = [train.take(np.sort(part)) for part in np.split(order, ends)]
        train, validation = pieces[0], pieces[1]
        sizes = f"{len(train):,} / {len(validation):,}"
        if test is None:
            test = pieces[2]
            sizes += f" / {len(test):,}"
        decisions.append(f"no validation set given: {n:,} pairs split {sizes}, seed {seed}")
    languages = found["train"].languages
    return ParallelCorpus(
        found["train"].name,
        train,
        validation,
        test or NO_PAIRS,
        languages[0],
        languages[1],
        source=source,
        decisions=tuple(decisions),
    )
