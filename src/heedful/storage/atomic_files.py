"""Atomic file writes: write to a temporary file in the same folder, then rename."""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from heedful.errors import DamagedError, DiskFullError, HeedfulError, RunError

TEMPORARY = ".part"
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def valid_path(path: Path, kind: type[HeedfulError] = RunError) -> Path:
    """The path, if the file system can look it up, whether or not it exists; else an error of that kind.

    >>> valid_path(Path("nowhere")), valid_path(Path("x" * 300))
    Traceback (most recent call last):
    heedful.errors.RunError: 'xxx...xxx…' cannot be used as a path: File name too long; give another
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise invalid_path_error(path, error, kind) from None
    except ValueError as error:
        why = "embedded null byte" if "\0" in str(path) else str(error)  # the words of Python until 3.12
        raise invalid_path_error(path, why, kind) from None
    return path


def invalid_path_error(path: Path, why: OSError | str, kind: type[HeedfulError] = RunError) -> HeedfulError:
    """The error for a path that the file system refuses, such as one that is too long."""
    shown = str(path) if len(str(path)) <= 80 else f"{str(path)[:80]}…"
    why = why.strerror or "" if isinstance(why, OSError) else why
    return kind(f"{shown!r} cannot be used as a path: {why}; give another")


def write_atomically(path: Path, write: Callable[[Path], object], *, size: int | None = None) -> str:
    """Let `write` fill a temporary file in the same folder, then rename it to `path`; returns its SHA-256.

    size: the expected number of bytes, where known; the error for a full disk then says how much was needed.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_atomically(target, lambda p: p.write_text("whole")) == sha256(target)
    True
    >>> target.read_text(), [p.name for p in target.parent.iterdir()]
    ('whole', ['a.txt'])
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY)
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        os.chmod(temporary, 0o644)
        written = sha256(temporary)
        os.replace(temporary, path)
        return written
    except Exception as error:
        if is_disk_full(error):
            raise disk_full_error(path, size) from error
        if not isinstance(error, OSError):
            raise
        if error.errno == errno.ENAMETOOLONG:
            raise invalid_path_error(path, error) from None
        why = os.strerror(errno.ENOTDIR) if error.errno == errno.EEXIST else error.strerror or error
        raise RunError(f"{path}: cannot be written: {why}; choose another place") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, from Python or from a library, means that a disk or a quota is full.

    >>> is_disk_full(OSError(errno.ENOSPC, "No space left on device")), is_disk_full(OSError(errno.EPERM, "no"))
    (True, False)
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "No space left on device" in str(error) or "Disk quota exceeded" in str(error)


def disk_full_error(path: Path, size: int | None = None) -> DiskFullError:
    """The error for a full disk: which file, how much is free and how much was needed."""
    place = next(folder for folder in path.absolute().parents if folder.exists())
    free = shutil.disk_usage(place).free
    need = f"the file needs about {_bytes(size)}, " if size else ""
    return DiskFullError(
        f"{path}: the disk is full ({need}{_bytes(free)} are free in {place}); "
        "make room, and the same command goes on from here"
    )


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} bytes"


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files that killed processes left; call it only while holding the folder's lock."""
    for path in folder.rglob(f".*{TEMPORARY}"):
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> str:
    """Write a text file atomically, in UTF-8; returns its SHA-256."""
    encoded = text.encode()
    return write_atomically(path, lambda p: p.write_bytes(encoded), size=len(encoded))


def write_json(path: Path, content: Mapping[str, Any]) -> str:
    """Write a JSON file atomically, and return its SHA-256; NaN is refused, since JSON has none."""
    return write_text(path, json_text(content))


def json_text(content: Mapping[str, Any]) -> str:
    """The text of a JSON file."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, with the file named in every error."""
    content = read_any_json(path)
    if not isinstance(content, dict):
        raise DamagedError(path, "not a JSON object")
    return content


def read_any_json(path: Path) -> Any:
    """Read any JSON value, with the file named in every error; pipes and devices are refused.

    >>> read_any_json(Path("/dev/zero"))
    Traceback (most recent call last):
    heedful.errors.DamagedError: /dev/zero: damaged (it is not a file)...
    """
    try:
        if valid_path(path).exists() and not path.is_file():
            raise DamagedError(path, "it is not a file")
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: no such file") from None
    except OSError as error:
        raise DamagedError(Path(str(path)[:300]), f"it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedError(Path(str(path)[:300]), f"not JSON: {str(error)[:200]}") from None


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def without_nan(value: Any) -> Any:
    """The same nested value with None for every NaN, a list for every tuple and a plain number for every decimal.

    >>> without_nan({"a": (1.0, float("nan"), Decimal("1.5"), Decimal(2))})
    {'a': [1.0, None, 1.5, 2]}
    """
    if isinstance(value, dict):
        return {k: without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(v) for v in value]
    if isinstance(value, Decimal):
        whole = value.is_finite() and not int(value.as_tuple().exponent) < 0
        return int(value) if whole else without_nan(float(value))
    return None if isinstance(value, float) and value != value else value
