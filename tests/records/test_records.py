"""Finding things again: every run whatever its state, and questions that cannot do harm."""

import json
import shutil

import polars
import pytest

import heedful
from heedful.errors import ConfigError, HeedfulError, RunError
from heedful.records.found import list_runs
from heedful.records.query import QueryError, ask, schema
from heedful.records.views import VIEWS
from heedful.reports.runs_terminal import print_answer, print_runs
from heedful.studies.grid import grid_of
from heedful.studies.lock import held
from heedful.studies.result import StudyResult
from heedful.sweeps.sweep import run_sweep
from tests.sweeps.tiny import FakeCrew, tiny_grid


@pytest.fixture(scope="module")
def shelf(tmp_path_factory, smoke_run):
    """A folder with runs in every state, a sweep, a paper's result, and things that are no runs."""
    root = tmp_path_factory.mktemp("shelf")
    for name in ("whole", "deep/er/broken-off", "damaged", "spoilt"):
        shutil.copytree(smoke_run, root / name)
    (root / "deep/er/broken-off/result.json").unlink()
    (root / "damaged/result.json").write_text('{"task": 3')
    (root / "spoilt/config.toml").write_text("= <script>")
    (root / "whole/models/standard-0/trace/4.parquet").write_bytes(b"PAR1 not at all")
    run_sweep(grid_of(tiny_grid("sst")), root / "sweep", lambda studies: FakeCrew(smoke_run, {}), said="", retries=0)
    paper = root / "results" / "snell2021" / "quick"
    paper.mkdir(parents=True)
    shutil.copy("results/snell2021/quick/figure4.json", paper)
    (paper / "figure5.json").write_text("[]")
    (root / "other").mkdir()
    (root / "other/config.toml").write_text('title = "somebody else\'s"\n')
    (root / "other/result.json").write_text("{}")
    (root / "loop").symlink_to(root)
    return root


def test_every_run_with_its_state(shelf, capsys):
    found = list_runs(shelf)
    states = {run.run: (run.kind, run.state) for run in found.runs}
    studies = {name: state for name, state in states.items() if name.startswith("sweep/")}
    assert {state for name, state in states.items() if name not in studies} == {
        ("study", "finished"),
        ("study", "broken off"),
        ("study", "damaged"),
        ("sweep", "finished"),
        ("paper", "finished"),
        ("paper", "damaged"),
    }
    assert states["deep/er/broken-off"] == ("study", "broken off")
    assert states["damaged"] == states["spoilt"] == ("study", "damaged")
    assert states["sweep"] == ("sweep", "finished")
    assert states["results/snell2021/quick/figure5.json"] == ("paper", "damaged")
    assert [run.when for run in found.runs] == sorted(run.when for run in found.runs)
    whole = next(run for run in found.runs if run.run == "whole")
    result = StudyResult.load(shelf / "whole" / "result.json")
    assert (whole.accuracy, whole.said) == (result.xi_final.value, result.verdict.sentence)
    assert whole.agreement == result.agreement("A(alpha,beta)").estimate.value
    assert found.to_polars().shape == (len(found.runs), 13)
    json.dumps(found.to_dict(), allow_nan=False)
    print_runs(found)
    assert "damaged: damaged:" in capsys.readouterr().out


def test_a_held_run_is_running(shelf):
    with held(shelf / "whole"):
        running = [run for run in list_runs(shelf).runs if run.state == "running"]
    assert [run.run for run in running] == ["whole"]
    assert "held by process" in running[0].said


def test_no_folder_and_an_empty_one(tmp_path):
    assert list_runs(tmp_path).runs == ()
    assert ask("SELECT * FROM runs", tmp_path).table.num_rows == 0
    assert ask("SELECT * FROM trace", tmp_path).table.num_rows == 0
    with pytest.raises(RunError, match="no such folder"):
        list_runs(tmp_path / "none")


def test_every_table_can_be_asked_about(shelf):
    for name, view in VIEWS.items():
        assert ask(f"SELECT * FROM {name}", shelf).table.column_names == list(view.schema)
    assert {row["table"] for row in schema().to_rows()} == set(VIEWS)


def test_answers_are_what_the_results_say(shelf):
    result = StudyResult.load(shelf / "whole" / "result.json")
    sql = "SELECT agreement FROM agreements WHERE run = 'whole' AND quantity = 'A(alpha,beta)' AND convention = 'own'"
    assert ask(sql, shelf).to_rows() == [{"agreement": result.agreement("A(alpha,beta)").estimate.value}]
    rows = ask("SELECT model, best_step FROM models WHERE run = 'whole' ORDER BY model", shelf).to_rows()
    assert rows == [
        {"model": model.name, "best_step": model.best_step} for model in sorted(result.models, key=lambda m: m.name)
    ]
    assert ask("SELECT value FROM settings WHERE run = 'whole' AND setting = 'model.hidden'", shelf).to_rows() == [
        {"value": "16"}
    ]
    assert ask("SELECT count(*) AS n FROM metrics WHERE run = 'whole' AND model = 'standard-1'", shelf).to_rows() == [
        {"n": 4}
    ]
    joined = "SELECT s.value, r.accuracy FROM sweeps s JOIN runs r USING (run) ORDER BY 1"
    assert [row["value"] for row in ask(joined, shelf).to_rows()] == []  # these studies have no config.toml


def test_traces_are_read_where_they_lie(shelf):
    sql = "SELECT example, alpha FROM trace WHERE run = 'whole' AND model = 'standard-1' AND step = 12 ORDER BY example"
    answer = ask(sql, shelf).to_polars()
    stored = polars.read_parquet(shelf / "whole/models/standard-1/trace/12.parquet").select("example", "alpha")
    assert answer.equals(stored)
    steps = "SELECT DISTINCT step FROM trace WHERE run = 'whole' AND model = 'standard-0' ORDER BY 1"
    assert [row["step"] for row in ask(steps, shelf).to_rows()] == [0, 8, 12]  # 4 is damaged


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("selec 1", "syntax error"),
        ("SELECT * FROM agrements", 'Did you mean "agreements"?'),
        ("SELECT nothing FROM runs", "not found"),
        ("SELECT 1; SELECT 2", "one question at a time"),
        ("COPY (SELECT 1) TO 'x.csv'", "COPY is not answered"),
        ("CREATE TABLE t AS SELECT 1", "CREATE is not answered"),
        ("INSTALL httpfs", "is not answered"),
        ("ATTACH 'x.db'", "is not answered"),
        ("SET enable_external_access = true", "is not answered"),
        ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM read_parquet('https://example.org/x')", "disabled"),
        ("SELECT * FROM glob('/etc/*')", "disabled by configuration"),
        ("SELECT * FROM sql", "does not exist"),  # a variable of ours
        ("SELECT CAST('a' AS INTEGER)", "Could not convert"),
    ],
)
def test_other_questions_are_refused_in_one_sentence(sql, said, shelf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HeedfulError) as error:
        ask(sql, shelf)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_no_question(shelf):
    with pytest.raises(ConfigError, match="no question"):
        ask("  ", shelf)
    with pytest.raises(QueryError, match="0 statements"):
        ask("-- nothing", shelf)


def test_answers_as_files_and_in_a_terminal(shelf, tmp_path, capsys):
    answer = heedful.query("SELECT run, kind, accuracy, [1.5, 2] AS list, '=1+1' AS x FROM runs ORDER BY run", shelf)
    answer.save(tmp_path / "a.parquet")
    assert polars.read_parquet(tmp_path / "a.parquet").equals(answer.to_polars())
    answer.save(tmp_path / "a.csv")
    assert polars.read_csv(tmp_path / "a.csv")["x"].unique().to_list() == ["'=1+1"]
    answer.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == answer.to_dict()["rows"]
    with pytest.raises(ConfigError, match="ends in"):
        answer.save(tmp_path / "a.xls")
    assert answer.to_pandas().shape == answer.table.shape
    print_answer(answer)
    assert f"{answer.table.num_rows} rows" in capsys.readouterr().out
