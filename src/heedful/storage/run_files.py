"""Safe access to the files of a run: regular files only, no symbolic link, no name outside the folder, bounded size.

A run folder may come from somebody else. Whatever is read or written in it goes through these functions, or through
`atomic_files`, which uses them. The path of the run folder itself is the user's, and may be a link.
"""

import errno
import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath

from heedful.errors import DamagedError, RunError

MAX_BYTES = 1 << 28  # of a JSON file that is read into memory
MAX_ENTRIES = 100_000  # of a folder that is listed
MAX_BELOW = 1_000_000  # of a folder and all folders in it
OWN_NAMES = frozenset(
    {
        "config.toml", "manifest.json", "result.json", "lock.json", "heartbeat.json", "metrics.jsonl", "done.json",
        "following.json", "grid.toml", "summary.csv", "summary.parquet", "data", "models", "trace", "trace-train",
        "trace-heads", "checkpoints", "parts", "units", "studies", "tensorboard",
    }
)  # fmt: skip
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def member_name(name: str) -> PurePosixPath:
    """A name that a file of the run contains, if it stays within the run's folder; else an error.

    >>> member_name("trace/2.parquet"), member_name("../thesis.tex")
    Traceback (most recent call last):
      ...
    heedful.errors.RunError: '../thesis.tex' is not the name of a file within a run
    """
    parts = name.split("/") if isinstance(name, str) else [""]
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or not name.isprintable():
        raise RunError(f"{str(name)[:100]!r} is not the name of a file within a run")
    return PurePosixPath(name)


def member(root: Path, name: str) -> Path:
    """The path of a file below `root`, where no folder on the way is a symbolic link.

    >>> member(Path("runs/demo"), "data/train.parquet")
    PosixPath('runs/demo/data/train.parquet')
    """
    path = root
    for part in member_name(name).parts:
        path = path / part
        if path.is_symlink():
            raise DamagedError(path, "it is a symbolic link", "no link of a run is followed; put the file in its place")
    return path


def open_regular(path: Path, *, follow: bool = False) -> BufferedReader:
    """Open a regular file for reading; an `OSError` for anything else, without waiting for it.

    follow: whether the path may be a symbolic link, as that of a user's own file may.

    >>> open_regular(Path("/dev/zero"))
    Traceback (most recent call last):
      ...
    OSError: [Errno 22] a device, not a file: '/dev/zero'
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    except OSError as error:
        if path.is_symlink() and not follow:
            raise OSError(errno.ELOOP, "a symbolic link, not a file", str(path)) from None
        if error.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, "a socket, not a file", str(path)) from None
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, f"{_KINDS.get(kind, 'special')}, not a file", str(path))
    return os.fdopen(descriptor, "rb")


def read_bounded(path: Path, limit: int = MAX_BYTES, *, follow: bool = False) -> bytes:
    """The content of a regular file; an `OSError` where it has more than `limit` bytes.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_text("three"); read_bounded(path), read_bounded(path, 4)
    Traceback (most recent call last):
      ...
    OSError: [Errno 27] more than 4 bytes: ...
    """
    with open_regular(path, follow=follow) as file:
        too_large = os.fstat(file.fileno()).st_size > limit
        content = b"" if too_large else file.read(limit + 1)
    if too_large or len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes", str(path))
    return content


def irregular(folder: Path) -> Iterator[tuple[Path, str]]:
    """Everything among a run's own files that is neither a regular file nor a folder, and what it is.

    Other files that people keep in the folder are not looked at.
    """
    for entry in entries_of(folder):
        if entry.name in OWN_NAMES:
            yield from _irregular(entry)


def refuse_irregular(folder: Path) -> None:
    """Refuse a run that has a symbolic link, a pipe, a socket or a device among its files.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "result.json").symlink_to("/etc/passwd"); refuse_irregular(folder)
    Traceback (most recent call last):
      ...
    heedful.errors.RunError: ...result.json is a symbolic link; the files of a run are ... remove it
    """
    for path, kind in irregular(folder):
        raise RunError(f"{path} is {kind}; the files of a run are regular files, and no link is followed: remove it")


def entries_of(folder: Path, limit: int | None = None) -> "list[os.DirEntry[str]]":
    """The entries of a folder, sorted by name; none where it is gone.

    An error where there are more than `limit`, by default `MAX_ENTRIES`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in "abc": (folder / name).touch()
    >>> [entry.name for entry in entries_of(folder)], entries_of(folder, 2)
    Traceback (most recent call last):
      ...
    heedful.errors.RunError: ...: more than 2 entries in one folder; choose one with fewer
    """
    limit = MAX_ENTRIES if limit is None else limit
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, limit + 1))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RunError(f"{folder}: cannot be read: {error.strerror}") from None
    if len(found) > limit:
        raise RunError(f"{folder}: more than {limit:,} entries in one folder; choose one with fewer")
    return sorted(found, key=lambda entry: entry.name)


def listed(folder: Path, pattern: str) -> list[Path]:
    """The entries of a folder whose names match a pattern, sorted; bounded as `entries_of` is.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("2.parquet", "notes.txt"): (folder / name).touch()
    >>> [path.name for path in listed(folder, "*.parquet")]
    ['2.parquet']
    """
    return [folder / entry.name for entry in entries_of(folder) if fnmatchcase(entry.name, pattern)]


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file in a folder and the folders in it; no link is followed.

    An error where there are more than `MAX_BELOW` entries in all, or more than `MAX_ENTRIES` in one of them.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "a").mkdir(); (folder / "a" / "b.txt").touch(); (folder / "link").symlink_to("a")
    >>> [path.relative_to(folder).as_posix() for path in files_below(folder)]
    ['a/b.txt']
    """
    waiting, count = [folder], 0
    while waiting:
        here = waiting.pop()
        for entry in entries_of(here):
            count += 1
            if count > MAX_BELOW:
                raise RunError(f"{folder}: more than {MAX_BELOW:,} files and folders below it; choose one with fewer")
            if entry.is_dir(follow_symlinks=False):
                waiting.append(here / entry.name)
            elif entry.is_file(follow_symlinks=False):
                yield here / entry.name


def _irregular(entry: "os.DirEntry[str]") -> Iterator[tuple[Path, str]]:
    if entry.is_dir(follow_symlinks=False):
        for inner in entries_of(Path(entry.path)):
            yield from _irregular(inner)
    elif entry.is_symlink():
        yield Path(entry.path), "a symbolic link"
    elif not entry.is_file(follow_symlinks=False):
        kind = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
        yield Path(entry.path), _KINDS.get(kind, "a special file")
