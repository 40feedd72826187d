"""Files that are what was written, or are named: checksums inside a file, and of the files beside it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import DamagedError
from heedful.storage.atomic_files import read_json, sha256, write_json, write_text

_REMEDY = "the command that made it sets it aside and computes it again"
_HEAD = "# sha256 "


def write_sealed(path: Path, content: Mapping[str, Any]) -> str:
    """Write a JSON object with its own checksum, under `sha256`; returns the checksum of the file."""
    return write_json(path, {"sha256": checksum(content), **content})


def read_sealed(path: Path) -> dict[str, Any]:
    """What `write_sealed` was given; a file that has changed since is an error that names it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> _ = write_sealed(path, {"steps": 3}); read_sealed(path)
    {'steps': 3}
    """
    try:
        content = read_json(path)
    except DamagedError as error:
        raise damaged(path, error.why) from None
    if content.pop("sha256", None) != checksum(content):
        raise damaged(path, "its checksum is another")
    return content


def checksum(content: Any) -> str:
    """SHA-256 of plain values, independent of the order of their keys.

    >>> checksum({"a": 1, "b": (2,)}) == checksum({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check(path: Path, expected: str) -> None:
    """Refuse a file that is not there, or whose SHA-256 is not the one that was noted when it was written."""
    try:
        actual = sha256(path)
    except FileNotFoundError:
        raise damaged(path, "it is gone") from None
    except OSError as error:
        raise damaged(path, f"it cannot be read: {error.strerror}") from None
    if actual != expected:
        raise damaged(path, "its checksum is another" if path.stat().st_size else "it is empty")


def damaged(path: Path, why: str) -> DamagedError:
    """The error that names a damaged file."""
    return DamagedError(path, why, _REMEDY)


def set_aside(path: Path) -> Path | None:
    """Rename a damaged file out of the way, as `<name>.damaged-1` (or the next free number); None where it is gone.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> _ = path.write_text("{"); set_aside(path).name
    'a.json.damaged-1'
    """
    try:
        return path.rename(free_name(path))
    except FileNotFoundError:
        return None


def free_name(path: Path) -> Path:
    """Where a damaged file goes: `<name>.damaged-1`, or the next number that nothing has.

    >>> free_name(Path("nowhere/a.json")).name
    'a.json.damaged-1'
    """
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


def write_headed(path: Path, text: str) -> None:
    """Write a text whose first line is a comment with the checksum of the rest."""
    write_text(path, f"{_HEAD}{hashlib.sha256(text.encode()).hexdigest()}\n{text}")


def check_headed(path: Path) -> bool:
    """Refuse a file that is empty, or whose first line is a comment but not the checksum of the rest.

    Returns whether it has a checksum: what was written before there were any has none.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.toml"
    >>> write_headed(path, "a = 1\\n"); check_headed(path)
    True
    >>> _ = path.write_text(path.read_text().replace("1\\n", "2\\n")); check_headed(path)
    Traceback (most recent call last):
      ...
    heedful.errors.DamagedError: ...a.toml: damaged (its checksum is another); ...
    """
    content = path.read_bytes()
    head, _, rest = content.partition(b"\n")
    if not content.strip():
        raise damaged(path, "it is empty")
    if not head.startswith(b"#"):
        return False
    if head.decode("utf-8", "replace") != _HEAD + hashlib.sha256(rest).hexdigest():
        raise damaged(path, "its checksum is another")
    return True
