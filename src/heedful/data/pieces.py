"""The lines of a file larger than memory, one after the other: as bytes, as text, or as records of fields."""

import csv
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

from heedful.data.lines import open_bytes, reason, refuse_bomb, unreadable
from heedful.data.readers import format_of
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
