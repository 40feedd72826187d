"""Tables from CSV, TSV, JSONL and Parquet files; every row knows its line.

A table is its chunks: `records` and `objects` read files of any size in bounded memory; `read_table` joins them.
"""

import csv
import io
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.data.files.text_files import MAX_LINE, MAX_WHOLE, Block, blocks, split_lines
from heedful.errors import DataError
from heedful.storage.atomic_files import reason, regular

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
MAX_CELLS = 10**8  # of a table of JSON objects, whose keys may vary


@dataclass(frozen=True)
class Table:
    """Columns of equal length. Row i is at line `lines[i]` of the file `name` (in a binary file, `unit` is "row").

    `classes` are the class names of a column that has them in an order of its own.
    """

    name: str
    columns: dict[str, list[Any]]
    lines: list[int]
    unit: str = "line"
    decisions: tuple[str, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def where(self, i: int) -> str:
        """The place of row i, for errors.

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
    if kind == ".jsonl":
        return _jsonl(path)
    try:
        return _delimited(path, quoted=True)
    except QuoteError:
        if kind == ".csv":
            raise
        return _delimited(path, quoted=False)


def format_of(path: Path) -> str | None:
    """The suffix that decides how a file is read, without `.gz`; None for other formats.

    >>> format_of(Path("reviews.TSV.gz")), format_of(Path("reviews.docx"))
    ('.tsv', None)
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES[:-1] else None
    return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES else None


def shown(value: Any) -> str:
    """A value for an error message: on one line, at most 40 characters.

    >>> shown("a\\nb"), shown("x" * 100)
    ("'a\\\\nb'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…")
    """
    printed = repr(value)
    return printed if len(printed) <= 40 else printed[:39] + "…"


def listed(values: Sequence[Any]) -> str:
    """Values for an error message, at most 20 of them.

    >>> listed(["text", "label"])
    "'text', 'label'"
    """
    return ", ".join(map(shown, values[:20])) + (", …" if len(values) > 20 else "")


class QuoteError(DataError):
    """Quotes in a CSV or TSV file that are not closed, or stand within a field."""


def records(path: Path, *, quoted: bool = True, whole: bool = False) -> Generator[tuple[int, list[str]], None, None]:
    """The column names of a CSV or TSV file, then each row that is not blank, with the line on which it begins.

    quoted: whether quotes enclose fields. whole: as for `text_files.blocks`.
    """
    limit = csv.field_size_limit(MAX_WHOLE if whole else MAX_LINE)
    try:
        with closing(_text_lines(path, whole)) as texts:
            start, header = next(((n, text) for n, text in enumerate(texts, start=1) if text.strip()), (0, ""))
            if not header:
                raise DataError(f"{path}: the file is empty; it needs a header and rows")
            delimiter = "\t" if format_of(path) == ".tsv" else next((mark for mark in ",;\t" if mark in header), ",")
            quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
            reader = csv.reader(chain([header], texts), delimiter=delimiter, quoting=quoting, strict=True)
            before, names = start - 1, None
            while True:
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    raise QuoteError(
                        f"{path}:{start}: the quotes of the row that begins here do not pair up ({reason(error)}); "
                        'a quote within a quoted field is written twice: ""'
                    ) from error
                if names is None:
                    names = row = [name.strip() for name in row]
                    refuse_twins(f"{path}:{start}", names)
                elif row and len(row) != len(names):
                    raise DataError(
                        f"{path}:{start}: this row has {len(row)} fields, the header has {len(names)} "
                        f"({listed(names)}); quote a field that contains the separator"
                    )
                if row:
                    yield start, row
                start = before + reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _text_lines(path: Path, whole: bool) -> Generator[str, None, None]:
    for block in blocks(path, whole=whole):
        yield from io.StringIO(block.decode(path), newline="")


def _delimited(path: Path, *, quoted: bool) -> Table:
    with closing(records(path, quoted=quoted, whole=True)) as numbered:
        _, names = next(numbered)
        rows = list(numbered)
    if not rows:
        raise DataError(f"{path}: there is a header ({listed(names)}) but no rows; write one below it for each text")
    lines, values = zip(*rows, strict=True)
    columns = dict(zip(names, map(list, zip(*values, strict=True)), strict=True))
    return Table(str(path), columns, list(lines), "line", () if quoted else (unquoted_decision(path),))


def unquoted_decision(path: Path) -> str:
    """The decision to take the quotes of a TSV file as text."""
    return f"{path}: quotes do not pair up, so they are taken as part of the text"


def _jsonl(path: Path) -> Table:
    numbered = [record for block in blocks(path, whole=True) for record in objects(path, block)]
    if not numbered:
        raise DataError(f"{path}: the file is empty; it needs a JSON object in each line")
    return of_objects(path, numbered)


def objects(path: Path, block: Block) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a block, one per line that is not blank, with their lines."""
    for line, content in enumerate(split_lines(block.decode(path)), start=block.line):
        if not content.strip():
            continue
        place = f"{path}:{line}: this line is not"
        try:
            row = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place} JSON: {reason(error)}; write one object a line") from error
        if not isinstance(row, dict):
            raise DataError(f'{place} a JSON object; write such as {{"text": "…", "label": "…"}}')
        yield line, row


def of_objects(path: Path, numbered: Sequence[tuple[int, dict[str, Any]]], more: Sequence[str] = ()) -> Table:
    """A table of JSON objects, each with its line: a column for every key of one of them, and for those in `more`."""
    lines, rows = [line for line, _ in numbered], [row for _, row in numbered]
    names = list(dict.fromkeys([*(name for row in rows for name in row), *more]))
    if len(names) * len(rows) > MAX_CELLS:
        raise DataError(
            f"{path}:{lines[0]}: the {len(rows):,} lines from here have {len(names):,} different keys, too many for a "
            "table; give every line the same few keys"
        )
    return Table(str(path), {name: [row.get(name, MISSING) for row in rows] for name in names}, lines)


def refuse_twins(where: str, names: Sequence[str]) -> None:
    """Refuse column names that repeat.

    >>> refuse_twins("a.csv:1", ["text", "text"])
    Traceback (most recent call last):
    heedful.errors.DataError: a.csv:1: two columns are named 'text'; each needs a name of its own
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{where}: two columns are named {shown(name)}; each needs a name of its own")
        seen.add(name)


class _Missing:
    """A key that a JSON object does not have, unlike one that is null."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


@contextmanager
def open_parquet(path: Path) -> "Iterator[pq.ParquetFile]":
    """A Parquet file with distinct column names; a file that cannot be read is an error that names it."""
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
