"""Bring the files of a job home from another machine: piece by piece, then into place in one rename.

Files arrive in `.incoming-heedful`, a folder of our own below the store. Only there is anything ever removed.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import TracebackType

from heedful.errors import RunError

PIECE = 8_000_000  # bytes sent at a time
INCOMING = ".incoming-heedful"


def pieces(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder by its relative name, in pieces; hidden files and symbolic links are left out.

    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("whole")
    >>> list(pieces(folder))
    [('a.txt', b'whole')]
    """
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.name.startswith("."):
            continue
        name = path.relative_to(folder).as_posix()
        with path.open("rb") as file:
            yield name, file.read(PIECE)
            while piece := file.read(PIECE):
                yield name, piece


def incoming_folder(store: Path) -> Path:
    """The folder below the store where files arrive, made where there is none; a symbolic link is refused."""
    folder = store / INCOMING
    if folder.is_symlink():
        raise RunError(f"{folder} is a symbolic link, but files arrive there before they are moved; remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def clear_incoming(store: Path) -> None:
    """Remove what was on its way to a driver that was killed; only for the process that holds the store's lock."""
    folder = store / INCOMING
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)


class Arrival:
    """Files that arrive for a folder of the store; `settle` moves all of them into its place at once.

    >>> store = Path(tempfile.mkdtemp())
    >>> with Arrival(store / "study", store) as arrival:
    ...     arrival.add("models/a.txt", b"who")
    ...     arrival.add("models/a.txt", b"le")
    ...     arrival.settle()
    >>> (store / "study" / "models" / "a.txt").read_text()
    'whole'
    """

    def __init__(self, home: Path, store: Path) -> None:
        self._home, self._store = home, store
        self._scratch: Path | None = None

    def __enter__(self) -> "Arrival":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def add(self, name: str, piece: bytes) -> None:
        """Append a piece to a file; a name that would leave the folder is refused."""
        path = self._files().joinpath(*_inside(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(piece)

    def settle(self) -> None:
        """Replace what was in the folder by what arrived; damaged files that were set aside there stay."""
        new = self._files()
        self._home.parent.mkdir(parents=True, exist_ok=True)
        if self._home.exists():
            old = new.parent / "old"
            os.replace(self._home, old)
            for aside in old.rglob("*.damaged-*"):
                kept = new / aside.relative_to(old)
                kept.parent.mkdir(parents=True, exist_ok=True)
                os.replace(aside, kept)
        os.replace(new, self._home)

    def _files(self) -> Path:
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(dir=incoming_folder(self._store)))
            (self._scratch / "new").mkdir()
        return self._scratch / "new"


def _inside(name: str) -> tuple[str, ...]:
    """The parts of a relative name that stays within its folder.

    >>> _inside("../a")
    Traceback (most recent call last):
      ...
    heedful.errors.RunError: '../a' is not the name of a file within a run
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise RunError(f"{name!r} is not the name of a file within a run")
    return parts
