"""Rows of an audit: a text or two of each, and the label or output that belongs to it, where the data have one.

A model that exists already needs less than one that is to be trained: no splits, and no labels.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import ModelTask
from heedful.data.files.columns import (
    LABEL_NAMES,
    MAX_CLASSES,
    SOURCE_NAMES,
    TARGET_NAMES,
    TEXT_NAMES,
    checked_text,
    first_of,
    label_names,
    left_out,
    missing_column,
)
from heedful.data.files.tables import MISSING, Table, listed, read_table, shown
from heedful.data.files.text_files import read_lines
from heedful.data.in_memory import tables_in_memory
from heedful.errors import DataError

Text = str | tuple[str, str]
PAIR_NAMES = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("question", "passage"),
    ("query", "document"),
    ("query", "passage"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("text", "text_b"),
)
SECRET = "-1"  # the label of test sets whose labels are not published
_SEPARATORS = re.compile(r"\s*[,;|]\s*")


@dataclass(frozen=True)
class Rows:
    """texts: one or two to a row. labels: None where a row has none. names: of the classes among them, in order.

    A label is the name of a class; for `multi-label` the names of all that apply; for `token-classification` a name for
    each word of the text, whose words `words` has; for the other tasks the output to explain.
    """

    name: str
    texts: tuple[Text, ...]
    labels: tuple[Any, ...]
    names: tuple[str, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    decisions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roles:
    """The usual names of the columns of a task, and how the value of a label is read."""

    texts: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    read: Callable[[Any], Any]


def read_rows(
    data: Any,
    *,
    task: ModelTask = "classification",
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    split: str | None = None,
) -> Rows:
    """The rows of a file or of data in memory; rows with an empty text are left out and reported.

    text: a column, or two separated by a comma for pairs of texts; obvious ones are found, and so is that of the label.
    split: of a `DatasetDict`; by default its test set, or its validation set, or what there is.

    >>> rows = read_rows({"premise": ["A cat sleeps."], "hypothesis": ["It is awake."], "label": [0]})
    >>> rows.texts, rows.labels
    ((('A cat sleeps.', 'It is awake.'),), ('0',))
    >>> read_rows(["so good", "so dull"]).labels
    (None, None)
    """
    table = _table(data, split)
    roles, names = ROLES[task], list(table.columns)
    columns = _text_columns(table, roles, text, label)
    label = _label_column(table, roles, columns, label)
    texts, words = _texts(table, columns, many=task == "token-classification")
    labels = [None] * len(texts) if label is None else _labels(table, label, roles.read)
    kept = [i for i, parts in enumerate(texts) if all(part.strip() for part in parts)]
    empty = [table.lines[i] for i in range(len(texts)) if i not in set(kept)]
    if not kept:
        raise DataError(f"{table.name}: every text in {listed(columns)} is empty; name another column with --text")
    decisions = table.decisions
    if text is None and len(names) > 1:
        of_labels = "no labels" if label is None else f"labels from {shown(label)}"
        decisions += (f"{table.name}: texts from column {listed(columns)}, {of_labels}",)
    if empty:
        decisions += (left_out(table.name, len(empty), empty, table.unit, "row", "with an empty text"),)
    classes: tuple[str, ...] = ()
    if label is not None and roles.read is _class_name:
        labels, classes = _classes(table, label, labels)
    return Rows(
        table.name,
        tuple((texts[i][0], texts[i][1]) if len(columns) == 2 else texts[i][0] for i in kept),
        tuple(labels[i] for i in kept),
        classes,
        tuple(words[i] for i in kept) if words else (),
        decisions,
    )


def single_text(number: int, text: Text) -> str:
    """A text; an error if it is a pair.

    >>> single_text(3, ("a cat", "a dog"))
    Traceback (most recent call last):
    heedful.errors.DataError: text 3 is a pair; this takes one text to a row
    """
    if not isinstance(text, str):
        raise DataError(f"text {number} is a pair; this takes one text to a row")
    return text


def _table(data: Any, split: str | None) -> Table:
    if isinstance(data, str | Path):
        path = Path(os.path.expanduser(data))
        if path.suffix.lower() == ".txt":
            lines = read_lines(path)
            return Table(str(path), {"text": list(lines)}, list(range(1, len(lines) + 1)))
        return read_table(path)
    tables = tables_in_memory(data)
    for name in (split,) if split else ("test", "validation", "train"):
        if name in tables:
            return tables[name]
    raise DataError(f"the dataset has no split {split!r}; there are {listed(list(tables))}")


def _text_columns(table: Table, roles: Roles, text: str | Sequence[str] | None, label: str | None) -> tuple[str, ...]:
    names = list(table.columns)
    if text is not None:
        wanted = (text,) if isinstance(text, str) and text in names else _split_names(text)
        if len(wanted) > 2 or len(set(wanted)) < len(wanted):
            raise DataError(f"--text names {listed(wanted)}; a row has one text or a pair of two")
        for name in wanted:
            missing_column(table.name, names, name, "--text")
        return wanted
    for first, second in roles.pairs:
        pair = [first_of((name,), names, without=label) for name in (first, second)]
        if pair[0] is not None and pair[1] is not None:
            return pair[0], pair[1]
    found = first_of(roles.texts, names, without=label)
    others = [name for name in names if name != label and name.lower() not in roles.labels]
    if found is None and len(others) == 1:
        found = others[0]
    if found is None or not roles.texts:
        needed = "the texts with --text A,B" if not roles.texts else "the text with --text"
        raise DataError(
            f"{table.name}: the columns are {listed(names)}; say which holds {needed} "
            "(a file without a header row needs one)"
        )
    return (found,)


def _label_column(table: Table, roles: Roles, texts: tuple[str, ...], label: str | None) -> str | None:
    names = list(table.columns)
    if label is not None:
        missing_column(table.name, names, label, "--label")
        if label in texts:
            raise DataError(f"{table.name}: column {shown(label)} cannot be both the text and the label")
        return label
    others = [name for name in names if name not in texts]
    found = first_of(roles.labels, others, without=None)
    if found is None and len(others) == 1 and roles.read is _class_name:
        values = {str(value) for value in table.columns[others[0]]}
        if len(values) <= MAX_CLASSES and (len(values) < len(table.lines) or len(values) <= 4):
            return others[0]
    return found


def _texts(
    table: Table, columns: tuple[str, ...], *, many: bool
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The texts of each row; and its words, where the column holds lists of words."""
    values = table.columns[columns[0]]
    if many and any(isinstance(value, list | tuple) for value in values):
        words = []
        for i, value in enumerate(values):
            if not isinstance(value, list | tuple):
                raise DataError(
                    f"{table.where(i)}: column {shown(columns[0])} holds {shown(value)}, not a list of words"
                )
            words.append(tuple(checked_text(word, table, i, columns[0]) for word in value))
        return [(" ".join(own),) for own in words], words
    texts = [
        tuple(checked_text(table.columns[column][i], table, i, column) for column in columns)
        for i in range(len(table.lines))
    ]
    return texts, [tuple(parts[0].split()) for parts in texts] if many else []


def _labels(table: Table, column: str, read: Callable[[Any], Any]) -> list[Any]:
    labels = []
    for i, value in enumerate(table.columns[column]):
        absent = value is None or value is MISSING or (isinstance(value, str) and not value.strip())
        try:
            labels.append(None if absent else read(value))
        except (TypeError, ValueError, KeyError) as error:
            raise DataError(
                f"{table.where(i)}: column {shown(column)} holds {shown(value)}, not {error}; name another with --label"
            ) from error
    return labels


def _classes(table: Table, column: str, labels: Sequence[str | None]) -> tuple[list[str | None], tuple[str, ...]]:
    """Labels with numbers written as whole numbers, and the classes in their order."""
    first: dict[str, str] = {}
    for i, label in enumerate(labels):
        if label is not None and not (label == SECRET and table.classes.get(column)):
            first.setdefault(label, table.where(i))
    named = label_names(column, first)
    known = [None if label is None else named.get(label) for label in labels]
    names = {label for label in known if label is not None}
    if names <= set(table.classes.get(column, ())):
        return known, tuple(name for name in table.classes[column] if name in names)
    by_number = all(re.fullmatch(r"-?\d{1,300}", name) for name in names)
    return known, tuple(sorted(names, key=int if by_number else None))


def _split_names(text: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if isinstance(text, str) else tuple(text)


def _class_name(value: Any) -> str:
    if not isinstance(value, str | bool | int | float):
        raise TypeError("a label")
    return str(value).strip()


def _class_list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(name for name in _SEPARATORS.split(value.strip()) if name)
    if isinstance(value, list | tuple):
        return tuple(_class_name(part) for part in value)
    return (_class_name(value),)


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())
    if not isinstance(value, list | tuple):
        raise TypeError("a list of labels, one for each word")
    return tuple(_class_name(tag) for tag in value)


def _output(value: Any) -> str:
    """A text; of the answers of SQuAD, {"text": […]}, the first."""
    if isinstance(value, dict):
        value = value["text"]
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if not isinstance(value, str):
        raise TypeError("a text")
    return value


def _ignored(value: Any) -> None:
    return None


ROLES: dict[ModelTask, Roles] = {
    "classification": Roles(TEXT_NAMES, PAIR_NAMES, LABEL_NAMES, _class_name),
    "multi-label": Roles(TEXT_NAMES, PAIR_NAMES, LABEL_NAMES, _class_list),
    "regression": Roles(TEXT_NAMES, PAIR_NAMES, (*LABEL_NAMES, "score"), _ignored),
    "token-classification": Roles(
        ("tokens", "words", *TEXT_NAMES), (), ("ner_tags", "tags", "pos_tags", "upos", "labels", "label"), _tags
    ),
    "question-answering": Roles((), (("question", "context"),), ("answers", "answer"), _output),
    "fill-mask": Roles(TEXT_NAMES, (), ("word", "answer", "target", "label"), _output),
    "text-generation": Roles(
        ("prompt", "input", *TEXT_NAMES), (), ("completion", "response", "continuation", "output", "target"), _output
    ),
    "translation": Roles((*SOURCE_NAMES, *TEXT_NAMES), (), TARGET_NAMES, _output),
}
