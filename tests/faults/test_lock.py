"""One process at a time works in a run; the others are told who does."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from heedful.errors import DiskFullError, RunError
from heedful.storage.locks import HEARTBEAT, LOCK, LockHolder, directory_lock, lock_holder
from tests.faults.small import TEXTS, finish, in_child


def test_the_second_is_told_who_holds_it(tmp_path):
    with directory_lock(tmp_path / "run"):
        who = lock_holder(tmp_path / "run")
        assert who.pid == os.getpid()
        with pytest.raises(RunError, match=rf"in use by process {os.getpid()} on .* since .* UTC"):
            finish(TEXTS, tmp_path / "run")
        assert {p.name for p in (tmp_path / "run").iterdir()} == {LOCK, HEARTBEAT}
    assert lock_holder(tmp_path / "run") is None
    assert list((tmp_path / "run").iterdir()) == []


def test_a_lock_left_by_a_dead_process_is_taken_over(tmp_path):
    def die():
        with directory_lock(tmp_path):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die) == -signal.SIGKILL
    assert (tmp_path / LOCK).exists()
    assert lock_holder(tmp_path) is None
    with directory_lock(tmp_path):
        assert lock_holder(tmp_path).pid == os.getpid()


def test_nobody_begins_while_a_worker_of_a_dead_process_lives(tmp_path):
    def die_leaving_a_worker():
        with directory_lock(tmp_path) as lock:
            subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1.5)"], pass_fds=(lock,))
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die_leaving_a_worker) == -signal.SIGKILL
    assert lock_holder(tmp_path).is_dead()
    with directory_lock(tmp_path):  # it waits for the worker to end
        assert lock_holder(tmp_path).pid == os.getpid()


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(RunError, match="not empty and not a study"):
        finish(TEXTS, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_a_process_elsewhere_is_not_thought_dead():
    assert not LockHolder(2**22 + 1, "elsewhere", "then", "heedful").is_dead()
    assert not LockHolder(os.getpid(), os.uname().nodename, time.ctime(), "heedful").is_dead()


def test_the_process_of_another_user_is_not_thought_dead(monkeypatch):
    def refuse(pid, number):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    assert not LockHolder(1, os.uname().nodename, "then", "heedful").is_dead()


@pytest.mark.parametrize("place", ["note.txt", "note.txt/run"])
def test_a_place_that_cannot_be_a_folder(tmp_path, place):
    (tmp_path / "note.txt").write_text("mine")
    with (
        pytest.raises(RunError, match=rf"{place}: cannot be written to: (File exists|Not a directory); choose another"),
        directory_lock(tmp_path / place),
    ):
        pass
    assert (tmp_path / "note.txt").read_text() == "mine"


@pytest.mark.parametrize("call", ["open", "pwrite"])
def test_a_disk_without_room_for_a_lock(tmp_path, monkeypatch, call):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(DiskFullError, match=rf"{LOCK}: the disk is full .* make room"), directory_lock(tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []
    with directory_lock(tmp_path):
        assert lock_holder(tmp_path).pid == os.getpid()


@pytest.mark.parametrize("call", ["flock", "pwrite"])
def test_a_broken_disk_is_told_as_it_is(tmp_path, monkeypatch, call):
    def broken(*arguments):
        raise OSError(errno.EIO, "Input/output error")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(fcntl if call == "flock" else os, call, broken)
    with pytest.raises(OSError, match="Input/output error"), directory_lock(tmp_path):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """Nobody can be kept out there, but who is at work is still told."""

    def without(descriptor, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    assert lock_holder(tmp_path) is None
    with directory_lock(tmp_path):
        assert lock_holder(tmp_path).pid == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_taken_away_while_it_was_waited_for(tmp_path, monkeypatch):
    """Who held it ended between our opening of the file and our locking it, and another began since."""
    lock, taken = fcntl.flock, []

    def late(descriptor, how):
        lock(descriptor, how)
        if len(taken) < 2:
            (tmp_path / LOCK).unlink()
            taken.append(descriptor)
            if len(taken) == 2:
                (tmp_path / LOCK).touch()

    monkeypatch.setattr(fcntl, "flock", late)
    with directory_lock(tmp_path):
        assert len(taken) == 2
        assert lock_holder(tmp_path).pid == os.getpid()


def test_a_lock_that_does_not_say_whose_it_is(tmp_path):
    with directory_lock(tmp_path):
        (tmp_path / LOCK).write_text("[1, 2")
        assert lock_holder(tmp_path) == LockHolder(0, "?", "?", "?")


def test_a_forked_child_that_ends_leaves_the_lock_to_its_parent(tmp_path):
    with ExitStack() as stack:
        stack.enter_context(directory_lock(tmp_path))
        assert in_child(stack.close) == 0
        assert lock_holder(tmp_path).pid == os.getpid()
        assert {path.name for path in tmp_path.iterdir()} == {LOCK, HEARTBEAT}
