"""Files of any size in chunks: sentence pairs or labelled texts, each row with its place.

A chunk holds rows as they were read, so that a worker can do the parsing.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from heedful.config import TaskName
from heedful.data.files.columns import sources_and_targets, text_and_label_columns, texts_and_labels
from heedful.data.files.tables import (
    QuoteError,
    Table,
    first_objects,
    format_of,
    objects,
    of_objects,
    open_parquet,
    parquet_header,
    parquet_rows,
    records,
)
from heedful.data.files.text_files import Block, byte_lines, is_packed, split_lines
from heedful.errors import DataError
from heedful.storage.atomic_files import regular

ROWS = 50_000  # of a chunk
MAX_BYTES = 1 << 26  # of a chunk
GZIP_RATIO = 4  # about what text unpacks to
T = TypeVar("T")


@dataclass(frozen=True)
class FileStream:
    """Files to be read in chunks: two text files, or one table and its two columns.

    `text` and `label` are the columns of the text and the label, or of the source and the target.
    """

    task: TaskName
    path: Path
    target: Path | None = None
    text: str = ""
    label: str = ""
    quoted: bool = True  # whether quotes enclose the fields of a TSV file

    @property
    def name(self) -> str:
        """The name of the data."""
        return self.path.name.removesuffix(".gz")

    @property
    def unit(self) -> str:
        """What the places of rows count."""
        return "row" if format_of(self.path) == ".parquet" and self.target is None else "line"

    @property
    def bytes(self) -> int:
        """Bytes to be read: on disk, or about as many as a packed file unpacks to."""
        return sum(_unpacked_bytes(path) for path in (self.path, self.target) if path is not None)


def open_stream(
    data: str | Path,
    target: str | Path | None = None,
    *,
    task: TaskName,
    text: str | None = None,
    label: str | None = None,
) -> FileStream:
    """The files to be read, their columns found and checked in the first rows."""
    path = regular(Path(os.path.expanduser(data)))
    if target is not None:
        return FileStream("translation", path, regular(Path(os.path.expanduser(target))))
    if format_of(path) is None:
        raise DataError(
            f"{path}: this format is not read in chunks; give .csv, .tsv, .jsonl (each also .gz), .parquet, "
            "or two text files"
        )
    stream = FileStream(task, path)
    try:
        first_rows = _first_rows(stream)
    except QuoteError:
        if format_of(path) != ".tsv":
            raise
        first_rows = _first_rows(replace(stream, quoted=False))
    if task == "translation":
        (text, label), _ = sources_and_targets(first_rows, text, label)
    else:
        text, label, _ = text_and_label_columns(first_rows, text, label)
    return replace(stream, text=text, label=label)


def is_large(data: Any, target: Any, above: int) -> bool:
    """Whether these are files of more bytes than that, unpacked.

    >>> is_large("rotten-tomatoes", None, 0)
    False
    """
    total = 0
    for given in (data, target):
        if isinstance(given, str | Path):
            path = Path(os.path.expanduser(given))
            try:
                total += _unpacked_bytes(path) if path.is_file() else 0
            except (OSError, ValueError):
                return False
    return total > above


def _unpacked_bytes(path: Path) -> int:
    return path.stat().st_size * (GZIP_RATIO if is_packed(path) else 1)


@dataclass(frozen=True)
class Chunk:
    """Rows as they were read: lines of both sides, lines of JSON, or the values of columns.

    `start` is the index of its first row (of its first line, in JSON); `done` the bytes read up to its end.
    """

    stream: FileStream
    start: int
    content: tuple[bytes, bytes] | bytes | Table
    done: int

    def rows(self) -> tuple[list[str], list[str], list[int]]:
        """Both sides of every row, checked, and its place; numbers among labels are still as they were written."""
        stream = self.stream
        if isinstance(self.content, tuple):
            assert stream.target is not None
            source, target = (
                split_lines(Block(content, self.start + 1).decode(path))
                for path, content in zip((stream.path, stream.target), self.content, strict=True)
            )
            return source, target, list(range(self.start + 1, self.start + 1 + len(source)))
        table = self.content if isinstance(self.content, Table) else _json_table(stream, self.content, self.start)
        if stream.task == "translation":
            _, (first, second) = sources_and_targets(table, stream.text, stream.label)
        else:
            first, second = texts_and_labels(table, stream.text, stream.label)
        return first, second, table.lines


def chunks(stream: FileStream, rows: int = ROWS) -> Iterator[Chunk]:
    """The rows of the files in chunks, from the beginning; the same ones each time."""
    if stream.target is not None:
        return _line_chunks(stream, stream.target, rows)
    kind = format_of(stream.path)
    if kind == ".parquet":
        return _parquet_chunks(stream, rows)
    return _json_chunks(stream, rows) if kind == ".jsonl" else _record_chunks(stream, rows)


def _first_rows(stream: FileStream) -> Table:
    """A table of the first rows, with all columns."""
    kind, place = format_of(stream.path), str(stream.path)
    if kind == ".parquet":
        with open_parquet(stream.path) as file:
            return parquet_header(stream.path, file)
    if kind == ".jsonl":
        return first_objects(stream.path)
    with closing(records(stream.path, quoted=stream.quoted)) as rows:
        _, names = next(rows)
    return Table(place, {name: [] for name in names}, [])


def _json_table(stream: FileStream, content: bytes, start: int) -> Table:
    numbered = list(objects(stream.path, Block(content, start + 1)))
    columns: tuple[str, ...] = (stream.text, stream.label) if stream.text else ()
    if stream.task == "translation" and columns and any("translation" in row for _, row in numbered):
        numbered = [(line, {k: v for k, v in row.items() if k not in columns}) for line, row in numbered]
        columns = ()
    return of_objects(stream.path, numbered, columns)


def _batched(items: Iterable[T], size: Callable[[T], int], rows: int) -> Iterator[tuple[int, list[T], int]]:
    """Items, so many at a time or fewer if they are large: the index of the first, the items, the bytes up to them."""
    held: list[T] = []
    start, done, held_bytes = 0, 0, 0
    for item in items:
        held.append(item)
        held_bytes += size(item)
        if len(held) == rows or held_bytes >= MAX_BYTES:
            done += held_bytes
            yield start, held, done
            start, held, held_bytes = start + len(held), [], 0
    if held:
        yield start, held, done + held_bytes


def _line_chunks(stream: FileStream, target: Path, rows: int) -> Iterator[Chunk]:
    pairs = _paired_lines(stream.path, target)
    for start, lines, done in _batched(pairs, lambda pair: len(pair[0]) + len(pair[1]), rows):
        sources, targets = map(b"".join, zip(*lines, strict=True))
        yield Chunk(stream, start, (sources, targets), done)


def _paired_lines(source: Path, target: Path) -> Iterator[tuple[bytes, bytes]]:
    with closing(byte_lines(source)) as sources, closing(byte_lines(target)) as targets:
        for before, (x, y) in enumerate(zip_longest(sources, targets)):
            if x is None or y is None:
                short, long = (source, target) if x is None else (target, source)
                raise DataError(
                    f"{short} ends after {before:,} lines, before {long}:{before + 1}. "
                    "Line n of one must translate line n of the other"
                )
            yield x, y


def _json_chunks(stream: FileStream, rows: int) -> Iterator[Chunk]:
    with closing(byte_lines(stream.path)) as all_lines:
        for start, lines, done in _batched(all_lines, len, rows):
            yield Chunk(stream, start, b"".join(lines), done)


def _record_chunks(stream: FileStream, rows: int) -> Iterator[Chunk]:
    with closing(records(stream.path, quoted=stream.quoted)) as numbered:
        _, names = next(numbered)
        places = {name: names.index(name) for name in (stream.text, stream.label)}
        for start, held, done in _batched(numbered, lambda record: sum(map(len, record[1])), rows):
            columns: dict[str, list[Any]] = {name: [row[k] for _, row in held] for name, k in places.items()}
            yield Chunk(stream, start, Table(str(stream.path), columns, [line for line, _ in held], stream.unit), done)


def _parquet_chunks(stream: FileStream, rows: int) -> Iterator[Chunk]:
    with open_parquet(stream.path) as file:
        total = max(1, file.metadata.num_rows)
        nested = stream.task == "translation" and "translation" in file.schema_arrow.names
        names = ["translation"] if nested else [stream.text, stream.label]
        parts = parquet_rows(stream.path, file, names)
        for start, held, _ in _batched(_rows(parts, names), _row_bytes, rows):
            columns: dict[str, list[Any]] = dict(zip(names, map(list, zip(*held, strict=True)), strict=True))
            end = start + len(held)
            table = Table(str(stream.path), columns, list(range(start + 1, end + 1)), stream.unit)
            yield Chunk(stream, start, table, stream.bytes * end // total)


def _rows(parts: Iterable[dict[str, list[Any]]], names: list[str]) -> Iterator[tuple[Any, ...]]:
    for part in parts:
        yield from zip(*(part[name] for name in names), strict=True)


def _row_bytes(row: tuple[Any, ...]) -> int:
    values = (value.values() if isinstance(value, dict) else (value,) for value in row)
    return sum(len(value) for group in values for value in group if isinstance(value, str))
