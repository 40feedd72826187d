"""Checkpoints: what is taken up again, what is dropped, what is set aside, and that there is always one left."""

import pytest
import torch
from torch.testing import assert_close

from heedful.errors import ConfigError
from heedful.models.training import TrainingState
from heedful.storage.atomic_files import read_checksummed_json, sha256, write_checksummed_json
from heedful.studies.run_directory import STATE, TENSORS, ModelDirectory
from heedful.studies.training import SETTING, Checkpoint, Checkpoints


def checkpoints(folder, *, device="cpu", shift=0) -> Checkpoints:
    return Checkpoints(folder, {"device": device}, lambda step: [step + shift, 3])


def saved(step: int) -> Checkpoint:
    weight = torch.full((2, 3), float(step))
    standing = TrainingState(
        step, (0.5, 0.25), {"0.step": torch.tensor(5.0)}, {"torch": torch.arange(4, dtype=torch.uint8)}
    )
    return Checkpoint(
        standing, [{"step": 0, "loss": 1.0}], {"a.weight": weight}, {"loss": 1.0}, {"a.weight": weight / 2}
    )


@pytest.fixture
def folder(tmp_path) -> ModelDirectory:
    """A model with a trace of one step, and checkpoints at steps 30 and 40."""
    folder = ModelDirectory(tmp_path / "model")
    trace = folder.trace_folder() / "0.parquet"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(b"recorded")
    folder.note(trace, sha256(trace))
    for step in (20, 30, 40):
        checkpoints(folder).save(saved(step))
    return folder


def test_the_last_one_is_taken_up_as_it_was(folder):
    assert folder.checkpoint_steps() == [30, 40]
    folder.written = {}
    found, expected = checkpoints(folder).latest(), saved(40)
    assert (found.standing.step, found.standing.losses) == (40, (0.5, 0.25))
    assert (found.metrics, found.best) == (expected.metrics, expected.best)
    for ours, theirs in (
        (found.weights, expected.weights),
        (found.best_weights, expected.best_weights),
        (found.standing.optimiser, expected.standing.optimiser),
        (found.standing.randomness, expected.standing.randomness),
    ):
        assert_close(ours, theirs, rtol=0, atol=0)
    assert list(folder.written) == ["trace/0.parquet"]


@pytest.mark.parametrize("other", [{"device": "cuda"}, {"shift": 1}], ids=["another machine", "another order of data"])
def test_those_of_another_training_are_dropped(folder, other):
    assert checkpoints(folder, **other).latest() is None
    assert folder.checkpoint_steps() == []
    assert list((folder.root / "checkpoints").iterdir()) == []


def test_one_that_was_being_written_is_dropped(folder):
    (folder.checkpoint_folder(40) / STATE).unlink()
    told = []
    assert checkpoints(folder).latest(told.append).standing.step == 30
    assert folder.checkpoint_steps() == [30]
    assert told == []


def test_tensors_that_cannot_be_read_are_set_aside(folder):
    """Their checksum is right, but they were no tensors when it was taken."""
    place = folder.checkpoint_folder(40)
    (place / TENSORS).write_bytes(b"no tensors")
    state = read_checksummed_json(place / STATE)
    files = state["files"] | {f"checkpoints/40/{TENSORS}": sha256(place / TENSORS)}
    write_checksummed_json(place / STATE, state | {"files": files})
    told = []
    assert checkpoints(folder).latest(told.append).standing.step == 30
    assert (place / f"{TENSORS}.damaged-1").read_bytes() == b"no tensors"
    assert len(told) == 1
    assert told[0].startswith(f"{place / TENSORS} was damaged (")
    assert told[0].endswith(f"): set aside as {TENSORS}.damaged-1, and computed again")


def test_after_damage_to_what_all_rest_on_the_next_ones_are_kept(folder):
    (folder.trace_folder() / "0.parquet").write_bytes(b"recor")
    told = []
    assert checkpoints(folder).latest(told.append) is None
    assert "0.parquet was damaged (its checksum is another): set aside as 0.parquet.damaged-1" in told[0]
    assert "0.parquet was damaged (it is gone): gone" in told[1]
    folder.written = {}
    for step in (1, 2, 3):
        checkpoints(folder).save(saved(step))
    assert checkpoints(folder).latest().standing.step == 3
    assert folder.checkpoint_steps() == [2, 3]


@pytest.mark.parametrize("told", ["soon", "-1", "nan", ""])
def test_how_often_must_be_a_number(folder, monkeypatch, told):
    monkeypatch.setenv(SETTING, told)
    with pytest.raises(ConfigError, match=rf"{SETTING} is '{told}'; it must be a number of seconds, 0 or more"):
        checkpoints(folder)


@pytest.mark.parametrize(("told", "due"), [("0", True), ("3600", False), ("inf", False)])
def test_how_often(folder, monkeypatch, told, due):
    monkeypatch.setenv(SETTING, told)
    assert checkpoints(folder).is_due() is due
