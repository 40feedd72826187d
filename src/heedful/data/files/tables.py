"""A user's file becomes a table whose every row knows its line."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.data.files.text_files import read_text, reason, regular
from heedful.errors import DataError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
MOST_CELLS = 10**8  # of a table of JSON objects, whose keys may come and go


@dataclass(frozen=True)
class Table:
    """Columns of equal length. Row i stands at line `lines[i]` of `name`; a binary file counts rows (`unit`).

    `classes` are the class names of a column that has them in an order of its own.
    """

    name: str
    columns: dict[str, list[Any]]
    lines: list[int]
    unit: str = "line"
    decisions: tuple[str, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def where(self, i: int) -> str:
        """The place of row i, as every error names it.

        >>> Table("reviews.csv", {"text": ["good"]}, [2]).where(0)
        'reviews.csv:2'
        """
        return f"{self.name}:{self.lines[i]}" if self.unit == "line" else f"{self.name}: row {self.lines[i]}"


def read_table(path: Path) -> Table:
    """Read CSV, TSV, JSONL (each also `.gz`) or Parquet; anything wrong is a `DataError` with its line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "reviews.csv"
    ...     _ = file.write_text('text,label\\n"two\\nlines",1\\ngood,1\\n')
    ...     table = read_table(file)
    >>> table.columns, table.lines
    ({'text': ['two\\nlines', 'good'], 'label': ['1', '1']}, [2, 4])
    """
    kind = format_of(path)
    if kind is None:
        raise DataError(f"{path}: {path.suffix or 'no suffix'} is not a format read here; use {', '.join(SUFFIXES)}")
    if kind == ".parquet":
        return _parquet(path)
    text = read_text(path)
    if not text.strip():
        raise DataError(f"{path}: the file is empty; it needs a text and a label in each row")
    if kind == ".jsonl":
        return _jsonl(path, text)
    return _csv(path, text) if kind == ".csv" else _tsv(path, text)


def format_of(path: Path) -> str | None:
    """The suffix that says how a file is read, compressed or not; None if none of ours.

    >>> format_of(Path("reviews.TSV.gz")), format_of(Path("reviews.docx"))
    ('.tsv', None)
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES[:-1] else None
    return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES else None


def shown(value: Any) -> str:
    """A value as an error shows it: on one line, and not at length.

    >>> shown("a\\nb"), shown("x" * 100)
    ("'a\\\\nb'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…")
    """
    printed = repr(value)
    return printed if len(printed) <= 40 else printed[:39] + "…"


def listed(values: Sequence[Any]) -> str:
    """Values as an error lists them.

    >>> listed(["text", "label"])
    "'text', 'label'"
    """
    return ", ".join(map(shown, values[:20])) + (", …" if len(values) > 20 else "")


def _csv(path: Path, text: str) -> Table:
    header = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = next((mark for mark in ",;\t" if mark in header), ",")
    return _delimited(path, _records(path, text, delimiter, csv.QUOTE_MINIMAL))


def _tsv(path: Path, text: str) -> Table:
    try:
        return _delimited(path, _records(path, text, "\t", csv.QUOTE_MINIMAL))
    except _QuoteError:
        said = f"{path}: quotes do not pair up, so they are taken as part of the text"
        return _delimited(path, _records(path, text, "\t", csv.QUOTE_NONE), decisions=(said,))


class _QuoteError(DataError):
    """Quotes that do not pair up."""


def _records(path: Path, text: str, delimiter: str, quoting: int) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line on which it begins."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
        start = 1
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                raise _QuoteError(
                    f"{path}:{start}: the quotes of the row that begins here do not pair up ({reason(error)}); "
                    'a quote within a quoted field is written twice: ""'
                ) from error
            if row:
                yield start, row
            start = rows.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _delimited(path: Path, records: Iterator[tuple[int, list[str]]], decisions: tuple[str, ...] = ()) -> Table:
    line, header = next(records)
    names = [name.strip() for name in header]
    refuse_twins(f"{path}:{line}", names)
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, row in records:
        if len(row) != len(names):
            raise DataError(
                f"{path}:{line}: this row has {len(row)} fields, the header has {len(names)} ({listed(names)}); "
                "quote a field that contains the separator"
            )
        rows.append(row)
        lines.append(line)
    if not rows:
        raise DataError(f"{path}: there is a header ({listed(names)}) but no rows; write one below it for each text")
    return Table(str(path), dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), lines, "line", decisions)


def _jsonl(path: Path, text: str) -> Table:
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        rows.append(as_object(path, line, content))
        lines.append(line)
    return of_objects(path, rows, lines)


def of_objects(path: Path, rows: list[dict[str, Any]], lines: list[int], more: Sequence[str] = ()) -> Table:
    """A table of JSON objects, with a column for every key that one of them has, and for those of `more`."""
    names = list(dict.fromkeys([*(name for row in rows for name in row), *more]))
    if len(names) * len(rows) > MOST_CELLS:
        raise DataError(
            f"{path}:{lines[0]}: the {len(rows):,} lines from here have {len(names):,} different keys, too many for a "
            "table; give every line the same few keys"
        )
    return Table(str(path), {name: [row.get(name, MISSING) for row in rows] for name in names}, lines)


def refuse_twins(where: str, names: Sequence[str]) -> None:
    """Refuse a header in which two columns have one name.

    >>> refuse_twins("a.csv:1", ["text", "text"])
    Traceback (most recent call last):
    heedful.errors.DataError: a.csv:1: two columns are named 'text'; each needs a name of its own
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{where}: two columns are named {shown(name)}; each needs a name of its own")
        seen.add(name)


def as_object(path: Path, line: int, content: str) -> dict[str, Any]:
    """The JSON object of a line; an error with its place where there is none.

    >>> as_object(Path("a.jsonl"), 1, '{"text": "good"}')
    {'text': 'good'}
    """
    try:
        row = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{line}: this line is not JSON: {reason(error)}; write one object a line") from error
    if not isinstance(row, dict):
        raise DataError(f'{path}:{line}: this line is not a JSON object; write such as {{"text": "…", "label": "…"}}')
    return row


class _Missing:
    """A key that a JSON object does not have, unlike one that is null."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


@contextmanager
def open_parquet(path: Path) -> "Iterator[pq.ParquetFile]":
    """A Parquet file whose columns have names of their own; an error that names it where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(regular(path)) as file:
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise DataError(f"{path}: two columns have one name ({listed(names)}); each needs a name of its own")
            yield file
    except (OSError, LookupError, ValueError, AttributeError, MemoryError, RuntimeError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {reason(error)}; write it again") from error


def _parquet(path: Path) -> Table:
    with open_parquet(path) as file:
        table = file.read()
        columns = {name: table[name].to_pylist() for name in table.column_names}
    if table.num_rows == 0:
        raise DataError(f"{path}: there are no rows; write one for each text")
    return Table(str(path), columns, list(range(1, table.num_rows + 1)), "row")
