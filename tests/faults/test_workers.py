"""Workers end with the process that started them; one that is killed is replaced, once."""

import os
import signal
import sys
import textwrap
import time

import pytest

from heedful.errors import TrainingError
from heedful.execution.pool import Job, run_jobs

FRAGILE = """
    import os, signal, sys, time
    from pathlib import Path

    def work(marks, order, times=0, *, report):
        marks = Path(marks)
        marks.joinpath(f"{order}-{os.getpid()}").touch()
        if len(list(marks.glob(f"{order}-*"))) <= times:
            os.kill(os.getpid(), signal.SIGKILL)
        if order == "complaining":
            sys.stderr.buffer.write(b"first\\nMemoryError: caf\\xe9\\n")
            sys.exit(1)
        if order == "faulty":
            raise KeyError("folder")
        if order == "silent":
            sys.exit(7)
        if order == "asked-to-end":
            os.kill(os.getpid(), signal.SIGTERM)
        if order == "for-ever":
            time.sleep(600)
"""

SLOW = """
    import os, time
    from pathlib import Path
    Path(os.environ["MARKS"], f"for-ever-{os.getpid()}").touch()
    time.sleep(600)
"""


@pytest.fixture
def marks(tmp_path, monkeypatch):
    (tmp_path / "fragile_jobs.py").write_text(textwrap.dedent(FRAGILE))
    (tmp_path / "slow_jobs.py").write_text(textwrap.dedent(SLOW))
    path = os.pathsep.join([str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", path)
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("MARKS", str(marks))
    return marks


def jobs(marks, module="fragile_jobs", **times) -> list[Job]:
    return [
        Job(name, f"{module}:work", {"marks": str(marks), "order": name.replace("_", "-"), "times": times[name]})
        for name in times
    ]


def test_a_killed_worker_is_replaced_once(marks):
    events = []
    run_jobs(jobs(marks, a=0, b=1, c=0), workers=1, on_event=events.append)
    assert [event["model"] for event in events if event.get("done")] == ["a", "b", "c"]
    assert [event["notice"] for event in events if "notice" in event] == [
        "b: its process was ended by SIGKILL (was there memory enough? --jobs 1 needs less); another goes on"
    ]


def test_a_worker_killed_twice_is_an_error(marks):
    with pytest.raises(TrainingError, match=r"b: its process was ended by SIGKILL"):
        run_jobs(jobs(marks, b=2), workers=1)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("complaining", "complaining: the worker process ended early: MemoryError: caf�"),
        ("faulty", "faulty: the worker process ended early: KeyError: 'folder'"),
        ("silent", "silent: the worker process ended early: exit code 7"),
        ("asked_to_end", "asked_to_end: its process was ended by SIGTERM"),
    ],
)
def test_the_last_words_of_a_worker_that_ended_early(marks, order, words):
    with pytest.raises(TrainingError) as error:
        run_jobs(jobs(marks, **{order: 0}), workers=1)
    assert str(error.value) == words


@pytest.mark.parametrize("first", ["silent", "for_ever"])
def test_the_first_failure_ends_the_others_at_once(marks, first):
    """Whichever of them was begun first, and without another that takes its place."""
    names = (first, *{"silent", "for_ever"} - {first})
    events = []
    with pytest.raises(TrainingError, match="silent: the worker process ended early"):
        run_jobs(jobs(marks, **dict.fromkeys(names, 0)), workers=2, on_event=events.append)
    assert events == []
    for mark in marks.glob("for-ever-*"):
        assert not _is_alive(int(mark.name.rsplit("-", 1)[1]))


@pytest.mark.parametrize("module", ["fragile_jobs", "slow_jobs"])
def test_workers_end_when_their_driver_is_killed(marks, module):
    """At work, or still importing what they need."""
    pid = os.fork()
    if not pid:
        run_jobs(jobs(marks, module, for_ever=0), workers=1)
        os._exit(0)
    while not (begun := list(marks.glob("for-ever-*"))):
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    orphan = int(begun[0].name.rsplit("-", 1)[1])
    for _ in range(1500):
        if not _is_alive(orphan):
            return
        time.sleep(0.02)
    raise AssertionError(f"the worker {orphan} lives on")


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
