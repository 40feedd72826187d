"""Workers end with the process that started them; one that is killed is replaced, once."""

import os
import signal
import sys
import textwrap
import time

import pytest

from heedful.errors import TrainingError
from heedful.execution.pool import work_through

WORKER = """
    import json, os, signal, sys
    from pathlib import Path
    marks = Path(sys.argv[1])
    for line in sys.stdin:
        order, times = line.split()
        marks.joinpath(f"{order}-{os.getpid()}").touch()
        if len(list(marks.glob(f"{order}-*"))) <= int(times):
            os.kill(os.getpid(), signal.SIGKILL)
        if order == "complaining":
            sys.stderr.buffer.write(b"first\\nMemoryError: caf\\xe9\\n")
            sys.exit(1)
        if order == "silent":
            sys.exit(7)
        if order == "asked-to-end":
            os.kill(os.getpid(), signal.SIGTERM)
        if order == "for-ever":
            import time
            time.sleep(600)
        print(json.dumps({"model": order, "done": True}), flush=True)
"""

SLOW = """
    import os, sys, time
    from pathlib import Path
    Path(sys.argv[1], f"for-ever-{os.getpid()}").touch()
    time.sleep(600)
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    (tmp_path / "fragile_worker.py").write_text(textwrap.dedent(WORKER))
    (tmp_path / "slow_worker.py").write_text(textwrap.dedent(SLOW))
    path = os.pathsep.join([str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", path)
    marks = tmp_path / "marks"
    marks.mkdir()
    return marks


def test_a_killed_worker_is_replaced_once(worker):
    lines = []
    orders = {name: f"{name} {times}" for name, times in (("a", 0), ("b", 1), ("c", 0))}
    work_through("fragile_worker", (str(worker),), orders, jobs=1, on_progress=lines.append)
    assert [line["model"] for line in lines if line.get("done")] == ["a", "b", "c"]
    assert [line["notice"] for line in lines if "notice" in line] == [
        "b: its process was ended by SIGKILL (was there memory enough? --jobs 1 needs less): another goes on"
    ]


def test_a_worker_killed_twice_is_an_error(worker):
    with pytest.raises(TrainingError, match=r"b: its process was ended by SIGKILL"):
        work_through("fragile_worker", (str(worker),), {"b": "b 2"}, jobs=1)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("complaining", "complaining: the training process ended early: MemoryError: caf�"),
        ("silent", "silent: the training process ended early: exit code 7"),
        ("asked-to-end", "asked-to-end: its process was ended by SIGTERM"),
    ],
)
def test_the_last_words_of_a_worker_that_ended_early(worker, order, words):
    with pytest.raises(TrainingError) as error:
        work_through("fragile_worker", (str(worker),), {order: f"{order} 0"}, jobs=1)
    assert str(error.value) == words


@pytest.mark.parametrize("first", ["silent", "for-ever"])
def test_the_first_failure_ends_the_others_at_once(worker, first):
    """Whichever of them was begun first, and without another that takes its place."""
    orders = {name: f"{name} 0" for name in (first, *{"silent", "for-ever"} - {first})}
    lines = []
    with pytest.raises(TrainingError, match="silent: the training process ended early"):
        work_through("fragile_worker", (str(worker),), orders, jobs=2, on_progress=lines.append)
    assert lines == []
    for mark in worker.glob("for-ever-*"):
        assert not _is_alive(int(mark.name.rsplit("-", 1)[1]))


@pytest.mark.parametrize("module", ["fragile_worker", "slow_worker"])
def test_workers_end_when_their_driver_is_killed(worker, module):
    """At work, or still importing what they need."""
    pid = os.fork()
    if not pid:
        work_through(module, (str(worker),), {"for-ever": "for-ever 0"}, jobs=1)
        os._exit(0)
    while not (marks := list(worker.glob("for-ever-*"))):
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    orphan = int(marks[0].name.rsplit("-", 1)[1])
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
