"""Which columns of a table hold the text and the label, or the source and the target, and what their values mean."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.data.files.tables import MISSING, Table, listed, shown
from heedful.errors import DataError

TEXT_NAMES = ("text", "sentence", "review", "content", "document", "body", "message", "comment", "tweet", "sms", "post")
LABEL_NAMES = ("label", "labels", "class", "target", "category", "sentiment", "polarity", "stars", "rating", "topic")
SOURCE_NAMES = ("source", "src", "source_text", "sentence1", "input", "de")
TARGET_NAMES = ("target", "tgt", "target_text", "sentence2", "output", "en")
MAX_CLASSES = 50
_NOT_CHARACTERS = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Examples:
    """Texts, the name of each one's label, and the place of each in its file."""

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    places: tuple[str, ...]
    decisions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


def examples(table: Table, text: str | None = None, label: str | None = None) -> Examples:
    """The texts and labels of a table; rows with an empty text are left out and reported in `decisions`.

    >>> table = Table("a.csv", {"review": ["good", " ", "bad"], "stars": ["1.0", "0", "0"]}, [2, 3, 4])
    >>> found = examples(table)
    >>> found.texts, found.labels
    (('good', 'bad'), ('1', '0'))
    >>> found.decisions[1]
    'a.csv: 1 row with an empty text left out (line 3)'
    """
    text, label, guessed = text_and_label_columns(table, text, label)
    texts, labels = texts_and_labels(table, text, label)
    first_row: dict[str, int] = {}
    for i, name in enumerate(labels):
        first_row.setdefault(name, i)
    names = label_names(label, {name: table.where(i) for name, i in first_row.items()})
    kept = [i for i, content in enumerate(texts) if content.strip()]
    empty = [table.lines[i] for i, content in enumerate(texts) if not content.strip()]
    decisions = table.decisions + guessed
    if not kept:
        raise DataError(f"{table.name}: every text in column {shown(text)} is empty; name another with --text")
    if empty:
        decisions += (left_out(table.name, len(empty), empty, table.unit, "row", "with an empty text"),)
    return Examples(
        table.name,
        tuple(texts[i] for i in kept),
        tuple(names[labels[i]] for i in kept),
        tuple(table.where(i) for i in kept),
        decisions,
        table.classes.get(label, ()),
    )


def texts_and_labels(table: Table, text: str, label: str) -> tuple[list[str], list[str]]:
    """The text and the label of every row, checked; numbers among the labels are still as they were written.

    >>> texts_and_labels(Table("a.csv", {"review": ["good"], "stars": ["1.0"]}, [2]), "review", "stars")
    (['good'], ['1.0'])
    """
    texts = [checked_text(value, table, i, text) for i, value in enumerate(table.columns[text])]
    return texts, [_label(value, table, i, label) for i, value in enumerate(table.columns[label])]


def sources_and_targets(
    table: Table, source: str | None = None, target: str | None = None
) -> tuple[tuple[str, str], tuple[list[str], list[str]]]:
    """The columns of the source and of the target, and the sentences of both; an absent sentence is empty.

    A column `translation` of {"de": …, "en": …} counts as one column per language.

    >>> sources_and_targets(Table("a.tsv", {"en": ["one"], "de": ["ein"]}, [2]), "de")
    (('de', 'en'), (['ein'], ['one']))
    """
    columns = dict(table.columns)
    if _is_nested(table, source, target):
        columns = _languages(table)
    first, second = source_and_target_columns(table.name, list(columns), source, target)
    sides = [[_sentence(value, table, i, name) for i, value in enumerate(columns[name])] for name in (first, second)]
    return (first, second), (sides[0], sides[1])


def pair_columns(table: Table, source: str | None = None, target: str | None = None) -> tuple[str, ...]:
    """The columns of a table that hold the source and the target: two, or `translation` alone.

    >>> pair_columns(Table("a.tsv", {"id": [], "src": [], "tgt": []}, []))
    ('src', 'tgt')
    """
    columns, _ = sources_and_targets(table, source, target)
    return ("translation",) if _is_nested(table, source, target) else columns


def _is_nested(table: Table, source: str | None, target: str | None) -> bool:
    return "translation" in table.columns and "translation" not in (source, target)


def left_out(
    place: str, count: int, lines: Sequence[int], unit: str, what: str, why: str, fate: str = "left out"
) -> str:
    """The decision that rows were left out; `lines` has the places of the first of them.

    >>> left_out("a.de", 2, [3, 9], "line", "pair", "with an empty side")
    'a.de: 2 pairs with an empty side left out (lines 3, 9)'
    """
    plural = "s" * (count > 1)
    named = ", ".join(map(str, lines[:5])) + (", …" if count > 5 else "")
    return f"{place}: {count:,} {what}{plural} {why} {fate} ({unit}{plural} {named})"


def class_names(name: str, labels: Iterable[str], rows: int, classes: Sequence[str] = ()) -> tuple[str, ...]:
    """The classes among the labels of so many rows: in the order of `classes`, else by number, else alphabetically.

    >>> class_names("a.csv", ["10", "9", "10"], rows=3)
    ('9', '10')
    """
    names = set(labels)
    if len(names) == 1:
        raise DataError(f"{name}: every label is {shown(next(iter(names)))}; a classifier needs at least two classes")
    unique = len(names) == rows and len(names) > 4
    if unique or len(names) > MAX_CLASSES:
        counted = "a label of its own in every row" if unique else f"{len(names):,} distinct labels"
        raise DataError(
            f"{name}: there is {counted}, which looks like a regression or ID column; "
            f"name a column of at most {MAX_CLASSES} classes with --label"
        )
    if names <= set(classes):
        return tuple(name for name in classes if name in names)
    return tuple(sorted(names, key=int if all(map(_is_integer, names)) else None))


def class_indices(examples: Examples, names: Sequence[str]) -> tuple[int, ...]:
    """The index of each label among `names`; one that is not there is an error with its line.

    >>> class_indices(Examples("a.csv", ("x", "y"), ("good", "bad"), ("a.csv:2", "a.csv:3")), ("bad", "good"))
    (1, 0)
    """
    index = {name: i for i, name in enumerate(names)}
    for place, name in zip(examples.places, examples.labels, strict=True):
        if name not in index:
            raise DataError(f"{place}: label {shown(name)} does not occur in training, which has {listed(names)}")
    return tuple(index[name] for name in examples.labels)


def text_and_label_columns(
    table: Table, text: str | None = None, label: str | None = None
) -> tuple[str, str, tuple[str, ...]]:
    """The columns of the text and of the label, and a decision that names them if they were guessed.

    >>> text_and_label_columns(Table("a.csv", {"review": ["good"], "stars": ["1"]}, [2]))[:2]
    ('review', 'stars')
    """
    names = list(table.columns)
    if not names:
        raise DataError(f"{table.name}: there are no columns; each row needs a text and a label")
    _check_columns(table.name, names, (text, label), ("the text", "the label"))
    if text is not None and label is not None:
        return text, label, ()
    text_column = text or first_of(TEXT_NAMES, names, without=label)
    label_column = label or first_of(LABEL_NAMES, names, without=text_column)
    if len(names) == 2 and (text_column is None) != (label_column is None):
        text_column = text_column or next(name for name in names if name != label_column)
        label_column = label_column or next(name for name in names if name != text_column)
    if text_column is None or label_column is None:
        roles = (("text", text_column), ("label", label_column))
        missing = " and ".join(f"the {role} with --{role}" for role, name in roles if name is None)
        raise DataError(
            f"{table.name}: the columns are {listed(names)}; say which holds {missing} "
            "(a file without a header row needs one)"
        )
    decision = f"{table.name}: texts from column {shown(text_column)}, labels from {shown(label_column)}"
    return text_column, label_column, (decision,)


def source_and_target_columns(place: str, names: list[str], source: str | None, target: str | None) -> tuple[str, str]:
    """The columns of the source and of the target: those given, well-known names, or the only two.

    >>> source_and_target_columns("a.tsv", ["id", "tgt", "src"], None, None)
    ('src', 'tgt')
    """
    _check_columns(place, names, (source, target), ("source", "target"))
    if len(names) == 2 and not (source and target):
        if source is None and target is None and names[0].lower() in TARGET_NAMES[:5]:
            names = names[::-1]
        first = source or next(name for name in names if name != target)
        return first, next(name for name in names if name != first)
    first = source or first_of(SOURCE_NAMES, names, without=target) or ""
    second = target or first_of(TARGET_NAMES, names, without=first) or ""
    if not first or not second:
        columns = listed(names) or "none"
        raise DataError(
            f"{place}: the columns are {columns}; say which two hold the source and the target with --text and --label"
        )
    return first, second


def label_names(column: str, places: Mapping[str, str]) -> dict[str, str]:
    """The name of each label of a file: numbers as whole numbers, where all are numbers.

    `places` says where each label stands, for the error about a label such as 0.5.

    >>> label_names("stars", {"1.0": "", "0": ""}), label_names("stars", {"1.0": "", "good": ""})
    ({'1.0': '1', '0': '0'}, {'1.0': '1.0', 'good': 'good'})
    """
    numbers = {label: _number(label) for label in places}
    if any(number is None for number in numbers.values()):
        return {label: label for label in places}
    for label, number in numbers.items():
        if number is None or not number.is_integer():
            raise DataError(
                f"{places[label]}: label {shown(label)} is not a whole number, so column {shown(column)} looks "
                "like a regression target; name a column of classes with --label"
            )
    return {label: label if _is_integer(label) else str(int(float(label))) for label in places}


def _check_columns(
    place: str, names: Sequence[str], wanted: tuple[str | None, str | None], roles: tuple[str, str]
) -> None:
    for name, option in zip(wanted, ("--text", "--label"), strict=True):
        if name is not None:
            missing_column(place, names, name, option)
    if wanted[0] is not None and wanted[0] == wanted[1]:
        raise DataError(f"{place}: column {shown(wanted[0])} cannot be both {roles[0]} and {roles[1]}")


def missing_column(place: str, names: Sequence[str], name: str, option: str) -> None:
    """Refuse a column that is not there.

    >>> missing_column("a.csv", ["review", "stars"], "text", "--text")
    Traceback (most recent call last):
    heedful.errors.DataError: a.csv: there is no column 'text'; the columns are 'review', 'stars'; name one of them \
with --text
    """
    if name not in names:
        near = difflib.get_close_matches(name, names, 1, cutoff=0.4)
        hint = f"did you mean {shown(near[0])}?" if near else f"name one of them with {option}"
        raise DataError(f"{place}: there is no column {shown(name)}; the columns are {listed(names)}; {hint}")


def first_of(candidates: Iterable[str], names: Sequence[str], *, without: str | None) -> str | None:
    """The first of the candidates that is a column, ignoring case.

    >>> first_of(("text", "review"), ["Review", "stars"], without=None)
    'Review'
    """
    lowered = {name.lower(): name for name in reversed(names) if name != without}
    return next((lowered[candidate] for candidate in candidates if candidate in lowered), None)


def _languages(table: Table) -> dict[str, list[Any]]:
    """The column `translation` as one column per language."""
    values = table.columns["translation"]
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            raise DataError(
                f"{table.where(i)}: column 'translation' holds {shown(value)}, not one sentence per language"
            )
    names = list(dict.fromkeys(language for value in values for language in value))
    return {name: [value.get(name, MISSING) for value in values] for name in names}


def checked_text(value: Any, table: Table, i: int, column: str) -> str:
    """The text of row i; an error where there is none, or something else."""
    if value is None or value is MISSING:
        raise DataError(f"{table.where(i)}: there is no text; column {shown(column)} is {_absent(value)} here")
    if not isinstance(value, str):
        raise DataError(
            f"{table.where(i)}: column {shown(column)} holds {shown(value)}, not a text; name another with --text"
        )
    return _characters(value, table, i, "text")


def _sentence(value: Any, table: Table, i: int, column: str) -> str:
    if value is None or value is MISSING:
        return ""
    if not isinstance(value, str):
        raise DataError(
            f"{table.where(i)}: column {shown(column)} holds {shown(value)}, which is not a sentence; name the columns "
            "that hold sentences with --text and --label"
        )
    return _characters(value, table, i, f"sentence in column {shown(column)}")


def _label(value: Any, table: Table, i: int, column: str) -> str:
    if value is None or value is MISSING or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{table.where(i)}: there is no label; column {shown(column)} is {_absent(value)} here")
    if not isinstance(value, str | bool | int | float):
        raise DataError(
            f"{table.where(i)}: column {shown(column)} holds {shown(value)}, not a label; name another with --label"
        )
    return _characters(str(value), table, i, "label").strip()


def _characters(value: str, table: Table, i: int, what: str) -> str:
    if _NOT_CHARACTERS.search(value):
        raise DataError(
            f"{table.where(i)}: the {what} holds a NUL or half a surrogate pair, which are not characters; remove them"
        )
    return value


def _number(name: str) -> float | None:
    try:
        return float(name)
    except ValueError:
        return None


def _is_integer(name: str) -> bool:
    return name.isascii() and name.removeprefix("-").isdigit() and len(name) < 300


def _absent(value: Any) -> str:
    if value is None:
        return "null"
    return "missing" if value is MISSING else "empty"
