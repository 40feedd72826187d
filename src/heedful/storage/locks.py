"""A lock that allows one process per run directory, and names that process."""

import errno
import fcntl
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from heedful.errors import RunError
from heedful.storage.atomic_files import disk_full_error, is_disk_full

LOCK = "lock.json"
_GRACE = 60.0  # seconds to wait for the workers of a killed process to end
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock, and since when."""

    pid: int
    host: str
    since: str
    command: str

    def is_dead(self) -> bool:
        """Whether it was a process of this machine that has ended."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since} ({self.command})"


@contextmanager
def directory_lock(folder: Path) -> Iterator[int]:
    """Hold the folder's lock, or raise an error that names the holder; yields the lock's file descriptor.

    The operating system releases the lock when the process ends, however it ends. Processes that inherit the
    descriptor hold it too, so nobody else begins while a worker of a killed process still writes.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with directory_lock(folder):
    ...     lock_holder(folder).pid == os.getpid()
    True
    >>> lock_holder(folder) is None
    True
    """
    path = folder / LOCK
    descriptor = _acquire(path)
    try:
        _sign(path, descriptor)
        yield descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def lock_holder(folder: Path) -> LockHolder | None:
    """Who holds the folder's lock; None where nobody does."""
    path = folder / LOCK
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(path) or LockHolder(0, "?", "?", "?")
    except OSError:
        return _read_holder(path)
    finally:
        os.close(descriptor)
    return None


def _acquire(path: Path) -> int:
    until = time.monotonic() + _GRACE
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if is_disk_full(error):
                raise disk_full_error(path) from error
            raise RunError(f"{path.parent}: cannot be written to: {error.strerror}; choose another --out") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            who = _read_holder(path)
            if time.monotonic() < until and (who is None or who.is_dead()):
                time.sleep(0.05)
                continue
            whose = who or "another process"
            raise RunError(f"{path.parent} is in use by {whose}; wait for it, or choose another --out") from None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                os.close(descriptor)
                raise
        if _is_still(path, descriptor):
            return descriptor
        os.close(descriptor)  # the holder removed the file while we waited


def _sign(path: Path, descriptor: int) -> None:
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    who = LockHolder(os.getpid(), socket.gethostname(), now, command)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(who)).encode(), 0)
    except OSError as error:
        if is_disk_full(error):
            raise disk_full_error(path) from error
        raise


def _read_holder(path: Path) -> LockHolder | None:
    with suppress(OSError, ValueError, TypeError):
        return LockHolder(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    ours = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
