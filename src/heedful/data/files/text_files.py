"""Text files: bytes in blocks of lines, UTF-8 decoded, with the line and the offset of what is wrong.

Line n of one file stays beside line n of another: no line is lost or added.
"""

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Generator
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

from heedful.errors import DataError
from heedful.storage.atomic_files import reason, regular

MAX_WHOLE = 1 << 30  # bytes of a file that is read at once
MAX_ROWS = 5_000_000  # of a file that is read at once; each takes some 600 bytes besides its text
MAX_CELLS = 50_000_000  # rows times columns that are held
MAX_LINE = 1 << 24  # bytes of a line
BOMB_RATIO, BOMB_BYTES = 200, 1 << 24  # text does not compress better than this
_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


def read_lines(path: Path) -> list[str]:
    r"""The lines of a UTF-8 file, `.gz` or not, without their ends; a byte-order mark and CRLF are taken off.

    Only `\n` ends a line: the other separators of Unicode occur within sentences.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.de"
    ...     _ = file.write_bytes(b"\xef\xbb\xbfein\r\n\r\nzwei\n")
    ...     read_lines(file)
    ['ein', '', 'zwei']
    """
    text = read_text(path)
    refuse_rows(path, text.count("\n"), 1, "lines")
    return split_lines(text)


def split_lines(text: str) -> list[str]:
    r"""The lines of a text, without their ends.

    >>> split_lines("ein\r\nzwei"), split_lines("")
    (['ein', 'zwei'], [])
    """
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def read_text(path: Path) -> str:
    """The content of a UTF-8 file, `.gz` or not, without its byte-order mark."""
    parts = list(blocks(path, whole=True))
    return Block(b"".join(part.content for part in parts), 1, parts[0].offset).decode(path) if parts else ""


class Block(NamedTuple):
    """Some lines of a file, the number of the first of them and, if known, the offset of its first byte."""

    content: bytes
    line: int
    offset: int | None = None

    def decode(self, path: Path) -> str:
        """The block as text; an error has the line and the offset of what is not text."""
        try:
            text = self.content.decode("utf-8")
        except UnicodeDecodeError as error:
            line, at = self._place(error.start)
            byte = self.content[error.start]
            raise DataError(f"{path}:{line}: byte 0x{byte:02x}{at} is not UTF-8; save the file as UTF-8") from error
        zero = self.content.find(b"\0")
        if zero >= 0:
            line, at = self._place(zero)
            raise DataError(f"{path}:{line}: there is a NUL byte{at}; save it as plain UTF-8 text")
        return text

    def _place(self, byte: int) -> tuple[int, str]:
        line = self.line + len(_LINE_END.findall(self.content, 0, byte))
        return line, "" if self.offset is None else f" at offset {self.offset + byte:,}"


def blocks(path: Path, *, whole: bool = False) -> Generator[Block, None, None]:
    """The content of a file, unpacked, in blocks of whole lines, without its byte-order mark.

    Memory is bounded: a line longer than `MAX_LINE` is an error. With `whole`, where the reader will hold everything,
    so is a file larger than `MAX_WHOLE`.
    """
    line, offset, total = 1, 0, 0
    held: list[bytes] = []  # the beginning of a line whose end has not been read
    with open_bytes(path) as file:
        try:
            size = path.stat().st_size
            while piece := file.read(_BLOCK):
                total += len(piece)
                if whole:
                    refuse_whole(path, total)
                refuse_bomb(path, size, total)
                if total == len(piece) and piece.startswith(_BOM):
                    piece, offset = piece[len(_BOM) :], len(_BOM)
                end = piece.rfind(b"\n") + 1
                if end:
                    content = b"".join([*held, piece[:end]])
                    yield Block(content, line, offset)
                    line, offset = line + content.count(b"\n"), offset + len(content)
                    held = []
                held.append(piece[end:])
                if sum(map(len, held)) > MAX_LINE:
                    raise DataError(
                        f"{path}:{line}: this line has more than {MAX_LINE:,} bytes; give one sentence a line"
                    )
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise unreadable(path, error) from error
    if rest := b"".join(held):
        yield Block(rest, line, offset)


def byte_lines(path: Path) -> Generator[bytes, None, None]:
    r"""The lines of a file with their ends; only `\n` ends a line."""
    for block in blocks(path):
        yield from io.BytesIO(block.content)


def open_bytes(path: Path) -> BufferedIOBase:
    """A file's bytes, unpacked where its name ends in `.gz` or `.xz`; what cannot be opened is a `DataError`."""
    regular(path)
    try:
        if path.suffix.lower() == ".xz":
            return lzma.open(path)
        return gzip.open(path) if is_packed(path) else path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def is_packed(path: Path) -> bool:
    """Whether the name says that the file is compressed.

    >>> is_packed(Path("a.csv.GZ"))
    True
    """
    return path.suffix.lower() in (".gz", ".xz")


def unreadable(path: Path, error: BaseException) -> DataError:
    """The error for a file that ends early or has the wrong format."""
    advice = "; it may be cut short or not gzip: fetch or pack it again" if is_packed(path) else ""
    return DataError(f"{path}: cannot be read: {reason(error) or type(error).__name__}{advice}")


def refuse_bomb(path: Path, size: int, unpacked: int) -> None:
    """Refuse a decompression bomb: a packed file of `size` bytes that unpacks to far more than text would.

    >>> refuse_bomb(Path("a.gz"), 1000, 1 << 25)
    Traceback (most recent call last):
    heedful.errors.DataError: a.gz: 1,000 bytes unpack to more than 33,554,431, as no text does; unpack it yourself ...
    """
    if (is_packed(path) or path.suffix.lower() in (".parquet", ".npz")) and unpacked > max(
        BOMB_BYTES, BOMB_RATIO * size
    ):
        raise DataError(
            f"{path}: {size:,} bytes unpack to more than {unpacked - 1:,}, as no text does; "
            "unpack it yourself if it is what it should be"
        )


def refuse_whole(path: Path, size: int) -> None:
    """Refuse a content of more bytes than are read at once.

    >>> refuse_whole(Path("a.csv"), 1 << 31)
    Traceback (most recent call last):
    heedful.errors.DataError: a.csv: more than 1 GiB, which is not read at once; give a part of it, ...
    """
    if size > MAX_WHOLE:
        raise DataError(f"{path}: more than {MAX_WHOLE / (1 << 30):.3g} GiB, which is not read at once; {_PART}")


def refuse_rows(path: Path, rows: int, columns: int, unit: str = "rows") -> None:
    """Refuse more rows, or more values in all, than are held at once.

    >>> refuse_rows(Path("a.csv"), 6_000_000, 2)
    Traceback (most recent call last):
    heedful.errors.DataError: a.csv: more than 5,000,000 rows, which are not read at once; give a part of it, ...
    """
    if rows > MAX_ROWS:
        raise DataError(f"{path}: more than {MAX_ROWS:,} {unit}, which are not read at once; {_PART}")
    if rows * columns > MAX_CELLS:
        raise DataError(f"{path}: {columns:,} columns of {rows:,} {unit} or more, which are not read at once; {_PART}")


_PART = (
    "give a part of it, such as its first lines, or count it in chunks without training: heedful preflight --stream "
    "reads files of any size in bounded memory"
)
