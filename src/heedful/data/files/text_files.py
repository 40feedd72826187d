"""A file becomes text, and lines, none lost and none added: line n of one file stays beside line n of another."""

import gzip
import re
import zlib
from io import BufferedIOBase
from pathlib import Path

from heedful.errors import DataError
from heedful.storage.atomic_files import valid_path

LARGEST = 1 << 30  # bytes that are read at once
BOMB_RATIO, BOMB_BYTES = 200, 1 << 24  # no text packs so well
_PIECE = 1 << 20
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


def regular(path: Path) -> Path:
    """The path, if a file lies there that can be read to its end: not a folder, a pipe or a device.

    >>> regular(Path("/dev/null"))
    Traceback (most recent call last):
    heedful.errors.DataError: /dev/null: this is not a plain file; save its content to a file, and give that
    """
    if valid_path(path, DataError).is_file():
        return path
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; give a file in it")
    if path.exists():
        raise DataError(f"{path}: this is not a plain file; save its content to a file, and give that")
    if path.is_symlink():
        raise DataError(f"{path}: this link leads nowhere, or round in a circle; give the file itself")
    raise DataError(f"{path}: there is no such file; check its name and folder")


def open_bytes(path: Path) -> BufferedIOBase:
    """A file's bytes, unpacked where its name ends in `.gz`; what cannot be opened is a `DataError`."""
    regular(path)
    try:
        return gzip.open(path) if is_packed(path) else path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def is_packed(path: Path) -> bool:
    """Whether the name says that the file is gzipped.

    >>> is_packed(Path("a.csv.GZ"))
    True
    """
    return path.suffix.lower() == ".gz"


def unreadable(path: Path, error: BaseException) -> DataError:
    """What is said of a file that breaks off or was never what its name says."""
    advice = "; it may be cut short or not gzip: fetch or pack it again" if is_packed(path) else ""
    return DataError(f"{path}: cannot be read: {reason(error) or type(error).__name__}{advice}")


def refuse_bomb(path: Path, size: int, unpacked: int) -> None:
    """Refuse a packed file of `size` bytes that has become so much larger as no text does.

    >>> refuse_bomb(Path("a.gz"), 1000, 1 << 25)
    Traceback (most recent call last):
    heedful.errors.DataError: a.gz: 1,000 bytes unpack to more than 33,554,431, as no text does; unpack it yourself ...
    """
    if is_packed(path) and unpacked > max(BOMB_BYTES, BOMB_RATIO * size):
        raise DataError(
            f"{path}: {size:,} bytes unpack to more than {unpacked - 1:,}, as no text does; "
            "unpack it yourself if it is what it should be"
        )


def _content(path: Path) -> bytes:
    with open_bytes(path) as file:
        try:
            size = path.stat().st_size
            parts: list[bytes] = []
            total = 0
            while part := file.read(_PIECE):
                total += len(part)
                if total > LARGEST:
                    raise DataError(
                        f"{path}: more than {LARGEST / (1 << 30):.3g} GiB, which is not read at once; give a part "
                        "of it, or count it piece by piece: heedful preflight --stream"
                    )
                refuse_bomb(path, size, total)
                parts.append(part)
            return b"".join(parts)
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(path, error) from error
