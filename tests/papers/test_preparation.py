"""Preparation: what is missing or damaged is computed, in stages; what is there is kept."""

import os
import shutil
import sys
from dataclasses import replace

import pytest
import torch

from heedful.errors import ConfigError, DamagedError, DataError, RunError, TrainingError
from heedful.papers import reproduction
from heedful.papers.experiment import Experiment, Needs, Unit, Workspace, study_folder
from heedful.papers.findings import Finding
from heedful.papers.reproduction import prepare
from heedful.storage.step_cache import record_beside, write_with_record
from heedful.studies.run_directory import RunDirectory, model_specs
from tests.faults.small import TEXTS
from tests.papers.conftest import run_here


def doubled(*, x, device, report):
    report({"step": 1, "steps": 1})
    return {"x": 2 * x, "device": str(device), "threads": torch.get_num_threads()}


def refused(*, x, device, report):
    raise DataError(f"{x} is refused")


def unit(name, x, **more):
    return Unit(name, f"{__name__}:doubled", {"x": x}, **more)


def experiment(name, *units, then=None):
    return Experiment(name, name, lambda budget: {}, lambda room: Finding(), lambda budget: Needs(units, then))


@pytest.fixture
def room(tmp_path):
    return Workspace("smoke", tmp_path, tmp_path / "units")


@pytest.fixture
def pools(monkeypatch):
    """The names of the jobs of each pool."""
    given = []

    def run_jobs(jobs, **options):
        given.append([job.name for job in jobs])
        return run_here(jobs, **options)

    monkeypatch.setattr(reproduction, "run_jobs", run_jobs)
    return given


def values(room, *units):
    return [answer["x"] for answer in room.answers(units)]


def test_only_the_studies_of_some_corpora(room, pools, tmp_path):
    polarity, keyword = (of_study(name) for name in ("polarity", "keyword"))
    needs = Needs((polarity, keyword, unit("a", 1)), lambda room: pytest.fail("nothing else is computed"))
    wanted = Experiment("t", "t", lambda budget: {}, lambda room: pytest.fail("nothing is read"), lambda budget: needs)
    prepare([wanted], room, data=("polarity",))
    assert [name.split()[0] for name in pools[0]] == ["polarity"] * len(model_specs(polarity.study))
    assert room.answers([polarity]) == [{"data": "polarity", "trained": True}]
    with pytest.raises(RunError, match="no such file"):
        room.answers([keyword])
    with pytest.raises(ConfigError, match="no study of 'sst'; they have polarity, keyword"):
        prepare([wanted], room, data=("sst",))


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"answer": {"x": 2}, "sha256": "0"}', '{"answer": {"x": 1}}'])
def test_a_damaged_answer_is_named_set_aside_and_computed_again(room, pools, damage):
    both = unit("a", 1), unit("b", 2)
    prepare([experiment("e", *both)], room)
    assert values(room, *both) == [2, 4]
    path = room.units / both[0].file
    path.write_text(damage)
    events = []
    prepare([experiment("e", *both)], room, on_progress=events.append)
    assert values(room, *both) == [2, 4]
    assert pools == [["a", "b"], ["a"]]
    assert events[0]["model"] == "a"
    assert f"{path} was damaged" in events[0]["notice"]
    assert path.with_name(f"{path.name}.damaged-1").read_text() == damage


def test_a_study_is_trained_only_for_a_unit_that_is_missing(room, pools):
    """Its numbers are kept, the trained study is not needed any more; one whose data alone are read is not trained."""
    whole, data = of_study("polarity"), of_study("keyword", part="data")
    prepare([experiment("e", whole, data)], room)
    assert [len(names) for names in pools] == [len(model_specs(whole.study)), 1, 1, 1]
    assert room.answers([whole, data]) == [
        {"data": "polarity", "trained": True},
        {"data": "keyword", "trained": False},
    ]
    shutil.rmtree(room.root / study_folder(whole.study))
    prepare([experiment("e", whole, data)], room)
    assert len(pools) == 4


def of_study(name, **more):
    study = replace(TEXTS, data=name, seeds=(0, 1), budget="smoke")
    arguments = {"run": study_folder(study)}
    return Unit(f"study-{name}", f"{__name__}:reads_study", arguments, paths=("run",), study=study, **more)


def reads_study(*, run, device, report):
    folder = RunDirectory(run)
    return {"data": folder.data_summary()["name"], "trained": folder.result_path.exists()}


def test_what_a_unit_reads_of_another_is_needed_only_while_it_is_missing(room, pools):
    made = Unit("a", f"{__name__}:writes", {"x": 1, "weights": "weights"}, paths=("weights",), makes=("weights",))
    reader = unit("b", 3, after=(made,))
    prepare([experiment("e", reader), experiment("f", replace(made, makes=()))], room)
    assert pools == [["a"], ["b"]]
    (room.root / "weights").unlink()
    prepare([experiment("e", reader)], room)
    assert len(pools) == 2
    (room.units / reader.file).unlink()
    prepare([experiment("e", reader)], room)
    assert pools[2:] == [["a"], ["b"]]


def test_what_a_unit_makes_beside_its_answer(room, pools):
    made = Unit("a", f"{__name__}:writes", {"x": 1, "weights": "weights"}, paths=("weights",), makes=("weights",))
    weights = room.root / "weights"
    prepare([experiment("e", made)], room)
    prepare([experiment("e", made)], room)
    assert pools == [["a"]]
    whole = weights.read_bytes()
    weights.write_bytes(b"while")
    with pytest.raises(DamagedError, match="weights: damaged"):
        record_beside(weights).verified("weights")
    prepare([experiment("e", replace(made, makes=()))], room)  # nobody needs the weights
    assert pools[1:] == []
    events = []
    prepare([experiment("e", replace(made, makes=())), experiment("f", made)], room, on_progress=events.append)
    assert pools[1:] == [["a"]]
    assert "weights was damaged (its checksum is another): set aside as weights.damaged-1" in events[0]["notice"]
    assert weights.read_bytes() == whole
    weights.unlink()
    assert not made.is_done(room, events.append)


def writes(*, x, weights, device, report):
    write_with_record(reproduction.Path(weights), lambda path: path.write_bytes(b"whole"))
    return {"x": x}


def test_all_experiments_share_one_pool_and_later_stages_see_the_first(room, pools):
    def second(workspace):
        return Needs(units=(unit("c", workspace.answers([unit("a", 1)])[0]["x"]),))

    spent = prepare([experiment("e", unit("a", 1), then=second), experiment("f", unit("a", 1), unit("b", 2))], room)
    assert pools == [["a", "b"], ["c"]]
    assert values(room, unit("c", 2)) == [4]
    assert set(spent) == {"e", "f"}
    assert min(spent.values()) > 0
    prepare([experiment("e", unit("a", 1), then=second)], room)
    assert pools[2:] == []


def test_reading_what_was_not_computed_is_an_error(room):
    with pytest.raises(RunError, match=r"a-[0-9a-f]{8}\.json: no such file; run the experiment with `heedful reprod"):
        room.answers([unit("a", 1)])


def test_units_are_computed_by_workers_and_an_error_is_one_line(room, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    events = []
    prepare([experiment("e", unit("a", 1))], room, device="cpu", on_progress=events.append)
    assert room.answers([unit("a", 1)]) == [{"x": 2, "device": "cpu", "threads": 1}]
    assert events == [
        {"stage": "1 units to compute"},
        {"model": "a", "step": 1, "steps": 1},
        {"model": "a", "done": True},
    ]
    with pytest.raises(TrainingError, match=r"^b: 1 is refused$"):
        prepare([experiment("e", replace(unit("b", 1), function=f"{__name__}:refused"))], room, device="cpu")
    assert len(list((room.units).iterdir())) == 1
