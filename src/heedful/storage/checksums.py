"""Checksums: inside JSON and text files, of other files, and what happens to a damaged file."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import DamagedError
from heedful.storage.atomic_files import read_json, sha256, write_json, write_text

_REMEDY = "the command that made it sets it aside and computes it again"
_HEAD = "# sha256 "


def write_checksummed_json(path: Path, content: Mapping[str, Any]) -> str:
    """Write a JSON object with its own checksum, under `sha256`; returns the checksum of the file."""
    return write_json(path, {"sha256": checksum(content), **content})


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
        actual = sha256(path)
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
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
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
    content = path.read_bytes()
    head, _, rest = content.partition(b"\n")
    if not content.strip():
        raise damaged_error(path, "it is empty")
    if not head.startswith(b"#"):
        raise damaged_error(path, "it has no checksum")
    if head.decode("utf-8", "replace") != _HEAD + hashlib.sha256(rest).hexdigest():
        raise damaged_error(path, "its checksum is another")
