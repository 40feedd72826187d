"""Manifests: written when a run begins, completed when it ends; nobody guesses what kind of run a folder is."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from heedful.errors import DamagedError, RunError
from heedful.storage import manifest
from heedful.storage.manifest import (
    MANIFEST,
    RESULT,
    Manifest,
    RunClock,
    current_command,
    refuse_other,
    run_kind,
    versions,
)
from heedful.storage.serialization import Stored


@dataclass(frozen=True)
class Share(Stored):
    share: float


def test_a_manifest_is_written_at_the_beginning_and_completed_at_the_end(tmp_path):
    clock = RunClock("audit", "heedful audit a b")
    clock.begin(tmp_path)
    begun = Manifest.read(tmp_path)
    assert (begun.kind, begun.finished, begun.files) == ("audit", None, {})
    clock.finish(tmp_path, Share(0.5), device="cpu")
    made = Manifest.read(tmp_path)
    assert (made.command, made.started, made.details) == ("heedful audit a b", begun.started, {"device": "cpu"})
    assert made.finished >= made.started
    assert made.seconds >= 0
    assert made.cpu_seconds >= 0
    assert set(made.versions) >= {"python", "heedful", "torch"}
    assert list(made.files) == [RESULT]
    assert Share.load(tmp_path / RESULT) == Share(0.5)


def test_what_is_resumed_keeps_its_start_and_what_is_finished_its_result(tmp_path):
    Manifest("sweep", started="2026-01-02T03:04:05Z").write(tmp_path)
    clock = RunClock("sweep")
    clock.begin(tmp_path)
    clock.finish(tmp_path, Share(0.5))
    finished = Manifest.read(tmp_path)
    assert finished.started == "2026-01-02T03:04:05Z"
    RunClock("sweep").begin(tmp_path)
    assert Manifest.read(tmp_path) == finished


def test_the_time_of_processes_adds_up(tmp_path):
    Manifest("study", started="2026-01-02T03:04:05Z", seconds=600.0, cpu_seconds=60.0).write(tmp_path)
    clock = RunClock("study")
    clock.begin(tmp_path)
    clock.finish(tmp_path, Share(0.5))
    again = Manifest.read(tmp_path)
    assert again.seconds >= 600
    assert again.cpu_seconds >= 60


def test_no_manifest_vouches_for_another_result(tmp_path, monkeypatch):
    RunClock("study").finish(tmp_path, Share(0.5))

    def die(path, text):
        raise KeyboardInterrupt

    monkeypatch.setattr("heedful.storage.manifest.write_text", die)
    RunClock("study").finish(tmp_path, Share(0.5))
    assert Manifest.read(tmp_path).files
    with pytest.raises(KeyboardInterrupt):
        RunClock("study").finish(tmp_path, Share(0.25))
    assert Manifest.read(tmp_path).files == {}


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"kind": "study"}', '{"kind": "zoo", "sha256": "0"}'])
def test_a_damaged_manifest_is_set_aside_when_the_run_goes_on(tmp_path, damage):
    (tmp_path / MANIFEST).write_text(damage)
    with pytest.raises(DamagedError, match=r"manifest\.json: damaged"):
        Manifest.read(tmp_path)
    RunClock("study").begin(tmp_path)
    assert run_kind(tmp_path) == "study"
    assert (tmp_path / f"{MANIFEST}.damaged-1").read_text() == damage


def test_what_is_no_run(tmp_path):
    with pytest.raises(RunError, match="there is no such folder"):
        run_kind(tmp_path / "nothing")
    with pytest.raises(RunError, match=r"not a run of heedful \(it has no manifest.json\)"):
        run_kind(tmp_path)
    (tmp_path / MANIFEST).write_text('{"name": "somebody else\'s"}')
    with pytest.raises(RunError, match=r"manifest.json has no kind such as study, sweep, audit, followed, paper"):
        run_kind(tmp_path)


def test_a_folder_with_something_else_is_refused(tmp_path):
    refuse_other(tmp_path / "new", "study", "config.toml")
    refuse_other(tmp_path, "study", "config.toml")
    (tmp_path / "lock.json").touch()
    (tmp_path / ".manifest.json.abc.heedful.part").touch()
    refuse_other(tmp_path, "study", "config.toml")
    (tmp_path / "thing").touch()
    with pytest.raises(RunError, match="is not empty and not a study of heedful; choose another --out"):
        refuse_other(tmp_path, "study", "config.toml")
    with pytest.raises(RunError, match="thing is a file; choose another --out"):
        refuse_other(tmp_path / "thing", "study", "config.toml")
    (tmp_path / "config.toml").touch()
    refuse_other(tmp_path, "study", "config.toml")
    Manifest("audit").write(tmp_path)
    with pytest.raises(RunError, match="holds an audit; choose another --out"):
        refuse_other(tmp_path, "study", "config.toml")


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("/usr/local/bin/heedful", "heedful study 'my reviews.csv'"),
        ("/somewhere/heedful/__main__.py", "heedful study 'my reviews.csv'"),
        ("/somewhere/train.py", None),
        ("-c", None),
    ],
)
def test_the_command_is_ours_however_it_is_started(program, command, monkeypatch):
    monkeypatch.setattr(sys, "argv", [program, "study", "my reviews.csv"])
    assert current_command() == command


def test_what_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr("heedful.storage.manifest.PACKAGES", ("numpy", "no-such-package"))
    assert list(versions()) == ["python", "numpy"]


def test_the_commit_is_that_of_this_source_and_of_nothing_around_it(tmp_path, monkeypatch):
    """Installed below somebody's own repository, heedful has no commit; nor has it where there is no git."""
    installed = tmp_path / "venv" / "manifest.py"
    installed.parent.mkdir()
    installed.touch()
    monkeypatch.setattr(manifest, "__file__", str(installed))
    assert manifest.source_commit() is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "theirs"], check=True)
    assert manifest.source_commit() is None
    subprocess.run([*git, "add", str(installed)], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert manifest.source_commit() == head
    monkeypatch.setenv("PATH", str(tmp_path))
    assert manifest.source_commit() is None
