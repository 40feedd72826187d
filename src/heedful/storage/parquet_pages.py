"""Sizes of the columns of a Parquet file, counted from its pages.

The metadata at the end of a Parquet file may be wrong, by damage or on purpose. How much memory a column takes is
decided by its pages: a page is unpacked to the size in its header, and holds as many values as its header says. The
headers (Thrift, compact protocol) are read here one after another; no page is unpacked.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.storage.run_files import open_regular

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_PAGES = 1_000_000  # of a file; a page usually has a megabyte
MAX_BYTES, FREE_BYTES, MAX_RATIO = 1 << 32, 1 << 28, 200  # of a table in memory: at most, always, and times the file
BATCH_ROWS, BATCH_BYTES = 65_536, 1 << 27  # of texts, decoded at a time
_HEADER_BYTES, _MAX_HEADER_BYTES = 1 << 12, 1 << 24
_WIDTH = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}  # bytes of a number


@dataclass(frozen=True)
class ChunkSize:
    """One column in one group of rows: bytes as stored, bytes of its pages unpacked, and values in them."""

    column: str
    physical_type: str
    packed: int
    unpacked: int
    values: int


def chunk_sizes(file: BufferedReader | BytesIO, metadata: "pq.FileMetaData") -> list[ChunkSize]:
    """The size of every column in every group of rows; a `ValueError` where pages and metadata disagree.

    >>> import io, pyarrow as pa, pyarrow.parquet as pq
    >>> written = io.BytesIO(); pq.write_table(pa.table({"a": [1, 2, 3]}), written)
    >>> [chunk.values for chunk in chunk_sizes(written, pq.read_metadata(written))]
    [3]
    """
    size = file.seek(0, os.SEEK_END)
    sizes: list[ChunkSize] = []
    pages = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for number in range(rows.num_columns):
            chunk = rows.column(number)
            unpacked = values = 0
            for page in _pages(file, chunk, size):
                unpacked, values, pages = unpacked + page.unpacked, values + page.values, pages + 1
                if pages > MAX_PAGES:
                    raise ValueError(f"it has more than {MAX_PAGES:,} pages")
            if values != chunk.num_values:
                raise ValueError(
                    f"column {chunk.path_in_schema[:60]!r} has {chunk.num_values:,} values by the metadata, but "
                    f"{values:,} in its pages"
                )
            sizes.append(
                ChunkSize(chunk.path_in_schema, chunk.physical_type, chunk.total_compressed_size, unpacked, values)
            )
    return sizes


def read_numbers_and_texts(path: Path, columns: Sequence[str]) -> "pa.Table":
    """Those of some columns that a Parquet file of heedful's has, in bounded memory.

    An `OSError` where the file is a link or not a regular file, or takes too much memory; a `ValueError` where its
    pages are not as its metadata say.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(path) as file, pq.ParquetFile(file) as table:
        size = file.seek(0, os.SEEK_END)
        names = [name for name in columns if name in table.schema_arrow.names]
        for name in names:
            if pa.types.is_dictionary(table.schema_arrow.field(name).type):
                raise ValueError(f"column {name!r} repeats the values of a dictionary")
        chunks = [chunk for chunk in chunk_sizes(file, table.metadata) if chunk.column.split(".")[0] in names]
        total = refuse_large(path, size, sum(_WIDTH.get(chunk.physical_type, 0) * chunk.values for chunk in chunks))
        longest = max((chunk.unpacked for chunk in chunks if chunk.physical_type not in _WIDTH), default=1)
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES // max(1, longest)))
        batches = []
        for batch in table.iter_batches(batch_size=rows, columns=names, use_threads=False):
            if longest > 1:
                total = refuse_large(path, size, total + batch.nbytes)
            batches.append(batch)
        return pa.Table.from_batches(batches, table.schema_arrow.empty_table().select(names).schema)


def number_bytes(path: Path) -> int:
    """The bytes that a table of numbers takes in memory; an `OSError` where that is too much, or it has other columns.

    >>> number_bytes(Path("/dev/null"))
    Traceback (most recent call last):
      ...
    OSError: [Errno 22] a device, not a file: '/dev/null'
    """
    import pyarrow.parquet as pq

    with open_regular(path) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            chunks = chunk_sizes(file, pq.read_metadata(file))
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error), str(path)) from None
    other = next((chunk for chunk in chunks if chunk.physical_type not in _WIDTH), None)
    if other is not None:
        raise OSError(errno.EINVAL, f"column {other.column[:60]!r} does not hold numbers", str(path))
    return refuse_large(path, size, sum(_WIDTH[chunk.physical_type] * chunk.values for chunk in chunks))


def refuse_large(path: Path, size: int, unpacked: int) -> int:
    """The bytes of a table in memory, if they are not too many for a file of that size; else an `OSError`.

    >>> refuse_large(Path("a.parquet"), 1000, 2000), refuse_large(Path("a.parquet"), 1000, 1 << 30)
    Traceback (most recent call last):
      ...
    OSError: [Errno 27] 1,000 bytes unpack to 1,073,741,824 or more, as no such table does: 'a.parquet'
    """
    if unpacked > min(MAX_BYTES, max(FREE_BYTES, MAX_RATIO * size)):
        raise OSError(errno.EFBIG, f"{size:,} bytes unpack to {unpacked:,} or more, as no such table does", str(path))
    return unpacked


@dataclass(frozen=True)
class _Page:
    unpacked: int
    values: int


def _pages(file: BufferedReader | BytesIO, chunk: "pq.ColumnChunkMetaData", size: int) -> Iterator[_Page]:
    """The pages of a column chunk until all its values were seen, as a reader takes them."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < at:
        at = chunk.dictionary_page_offset
    end, seen = at + chunk.total_compressed_size, 0
    if not 0 <= at <= end <= size:
        raise ValueError(f"column {chunk.path_in_schema[:60]!r} lies outside the file")
    while at < end and seen < chunk.num_values:
        header, length = _header(file, at)
        packed, unpacked = header.get(3), header.get(2)
        data = header.get(5) or header.get(8) or {}
        values = data.get(1, 0) if isinstance(data, dict) else 0
        if not all(isinstance(n, int) and n >= 0 for n in (packed, unpacked, values)):
            raise ValueError(f"column {chunk.path_in_schema[:60]!r} has a page without a size")
        yield _Page(int(unpacked), int(values))  # type: ignore[arg-type]
        at, seen = at + length + int(packed), seen + int(values)  # type: ignore[arg-type]


def _header(file: BufferedReader | BytesIO, at: int) -> tuple[dict[int, Any], int]:
    """The fields of the page header at an offset by number, and its length."""
    room = _HEADER_BYTES
    while True:
        file.seek(at)
        content = file.read(room)
        try:
            return _struct(content, 0, 0)
        except IndexError:
            if len(content) < room or room >= _MAX_HEADER_BYTES:
                raise ValueError("the header of a page is cut short") from None
            room *= 16


def _struct(content: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """A struct of Thrift's compact protocol, and where it ends; an `IndexError` where the bytes end before it."""
    fields: dict[int, Any] = {}
    number = 0
    while head := content[at]:
        step, kind, at = head >> 4, head & 15, at + 1
        if step:
            number += step
        else:
            number, at = _integer(content, at)
        if kind in (1, 2):  # a truth value, in the type itself
            fields[number] = kind == 1
        elif kind == 3:
            fields[number], at = content[at], at + 1
        elif kind in (4, 5, 6):
            fields[number], at = _integer(content, at)
        elif kind == 7:
            at += 8
        elif kind == 8:
            length, at = _varint(content, at)
            at += length
        elif kind == 12 and depth < 5:
            fields[number], at = _struct(content, at, depth + 1)
        else:
            raise ValueError("the header of a page cannot be read")
    return fields, at + 1


def _integer(content: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        value, at = value | (byte & 127) << shift, at + 1
        if byte < 128:
            return value, at
    raise ValueError("the header of a page has an endless number")
