"""Files and tables become sentence pairs; what cannot be one is left out with its line, or refused."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.lines import read_lines
from heedful.data.readers import MISSING, Table, shown
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
