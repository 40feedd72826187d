"""Answers of long work: found again, or computed again where they are damaged."""

import os
import sys

import pytest
import torch

from heedful.errors import DamagedError, DataError, TrainingError
from heedful.papers import units
from heedful.papers.units import Unit, check_beside, compute, is_beside, read, save, write_beside
from heedful.storage.checksums import write_sealed


@pytest.fixture
def computed(monkeypatch):
    """The orders that were given; each unit's answer is its argument."""
    given = []

    def run_jobs(jobs, *, workers, on_event):
        for job in jobs:
            given.append(job.name)
            save(units.Path(job.arguments["out"]), {"x": job.arguments["arguments"]["x"]})

    monkeypatch.setattr(units, "run_jobs", run_jobs)
    return given


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"answer": {"x": 2}, "sha256": "0"}', '{"answer": {"x": 1}}'])
def test_a_damaged_answer_is_named_set_aside_and_computed_again(tmp_path, computed, damage):
    both = [Unit(name, "m:f", {"x": x}) for name, x in (("a", 1), ("b", 2))]
    assert compute(both, tmp_path) == {"a": {"x": 1}, "b": {"x": 2}}
    (tmp_path / both[0].file).write_text(damage)
    said = []
    assert compute(both, tmp_path, on_progress=said.append) == {"a": {"x": 1}, "b": {"x": 2}}
    assert computed == ["a", "b", "a"]
    (line,) = said
    assert f"{tmp_path / both[0].file} was damaged" in line["notice"]
    assert (tmp_path / f"{both[0].file}.damaged-1").read_text() == damage


def test_what_a_unit_makes_beside_its_answer(tmp_path, computed):
    weights = tmp_path / "weights"
    unit = Unit("a", "m:f", {"x": 1}, {"weights": str(weights)}, makes=("weights",))
    write_beside("weights", weights, lambda path: path.write_bytes(b"whole"))
    compute([unit], tmp_path)
    compute([unit], tmp_path)
    assert computed == ["a"]
    weights.write_bytes(b"while")
    with pytest.raises(DamagedError, match="weights: damaged"):
        check_beside("weights", weights)
    said = []
    compute([unit], tmp_path, on_progress=said.append)
    assert computed == ["a", "a"]
    assert "weights was damaged (its checksum is another): set aside as weights.damaged-1" in said[0]["notice"]
    assert not is_beside("weights", weights, said.append)


def test_a_sealed_file_without_an_answer_is_damaged(tmp_path):
    write_sealed(tmp_path / "a.json", {"answer": [1]})
    with pytest.raises(DamagedError, match="it has no answer"):
        read(tmp_path / "a.json")


def refused(*, x, device, report):
    raise DataError(f"{x} is refused")


def doubled(*, x, device, report):
    report({"step": 1, "steps": 1})
    return {"x": 2 * x, "device": str(device), "threads": torch.get_num_threads()}


def test_units_are_computed_by_workers_and_an_error_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    events = []
    answers = compute([Unit("a", f"{__name__}:doubled", {"x": 1})], tmp_path, device="cpu", on_progress=events.append)
    assert answers == {"a": {"x": 2, "device": "cpu", "threads": 1}}
    assert events == [{"model": "a", "step": 1, "steps": 1}, {"model": "a", "done": True}]
    with pytest.raises(TrainingError, match=r"^b: 1 is refused$"):
        compute([Unit("b", f"{__name__}:refused", {"x": 1})], tmp_path, device="cpu")
    assert len(list(tmp_path.iterdir())) == 1


def test_an_answer_from_before_checksums_is_read_as_it_is(tmp_path):
    (tmp_path / "a.json").write_text('{"x": 1}')
    assert read(tmp_path / "a.json") == {"x": 1}
