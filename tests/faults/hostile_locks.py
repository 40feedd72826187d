"""Locks that somebody removed, forged or replaced, and file systems without locks: never two processes in one run."""

import errno
import fcntl
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from unittest import mock

from heedful.storage import locks as module
from heedful.storage.atomic_files import write_text
from heedful.storage.locks import HEARTBEAT, LOCK, LockHolder, directory_lock, lock_holder
from tests.faults.hostile import Attack

GARBAGE = (
    b"", b"{", b"[]", b"null", b"0", b'{"pid": 1}', b'{"pid": "x", "host": 3, "since": [], "command": {}}', bytes(1000),
    b"[" * 3000, b'{"pid": 1e999}', b'{"pid": -1, "host": "?", "since": "?", "command": "?"}', b"x" * 99999, b"\xff",
)  # fmt: skip
BEAT = 0.02  # seconds between heartbeats, so that nobody has to wait for one


def locks(folder: Path, rounds: int = 1) -> Attack:
    """Every forged lock and heartbeat, every kind of file in their place, and every way to lose them, so many times."""
    attack = Attack("hostile: locks and heartbeats")
    with mock.patch.object(module, "BEAT", BEAT):
        for number in range(rounds):
            root = folder / str(number)
            root.mkdir(parents=True)
            for i, scene in enumerate((_forged, _replaced, _heartbeats, _removed, _taken_over, _without_locks)):
                place = root / str(i)
                place.mkdir()
                scene(attack, place)
    return attack


def _forged(attack: Attack, root: Path) -> None:
    """What nobody holds is taken, whatever the files say."""
    for i, (name, content) in enumerate(itertools.product((LOCK, HEARTBEAT), GARBAGE)):
        run = root / str(i)
        run.mkdir()
        (run / name).write_bytes(content)
        attack.injected += 1
        attack.attempt(f"{name} is {content[:20]!r}", lambda run=run: _work(run))
        attack.must_hold(f"{name} is {content[:20]!r}: left over", not list(run.glob("*.json")))


def _replaced(attack: Attack, root: Path) -> None:
    """A lock that is a link, a pipe, a folder or another name of a file is refused, and nothing is written to it."""
    victim = root / "thesis.tex"
    makers: dict[str, Callable[[Path], object]] = {
        "a link": lambda path: path.symlink_to(victim),
        "a dangling link": lambda path: path.symlink_to(root / "nowhere"),
        "a loop": lambda path: path.symlink_to(path.name),
        "another name": lambda path: path.hardlink_to(victim),
        "a pipe": os.mkfifo,
        "a folder": Path.mkdir,
    }
    for i, (name, (kind, make)) in enumerate(itertools.product((LOCK, HEARTBEAT), makers.items())):
        victim.write_text("a year's work", "utf-8")
        run = root / str(i)
        run.mkdir()
        make(run / name)
        attack.injected += 1
        if (name, kind) == (HEARTBEAT, "another name"):  # which is made anew, not written to
            attack.attempt(f"{name} is {kind}", lambda run=run: _work(run))
        else:
            attack.must_refuse(f"{name} is {kind}", lambda run=run: _work(run))
        attack.attempt(f"{name} is {kind}: holder", lambda run=run: lock_holder(run) and None)
        attack.must_hold(f"{name} is {kind}: written to", victim.read_text("utf-8") == "a year's work")
        attack.must_hold(f"{name} is {kind}: made", not (root / "nowhere").exists())


def _heartbeats(attack: Attack, root: Path) -> None:
    """The heartbeat of a living process keeps others out, that of a dead one does not."""
    here, me = socket.gethostname(), module._this_process()
    holders = {
        "a living process": (LockHolder(os.getpid(), here, "then", "x", "t", me.born), True),
        "a dead process": (LockHolder(2**22 + 1, here, "then", "x", "t"), False),
        "a process whose number another has": (LockHolder(os.getpid(), here, "then", "x", "t", me.born + 1), False),
        "a silent process elsewhere": (LockHolder(1, "elsewhere", "then", "x", "t"), False),
    }
    for i, (what, (holder, lives)) in enumerate(holders.items()):
        run = root / str(i)
        run.mkdir()
        (run / HEARTBEAT).write_text(json.dumps(asdict(holder)), "utf-8")
        attack.injected += 1
        (attack.must_refuse if lives else attack.attempt)(f"heartbeat of {what}", lambda run=run: _work(run))
    run = root / "beating"
    run.mkdir()
    with _beating_elsewhere(run / HEARTBEAT):
        attack.injected += 1
        attack.must_refuse("heartbeat of a living process elsewhere", lambda: _work(run))


def _removed(attack: Attack, root: Path) -> None:
    """Who removes `lock.json` does not let a second process in; the first goes on."""
    with directory_lock(root):
        (root / LOCK).unlink()
        attack.injected += 1
        attack.must_refuse(f"{LOCK} removed", lambda: _work(root))
        attack.must_hold(f"{LOCK} removed: nobody listed", lock_holder(root) is not None)
        attack.attempt(f"{LOCK} removed: the first goes on", lambda: write_text(root / "a.txt", "x"))
    attack.must_hold(f"{LOCK} removed: left over", not list(root.glob("*.json")))


def _taken_over(attack: Attack, root: Path) -> None:
    """Whoever has lost its lock and its heartbeat to another process writes nothing more."""
    with directory_lock(root):
        for name in (LOCK, HEARTBEAT):
            (root / name).unlink()
        other = LockHolder(1, "elsewhere", "now", "heedful study", "another")
        (root / HEARTBEAT).write_text(json.dumps(asdict(other)), "utf-8")
        attack.injected += 1
        attack.must_refuse("taken over", lambda: write_text(root / "a.txt", "x"))
        attack.must_hold("taken over: written", not (root / "a.txt").exists())
    attack.must_hold("taken over: the other's heartbeat removed", (root / HEARTBEAT).exists())


def _without_locks(attack: Attack, root: Path) -> None:
    """On a file system without locks the heartbeat keeps others out."""
    for i, number in enumerate((errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)):
        run = root / str(i)
        with mock.patch.object(fcntl, "flock", side_effect=OSError(number, os.strerror(number))):
            attack.injected += 1
            with directory_lock(run):
                attack.must_refuse(f"no locks ({os.strerror(number)})", lambda run=run: _work(run))
            attack.attempt("no locks: afterwards", lambda run=run: _work(run))


def _work(run: Path) -> None:
    with directory_lock(run):
        write_text(run / "work.txt", "done")
        (run / "work.txt").unlink()


@contextmanager
def _beating_elsewhere(path: Path) -> Iterator[None]:
    """The heartbeat of a process of another machine, which goes on."""
    holder, stop = LockHolder(1, "elsewhere", "then", "x", "t"), threading.Event()

    def beat() -> None:
        for beats in itertools.count():
            write_text(path, json.dumps(asdict(holder) | {"beats": beats}))
            if stop.wait(BEAT / 4):
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        while not path.exists():
            time.sleep(BEAT / 4)
        yield
    finally:
        stop.set()
        thread.join()
