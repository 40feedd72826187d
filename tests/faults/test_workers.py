"""Workers end with the process that started them; one that is killed is replaced, once."""

import os
import signal
import sys
import textwrap
import time

import pytest

from heedful.errors import TrainingError
from heedful.studies.pool import work_through

WORKER = """
    import json, os, signal, sys
    from pathlib import Path
    marks = Path(sys.argv[1])
    for line in sys.stdin:
        order, times = line.split()
        marks.joinpath(f"{order}-{os.getpid()}").touch()
        if len(list(marks.glob(f"{order}-*"))) <= int(times):
            os.kill(os.getpid(), signal.SIGKILL)
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
