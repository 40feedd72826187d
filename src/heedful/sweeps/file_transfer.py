"""A finished study's files on their way from a node to the store: piece by piece, and whole or not there at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import TracebackType

from heedful.errors import RunError

PIECE = 8_000_000  # bytes sent at a time


def pieces(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder by its relative name, in pieces; what is unfinished or a link stays behind.

    >>> import tempfile
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


class Arrival:
    """Files that arrive for a folder; they lie beside it until `settle` puts all of them into its place.

    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp()) / "study"
    >>> with Arrival(home) as arrival:
    ...     arrival.add("models/a.txt", b"who")
    ...     arrival.add("models/a.txt", b"le")
    ...     arrival.settle()
    >>> (home / "models" / "a.txt").read_text(), len(list(home.parent.iterdir()))
    ('whole', 1)
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._beside: Path | None = None

    def __enter__(self) -> "Arrival":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beside is not None:
            shutil.rmtree(self._beside, ignore_errors=True)

    def add(self, name: str, piece: bytes) -> None:
        """Append a piece to a file; a name that would leave the folder is refused."""
        place = self._place().joinpath(*_inside(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("ab") as file:
            file.write(piece)

    def settle(self) -> None:
        """Put what arrived in the place of whatever was there before; what was set aside there stays."""
        if self._home.exists():
            old = Path(tempfile.mkdtemp(dir=self._home.parent, prefix=f".{self._home.name}.")) / "old"
            os.replace(self._home, old)
            for aside in old.rglob("*.damaged-*"):
                kept = self._place() / aside.relative_to(old)
                kept.parent.mkdir(parents=True, exist_ok=True)
                os.replace(aside, kept)
            os.replace(self._place(), self._home)
            shutil.rmtree(old.parent, ignore_errors=True)
        else:
            os.replace(self._place(), self._home)
        self._beside = None

    def _place(self) -> Path:
        if self._beside is None:
            self._home.parent.mkdir(parents=True, exist_ok=True)
            self._beside = Path(tempfile.mkdtemp(dir=self._home.parent, prefix=f".{self._home.name}."))
            self._beside.chmod(0o755)
        return self._beside


def _inside(name: str) -> tuple[str, ...]:
    """The parts of a relative name that stays where it is put.

    >>> _inside("../a")
    Traceback (most recent call last):
      ...
    heedful.errors.RunError: '../a' is no name of a file within a run
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise RunError(f"{name!r} is no name of a file within a run")
    return parts
