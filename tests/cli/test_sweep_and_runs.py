"""`heedful sweep`, `heedful runs` and `heedful query` as they are typed."""

import csv
import io
import json
from functools import partial

import pytest

from heedful.sweeps import sweep as start
from tests.command import heedful
from tests.sweeps.tiny import FakeBackend

GRID = """
[base]
data = "sst"
budget = "smoke"
[grid]
"model.projection" = ["softmax", "sparsemax"]
"""


@pytest.fixture
def command(monkeypatch, capsys, tmp_path, smoke_run):
    """A command in an empty folder; the studies of its sweeps are finished as soon as they begin."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(start, "ProcessPool", lambda jobs: FakeBackend(smoke_run, width=jobs))

    (tmp_path / "grid.toml").write_text(GRID)
    return partial(heedful, monkeypatch, capsys)


def test_a_sweep_its_table_and_its_page(command, tmp_path):
    code, out, err = command("sweep", "grid.toml", "--jobs", "2")
    assert code == 0, err
    assert "softmax" in out
    assert "sparsemax" in out
    assert (tmp_path / "runs" / "grid" / "report.html").is_file()
    assert err.count(": begun") == 2
    assert "2/2" in err
    code, out, err = command("sweep", "grid.toml", "--json")
    assert code == 0
    assert [study["state"] for study in json.loads(out)["studies"]] == ["finished"] * 2
    assert err.count(": kept") == 2


def test_a_failing_cell_is_told_at_once_tried_again_and_stops_nothing(command, tmp_path, monkeypatch, smoke_run):
    from heedful.sweeps.grid import read_grid

    broken = read_grid("grid.toml").points[0].folder
    monkeypatch.setattr(start, "ProcessPool", lambda jobs: FakeBackend(smoke_run, {broken: 9}, width=1))
    code, out, err = command("sweep", "grid.toml", "--retries", "2")
    assert code == 1
    assert err.count("failed: it <b>broke</b>; tried again") == 2
    assert f"{broken} (softmax): failed: it <b>broke</b>" in err
    assert "finished" in err
    assert "it <b>broke</b>" in out
    monkeypatch.setattr(start, "ProcessPool", lambda jobs: FakeBackend(smoke_run))
    assert command("sweep", "grid.toml")[0] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GRID.replace("budget", "bugdet"), "grid.toml (model.projection = softmax): unknown setting 'bugdet'; did you"),
        (GRID.replace("projection", "projektion"), "setting 'model.projektion'; did you mean 'model.projection'?"),
        (GRID.replace("[grid]", "[gird]"), "unknown table 'gird'; did you mean 'grid'?"),
        (GRID.replace('data = "sst"', ""), "no data; [base] or [grid] must say which"),
        (GRID.replace('"sparsemax"', '"spasemax"'), "spasemax"),
        (GRID + "seeds = [1000000000]", "seeds is 1000000000; it must be 1,000 at most"),
        ("= [", "grid.toml: not TOML that can be read"),
        ("", "no data; [base] or [grid] must say which"),
    ],
)  # fmt: skip
def test_a_bad_grid_is_one_sentence(command, tmp_path, text, words):
    (tmp_path / "grid.toml").write_text(text)
    code, out, err = command("sweep", "grid.toml")
    assert (code, out) == (2, "")
    assert words in " ".join(err.split())
    assert "Traceback" not in err
    assert not (tmp_path / "runs").exists()


def test_runs_and_questions(command, tmp_path):
    command("sweep", "grid.toml")
    code, out, _ = command("runs")
    assert code == 0
    assert "grid" in out
    assert out.count("finished") >= 1
    code, out, _ = command("runs", "--json")
    listed = json.loads(out)["runs"]
    assert ["grid", "sweep", "finished"] in [[run["run"], run["kind"], run["state"]] for run in listed]
    code, out, _ = command("query", "SELECT kind, count(*) AS n FROM runs GROUP BY kind", "--format", "csv")
    assert code == 0
    assert {"kind": "sweep", "n": "1"} in csv.DictReader(io.StringIO(out))
    code, out, _ = command("query", "SELECT kind, 'NaN'::DOUBLE AS x FROM runs WHERE run = 'grid'", "--format", "json")
    assert (code, json.loads(out)) == (0, [{"kind": "sweep", "x": None}])
    code, out, _ = command("query", "SELECT run, accuracy FROM runs", "--out", "answer.parquet")
    assert (code, out.strip()) == (0, "answer.parquet")
    code, out, _ = command("query", "--schema")
    assert code == 0
    assert "accuracy" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["query", "SELEC 1"], "SELEC"),
        (["query", "SELECT accuracy FROM nowhere"], "nowhere"),
        (["query", "SELECT acuracy FROM runs"], "accuracy"),
        (["query", "DROP TABLE runs"], "SELECT"),
        (["query"], "no query given"),
        (["query", "SELECT 1", "--format", "pickle"], "is not one of table, csv, json, parquet"),
        (["query", "SELECT 1", "--format", "parquet"], "--format parquet needs a file, such as --out answer.parquet"),
        (["query", "--schema", "--format", "parquet"], "--format parquet needs a file, such as --out answer.parquet"),
        (["runs", "nowhere"], "nowhere"),
        (["study", "sst", "--seeds", "1000000000"], "1,000 at most"),
    ],
)
def test_mistakes_are_one_sentence(command, tmp_path, arguments, words):
    (tmp_path / "runs").mkdir()
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert words in " ".join(err.split())
    assert "Traceback" not in err
