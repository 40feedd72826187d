"""A lock that allows one process per run directory, and names that process; beside it, a heartbeat.

`lock.json` is locked by the operating system. `heartbeat.json` is written anew every few seconds by the process that
holds the lock. It shows that process also to others that the lock does not keep out: where somebody has removed
`lock.json`, or the file system has no locks. Every atomic write in a locked folder first makes sure that the heartbeat
is still that of the run it belongs to.
"""

import errno
import fcntl
import json
import os
import secrets
import shlex
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from heedful.errors import RunError
from heedful.storage.atomic_files import disk_full_error, guard_writes, is_disk_full
from heedful.storage.run_files import read_bounded, refuse_irregular

LOCK, HEARTBEAT = "lock.json", "heartbeat.json"
BEAT = 2.0  # seconds between heartbeats
_GRACE = 60.0  # seconds to wait for the workers of a killed process to end
_SILENCE = 3  # heartbeats that a process of another machine may miss before it counts as dead
_LISTED = 60.0  # seconds within which a heartbeat of another machine is listed as that of a running process
_MAX_BYTES = 1 << 16
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock, and since when. born: when the process began, in the machine's own clock ticks."""

    pid: int
    host: str
    since: str
    command: str
    token: str = ""
    born: int = 0
    beats: int = 0

    def is_dead(self) -> bool:
        """Whether it was a process of this machine that has ended."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:
            pass
        return bool(self.born and _born(self.pid) not in (0, self.born))  # else another process has its number

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since} ({self.command})"


@contextmanager
def directory_lock(folder: Path) -> Iterator[int]:
    """Hold the folder's lock, or raise an error that names the holder; yields the lock's file descriptor.

    The operating system releases the lock when the process ends, however it ends. Processes that inherit the
    descriptor hold it too, so nobody else begins while a worker of a killed process still writes. A folder whose own
    files are not all regular files is refused: nothing is written through a link.

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
    me = _this_process()
    ours = False
    try:
        refuse_irregular(folder)
        _refuse_beating(folder)
        ours = True
        _write(path, descriptor, me)
        with _beating(folder, me), guard_writes(folder, lambda: _refuse_another(folder, me.token)):
            yield descriptor
    finally:
        if os.getpid() == me.pid:  # a forked child that ends leaves the lock to its parent
            if ours and _has_token(folder, me.token):
                (folder / HEARTBEAT).unlink(missing_ok=True)
            if _is_still(path, descriptor):
                path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def within_lock(folder: Path) -> Iterator[None]:
    """Write in a folder that the process which started this one has locked; an error where another takes it over.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with directory_lock(folder), within_lock(folder):
    ...     pass
    """
    holder = _read_holder(folder / HEARTBEAT)
    if holder is None:
        yield
        return
    with guard_writes(folder, lambda: _refuse_another(folder, holder.token)):
        yield


def lock_holder(folder: Path) -> LockHolder | None:
    """Who holds the folder's lock; None where nobody does."""
    path = folder / LOCK
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_holder(path) or LockHolder(0, "?", "?", "?")
        except OSError:
            return _read_holder(path)
        finally:
            os.close(descriptor)
    beating = _read_holder(folder / HEARTBEAT)
    if beating is None or beating.is_dead():
        return None
    if beating.host != socket.gethostname() and _age(folder / HEARTBEAT) > _LISTED:
        return None
    return beating


def _acquire(path: Path) -> int:
    until = time.monotonic() + _GRACE
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = _read_holder(path)
            waits = who is None or who.is_dead()
            keeping = _processes_with(descriptor) if waits else []
            os.close(descriptor)
            stopped = bool(keeping) and all(_is_stopped(pid) for pid in keeping)
            if waits and not stopped and time.monotonic() < until:
                time.sleep(0.1)
                continue
            raise _in_use(path.parent, who, keeping) from None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                os.close(descriptor)
                raise
        if _is_still(path, descriptor):
            return descriptor
        os.close(descriptor)  # the holder removed the file while we waited


def _open(path: Path) -> int:
    """Open the lock file, made where there is none; only a regular file with this one name is written to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if is_disk_full(error):
            raise disk_full_error(path) from error
        if path.is_symlink():
            raise RunError(f"{path} is a symbolic link; no link of a run is followed: remove it") from None
        raise RunError(f"{path.parent}: cannot be written to: {error.strerror}; choose another --out") from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    why = "has other names (hard links)" if stat.S_ISREG(status.st_mode) else "is not a regular file"
    raise RunError(f"{path} {why}; it is not written to: remove it")


def _in_use(folder: Path, who: LockHolder | None, keeping: list[int]) -> RunError:
    """The error for a folder that is locked. keeping: the processes of this machine that have the lock open."""
    if who is not None and who.is_dead() and keeping:
        pids = " ".join(map(str, keeping))
        stopped = " (stopped)" if all(_is_stopped(pid) for pid in keeping) else ""
        return RunError(
            f"{folder} was in use by process {who.pid}, which has ended, but its worker processes{stopped} still hold "
            f"the lock; end them with: kill -KILL {pids}"
        )
    return RunError(f"{folder} is in use by {who or 'another process'}; wait for it, or choose another --out")


def _refuse_beating(folder: Path) -> None:
    """Refuse a folder with the heartbeat of another living process, although its lock was free."""
    beating = _read_holder(folder / HEARTBEAT)
    if beating is None or beating.is_dead():
        return
    if beating.host != socket.gethostname():
        until = time.monotonic() + _SILENCE * BEAT
        while (now := _read_holder(folder / HEARTBEAT)) is None or now == beating:
            if time.monotonic() > until:
                return  # it has stopped
            time.sleep(BEAT / 4)
    raise RunError(
        f"{folder} is in use by {beating}, although its lock is free: {LOCK} was removed, or the file system has no "
        "locks; wait for that process, or choose another --out"
    )


def _refuse_another(folder: Path, token: str) -> None:
    """Refuse to write where another process has taken the folder over."""
    beating = _read_holder(folder / HEARTBEAT)
    if beating is not None and beating.token != token:
        raise RunError(f"{folder} was taken over by {beating}; this process stops, and writes nothing more there")


@contextmanager
def _beating(folder: Path, me: LockHolder) -> Iterator[None]:
    """Write the heartbeat now and every few seconds, as long as it is ours."""
    path, stop = folder / HEARTBEAT, threading.Event()
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be replaced: {error.strerror}; remove it") from None
    _beat(path, me)

    def beat() -> None:
        beats = 0
        while not stop.wait(BEAT):
            beats += 1
            with suppress(OSError, RunError):
                _refuse_another(folder, me.token)
                _beat(path, replace(me, beats=beats))

    thread = threading.Thread(target=beat, daemon=True, name="heedful heartbeat")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _beat(path: Path, me: LockHolder) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if is_disk_full(error):
            raise disk_full_error(path) from error
        raise
    try:
        _write(path, descriptor, me)
    finally:
        os.close(descriptor)


def _write(path: Path, descriptor: int, me: LockHolder) -> None:
    try:
        content = json.dumps(asdict(me)).encode()
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    except OSError as error:
        if is_disk_full(error):
            raise disk_full_error(path) from error
        raise


def _this_process() -> LockHolder:
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:1000]
    token = secrets.token_hex(8)
    return LockHolder(os.getpid(), socket.gethostname(), now, command, token, _born(os.getpid()))


def _read_holder(path: Path) -> LockHolder | None:
    with suppress(OSError, ValueError, TypeError, RecursionError):
        holder = LockHolder(**json.loads(read_bounded(path, _MAX_BYTES).decode()))
        if all(isinstance(getattr(holder, name), int) for name in ("pid", "born", "beats")) and holder.pid > 0:
            return holder
    return None


def _has_token(folder: Path, token: str) -> bool:
    beating = _read_holder(folder / HEARTBEAT)
    return beating is not None and beating.token == token


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        there = os.lstat(path)
    except OSError:
        return False
    ours = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _age(path: Path) -> float:
    try:
        return abs(time.time() - path.stat().st_mtime)
    except OSError:
        return float("inf")


def _processes_with(descriptor: int) -> list[int]:
    """The other processes of this machine that have the same file open, as far as this user may see them."""
    ours, pids = os.fstat(descriptor), []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    there = entry.stat()
                    if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                        pids.append(int(folder.parent.name))
                        break
    return sorted(pid for pid in pids if pid != os.getpid())


def _is_stopped(pid: int) -> bool:
    return _status(pid)[:1] in (["T"], ["t"])


def _born(pid: int) -> int:
    """When a process began, in clock ticks since the machine did; 0 where that cannot be known."""
    with suppress(ValueError, IndexError):
        return int(_status(pid)[19])
    return 0


def _status(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on; none where there is no such file."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
