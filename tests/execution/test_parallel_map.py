"""Work that is parallel_map comes back in order, wherever it was done."""

import os
import subprocess
import sys

import pytest

from heedful.errors import ConfigError, DataError, RunError
from heedful.execution.pool import parallel_map, place_named
from tests.execution.jobs import double


def test_in_this_process_and_its_errors():
    assert list(parallel_map(double, 2, range(4), jobs=1)) == [(0, 0), (1, 2), (2, 4), (3, 6)]
    with pytest.raises(DataError, match="thirteen"):
        list(parallel_map(double, 2, [13], jobs=1))


def test_on_processes_and_their_end():
    """More pieces than are read ahead; one that takes its process with it; one that is refused."""
    assert list(parallel_map(double, 2, range(5), jobs=2)) == [(i, 2 * i) for i in range(5)]
    with pytest.raises(RunError, match=r"the worker process ended early: exit code 1; .* --jobs"):
        list(parallel_map(double, 2, [0, 17], jobs=2))
    with pytest.raises(DataError, match="thirteen"):
        list(parallel_map(double, 2, [0, 13], jobs=2))


def test_places_that_are_not():
    with pytest.raises(ConfigError, match="--on ray"):
        parallel_map(double, 2, [1], address="here:1")
    with pytest.raises(ConfigError, match="moon"):
        place_named("moon")


RAY = """
from tests.execution.jobs import double
from heedful.errors import DataError
from heedful.execution.pool import parallel_map

came = []
try:
    for pair in parallel_map(double, 2, [0, 1, 2, 3, 4, 13], on="ray", jobs=2):
        came.append(pair)
except DataError as error:
    assert str(error) == "thirteen"
    assert came == [(i, 2 * i) for i in range(5)], came
    print("as told")
"""


def test_on_ray():
    """In a process of its own, so that what Ray leaves behind ends with it."""
    pytest.importorskip("ray")
    even = os.environ | {"RAY_worker_niceness": "0"}  # Ray's workers wait behind all else on a busy machine
    ran = subprocess.run(
        [sys.executable, "-c", RAY], env=even, capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.stdout.strip().endswith("as told"), ran.stderr[-2000:]


def test_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from heedful.execution.pool import parallel_map\nprint(list(parallel_map(pow, 2, [3, 4], jobs=2)))\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[(3, 8), (4, 16)]\n"
