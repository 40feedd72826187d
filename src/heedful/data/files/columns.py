"""Which columns of a table hold the text and the label, and what their values mean."""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.data.files.tables import MISSING, Table, listed, shown
from heedful.errors import DataError

TEXT_NAMES = ("text", "sentence", "review", "content", "document", "body", "message", "comment", "tweet", "sms", "post")
LABEL_NAMES = ("label", "labels", "class", "target", "category", "sentiment", "polarity", "stars", "rating", "topic")
MOST_CLASSES = 50
_NOT_CHARACTERS = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Examples:
    """Texts, the name of each one's label, and where each stands."""

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    places: tuple[str, ...]
    decisions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


def examples(table: Table, text: str | None = None, label: str | None = None) -> Examples:
    """The texts and labels of a table; a row with an empty text is left out, and said so.

    >>> table = Table("a.csv", {"review": ["good", " ", "bad"], "stars": ["1.0", "0", "0"]}, [2, 3, 4])
    >>> found = examples(table)
    >>> found.texts, found.labels
    (('good', 'bad'), ('1', '0'))
    >>> found.decisions[1]
    'a.csv: 1 row with an empty text left out (line 3)'
    """
    text, label, guessed = choose(table, text, label)
    texts, names = texts_and_names(table, text, label)
    labels = _labels(table, label, names)
    kept = [i for i, content in enumerate(texts) if content.strip()]
    empty = [table.lines[i] for i, content in enumerate(texts) if not content.strip()]
    decisions = table.decisions + guessed
    if not kept:
        raise DataError(f"{table.name}: every text in column {shown(text)} is empty; name another with --text")
    if empty:
        several = len(empty) > 1
        named = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
        decisions += (
            f"{table.name}: {len(empty):,} row{'s' * several} with an empty text left out "
            f"({table.unit}{'s' * several} {named})",
        )
    return Examples(
        table.name,
        tuple(texts[i] for i in kept),
        tuple(labels[i] for i in kept),
        tuple(table.where(i) for i in kept),
        decisions,
        table.classes.get(label, ()),
    )


def texts_and_names(table: Table, text: str, label: str) -> tuple[list[str], list[str]]:
    """The text and the name of the label of every row, checked; numbers are still as they stand.

    >>> texts_and_names(Table("a.csv", {"review": ["good"], "stars": ["1.0"]}, [2]), "review", "stars")
    (['good'], ['1.0'])
    """
    texts = [_text(value, table, i, text) for i, value in enumerate(table.columns[text])]
    return texts, [_label(value, table, i, label) for i, value in enumerate(table.columns[label])]


def class_names(found: Examples) -> tuple[str, ...]:
    """The classes of a training set in their own order, else numbers by value, else alphabetically.

    >>> class_names(Examples("a.csv", ("x", "y", "z"), ("10", "9", "10"), ("", "", "")))
    ('9', '10')
    """
    names = set(found.labels)
    if names <= set(found.classes):
        return tuple(name for name in found.classes if name in check_classes(found.name, names, len(found.labels)))
    return order_classes(found.name, names, len(found.labels))


def check_classes(name: str, names: set[str], rows: int) -> set[str]:
    """The labels of so many rows, refused where they cannot be classes."""
    if len(names) == 1:
        raise DataError(f"{name}: every label is {shown(next(iter(names)))}; a classifier needs at least two classes")
    unique = len(names) == rows and len(names) > 4
    if unique or len(names) > MOST_CLASSES:
        counted = "a label of its own in every row" if unique else f"{len(names):,} distinct labels"
        raise DataError(
            f"{name}: there is {counted}, which looks like a regression or ID column; "
            f"name a column of at most {MOST_CLASSES} classes with --label"
        )
    return names


def order_classes(name: str, names: set[str], rows: int) -> tuple[str, ...]:
    """Labels in the order of their numbers, else of the alphabet.

    >>> order_classes("a.csv", {"10", "9"}, rows=5)
    ('9', '10')
    """
    check_classes(name, names, rows)
    if all(_is_integer(name) for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


def class_indices(found: Examples, names: Sequence[str]) -> tuple[int, ...]:
    """The index of each label among `names`; one that is not there is an error with its line.

    >>> class_indices(Examples("a.csv", ("x", "y"), ("good", "bad"), ("a.csv:2", "a.csv:3")), ("bad", "good"))
    (1, 0)
    """
    index = {name: i for i, name in enumerate(names)}
    for place, name in zip(found.places, found.labels, strict=True):
        if name not in index:
            raise DataError(f"{place}: label {shown(name)} does not occur in training, which has {listed(names)}")
    return tuple(index[name] for name in found.labels)


def choose(table: Table, text: str | None, label: str | None) -> tuple[str, str, tuple[str, ...]]:
    """The columns of the text and of the label, and what is said of them where they were guessed.

    >>> choose(Table("a.csv", {"review": ["good"], "stars": ["1"]}, [2]), None, None)[:2]
    ('review', 'stars')
    """
    names = list(table.columns)
    if not names:
        raise DataError(f"{table.name}: there are no columns; each row needs a text and a label")
    for wanted, option in ((text, "--text"), (label, "--label")):
        if wanted is not None and wanted not in names:
            near = difflib.get_close_matches(wanted, names, 1, cutoff=0.4)
            hint = f"did you mean {shown(near[0])}?" if near else f"name one of them with {option}"
            raise DataError(
                f"{table.name}: there is no column {shown(wanted)}; the columns are {listed(names)}; {hint}"
            )
    if text is not None and text == label:
        raise DataError(f"{table.name}: column {shown(text)} cannot be both the text and the label")
    if text is not None and label is not None:
        return text, label, ()
    found_text = text or _known(TEXT_NAMES, [name for name in names if name != label])
    found_label = label or _known(LABEL_NAMES, [name for name in names if name != found_text])
    if len(names) == 2 and (found_text is None) != (found_label is None):
        found_text = found_text or next(name for name in names if name != found_label)
        found_label = found_label or next(name for name in names if name != found_text)
    if found_text is None or found_label is None:
        missing = " and ".join(
            f"the {role} with --{role}" for role, name in (("text", found_text), ("label", found_label)) if name is None
        )
        raise DataError(
            f"{table.name}: the columns are {listed(names)}; say which holds {missing} "
            "(a file without a header row needs one)"
        )
    return (
        found_text,
        found_label,
        (f"{table.name}: texts from column {shown(found_text)}, labels from {shown(found_label)}",),
    )


def _known(candidates: Sequence[str], names: Sequence[str]) -> str | None:
    lowered = {name.lower(): name for name in reversed(names)}
    return next((lowered[candidate] for candidate in candidates if candidate in lowered), None)


def _text(value: Any, table: Table, i: int, column: str) -> str:
    if value is None or value is MISSING:
        raise DataError(f"{table.where(i)}: there is no text; column {shown(column)} is {_absent(value)} here")
    if not isinstance(value, str):
        raise DataError(
            f"{table.where(i)}: column {shown(column)} holds {shown(value)}, not a text; name another with --text"
        )
    if _NOT_CHARACTERS.search(value):
        raise DataError(
            f"{table.where(i)}: the text holds a NUL or half a surrogate pair, which are not characters; take them out"
        )
    return value


def _labels(table: Table, column: str, names: list[str]) -> list[str]:
    numbers = [_number(name) for name in names]
    if any(number is None for number in numbers):
        return names
    for i, number in enumerate(numbers):
        if number is None or not number.is_integer():
            raise DataError(
                f"{table.where(i)}: label {shown(names[i])} is not a whole number, so column {shown(column)} looks "
                "like a regression target; name a column of classes with --label"
            )
    return [_as_integer(name) for name in names]


def settle(name: str, column: str, labels: Iterable[str]) -> dict[str, str]:
    """What each label of a whole file is called: numbers as whole numbers, where all are numbers.

    >>> settle("a.csv", "stars", ["1.0", "0"]), settle("a.csv", "stars", ["1.0", "good"])
    ({'1.0': '1', '0': '0'}, {'1.0': '1.0', 'good': 'good'})
    """
    numbers = {label: _number(label) for label in labels}
    if any(number is None for number in numbers.values()):
        return {label: label for label in numbers}
    for label, number in numbers.items():
        if number is None or not number.is_integer():
            raise DataError(
                f"{name}: label {shown(label)} is not a whole number, so column {shown(column)} looks like a "
                "regression target; name a column of classes with --label"
            )
    return {label: _as_integer(label) for label in numbers}


def _as_integer(name: str) -> str:
    return name if _is_integer(name) else str(int(float(name)))


def _label(value: Any, table: Table, i: int, column: str) -> str:
    if value is None or value is MISSING or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{table.where(i)}: there is no label; column {shown(column)} is {_absent(value)} here")
    if not isinstance(value, str | bool | int | float):
        raise DataError(
            f"{table.where(i)}: column {shown(column)} holds {shown(value)}, not a label; name another with --label"
        )
    if isinstance(value, str) and _NOT_CHARACTERS.search(value):
        raise DataError(
            f"{table.where(i)}: the label holds a NUL or half a surrogate pair, which are not characters; take them out"
        )
    return str(value).strip()


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
