"""Tables from CSV, TSV, JSONL and Parquet files; every row knows its line.

A table is its chunks: `records`, `objects` and `parquet_rows` read files of any size in bounded memory; `read_table`
joins them, and holds only the columns that are used.
"""

import csv
import io
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.data.files.text_files import (
    MAX_LINE,
    Block,
    blocks,
    byte_lines,
    refuse_bomb,
    refuse_rows,
    refuse_whole,
    split_lines,
)
from heedful.errors import DataError
from heedful.storage.atomic_files import reason, regular
from heedful.storage.parquet_pages import chunk_sizes
from heedful.storage.run_files import open_regular

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
MAX_CELLS = 10**8  # of a table of JSON objects, whose keys may vary
MAX_COLUMNS = 10_000
COUNTED_ROWS = 10_000  # after which their number is compared with the limit
FIRST_LINES = 1000  # of JSON objects, whose keys are the columns to choose from
BATCH_ROWS, BATCH_BYTES = 8192, 1 << 27  # of a Parquet file, decoded at a time
TEXT_RATIO = 20  # text does not compress better than this in a column of Parquet
NESTED_BYTES = 32  # bytes of memory for each byte of a list or an object in JSON


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


# The columns to hold, chosen from a table without rows that has the names of all columns.
Choose = Callable[[Table], Sequence[str]]


def read_table(path: Path, choose: Choose | None = None) -> Table:
    """Read CSV, TSV, JSONL (each also `.gz`) or Parquet; anything wrong is a `DataError` with its line.

    choose: which columns to hold; all by default.

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
        return _parquet(path, choose)
    if kind == ".jsonl":
        return _jsonl(path, choose)
    try:
        return _delimited(path, choose, quoted=True)
    except QuoteError:
        if kind == ".csv":
            raise
        return _delimited(path, choose, quoted=False)


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
    limit = csv.field_size_limit(MAX_LINE)
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
                    check_names(f"{path}:{start}", names)
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


def _delimited(path: Path, choose: Choose | None, *, quoted: bool) -> Table:
    with closing(records(path, quoted=quoted, whole=True)) as numbered:
        _, names = next(numbered)
        header = Table(str(path), {name: [] for name in names}, [])
        places = {name: names.index(name) for name in (choose(header) if choose else names)}
        columns: dict[str, list[Any]] = {name: [] for name in places}
        lines: list[int] = []
        add = [(values.append, places[name]) for name, values in columns.items()]
        for line, row in numbered:
            lines.append(line)
            for append, place in add:
                append(row[place])
            if not len(lines) % COUNTED_ROWS:
                refuse_rows(path, len(lines), len(columns))
    if not lines:
        raise DataError(f"{path}: there is a header ({listed(names)}) but no rows; write one below it for each text")
    return Table(str(path), columns, lines, "line", () if quoted else (unquoted_decision(path),))


def unquoted_decision(path: Path) -> str:
    """The decision to take the quotes of a TSV file as text."""
    return f"{path}: quotes do not pair up, so they are taken as part of the text"


def _jsonl(path: Path, choose: Choose | None) -> Table:
    columns = None if choose is None else tuple(choose(first_objects(path)))
    numbered: list[tuple[int, dict[str, Any]]] = []
    held = 0
    for block in blocks(path, whole=True):
        for line, row in objects(path, block):
            kept = row if columns is None else {name: row[name] for name in columns if name in row}
            held += sum(map(_json_bytes, kept.values()))
            numbered.append((line, kept))
            refuse_rows(path, len(numbered), len(kept))
            refuse_whole(path, held)
    if not numbered:
        raise DataError(f"{path}: the file is empty; it needs a JSON object in each line")
    return of_objects(path, numbered, columns or ())


def _json_bytes(value: Any) -> int:
    """About how much memory a value takes: the length of a text; of anything nested a multiple of what is written."""
    if isinstance(value, str):
        return len(value)
    return NESTED_BYTES * len(json.dumps(value)) if isinstance(value, list | dict) else 0


def first_objects(path: Path) -> Table:
    """The first lines of a file of JSON objects, as a table with all their columns."""
    with closing(byte_lines(path)) as lines:
        first = b"".join(islice(lines, FIRST_LINES))
    table = of_objects(path, list(objects(path, Block(first, 1))))
    if not table.lines:
        raise DataError(f"{path}: the file is empty; it needs a JSON object in each line")
    return table


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


def check_names(where: str, names: Sequence[str]) -> None:
    """Refuse column names that repeat, and more than `MAX_COLUMNS`.

    >>> check_names("a.csv:1", ["text", "text"])
    Traceback (most recent call last):
    heedful.errors.DataError: a.csv:1: two columns are named 'text'; each needs a name of its own
    """
    if len(names) > MAX_COLUMNS:
        raise DataError(f"{where}: {len(names):,} columns are more than {MAX_COLUMNS:,}; give those with the texts")
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
            check_names(str(path), file.schema_arrow.names)
            yield file
    except (OSError, LookupError, ValueError, AttributeError, MemoryError, RuntimeError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {reason(error)}; write it again") from error


def parquet_header(path: Path, file: "pq.ParquetFile") -> Table:
    """The names of the columns, without a row; a column `translation` has the names of its languages."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name in file.schema_arrow.names}
    if "translation" in columns:
        kind = file.schema_arrow.field("translation").type
        columns["translation"] = [{field.name: "" for field in kind}] if pa.types.is_struct(kind) else [str(kind)]
    return Table(str(path), columns, [1], "row")


def parquet_rows(
    path: Path, file: "pq.ParquetFile", columns: Sequence[str], *, whole: bool = False
) -> Iterator[dict[str, list[Any]]]:
    """The values of some columns, a few rows at a time.

    Memory is bounded. Every encoding of Parquet can repeat a value for a few bits, so the size of the file bounds
    nothing: a batch has so few rows that all could hold as much as the largest column chunk, by the headers of its
    pages, and what was decoded is counted. whole: refuse also what is too much to be held at once.
    """
    for name in columns:
        _check_type(path, name, file.schema_arrow.field(name).type)
    size, total, rows = path.stat().st_size, 0, 0
    packed, unpacked, largest = _stored_bytes(path, file, columns)
    refuse_bomb(path, size, unpacked)
    if whole:
        refuse_rows(path, file.metadata.num_rows, len(columns))
        refuse_whole(path, unpacked)
    least = 16 if unpacked <= TEXT_RATIO * packed else 1
    batch_rows = max(least, min(BATCH_ROWS, BATCH_BYTES // max(1, largest)))
    for batch in file.iter_batches(batch_size=batch_rows, columns=list(columns), use_threads=False):
        arrays = {name: _decoded(batch[name]) for name in columns}
        held = sum(array.nbytes for array in arrays.values())
        total, rows = total + held, rows + batch.num_rows
        refuse_bomb(path, size, total)
        if held > batch.num_rows * MAX_LINE:
            raise DataError(f"{path}: row {rows}: a text has more than {MAX_LINE:,} bytes; give one text a row")
        if whole:
            refuse_rows(path, rows, len(columns))
            refuse_whole(path, total)
        yield {name: array.to_pylist() for name, array in arrays.items()}


def _decoded(array: Any) -> Any:
    """An array without dictionaries, so that its size is that of its values."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_struct(array.type):
        fields = [_decoded(field) for field in array.flatten()]
        return pa.StructArray.from_arrays(fields, [field.name for field in array.type], mask=array.is_null())
    return array


def _stored_bytes(path: Path, file: "pq.ParquetFile", columns: Sequence[str]) -> tuple[int, int, int]:
    """The bytes of some columns as stored, the same before compression, and those of the largest column chunk."""
    with open_regular(path, follow=True) as raw:
        sizes = chunk_sizes(raw, file.metadata)
    used = [chunk for chunk in sizes if chunk.column.split(".")[0] in columns or chunk.column in columns]
    unpacked = [chunk.unpacked for chunk in used]
    return sum(chunk.packed for chunk in used), sum(unpacked), max(unpacked, default=0)


def _check_type(path: Path, name: str, kind: Any) -> None:
    """Refuse a column that can hold neither texts nor labels, before a row of it is read."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if name == "translation" and types.is_struct(kind):
        for field in kind:
            _check_type(path, f"{name}.{field.name}", field.type)
        return
    plain = (types.is_string, types.is_large_string, types.is_string_view, types.is_integer, types.is_floating)
    if not any(is_kind(kind) for is_kind in (*plain, types.is_boolean, types.is_null)):
        raise DataError(
            f"{path}: row 1: column {shown(name)} holds values of the type {kind}, not texts or labels; "
            "name another with --text or --label"
        )


def _parquet(path: Path, choose: Choose | None) -> Table:
    with open_parquet(path) as file:
        names = file.schema_arrow.names if choose is None else choose(parquet_header(path, file))
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for part in parquet_rows(path, file, list(columns), whole=True):
            for name, values in part.items():
                columns[name] += values
    rows = len(next(iter(columns.values()), ()))
    if rows == 0:
        raise DataError(f"{path}: there are no rows; write one for each text")
    return Table(str(path), columns, list(range(1, rows + 1)), "row")
