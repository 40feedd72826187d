"""One process at a time works in a run; the others are told who does."""

import os
import signal
import subprocess
import sys
import time

import pytest

from heedful.errors import RunError
from heedful.studies.lock import LOCK, Holder, held, holder
from tests.faults.small import TEXTS, finish, in_child


def test_the_second_is_told_who_holds_it(tmp_path):
    with held(tmp_path / "run"):
        who = holder(tmp_path / "run")
        assert who.pid == os.getpid()
        with pytest.raises(RunError, match=rf"in use by process {os.getpid()} on .* since .* UTC"):
            finish(TEXTS, tmp_path / "run")
        assert [p.name for p in (tmp_path / "run").iterdir()] == [LOCK]
    assert holder(tmp_path / "run") is None
    assert list((tmp_path / "run").iterdir()) == []


def test_a_lock_left_by_a_dead_process_is_taken_over(tmp_path):
    def die():
        with held(tmp_path):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die) == -signal.SIGKILL
    assert (tmp_path / LOCK).exists()
    assert holder(tmp_path) is None
    with held(tmp_path):
        assert holder(tmp_path).pid == os.getpid()


def test_nobody_begins_while_a_worker_of_a_dead_process_lives(tmp_path):
    def die_leaving_a_worker():
        with held(tmp_path) as lock:
            subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1.5)"], pass_fds=(lock,))
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die_leaving_a_worker) == -signal.SIGKILL
    assert holder(tmp_path).is_dead()
    with held(tmp_path):  # it waits for the worker to end
        assert holder(tmp_path).pid == os.getpid()


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(RunError, match="not empty and not a run"):
        finish(TEXTS, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_a_process_elsewhere_is_not_thought_dead():
    assert not Holder(2**22 + 1, "elsewhere", "then", "heedful").is_dead()
    assert not Holder(os.getpid(), os.uname().nodename, time.ctime(), "heedful").is_dead()
