"""A file becomes text, and lines, none lost and none added: line n of one file stays beside line n of another."""

import gzip
import re
import zlib
from pathlib import Path

from heedful.errors import DataError

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
    if not text:
        return []
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def read_text(path: Path) -> str:
    """The whole of a UTF-8 file, `.gz` or not, without its byte-order mark; what is no text is named by its line."""
    content = _content(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start + len(content) - len(error.object)  # utf-8-sig counts from after the byte-order mark
        raise DataError(
            f"{path}:{line_of(content, start)}: byte 0x{content[start]:02x} at offset {start:,} is not UTF-8; "
            "save the file as UTF-8"
        ) from error
    zero = content.find(b"\0")
    if zero >= 0:
        raise DataError(
            f"{path}:{line_of(content, zero)}: there is a NUL byte at offset {zero:,}; save it as plain UTF-8 text"
        )
    return text


def line_of(content: bytes, offset: int) -> int:
    """The line, from 1, that holds the byte at `offset`.

    >>> line_of(b"one\\r\\ntwo", 5)
    2
    """
    return len(_LINE_END.findall(content, 0, offset)) + 1


def reason(error: BaseException) -> str:
    """What an exception says, printable and not at length.

    >>> reason(ValueError("bad\\nnews"))
    'bad news'
    """
    return "".join(character if character.isprintable() else " " for character in str(error))[:200]


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix.lower() == ".gz" else content
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {reason(error)}") from error
