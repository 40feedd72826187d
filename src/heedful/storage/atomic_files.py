"""Atomic file writes: write to a temporary file in the same folder, then rename; and checksums of what was written."""

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from heedful.errors import DamagedError, DataError, DiskFullError, HeedfulError, RunError
from heedful.storage.run_files import MAX_BYTES, OWN_NAMES, files_below, listed, open_regular, read_bounded

TEMPORARY = ".heedful.part"  # how the names of temporary files end; nothing else of that name is ever removed
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_REMEDY = "the command that made it sets it aside and computes it again"
_HEAD = "# sha256 "


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


def regular(path: Path) -> Path:
    """The path, if it is a regular file: not a folder, a pipe or a device.

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


def reason(error: BaseException) -> str:
    """The message of an exception, printable and at most 200 characters.

    >>> reason(ValueError("bad\\nnews"))
    'bad news'
    """
    return printable(str(error))[:200]


def printable(text: str) -> str:
    """A text with a space for every character that a terminal would not show, such as an escape.

    >>> printable("a\x1b[31mb")
    'a [31mb'
    """
    return "".join(character if character.isprintable() else " " for character in text)


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
    _check_guards(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = create_temporary(path)
        mode = temporary.stat().st_mode
        write(temporary)
        if temporary.stat().st_mode != mode:  # safetensors puts a file of its own there
            temporary.chmod(stat.S_IMODE(mode))
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


_guards: dict[Path, list[Callable[[], None]]] = {}


@contextmanager
def guard_writes(folder: Path, check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before every atomic write below a folder; it raises an error where nothing may be written."""
    guards = _guards.setdefault(folder.absolute(), [])
    guards.append(check)
    try:
        yield
    finally:
        guards.remove(check)
        if not guards:
            _guards.pop(folder.absolute(), None)


def _check_guards(path: Path) -> None:
    if _guards:
        for folder in path.absolute().parents:
            for check in _guards.get(folder, ()):
                check()


def create_temporary(path: Path) -> Path:
    """Create an empty temporary file beside a path, with the permissions that the user's umask leaves."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        try:
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except FileExistsError:
            continue
        return temporary


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
    """Remove temporary files that killed processes left; call it only while holding the folder's lock.

    Only the run's own folders are gone through: others may hold another run, at work under its own lock.
    """
    own = [folder / name for name in sorted(OWN_NAMES) if (folder / name).is_dir() and not (folder / name).is_symlink()]
    found = (*listed(folder, f".*{TEMPORARY}"), *(path for inner in own for path in files_below(inner)))
    for path in found:
        if path.name.startswith(".") and path.name.endswith(TEMPORARY) and not path.is_dir():
            path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> str:
    """Write a text file atomically, in UTF-8; returns its SHA-256."""
    encoded = text.encode()
    return write_atomically(path, lambda p: p.write_bytes(encoded), size=len(encoded))


def write_json(path: Path, content: Mapping[str, Any], *, compact: bool = False) -> str:
    """Write a JSON file atomically, and return its SHA-256; NaN is refused, since JSON has none.

    compact: on one line.
    """
    return write_text(path, json_text(content, compact=compact))


def json_text(content: Mapping[str, Any], *, compact: bool = False) -> str:
    """The text of a JSON file.

    >>> json_text({"a": [1, 2]}, compact=True)
    '{"a":[1,2]}\\n'
    """
    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 1}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, **layout) + "\n"


def read_json(path: Path, limit: int = MAX_BYTES) -> dict[str, Any]:
    """Read a JSON object of at most `limit` bytes, with the file named in every error."""
    content = read_any_json(path, limit)
    if not isinstance(content, dict):
        raise DamagedError(path, "not a JSON object")
    return content


def read_any_json(path: Path, limit: int = MAX_BYTES) -> Any:
    """Read any JSON value, with the file named in every error; links, pipes and devices are refused.

    >>> read_any_json(Path("/dev/zero"))
    Traceback (most recent call last):
    heedful.errors.DamagedError: /dev/zero: damaged (it cannot be read: a device, not a file)...
    """
    try:
        return json.loads(read_bounded(valid_path(path), limit).decode("utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: no such file") from None
    except OSError as error:
        raise DamagedError(Path(str(path)[:300]), f"it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedError(Path(str(path)[:300]), f"not JSON: {str(error)[:200]}") from None


def sha256(path: Path, *, follow: bool = True) -> str:
    """SHA-256 of a regular file's bytes. follow: whether the path may be a symbolic link."""
    with open_regular(path, follow=follow) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksummed_json(path: Path, content: Mapping[str, Any], *, compact: bool = False) -> str:
    """Write a JSON object with its own checksum, under `sha256`; returns the checksum of the file."""
    return write_json(path, {"sha256": checksum(content), **content}, compact=compact)


def read_checksummed_json(path: Path) -> dict[str, Any]:
    """Read what `write_checksummed_json` wrote; a file that has changed since is an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> _ = write_checksummed_json(path, {"steps": 3}); read_checksummed_json(path)
    {'steps': 3}
    """
    try:
        content = read_json(path)
    except DamagedError as error:
        raise damaged_error(path, error.why) from None
    if content.pop("sha256", None) != checksum(content):
        raise damaged_error(path, "its checksum is another")
    return content


def checksum(content: Any) -> str:
    """SHA-256 of plain values, independent of the order of their keys.

    >>> checksum({"a": 1, "b": (2,)}) == checksum({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def verify_checksum(path: Path, expected: str) -> None:
    """Raise `DamagedError` where a file is missing or has another SHA-256 than expected."""
    try:
        actual = sha256(path, follow=False)
    except FileNotFoundError:
        raise damaged_error(path, "it is gone") from None
    except OSError as error:
        raise damaged_error(path, f"it cannot be read: {error.strerror}") from None
    if actual != expected:
        raise damaged_error(path, "its checksum is another" if path.stat().st_size else "it is empty")


def damaged_error(path: Path, why: str) -> DamagedError:
    """The error for a damaged file, with the remedy."""
    return DamagedError(path, why, _REMEDY)


def quarantine(path: Path) -> Path | None:
    """Rename a damaged file to `<name>.damaged-1` (or the next free number); None where there is no file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> _ = path.write_text("{"); quarantine(path).name
    'a.json.damaged-1'
    """
    try:
        return path.rename(quarantine_path(path))
    except FileNotFoundError:
        return None


def quarantine_path(path: Path) -> Path:
    """The first free name among `<name>.damaged-1`, `<name>.damaged-2`, …

    >>> quarantine_path(Path("nowhere/a.json")).name
    'a.json.damaged-1'
    """
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    return aside


def write_checksummed_text(path: Path, text: str) -> None:
    """Write a text file whose first line is a comment with the checksum of the rest."""
    write_text(path, f"{_HEAD}{hashlib.sha256(text.encode()).hexdigest()}\n{text}")


def verify_checksummed_text(path: Path) -> None:
    """Raise `DamagedError` where the first line of a file is not the checksum of the rest.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.toml"
    >>> write_checksummed_text(path, "a = 1\\n"); verify_checksummed_text(path)
    >>> _ = path.write_text(path.read_text().replace("1\\n", "2\\n")); verify_checksummed_text(path)
    Traceback (most recent call last):
      ...
    heedful.errors.DamagedError: ...a.toml: damaged (its checksum is another); ...
    """
    try:
        content = read_bounded(path)
    except OSError as error:
        raise damaged_error(path, f"it cannot be read: {error.strerror}") from None
    head, _, rest = content.partition(b"\n")
    if not content.strip():
        raise damaged_error(path, "it is empty")
    if not head.startswith(b"#"):
        raise damaged_error(path, "it has no checksum")
    if head.decode("utf-8", "replace") != _HEAD + hashlib.sha256(rest).hexdigest():
        raise damaged_error(path, "its checksum is another")


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
