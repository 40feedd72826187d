"""A plain text file becomes lines, none lost and none added: line n of one file stays beside line n of another."""

import gzip
import zlib
from pathlib import Path

from heedful.errors import DataError


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
    content = _content(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start + len(content) - len(error.object)  # utf-8-sig counts from after the byte-order mark
        line = content.count(b"\n", 0, start) + 1
        raise DataError(f"{path}:{line}: byte 0x{content[start]:02x} is not UTF-8; save the file as UTF-8") from error
    zero = content.find(b"\0")
    if zero >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise DataError(f"{path}:{line}: there is a NUL byte; save the file as plain UTF-8 text")
    if not text:
        return []
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix.lower() == ".gz" else content
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
