"""Files and tables become sentence pairs; what cannot be one is left out with its line, or refused."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.lines import read_lines
from heedful.data.readers import MISSING, Table
from heedful.errors import DataError

SOURCE_NAMES = ("source", "src", "source_text", "sentence1", "input", "de")
TARGET_NAMES = ("target", "tgt", "target_text", "sentence2", "output", "en")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_LETTER = re.compile(r"[^\W\d_]")
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
    columns = dict(table.columns)
    if "translation" in columns and "translation" not in (source, target):
        columns = _languages(table)
    first, second = _choose(table.name, list(columns), source, target)
    sides = [[_text(value, table, i, c) for i, value in enumerate(columns[c])] for c in (first, second)]
    guessed = () if source and target else (f"{table.name}: from column {first!r} into column {second!r}",)
    pairs = _kept(
        Path(table.name).name, sides[0], sides[1], table.lines, table.unit, (first, second), drop_numerical, table.name
    )
    return Pairs(pairs.name, pairs.sources, pairs.targets, (first, second), table.decisions + guessed + pairs.decisions)


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
    kept, empty, numerical = [], [], []
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if not (source.strip() and target.strip()):
            empty.append(lines[i])
        elif not (_LETTER.search(source) or _LETTER.search(target)) and re.search(r"\d", source + target):
            numerical.append(lines[i])
            if not drop_numerical:
                kept.append(i)
        else:
            kept.append(i)
    if not kept:
        hint = "; keep pairs of numbers with drop_numerical=False" if numerical else ""
        raise DataError(f"{place or name}: there is no pair with words on both sides{hint}")
    decisions = []
    for found, what, fate in (
        (empty, "with an empty side", "left out"),
        (numerical, "of numbers alone", "left out" if drop_numerical else "kept"),
    ):
        if found:
            several = "s" * (len(found) > 1)
            named = ", ".join(map(str, found[:5])) + (", …" if len(found) > 5 else "")
            decisions.append(f"{place or name}: {len(found):,} pair{several} {what} {fate} ({unit}{several} {named})")
    return Pairs(
        name,
        tuple(sources[i].strip() for i in kept),
        tuple(targets[i].strip() for i in kept),
        languages,
        tuple(decisions),
    )


def _languages(table: Table) -> dict[str, list[Any]]:
    """The column `translation` of {"de": …, "en": …} as one column per language."""
    values = table.columns["translation"]
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            raise DataError(f"{table.where(i)}: column 'translation' holds {value!r}, not one sentence per language")
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
        raise DataError(f"{table.where(i)}: column {column!r} holds {value!r:.40}, which is not a sentence")
    if _NOT_CHARACTERS.search(value):
        raise DataError(f"{table.where(i)}: column {column!r} holds a NUL or half a surrogate pair")
    return value


def _language(path: Path, otherwise: str) -> str:
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix != ".gz"]
    return suffixes[-1] if suffixes and suffixes[-1] != "txt" and _LANGUAGE.fullmatch(suffixes[-1]) else otherwise
