import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import heedful
from heedful.config import BUDGETS
from heedful.errors import ConfigError, RunError
from heedful.execution.pool import Event
from heedful.papers import reproduction as module
from heedful.papers.experiment import Result, result_path, study_folder, units_path
from heedful.papers.reproduction import KEYS, Paper, claims, paper, reproduce, results_to_renew, stale_results
from heedful.papers.snell2021.config import study_of
from heedful.storage.locks import directory_lock
from heedful.storage.serialization import content, digest
from tests.papers.conftest import Reproduced

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [experiment.name for experiment in paper("snell2021").experiments])
def test_every_experiment_is_found_and_stored(reproduced: Reproduced, name: str):
    path = result_path(reproduced.results, "snell2021", "smoke", name)
    stored = json.loads(path.read_text(), parse_constant=lambda c: pytest.fail(f"{c} in {path}"))
    assert stored["config_digest"] == paper("snell2021").experiment(name).digest("smoke")
    result = Result.load(path)
    assert result.settings == content(paper("snell2021").experiment(name).settings("smoke"))
    assert result.finding.tables or result.finding.figures
    assert result.manifest.command == f"heedful reproduce snell2021 {name} --budget smoke"


def test_finished_work_is_not_repeated(reproduced: Reproduced):
    before = {path: path.stat().st_mtime_ns for path in reproduced.results.rglob("*.json")}
    events: list[Event] = []
    reproduce("snell2021", budget="smoke", results=reproduced.results, work=reproduced.work, on_progress=events.append)
    assert events == []
    assert {path: path.stat().st_mtime_ns for path in reproduced.results.rglob("*.json")} == before


def test_lost_results_come_back_from_the_stored_answers(reproduced: Reproduced, tmp_path: Path):
    """Neither the trained models nor anything else of the work folder is needed."""
    events: list[Event] = []
    shutil.copytree(reproduced.workspace.units, units_path(tmp_path, "snell2021", "smoke"))
    names = ["figure3", "table10"]
    again = reproduce(
        "snell2021", names, budget="smoke", results=tmp_path, work=tmp_path / "work", on_progress=events.append
    )
    assert events == [{"stage": result.title} for result in again]  # neither studies nor units were computed
    for result in again:
        before = Result.load(result_path(reproduced.results, "snell2021", "smoke", result.experiment))
        assert digest(result.finding) == digest(before.finding)


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path):
    command = [sys.executable, "-m", "heedful", "reproduce", "snell2021", "figure3", "--budget", "smoke", "--jobs", "1"]
    command += ["--results", str(tmp_path / "results"), "--work", str(tmp_path / "work"), "--device", "cpu"]
    units = units_path(tmp_path / "results", "snell2021", "smoke")
    first = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(units.glob("*.json")):
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = {path: path.stat().st_mtime_ns for path in units.glob("*.json")}
    assert done
    assert not result_path(tmp_path / "results", "snell2021", "smoke", "figure3").exists()
    subprocess.run(command, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert len(list(units.glob("*.json"))) == 6
    assert Result.load(result_path(tmp_path / "results", "snell2021", "smoke", "figure3")).finding.figures


def test_a_damaged_study_is_repaired_and_the_others_are_not_touched(reproduced: Reproduced, tmp_path: Path):
    shutil.copytree(reproduced.work, tmp_path / "work")
    made = Reproduced("snell2021", tmp_path)
    damaged, other = (made.study(study_of(data, "smoke")) for data in ("polarity", "rotten-tomatoes"))
    before = {path: path.stat().st_mtime_ns for path in other.root.rglob("*") if path.is_file()}
    result, weights = damaged.result_path.read_bytes(), next(damaged.root.glob("models/uniform-0/checkpoints/*/*"))
    weights.write_bytes(weights.read_bytes()[:-1])
    events: list[dict] = []
    again = reproduce(
        "snell2021",
        ["table2", "table3"],
        budget="smoke",
        results=made.results,
        work=made.work,
        jobs=1,
        device="cpu",
        on_progress=events.append,
    )
    notices = [event["notice"] for event in events if "notice" in event]
    assert len(notices) == 1
    assert f"{weights} was damaged" in notices[0]
    done = {event["model"] for event in events if event.get("done")}
    assert {name for name in done if not name.startswith("study-")} == {"polarity uniform-0", damaged.root.name}
    assert len(done) == 5  # and the numbers of the three studies, none of which was stored
    assert damaged.result_path.read_bytes() == result
    assert {path: path.stat().st_mtime_ns for path in other.root.rglob("*") if path.is_file()} == before
    for one in again:
        stored = Result.load(result_path(reproduced.results, "snell2021", "smoke", one.experiment))
        assert digest(one.finding) == digest(stored.finding)


def test_a_study_in_use_is_refused(tmp_path: Path):
    config = study_of("polarity", "smoke")
    folder = tmp_path / "snell2021" / "smoke" / study_folder(config)
    with directory_lock(folder), pytest.raises(RunError, match="is in use by process"):
        reproduce("snell2021", ["figure2"], budget="smoke", results=tmp_path / "results", work=tmp_path)


def test_what_experiments_need_does_not_depend_on_the_workspace():
    for key in KEYS:
        for experiment in paper(key).experiments:
            for budget in BUDGETS:
                units = experiment.needs(budget).units
                assert len({unit.name for unit in units}) == len({unit.file for unit in units})
                for unit in units:
                    json.dumps(unit.arguments)
                    assert not any(Path(unit.arguments[name]).is_absolute() for name in unit.paths)


def test_committed_results_still_stand():
    """Change a setting of an experiment and this fails: measure again, or give the results up."""
    assert stale_results(ROOT / "results") == {}


def test_results_of_earlier_settings_count_until_they_are_made_again(
    reproduced: Reproduced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    results = tmp_path / "results"
    shutil.copytree(reproduced.results, results)
    path = result_path(results, "snell2021", "smoke", "eq53")
    replace(Result.load(path), config_digest="e" * 64).save(path)
    assert list(stale_results(results)) == [path]
    monkeypatch.setattr(module, "earlier_settings", lambda: frozenset({"e" * 64}))
    assert stale_results(results) == {}
    assert results_to_renew(results) == [path]
    entries = {entry.claim.id: entry for entry in claims(results=results)}
    assert entries["S10"].verdict == "holds"
    assert entries["S10"].explanation == "measured with earlier settings (eq53)"
    assert entries["S6"].earlier == ()
    (again,) = reproduce("snell2021", ["eq53"], budget="smoke", results=results, work=reproduced.work)
    assert again.config_digest == paper("snell2021").experiment("eq53").digest("smoke")
    assert again.thresholds == paper("snell2021").experiment("eq53").thresholds
    assert results_to_renew(results) == []


def test_changed_settings_and_versions_are_seen(reproduced: Reproduced, monkeypatch: pytest.MonkeyPatch):
    assert stale_results(reproduced.results) == {}
    now = paper("snell2021")

    def changed(key: str) -> Paper:
        def change(experiment):
            if experiment.name == "table2":
                return replace(experiment, settings=lambda budget: {"other": 1})
            return replace(experiment, version=2) if experiment.name == "figure7" else experiment

        kept = (experiment for experiment in now.experiments if experiment.name != "eq53")
        return replace(now, experiments=tuple(change(experiment) for experiment in kept))

    monkeypatch.setattr(module, "paper", changed)
    reasons = {path.stem: reason for path, reason in stale_results(reproduced.results).items()}
    assert set(reasons) == {"table2", "figure7", "eq53"}
    assert "settings have changed" in reasons["table2"]
    assert "version 1" in reasons["figure7"]


def test_a_stale_result_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def figure4():
        return reproduce("snell2021", ["figure4"], budget="smoke", results=tmp_path, work=tmp_path)[0]

    first, now = figure4(), paper("snell2021")
    assert figure4() == first
    newer = tuple(replace(e, version=e.version + 1) for e in now.experiments)
    monkeypatch.setattr(module, "paper", lambda key: replace(now, experiments=newer))
    again = figure4()
    assert again.version == first.version + 1
    assert again.finding == first.finding
    assert Result.load(result_path(tmp_path, "snell2021", "smoke", "figure4")) == again


def test_the_ledger_has_every_claim_and_computes_its_verdicts(reproduced: Reproduced):
    entries = {entry.claim.id: entry for entry in claims(results=reproduced.results)}
    for letter, count in (("S", 18), ("M", 7), ("L", 11)):
        assert [f"{letter}{k + 1}" for k in range(count)] == [id for id in entries if id[0] == letter]
    assert entries["S10"].verdict == "holds"
    assert {entry.budget for entry in entries.values() if entry.claim.paper == "snell2021"} == {"smoke"}
    assert entries["L1"].verdict == "not run"
    nothing = claims("paper", results=reproduced.results)
    assert {entry.verdict for entry in nothing} == {"not run"}


def test_every_condition_names_a_number_that_its_experiment_gives(reproduced: Reproduced):
    for entry in claims(results=reproduced.results):
        if entry.claim.paper != "snell2021":
            continue
        for condition in entry.claim.conditions:
            heads = condition.experiment == "figure6"  # at smoke no head is good, so that nothing can be compared
            assert entry.cases_of(condition) or heads or not condition.decides, (entry.claim.id, condition)


def test_bad_names_and_budgets_are_clear_errors(tmp_path: Path):
    with pytest.raises(ConfigError, match="no paper 'snell2020'; there are snell2021"):
        reproduce("snell2020", results=tmp_path, work=tmp_path)
    with pytest.raises(ConfigError, match="has no 'table12'; it has figure1, figure2, table2"):
        reproduce("snell2021", ["table12"], results=tmp_path, work=tmp_path)
    with pytest.raises(ConfigError, match="budget 'huge' is not one of smoke, quick, paper"):
        reproduce("snell2021", ["figure4"], budget="huge", results=tmp_path, work=tmp_path)


def test_a_damaged_result_is_set_aside_and_made_again(tmp_path: Path):
    results, work = tmp_path / "results", tmp_path / "work"
    (first,) = reproduce("snell2021", ["figure4"], budget="smoke", results=results, work=work)
    path = result_path(results, "snell2021", "smoke", "figure4")
    whole = path.read_text("utf-8")
    unsealed = {key: value for key, value in json.loads(whole).items() if key != "sha256"}
    for damage in ("{", whole.replace('"title": "', '"title": "Not '), json.dumps(unsealed)):
        path.write_text(damage, "utf-8")
        with pytest.raises(RunError, match=r"figure4\.json: damaged \("):
            claims("smoke", results)
        events: list[dict[str, object]] = []
        (again,) = reproduce(
            "snell2021",
            ["figure4"],
            budget="smoke",
            results=results,
            work=work,
            on_progress=events.append,
        )
        assert again.finding == first.finding
        (notice,) = [event["notice"] for event in events if "notice" in event]
        assert "figure4.json was damaged" in notice
    assert len(list(path.parent.glob("figure4.json.damaged-*"))) == 3


@pytest.mark.parametrize("key", KEYS)
def test_settings_of_every_budget_have_a_digest(key: str):
    for experiment in paper(key).experiments:
        digests = {budget: experiment.digest(budget) for budget in BUDGETS}
        assert all(len(digest) == 64 for digest in digests.values())


def test_an_unknown_setting_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"^reproduce: unknown setting 'job'; did you mean 'jobs'\?$"):
        heedful.reproduce("snell2021", "figure4", budget="smoke", results=tmp_path, work=tmp_path, job=2)
