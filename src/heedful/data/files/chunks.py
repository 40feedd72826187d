"""Files of any size in chunks: sentence pairs or labelled texts, each row with its place.

A chunk holds rows as they were read, so that a worker can do the parsing.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.config import TaskName
from heedful.data.files.columns import sources_and_targets, text_and_label_columns, texts_and_labels
from heedful.data.files.tables import QuoteError, Table, format_of, objects, of_objects, open_parquet, records
from heedful.data.files.text_files import Block, byte_lines, is_packed, split_lines
from heedful.errors import DataError
from heedful.storage.atomic_files import regular

ROWS = 50_000  # of a chunk
MAX_BYTES = 1 << 26  # of a chunk
GZIP_RATIO = 4  # about what text unpacks to


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
            some = next(file.iter_batches(batch_size=10), None)
            columns = {name: [] if some is None else some[name].to_pylist() for name in file.schema_arrow.names}
        return Table(place, columns, list(range(1, (0 if some is None else some.num_rows) + 1)), "row")
    if kind == ".jsonl":
        with closing(byte_lines(stream.path)) as lines:
            table = _json_table(stream, b"".join(islice(lines, 1000)), 0)
        if not table.lines:
            raise DataError(f"{place}: the file is empty; it needs a JSON object in each line")
        return table
    with closing(records(stream.path, quoted=stream.quoted)) as rows:
        _, names = next(rows)
    return Table(place, {name: [] for name in names}, [])


def _json_table(stream: FileStream, content: bytes, start: int) -> Table:
    numbered = list(objects(stream.path, Block(content, start + 1)))
    lines, rows = [line for line, _ in numbered], [row for _, row in numbered]
    columns: tuple[str, ...] = (stream.text, stream.label) if stream.text else ()
    if stream.task == "translation" and columns and any("translation" in row for row in rows):
        rows = [{name: value for name, value in row.items() if name not in columns} for row in rows]
        columns = ()
    return of_objects(stream.path, rows, lines, columns)


def _line_chunks(stream: FileStream, target: Path, rows: int) -> Iterator[Chunk]:
    with closing(byte_lines(stream.path)) as sources, closing(byte_lines(target)) as targets:
        start, done = 0, 0
        while True:
            first, second = _paired_lines(stream.path, target, sources, targets, start, rows)
            if not first:
                return
            content = b"".join(first), b"".join(second)
            done += sum(map(len, content))
            yield Chunk(stream, start, content, done)
            start += len(first)


def _paired_lines(
    source: Path, target: Path, sources: Iterator[bytes], targets: Iterator[bytes], start: int, rows: int
) -> tuple[list[bytes], list[bytes]]:
    first: list[bytes] = []
    second: list[bytes] = []
    size = 0
    while len(first) < rows and size < MAX_BYTES:
        x, y = next(sources, None), next(targets, None)
        if x is None and y is None:
            break
        if x is None or y is None:
            short, long = (source, target) if x is None else (target, source)
            line = start + len(first) + 1
            raise DataError(
                f"{short} ends after {line - 1:,} lines, before {long}:{line}. "
                "Line n of one must translate line n of the other"
            )
        first.append(x)
        second.append(y)
        size += len(x) + len(y)
    return first, second


def _json_chunks(stream: FileStream, rows: int) -> Iterator[Chunk]:
    held: list[bytes] = []
    start, size, done = 0, 0, 0
    with closing(byte_lines(stream.path)) as lines:
        for line in lines:
            held.append(line)
            size += len(line)
            if len(held) == rows or size >= MAX_BYTES:
                done += size
                yield Chunk(stream, start, b"".join(held), done)
                start, size, held = start + len(held), 0, []
    if held:
        yield Chunk(stream, start, b"".join(held), done + size)


def _record_chunks(stream: FileStream, rows: int) -> Iterator[Chunk]:
    numbered = records(stream.path, quoted=stream.quoted)
    _, names = next(numbered)
    text, label = names.index(stream.text), names.index(stream.label)
    held: list[tuple[int, str, str]] = []
    start, size, done = 0, 0, 0
    for line, row in numbered:
        held.append((line, row[text], row[label]))
        size += sum(map(len, row))
        if len(held) == rows or size >= MAX_BYTES:
            done += size
            yield Chunk(stream, start, _record_table(stream, held), done)
            start, size, held = start + len(held), 0, []
    if held:
        yield Chunk(stream, start, _record_table(stream, held), done + size)


def _record_table(stream: FileStream, held: list[tuple[int, str, str]]) -> Table:
    lines, texts, labels = map(list, zip(*held, strict=True))
    return Table(str(stream.path), {stream.text: texts, stream.label: labels}, lines, stream.unit)


def _parquet_chunks(stream: FileStream, rows: int) -> Iterator[Chunk]:
    with open_parquet(stream.path) as file:
        total, start = max(1, file.metadata.num_rows), 0
        nested = stream.task == "translation" and "translation" in file.schema_arrow.names
        names = ["translation"] if nested else [stream.text, stream.label]
        for batch in file.iter_batches(batch_size=rows, columns=names):
            end = start + batch.num_rows
            columns = {name: batch[name].to_pylist() for name in names}
            table = Table(str(stream.path), columns, list(range(start + 1, end + 1)), stream.unit)
            yield Chunk(stream, start, table, stream.bytes * end // total)
            start = end
