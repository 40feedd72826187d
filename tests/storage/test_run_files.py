"""Listings of folders are bounded, whoever filled the folder."""

import pytest

from heedful.data.catalog import write_checksums
from heedful.data.corpora.eraser import read_marked
from heedful.errors import RunError
from heedful.execution.ray_backend import Arrival, pieces
from heedful.papers.reproduction import results_to_renew
from heedful.records.query import ModelFiles
from heedful.storage import run_files
from heedful.storage.atomic_files import TEMPORARY, remove_temporary_files
from heedful.storage.run_files import files_below
from heedful.studies.run_directory import STATE, RunDirectory
from heedful.tracing.store import Trace


def _settle(folder):
    with Arrival(folder / "many", folder) as arrival:
        arrival.add("result.json", b"{}")
        arrival.settle()


LISTINGS = {
    "eraser documents": lambda folder: read_marked(folder, "val"),
    "traces that query reads": lambda folder: list(ModelFiles(folder, None, []).verified("many", "*.parquet")),
    "checksums": lambda folder: write_checksums(folder / "many", "somewhere"),
    "results of papers": results_to_renew,
    "files sent by Ray": lambda folder: list(pieces(folder)),
    "files that arrive by Ray": _settle,
    "models": lambda folder: RunDirectory(folder).trained_models(),
    "a trace": lambda folder: Trace(folder / "many"),
    "temporary files": remove_temporary_files,
}


@pytest.mark.parametrize("what", LISTINGS)
def test_more_entries_than_are_listed(tmp_path, monkeypatch, what):
    names = {"eraser documents": "docs", "results of papers": "snell2021/quick", "models": "models"}
    many = tmp_path / names.get(what, "models" if what == "temporary files" else "many")
    many.mkdir(parents=True)
    (tmp_path / "val.jsonl").touch()
    for i in range(4):
        (many / f"{i}.json").touch()
    monkeypatch.setattr(run_files, "MAX_ENTRIES", 3)
    with pytest.raises(RunError, match=r"more than 3 entries in one folder; choose one with fewer$"):
        LISTINGS[what](tmp_path)


def test_more_entries_in_all_than_are_listed(tmp_path, monkeypatch):
    for i in range(3):
        (tmp_path / f"{i}" / "inner").mkdir(parents=True)
    monkeypatch.setattr(run_files, "MAX_BELOW", 5)
    with pytest.raises(RunError, match="more than 5 files and folders below it"):
        list(files_below(tmp_path))


def test_temporary_files_of_another_run_within_stay(tmp_path):
    name = f".a.json.0{TEMPORARY}"
    ours = [tmp_path / name, tmp_path / "models" / "standard-0" / name]
    theirs = [tmp_path / "other" / name, tmp_path / "notes.part"]
    for path in (*ours, *theirs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "data").symlink_to(tmp_path / "other")
    remove_temporary_files(tmp_path)
    assert [path.exists() for path in (*ours, *theirs)] == [False, False, True, True]


def test_folders_that_are_named_as_files_or_steps_are_left_alone(tmp_path):
    model = RunDirectory(tmp_path).model("standard-0")
    for name in ("007", "٣", "7"):
        (model.root / "checkpoints" / name).mkdir(parents=True)
        (model.root / "checkpoints" / name / STATE).touch()
    (model.root / "trace" / "9.parquet").mkdir(parents=True)
    (model.root / "trace" / "8.parquet").touch()
    assert model.checkpoint_steps() == [7]
    model.remove_checkpoints()
    model.remove_unlisted_traces()
    assert sorted(path.name for path in (model.root / "checkpoints").iterdir()) == ["007", "٣"]
    assert [path.name for path in (model.root / "trace").iterdir()] == ["9.parquet"]
