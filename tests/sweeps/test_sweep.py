"""A sweep: nothing twice, failures that stop nothing, a table and a page at the end."""

import shutil
import threading

import polars
import pytest

from heedful import api
from heedful.errors import ConfigError, RunError
from heedful.execution.pool import StoppedError
from heedful.execution.ray_backend import INCOMING
from heedful.reports.pages import write_page
from heedful.storage.manifest import Manifest, run_kind
from heedful.sweeps.grid import grid_of
from heedful.sweeps.result import SweepResult
from heedful.sweeps.sweep import SweepSettings, run_sweep, start_sweep
from tests.sweeps.tiny import FakeBackend, tiny_grid

GRID = grid_of(tiny_grid("sst", **{"model.projection": ["softmax", "sparsemax"], "model.scale": [1, 10, 100]}))
NAMES = [point.folder for point in GRID.points]


@pytest.fixture
def sweep(tmp_path, smoke_run):
    """Carry out `GRID` with a backend that only hands out results; gives the result, the backend and what was said."""

    def run(failing=None, retries=1, grid=GRID):
        backend, events = FakeBackend(smoke_run, failing), []
        result = run_sweep(
            grid, tmp_path / "out", lambda studies: backend, text="text", retries=retries, on_event=events.append
        )
        return result, backend, events

    return run


def test_everything_is_carried_out_and_summed_up(sweep, tmp_path):
    result, backend, events = sweep()
    out = tmp_path / "out"
    assert sorted(backend.attempts) == sorted(NAMES)
    assert backend.stopped
    assert not result.failed
    assert [study.place for study in result.studies] == [point.place for point in GRID.points]
    assert SweepResult.load(out / "result.json") == result
    table = polars.read_parquet(out / "summary.parquet")
    assert table["study"].to_list() == [f"studies/{name}" for name in NAMES]
    assert table["model.scale"].to_list() == ["1", "10", "100"] * 2
    assert table["accuracy"].to_list() == [result.studies[0].figure("accuracy").estimate.value] * 6
    assert len((out / "summary.csv").read_text().splitlines()) == 7
    assert result.to_pandas().shape == table.shape
    assert "<table>" in result._repr_html_()
    assert [e.get("state") for e in events[:6]] == ["waiting"] * 6
    assert sum(e.get("state") == "finished" for e in events) == 6
    assert Manifest.read(out).details["on"] == "nowhere"
    assert run_kind(out) == "sweep"
    assert not (out / "report.html").exists()  # pages are written by `heedful.sweep`
    assert write_page([out]).read_text().count("report.html") == 6


def test_nothing_is_done_twice(sweep):
    first, _, _ = sweep()
    again, backend, events = sweep()
    assert backend.attempts == []
    assert not backend.stopped  # it was not even called
    assert again == first
    assert {event.get("state") for event in events} == {"kept"}


def test_a_grid_that_grew_keeps_what_it_has(sweep):
    sweep()
    wider = grid_of(
        tiny_grid("sst", **{"model.projection": ["softmax", "sparsemax"], "model.scale": [1, 10, 100, 1000]})
    )
    result, backend, _ = sweep(grid=wider)
    assert len(backend.attempts) == 2
    assert len(result.studies) == 8


def test_a_failure_is_tried_again_and_stops_nothing(sweep, tmp_path):
    result, backend, events = sweep({NAMES[0]: 1, NAMES[3]: 9}, retries=2)
    assert [study.folder for study in result.failed] == [f"studies/{NAMES[3]}"]
    assert result.failed[0].error == "it <b>broke</b>"
    assert backend.attempts.count(NAMES[0]) == 2
    assert backend.attempts.count(NAMES[3]) == 3
    assert sum(event.get("state") == "retry" for event in events) == 3
    assert sum(event.get("state") == "failed" for event in events) == 1
    tried = Manifest.read(tmp_path / "out").details["tried"]
    assert tried[NAMES[0]]["attempts"] == 2
    assert tried[NAMES[3]]["error"] == "it <b>broke</b>"
    page = write_page([tmp_path / "out"]).read_text()
    assert "it &lt;b&gt;broke&lt;/b&gt;" in page
    assert "<b>broke" not in page
    mended, backend, _ = sweep()
    assert backend.attempts == [NAMES[3]]
    assert not mended.failed


def test_a_damaged_result_is_not_trusted(sweep, tmp_path):
    sweep()
    path = tmp_path / "out" / "studies" / NAMES[2] / "result.json"
    path.write_text(path.read_text()[:-40])
    result, backend, _ = sweep()
    assert backend.attempts == [NAMES[2]]
    assert path.with_name("result.json.damaged-1").exists()
    assert not result.failed


def test_what_is_damaged_in_a_study_is_set_aside_by_the_driver(sweep, tmp_path):
    sweep()
    harmed = tmp_path / "out" / "studies" / NAMES[0] / "result.json"
    harmed.write_bytes(b"")
    _, _, events = sweep({NAMES[0]: 9}, retries=0)
    notices = [event["notice"] for event in events if "notice" in event]
    assert notices == [f"{harmed} was damaged (it is empty): set aside as result.json.damaged-1, and computed again"]


def test_a_study_with_other_settings_is_left_alone(sweep, tmp_path, smoke_run):
    """A folder that somebody copied into the sweep is refused before anything in it is set aside."""
    sweep({NAMES[0]: 9}, retries=0)
    study = shutil.copytree(smoke_run, tmp_path / "out" / "studies" / NAMES[0])
    harmed = study / "models" / "standard-0" / "metrics.jsonl"
    harmed.write_bytes(b"")
    _, _, events = sweep({NAMES[0]: 9}, retries=0)
    assert not [event for event in events if "notice" in event]
    assert harmed.read_bytes() == b""


def test_what_was_on_its_way_home_to_a_killed_driver_is_cleared_and_nothing_else(sweep, tmp_path):
    sweep()
    out = tmp_path / "out"
    for folder in (out / INCOMING / "abc" / "data", out / "studies" / ".mine" / "data"):
        folder.mkdir(parents=True)
        (folder / "train.parquet").write_bytes(b"half")
    sweep()
    assert sorted(path.name for path in (out / "studies").iterdir()) == [".mine", *sorted(NAMES)]
    assert (out / "studies" / ".mine" / "data" / "train.parquet").exists()
    assert not (out / INCOMING).exists()


class Breaking(FakeBackend):
    """Breaks down at one study, with a fault of its own, while another is under way until it is stopped."""

    def __init__(self, like, at):
        super().__init__(like)
        self.at = at
        self.under_way, self.stopping = threading.Event(), threading.Event()

    def run(self, job, on_event):
        self.attempts.append(job.name)
        if job.name == self.at:
            assert self.under_way.wait(60)
            raise ZeroDivisionError("a fault")
        self.under_way.set()
        assert self.stopping.wait(60)
        raise StoppedError("the pool was stopped")

    def stop(self):
        super().stop()
        self.stopping.set()


@pytest.mark.parametrize("at", [0, 1])
def test_a_fault_of_the_backend_stops_the_others_and_they_are_not_tried_again(tmp_path, smoke_run, at):
    backend, events = Breaking(smoke_run, NAMES[at]), []
    with pytest.raises(ZeroDivisionError, match="a fault"):
        run_sweep(GRID, tmp_path / "out", lambda studies: backend, text="", retries=3, on_event=events.append)
    assert backend.stopped
    assert sorted(backend.attempts) == sorted(NAMES[:2])
    assert not {event.get("state") for event in events} & {"retry", "failed", "finished"}
    with pytest.raises(RunError, match=r"result\.json: no such file; the sweep is not finished"):
        SweepResult.load(tmp_path / "out" / "result.json")


def test_folders_that_are_no_sweeps(tmp_path, smoke_run):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thing").touch()
    for out in ("other", "other/thing"):
        with pytest.raises(RunError, match="choose another --out"):
            run_sweep(GRID, tmp_path / out, lambda studies: FakeBackend(smoke_run), text="")


def test_an_unknown_setting_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"^sweep: unknown setting 'job'; did you mean 'jobs'\?$"):
        api.sweep(tiny_grid("sst"), job=2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"on": "moon"}, "is not one of local, ray"),
        ({"address": "auto"}, "--address is for --on ray"),
        ({"gpus": 1}, "--gpus is for --on ray"),
        ({"shared": True}, "--shared is for --on ray"),
        ({"jobs": 0}, "must be 1 or more"),
        ({"retries": -1}, "must be 0 or more"),
    ],
)
def test_what_does_not_go_together(settings, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        start_sweep(tiny_grid("sst"), tmp_path / "out", SweepSettings(**settings), progress=False)
