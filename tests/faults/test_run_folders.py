"""Run folders that came from somebody else, were copied together, or are asked for again."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from heedful.data.ragged import Ragged
from heedful.errors import ConfigError, RunError
from heedful.execution.ray_backend import INCOMING, Arrival, clear_incoming
from heedful.followed.result import FollowedDirectory, ProbeTexts
from heedful.records.index import list_runs
from heedful.storage import manifest as manifests
from heedful.storage.locks import LOCK, directory_lock
from heedful.storage.manifest import Manifest
from heedful.sweeps.grid import Axis
from heedful.sweeps.result import SweepResult, SweepStudy
from heedful.tracing.store import Snapshot
from tests.faults.small import TEXTS, finish, in_child


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("folders") / "whole"
    finish(TEXTS, out)
    return out


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def test_another_model_in_its_place_is_trained_again(whole, run):
    shutil.rmtree(run / "models" / "uniform-0")
    shutil.copytree(run / "models" / "standard-0", run / "models" / "uniform-0")
    notices = []
    assert finish(TEXTS, run, notices) == (whole / "result.json").read_bytes()
    assert len(notices) == 1
    assert "uniform-0/done.json was damaged (it is the record of the model standard-0): set aside" in notices[0]


def test_another_study_is_refused_before_anything_is_mended(run):
    damaged = run / "models" / "standard-0" / "metrics.jsonl"
    damaged.write_bytes(b"")
    before = sorted(run.rglob("*"))
    with pytest.raises(RunError, match="holds a study with other settings"):
        finish(replace(TEXTS, min_count=2), run)
    assert sorted(run.rglob("*")) == before


def test_a_lost_config_does_not_let_another_study_in(run):
    (run / "config.toml").unlink()
    with pytest.raises(RunError, match="holds a study with other settings"):
        finish(replace(TEXTS, min_count=2), run)


def test_a_finished_study_asked_for_again_keeps_its_manifest(run):
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in run.rglob("*") if path.is_file()}
    finish(TEXTS, run)
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("mask", "file", "folder"), [(0o077, 0o600, 0o700), (0o002, 0o664, 0o775)])
def test_the_umask_is_respected(tmp_path, mask, file, folder):
    before = os.umask(mask)
    try:
        finish(TEXTS, tmp_path / "run")
    finally:
        os.umask(before)
    paths = [tmp_path / "run", *(tmp_path / "run").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()} == {file}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()} == {folder}


def test_a_clock_that_runs_backwards(tmp_path, monkeypatch):
    times = iter(f"2026-01-{day:02d}T00:00:00Z" for day in range(28, 0, -1))
    monkeypatch.setattr(manifests, "utc_now", lambda: next(times))
    finish(TEXTS, tmp_path / "run")
    made = Manifest.read(tmp_path / "run")
    assert made.started <= made.finished
    assert made.seconds >= 0
    assert made.cpu_seconds >= 0


def test_stopped_workers_of_a_dead_process(tmp_path):
    """They keep the lock, and the error says how to end them."""
    code = f"""if True:
        import os, signal, subprocess, sys
        from pathlib import Path
        from heedful.storage.locks import directory_lock
        with directory_lock(Path({str(tmp_path)!r})) as lock:
            sleeping = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
            worker = subprocess.Popen(sleeping, pass_fds=(lock,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.kill(worker.pid, signal.SIGSTOP)
            print(worker.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    driver = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    worker = int(driver.stdout)
    try:
        words = rf"has ended, but its worker .*stopped.*: kill -KILL {worker}$"
        with pytest.raises(RunError, match=words), directory_lock(tmp_path):
            pass
    finally:
        os.kill(worker, signal.SIGKILL)


def test_only_what_a_driver_left_is_cleared(tmp_path):
    (tmp_path / "studies" / ".git").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.tex").write_text("a year's work")
    (tmp_path / INCOMING).symlink_to(tmp_path / "elsewhere")
    clear_incoming(tmp_path)
    assert (tmp_path / "studies" / ".git").exists()
    assert (tmp_path / "elsewhere" / "thesis.tex").read_text() == "a year's work"
    (tmp_path / INCOMING).unlink()
    (tmp_path / "study").symlink_to(tmp_path / "elsewhere")
    with Arrival(tmp_path / "study", tmp_path) as arrival:
        arrival.add("result.json", b"{}")
        with pytest.raises(RunError, match="is a symbolic link"):
            arrival.settle()
    assert (tmp_path / "elsewhere" / "thesis.tex").exists()


@pytest.mark.parametrize("folder", ["../../elsewhere", "/etc", "studies/../../x", "javascript:alert(1)", "studies", ""])
def test_a_sweep_cannot_link_elsewhere(folder):
    with pytest.raises(ConfigError, match="is not one of the sweep"):
        SweepResult((Axis("a", ("1",)),), (SweepStudy(folder, ("1",), "0", "finished"),))


def test_a_followed_training_is_running_until_it_is_closed(tmp_path):
    root = tmp_path / "mine"
    followed = FollowedDirectory(root)
    followed.claim(_PROBE)
    followed.keep(0, _snapshot(), 0.0)
    (listed,) = list_runs(tmp_path).runs
    assert (listed.state, f"held by process {os.getpid()}" in listed.said) == ("running", True)
    assert in_child(lambda: _must_be_refused(root)) == 0
    followed.close()
    (listed,) = list_runs(tmp_path).runs
    assert (listed.state, listed.kind) == ("finished", "followed")
    assert not (root / LOCK).exists()


def test_a_followed_training_that_was_killed_is_broken_off(tmp_path):
    def die():
        followed = FollowedDirectory(tmp_path / "mine")
        followed.claim(_PROBE)
        followed.keep(0, _snapshot(), 0.0)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die) == -signal.SIGKILL
    (listed,) = list_runs(tmp_path).runs
    assert (listed.state, listed.said) == ("broken off", "recorded up to step 0, and not closed")
    followed = FollowedDirectory(tmp_path / "mine")
    followed.claim(_PROBE)
    followed.keep(5, _snapshot(), 0.0)
    assert [step.step for step in followed.close().steps] == [0, 5]


def test_a_followed_training_killed_between_its_result_and_its_manifest_goes_on(tmp_path):
    followed = FollowedDirectory(tmp_path / "mine")
    followed.claim(_PROBE)
    followed.keep(0, _snapshot(), 0.0)
    replace(Manifest.read(followed.root), files={}).write(followed.root)
    followed.keep(5, _snapshot(), 0.0)
    assert [step.step for step in followed.close().steps] == [0, 5]


_PROBE = ProbeTexts("texts", "Model", ("bad", "good"), (("a", "good", "film"), ("a", "bad", "one")), (1, 0))


def _snapshot():
    rows = Ragged.of([np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.7, 0.2])])
    numbers = np.arange(2, dtype=np.int32)
    quantities = dict.fromkeys(("alpha", "beta_logit", "delta"), rows)
    return Snapshot(quantities, numbers, 0 * numbers, numbers, numbers, np.ones(2, dtype=np.float32))


def _must_be_refused(root):
    FollowedDirectory._locks.clear()  # of the process that this one was forked from
    with pytest.raises(RunError, match="is in use by process"):
        FollowedDirectory(root).claim(_PROBE)
