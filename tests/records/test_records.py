"""Finding things again: every run whatever its state, and questions that cannot do harm."""

import json
import math
import re
import shutil
import time
from pathlib import Path

import polars
import pytest

import heedful
from heedful.config import study_preset
from heedful.errors import ConfigError, HeedfulError, RunError
from heedful.followed.result import FollowedDirectory
from heedful.papers.reproduction import write_folder_manifest
from heedful.records import index
from heedful.records.index import list_runs
from heedful.records.query import VIEWS, QueryError, ask, schema
from heedful.reports.terminal import print_answer, print_runs
from heedful.storage import run_files
from heedful.storage.atomic_files import without_nan, write_json, write_text
from heedful.storage.locks import directory_lock
from heedful.storage.manifest import Manifest, RunClock
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.grid import Axis, grid_of
from heedful.sweeps.result import SweepResult, SweepStudy
from heedful.sweeps.sweep import run_sweep
from tests.conftest import vouch
from tests.reports.audit_example import audit_example
from tests.reports.test_followed_page import NAME, TEXTS, follow
from tests.sweeps.tiny import FakeBackend, tiny_grid


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
    run_sweep(grid_of(tiny_grid("sst")), root / "sweep", lambda studies: FakeBackend(smoke_run, {}), text="", retries=0)
    paper = root / "results" / "snell2021" / "quick"
    paper.mkdir(parents=True)
    shutil.copy("results/snell2021/quick/figure4.json", paper)
    write_folder_manifest(paper, "snell2021", "quick")
    (paper / "figure5.json").write_text("[]")
    (root / "other").mkdir()
    (root / "other/config.toml").write_text('title = "somebody else\'s"\n')
    (root / "other/result.json").write_text("{}")
    (root / "other/manifest.json").write_text('{"name": "somebody else\'s"}')
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


def test_a_result_of_a_paper_that_was_altered_is_damaged(shelf, tmp_path):
    path = shutil.copytree(shelf / "results", tmp_path / "results") / "snell2021" / "quick" / "figure4.json"
    path.write_text(path.read_text("utf-8").replace('"title": "', '"title": "Not '), "utf-8")
    states = {run.run: (run.state, run.said) for run in list_runs(tmp_path).runs}
    state, said = states["results/snell2021/quick/figure4.json"]
    assert state == "damaged"
    assert "its checksum is another" in said


def test_a_folder_with_too_much_in_it(shelf, monkeypatch):
    monkeypatch.setattr(index, "MAX_VISITED", 7)
    with pytest.raises(RunError, match=r"more than 7 files and folders below it; name one with fewer$"):
        list_runs(shelf)


def test_a_run_with_too_many_files(shelf, tmp_path, monkeypatch):
    shutil.copytree(shelf / "whole", tmp_path / "whole")
    monkeypatch.setattr(run_files, "MAX_ENTRIES", 3)
    (run,) = list_runs(tmp_path).runs
    assert run.state == "damaged"
    assert run.said.endswith("more than 3 entries in one folder; choose one with fewer")


def test_a_held_run_is_running(shelf):
    with directory_lock(shelf / "whole"):
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
    assert [row["value"] for row in ask(joined, shelf).to_rows()] == ["softmax", "sparsemax"]


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


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Audits, followed trainings and sweeps in every state, a study that was hardly begun, and a link to nowhere."""
    root = tmp_path_factory.mktemp("others")
    _furnish_audits(root / "audits")
    _furnish_followed(root / "followed")
    _furnish_sweeps(root / "sweeps")
    for name in ("begun", "killed-at-last"):
        Manifest.now("study").write(root / name)
    RunDirectory(root / "begun").save_config(study_preset("sst", "smoke"))
    write_text(root / "killed-at-last" / "result.json", "{}")  # just before its manifest was completed
    (root / "begun" / "gone").symlink_to(root / "nowhere")
    paper = root / "results" / "snell2021" / "quick"
    write_folder_manifest(paper, "snell2021", "quick")
    (paper / "figure4.json").symlink_to(root / "nowhere")
    return root


def _furnish_audits(root):
    for name in ("whole", "unsure", "spoilt", "broken-off", "cut", "changed"):
        Manifest("audit", finished="2026-01-02T03:04:05Z", seconds=61.5).write(root / name)
    for name in ("whole", "unsure", "spoilt"):
        audit_example().save(root / name / "result.json")
    for name, content in {
        "unsure/manifest.json": '{"kind": "audit", "finished": 3, "seconds": Infinity}',
        "spoilt/manifest.json": '{"kind": ',
        "broken-off/parts/0.json": "{}",
        "cut/result.json": '{"fingerprint": ',
        "changed/result.json": '{"fingerprint": 3, "headline": "mean", "scores": []}',
        "not-ours/result.json": '{"title": "somebody else\'s"}',
        "not-ours-either/result.json": "{",
    }.items():
        write_text(root / name, content)
    for name in ("whole", "cut", "changed"):
        vouch(root / name)


def _furnish_followed(root):
    run = follow(root / "whole", steps=10)
    write_text(run.root / "trace" / "notes.parquet", "somebody's")
    plain = json.loads(run.result_path.read_text())
    for name in ("unlabelled", "unrecorded", "unsteady", "lacking", "spoilt"):
        shutil.copytree(run.root, root / name)
    (root / "unrecorded" / "result.json").unlink()
    unlabelled = [step | {"accuracy": None, "loss": None} for step in plain["steps"]]
    lacking = [step | {"agreements": step["agreements"][1:]} for step in plain["steps"]]
    for name, steps in {"unlabelled": unlabelled, "unsteady": [], "lacking": lacking}.items():
        write_json(root / name / "result.json", plain | {"steps": steps})
    write_text(root / "spoilt" / "following.json", "3")
    with (root / "unlabelled" / "metrics.jsonl").open("a") as file:
        file.write('[]\n3\n{"step": "x"}\n{"step": 1e999}\n{"step": 10000000000000000000000}\n{"loss": 1}\n{')
    for name in ("unlabelled", "unsteady", "lacking", "spoilt"):
        vouch(root / name)


def _furnish_sweeps(root):
    swept = SweepResult(
        (Axis("model.projection", ("softmax", "sparsemax")),),
        (
            SweepStudy("studies/a", ("softmax",), "0", "finished"),
            SweepStudy("studies/b", ("sparsemax",), "1", "failed"),
        ),
    )
    for name in ("failed", "broken-off", "damaged", "displaced"):
        (root / name / "studies").mkdir(parents=True)
        write_text(root / name / "grid.toml", "")
        RunClock("sweep").finish(root / name, swept)
    (root / "broken-off" / "result.json").unlink()
    write_text(root / "damaged" / "result.json", "[]")
    plain = swept.to_dict()
    plain["studies"][0]["place"].append("elsewhere")
    write_json(root / "displaced" / "result.json", plain)
    for name in ("damaged", "displaced"):
        vouch(root / name)


STATES = {
    "audits/whole": ("audit", "finished", "Show it with a caveat"),
    "audits/unsure": ("audit", "damaged", "unsure/manifest.json: damaged (its checksum is another)"),
    "audits/spoilt": ("unknown", "damaged", "spoilt/manifest.json: damaged (not JSON"),
    "audits/broken-off": ("audit", "broken off", ""),
    "audits/cut": ("audit", "damaged", "cut/result.json: damaged (not JSON"),
    "audits/changed": ("audit", "damaged", "changed/result.json: fingerprint: 3 must be of type str"),
    "followed/whole": ("followed", "finished", "At step 10, "),
    "followed/unlabelled": ("followed", "finished", "At step 10, "),
    "followed/unrecorded": ("followed", "broken off", ""),
    "followed/unsteady": ("followed", "damaged", "unsteady/result.json: steps is empty"),
    "followed/lacking": ("followed", "damaged", "lacking/result.json: steps: step 0 lacks A(alpha,beta)"),
    "followed/spoilt": ("followed", "damaged", "spoilt/following.json: damaged (not a JSON object)"),
    "sweeps/failed": ("sweep", "failed", "1 of 2 studies finished"),
    "sweeps/broken-off": ("sweep", "broken off", ""),
    "sweeps/damaged": ("sweep", "damaged", "damaged/result.json: damaged (not a JSON object)"),
    "sweeps/displaced": ("sweep", "damaged", "displaced/result.json: studies/a has 2 places on 1 axes"),
    "begun": ("study", "broken off", "no model was begun"),
    "killed-at-last": ("study", "broken off", "no model was begun"),
    "results/snell2021/quick/figure4.json": (
        "paper",
        "damaged",
        "figure4.json: damaged (it cannot be read: a symbolic link, not a file)",
    ),
}


def test_every_kind_of_run_in_every_state(others, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    listed = list_runs(others)
    found = {run.run: run for run in listed.runs}
    assert {name: (run.kind, run.state) for name, run in found.items()} == {
        name: (kind, state) for name, (kind, state, _) in STATES.items()
    }
    for name, (_, _, words) in STATES.items():
        assert words in found[name].said
    link = (others / "results/snell2021/quick/figure4.json").lstat()  # its own time: it is not followed
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(link.st_mtime))
    assert found["results/snell2021/quick/figure4.json"].when == written
    json.dumps(listed.to_dict(), allow_nan=False)
    print_runs(listed)
    out = capsys.readouterr().out
    assert "broken off: begun: no model was begun" in out
    assert re.search(r"audit +finished +audits/whole .* 85\.0\s% +1 min 2 s", out)


def test_what_an_audit_and_a_followed_training_came_to(others):
    found = {run.run: run for run in list_runs(others).runs}
    result, audit = audit_example(), found["audits/whole"]
    assert (audit.what, audit.said) == ("models/reviews on rotten-tomatoes <test>", result.verdict.sentence)
    assert (audit.accuracy, audit.entropy) == (0.85, result.score("entropy", result.headline).value)
    assert (audit.when, audit.seconds, audit.agreement) == ("2026-01-02T03:04:05Z", 61.5, None)
    assert found["audits/unsure"].seconds is None
    assert found["audits/unsure"].when.endswith("Z")
    training, followed = FollowedDirectory(others / "followed" / "whole").result(), found["followed/whole"]
    last = training.steps[-1]
    assert (followed.what, followed.said) == (f"ModuleList on {NAME}", training.verdict.sentence)
    assert (followed.accuracy, followed.entropy) == (last.accuracy, last.entropy.value)
    assert followed.agreement == last.agreement("A(alpha,beta)").estimate.value


def test_audits_can_be_asked_about(others):
    result = audit_example()
    scores = ask(
        "SELECT quantity, \"of\", against, value, n FROM audits WHERE run = 'whole'", others / "audits"
    ).to_rows()
    assert scores == [
        {"quantity": s.quantity, "of": s.of, "against": s.against, "n": s.estimate.n}
        | {"value": None if math.isnan(s.estimate.value) else s.estimate.value}
        for s in result.scores
    ]
    shown = "SELECT DISTINCT run, model, data, \"of\" FROM audits WHERE headline AND quantity = 'entropy' ORDER BY run"
    assert ask(shown, others / "audits").to_rows() == [
        {"run": "whole", "model": result.model, "data": result.data, "of": result.headline}
    ]


def test_followed_trainings_can_be_asked_about(others):
    root = others / "followed"
    run = FollowedDirectory(root / "whole")
    rows = ask("SELECT * EXCLUDE (run) FROM followed WHERE run = 'whole'", root).to_rows()
    assert rows == without_nan(run.result().to_rows())
    known = "SELECT run, count(accuracy) AS known, avg(accuracy) AS mean FROM followed GROUP BY run ORDER BY run"
    unlabelled, labelled = ask(known, root).to_rows()
    assert (labelled["known"], unlabelled["known"], unlabelled["mean"]) == (6, 0, None)
    metrics = ask("SELECT * FROM metrics WHERE run = 'unlabelled' ORDER BY step", root).to_rows()
    assert [(line["step"], line["model"], line["kind"], line["seed"]) for line in metrics] == [
        (step, "model", "followed", None) for step in (0, 10)
    ]
    traced = ask("SELECT step, alpha FROM trace WHERE run = 'whole' ORDER BY step, example", root).to_rows()
    recorded = [(step, run.trace().quantity("alpha", step)) for step in (0, 10)]
    assert traced == [{"step": step, "alpha": alpha[i].tolist()} for step, alpha in recorded for i in range(len(TEXTS))]


@pytest.mark.parametrize("name", ["sweeps/failed", "audits/whole"])
def test_sweeps_and_audits_run_while_they_are_held(others, name):
    with directory_lock(others / name):
        run = next(run for run in list_runs(others).runs if run.run == name)
    assert (run.kind, run.state) == (STATES[name][0], "running")
    assert "held by process" in run.said


def test_a_verb_is_not_hidden_by_a_package_of_its_name(tmp_path):
    """A package `heedful.runs` would take the place of the function as soon as something in it is imported."""
    for _ in range(2):
        assert heedful.runs(tmp_path).runs == ()
    assert not {path.name for path in Path(heedful.__file__).parent.iterdir() if path.is_dir()} & set(heedful.__all__)
