"""A file larger than memory, some rows at a time: sentence pairs or labelled texts, each row with its place."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.columns import texts_and_names
from heedful.data.pairs import sides_of_table
from heedful.data.pieces import byte_lines, records, text_lines
from heedful.data.readers import Table, format_of, listed, open_parquet, refuse_twins
from heedful.data.streamed import Streamed, json_table
from heedful.errors import DataError

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
