"""A file larger than memory, some rows at a time: sentence pairs or labelled texts, each row with its place."""

import csv
import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from heedful.config import TaskName
from heedful.data.files.columns import choose, texts_and_names
from heedful.data.files.tables import Table, as_object, format_of, listed, of_objects, open_parquet, refuse_twins
from heedful.data.files.text_files import open_bytes, reason, refuse_bomb, regular, unreadable
from heedful.data.parallel import sides_of_table
from heedful.errors import DataError

LONGEST = 1 << 24  # bytes of a line
BYTES_AT_ONCE = 1 << 20  # of a line, after which it is asked what the file unpacks to


class QuoteError(DataError):
    """Quotes that do not pair up."""


def byte_lines(path: Path) -> Generator[bytes, None, None]:
    """The lines of a file with their ends, the byte-order mark taken off; one that is too long is refused."""
    with open_bytes(path) as file:
        number, total = 0, 0
        try:
            size = path.stat().st_size
            while line := file.readline(LONGEST):
                number += 1
                total += len(line)
                if not number % 10_000 or len(line) > BYTES_AT_ONCE:
                    refuse_bomb(path, size, total)
                if len(line) == LONGEST and not line.endswith(b"\n"):
                    raise DataError(
                        f"{path}:{number}: this line has more than {LONGEST:,} bytes; give one sentence a line"
                    )
                yield line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(path, error) from error


def _text_stream(path: Path) -> Generator[str, None, None]:
    for number, line in enumerate(byte_lines(path), start=1):
        yield _decoded(path, line, number)


def text_lines(path: Path, block: bytes, start: int) -> list[str]:
    r"""The lines of a block, without their ends. Only `\n` ends a line."""
    text = _decoded(path, block, start + 1)
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _decoded(path: Path, block: bytes, line: int) -> str:
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        line += block.count(b"\n", 0, error.start)
        raise DataError(
            f"{path}:{line}: byte 0x{block[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error
    zero = block.find(b"\0")
    if zero >= 0:
        line += block.count(b"\n", 0, zero)
        raise DataError(f"{path}:{line}: there is a NUL byte; save it as plain UTF-8 text")
    return text


def records(path: Path, *, quoted: bool = True) -> Generator[tuple[int, list[str]], None, None]:
    """The header's names, then each row that is not blank, with the line on which it begins.

    quoted: whether quotes enclose the fields.
    """
    limit = csv.field_size_limit(LONGEST)
    try:
        with closing(_text_stream(path)) as texts:
            begun = next((text for text in texts if text.strip()), None)
            if begun is None:
                raise DataError(f"{path}: the file is empty; it needs a header and rows")
            tabs = format_of(path) == ".tsv"
            delimiter = "\t" if tabs else next((mark for mark in ",;\t" if mark in begun), ",")
            quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
            reader = csv.reader(_again(begun, texts), delimiter=delimiter, quoting=quoting, strict=True)
            start, named = 1, False
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
                if row:
                    yield start, row if named else [name.strip() for name in row]
                    named = True
                start = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _again(begun: str, rest: Iterator[str]) -> Iterator[str]:
    yield begun
    yield from rest


@dataclass(frozen=True)
class Streamed:
    """Files to be read piece by piece: two of lines, or one table and its two columns.

    `first` and `second` are the columns of the source and the target, or of the text and the label.
    """

    task: TaskName
    path: Path
    target: Path | None = None
    first: str = ""
    second: str = ""
    quoted: bool = True  # whether quotes enclose the fields of a TSV file

    @property
    def name(self) -> str:
        """What the data are called."""
        return self.path.name.removesuffix(".gz")

    @property
    def unit(self) -> str:
        """What places of rows are counted in."""
        return "row" if format_of(self.path) == ".parquet" and self.target is None else "line"

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in (self.path, self.target) if path is not None)


def streamed(
    data: str | Path, target: str | Path | None = None, *, task: TaskName, first: str | None, second: str | None
) -> Streamed:
    """What is to be read, its columns found and checked by a look at the first rows."""
    path = regular(Path(os.path.expanduser(data)))
    if target is not None:
        return Streamed("translation", path, regular(Path(os.path.expanduser(target))))
    if format_of(path) is None:
        raise DataError(
            f"{path}: this format is not read piece by piece; give .csv, .tsv, .jsonl (each also .gz), .parquet, "
            "or two text files"
        )
    plain = Streamed(task, path)
    try:
        beginning = _beginning(plain)
    except QuoteError:
        if format_of(path) != ".tsv":
            raise
        beginning = _beginning(replace(plain, quoted=False))
    if task == "translation":
        columns, _ = sides_of_table(beginning, first, second)
        return replace(plain, first=columns[0], second=columns[1])
    text, label, _ = choose(beginning, first, second)
    return replace(plain, first=text, second=label)


def _beginning(of: Streamed) -> Table:
    """The first rows, with all columns."""
    kind = format_of(of.path)
    if kind == ".parquet":
        return _parquet_beginning(of.path)
    if kind == ".jsonl":
        with closing(byte_lines(of.path)) as lines:
            block = [line for line, _ in zip(lines, range(1000), strict=False)]
        table = json_table(of, b"".join(block), 0)
        if not table.lines:
            raise DataError(f"{of.path}: the file is empty; it needs a JSON object in each line")
        return table
    with closing(records(of.path, quoted=of.quoted)) as rows:
        _, names = next(rows)
    refuse_twins(f"{of.path}:1", names)
    return Table(str(of.path), {name: [] for name in names}, [])


def _parquet_beginning(path: Path) -> Table:
    with open_parquet(path) as file:
        some = next(file.iter_batches(batch_size=10), None)
        columns = {name: [] if some is None else some[name].to_pylist() for name in file.schema_arrow.names}
    return Table(str(path), columns, list(range(1, len(next(iter(columns.values()), [])) + 1)), "row")


def json_table(of: Streamed, block: bytes, start: int) -> Table:
    """A block of lines, each a JSON object, as a table; `start` is the number of its first line, from 0."""
    rows: list[dict[str, Any]] = []
    places: list[int] = []
    for place, content in enumerate(text_lines(of.path, block, start), start=start + 1):
        if content.strip():
            rows.append(as_object(of.path, place, content))
            places.append(place)
    sought: tuple[str, ...] = (of.first, of.second) if of.first else ()
    if of.task == "translation" and sought and any("translation" in row for row in rows):
        rows = [{name: value for name, value in row.items() if name not in sought} for row in rows]
        sought = ()
    return of_objects(of.path, rows, places, sought)


def is_large(data: Any, target: Any, above: int) -> bool:
    """Whether these are files of more bytes than that.

    >>> is_large("rotten-tomatoes", None, 0)
    False
    """
    total = 0
    for given in (data, target):
        if isinstance(given, str | Path):
            path = Path(os.path.expanduser(given))
            try:
                total += path.stat().st_size * (4 if path.suffix.lower() == ".gz" else 1) if path.is_file() else 0
            except (OSError, ValueError):
                return False
    return total > above


ROWS = 50_000  # in a chunk
BYTES = 1 << 26  # and no more than these


@dataclass(frozen=True)
class Chunk:
    """Rows as they were read: lines of both sides, lines of JSON, or the fields of two columns.

    `start` is the number of its first row, from 0; `done` how many bytes of the files lie behind its last.
    """

    of: Streamed
    start: int
    lines: tuple[int, ...] | None  # None: one row a line
    first: bytes | tuple[Any, ...]
    second: bytes | tuple[Any, ...] | None
    done: int

    def rows(self) -> tuple[list[str], list[str], list[int]]:
        """Both sides of every row, checked, and its place; numbers among labels are still as they stand."""
        if isinstance(self.first, bytes) and isinstance(self.second, bytes):
            assert self.of.target is not None
            first = text_lines(self.of.path, self.first, self.start)
            second = text_lines(self.of.target, self.second, self.start)
            return first, second, list(range(self.start + 1, self.start + 1 + len(first)))
        table = self._table()
        if self.of.task == "translation":
            _, (first, second) = sides_of_table(table, self.of.first, self.of.second)
        else:
            first, second = texts_and_names(table, self.of.first, self.of.second)
        return first, second, table.lines

    def _table(self) -> Table:
        if isinstance(self.first, bytes):
            return json_table(self.of, self.first, self.start)
        assert isinstance(self.second, tuple)
        assert self.lines is not None
        columns = {self.of.first: list(self.first), self.of.second: list(self.second)}
        return Table(str(self.of.path), columns, list(self.lines), self.of.unit)


def chunks(of: Streamed, rows: int = ROWS) -> Iterator[Chunk]:
    """The rows of the files, some at a time, from the beginning; the same each time."""
    if of.target is not None:
        return _line_chunks(of, of.target, rows)
    kind = format_of(of.path)
    if kind == ".parquet":
        return _parquet_chunks(of, rows)
    return _json_chunks(of, rows) if kind == ".jsonl" else _field_chunks(of, rows)


def _line_chunks(of: Streamed, other: Path, rows: int) -> Iterator[Chunk]:
    with closing(byte_lines(of.path)) as one, closing(byte_lines(other)) as two:
        start, done = 0, 0
        while True:
            block = _block(of, one, two, other, start, rows)
            if not block[0]:
                return
            first, second = b"".join(block[0]), b"".join(block[1])
            done += len(first) + len(second)
            yield Chunk(of, start, None, first, second, done)
            start += len(block[0])


def _block(
    of: Streamed, one: Iterator[bytes], two: Iterator[bytes], other: Path, start: int, rows: int
) -> tuple[list[bytes], list[bytes]]:
    first: list[bytes] = []
    second: list[bytes] = []
    held = 0
    while len(first) < rows and held < BYTES:
        x, y = next(one, None), next(two, None)
        if x is None and y is None:
            break
        if x is None or y is None:
            short, long = (of.path, other) if x is None else (other, of.path)
            line = start + len(first) + 1
            raise DataError(
                f"{short} ends after {line - 1:,} lines, before {long}:{line}. "
                "Line n of one must translate line n of the other"
            )
        first.append(x)
        second.append(y)
        held += len(x) + len(y)
    return first, second


def _json_chunks(of: Streamed, rows: int) -> Iterator[Chunk]:
    held: list[bytes] = []
    start, size, done = 0, 0, 0
    with closing(byte_lines(of.path)) as lines:
        for line in lines:
            held.append(line)
            size += len(line)
            if len(held) == rows or size >= BYTES:
                done += size
                yield Chunk(of, start, None, b"".join(held), None, done)
                start, size, held = start + len(held), 0, []
    if held:
        yield Chunk(of, start, None, b"".join(held), None, done + size)


def _field_chunks(of: Streamed, rows: int) -> Iterator[Chunk]:
    found = records(of.path, quoted=of.quoted)
    _, names = next(found)
    at = _columns(of, names)
    held: list[tuple[int, str, str]] = []
    start, size, done = 0, 0, 0
    for line, row in found:
        if len(row) != len(names):
            raise DataError(
                f"{of.path}:{line}: this row has {len(row)} fields, the header has {len(names)} ({listed(names)}); "
                "quote a field that contains the separator"
            )
        held.append((line, row[at[0]], row[at[1]]))
        size += sum(map(len, row))
        if len(held) == rows or size >= BYTES:
            done += size
            yield _fields(of, start, held, done)
            start, size, held = start + len(held), 0, []
    if held:
        yield _fields(of, start, held, done + size)


def _fields(of: Streamed, start: int, held: list[tuple[int, Any, Any]], done: int) -> Chunk:
    lines, first, second = zip(*held, strict=True)
    return Chunk(of, start, lines, first, second, done)


def _columns(of: Streamed, names: list[str]) -> tuple[int, int]:
    refuse_twins(f"{of.path}:1", names)
    return names.index(of.first), names.index(of.second)


def _parquet_chunks(of: Streamed, rows: int) -> Iterator[Chunk]:
    with open_parquet(of.path) as file:
        total, start = max(1, file.metadata.num_rows), 0
        nested = of.task == "translation" and "translation" in file.schema_arrow.names
        columns = ["translation"] if nested else [of.first, of.second]
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            if nested:
                values = batch["translation"].to_pylist()
                sides = [[value and value.get(name) for value in values] for name in (of.first, of.second)]
            else:
                sides = [batch[name].to_pylist() for name in columns]
            end = start + batch.num_rows
            lines = tuple(range(start + 1, end + 1))
            yield Chunk(of, start, lines, tuple(sides[0]), tuple(sides[1]), of.size * end // total)
            start = end
