"""What stands in a TOML file is what options say; options override it; a wrong key names the right one."""

import json
import tomllib

import pytest

from heedful.api import study_config
from heedful.config import TrainConfig
from heedful.storage.serialization import digest, to_toml
from tests.cli.test_main import command, reviews  # noqa: F401 (fixtures)


def test_a_study_from_a_file_and_a_rehearsal_that_writes_nothing(command, reviews, tmp_path):  # noqa: F811
    (tmp_path / "study.toml").write_text(
        'data = "reviews.csv"\nbudget = "smoke"\nlabel = "verdict"\nmax-length = 9\nseeds = [3, 5]\nout = "runs/mine"\n'
        "min_count = 2\n[model]\nhidden = 8\n[train]\nsteps = 6\nbatch_size = 16\n",
        encoding="utf-8",
    )
    code, out, err = command("study", "--config", "study.toml", "--steps", "7", "--dry-run")
    assert code == 0, err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reviews.csv", "study.toml"]
    planned = tomllib.loads(out)
    assert planned["train"] | {"steps": 7, "batch_size": 16, "evaluate_at": [0, 4, 7]} == planned["train"]
    assert (planned["seeds"], planned["max_length"], planned["model"]["hidden"]) == ([3, 5], 9, 8)
    assert planned["model"]["embedding"] == 24  # the budget's, untouched
    for name in ("standard-3", "uniform-5", "proxy-3", "logistic-0"):
        assert f"# {name}" in out.replace("#  ", "# ")

    (tmp_path / "resolved.toml").write_text(out, encoding="utf-8")
    code, out, err = command("study", "--config", "resolved.toml", "--dry-run", "--json")
    assert code == 0, err
    plan = json.loads(out)
    assert plan["seconds"] > 0
    assert plan["disk"] > sum(model["disk"] for model in plan["models"]) > 0

    code, out, err = command("study", "--config", "study.toml", "--steps", "7", "--json")
    assert code == 0, err
    assert json.loads(out)["config_digest"] == plan["config_digest"]
    assert (tmp_path / "runs/mine/report.html").exists()


@pytest.mark.parametrize(
    ("verb", "content", "words"),
    [
        ("study", 'dta = "x.csv"', "f.toml: unknown setting 'dta'; did you mean 'data'?"),
        ("study", "[train]\nstep = 3", "train: unknown setting 'step'; did you mean 'steps'?"),
        ("study", "[model]\nencoder = 'gru'", "model: encoder: 'gru' is not one of"),
        ("study", "min_counts = 3", "did you mean 'min_count'?"),
        ("study", "config = 'g.toml'", "unknown setting 'config'"),
        ("study", "steps = [", "f.toml: not TOML"),
        ("study", "seeds = [1]", "two or more different seeds"),
        ("study", "[train]\nsteps = -1", "0 or more"),
        ("preflight", "word = 3", "did you mean 'words'?"),
        ("tokens", "clas = 'up'", "did you mean 'class'?"),
        ("audit", "min_count = 3", "unknown setting 'min_count'"),
        ("audit", "smallest_taus = 0.1", "did you mean 'smallest_tau'?"),
        ("audit", "smallest-drop = 1.5", "--smallest-drop is 1.5; it must be between 0 and 1"),
        ("audit", "smallest_movement = 0", "--smallest-movement is 0; it must be between 0 and 1"),
        ("report", "opne = true", "did you mean 'open'?"),
        ("claims", "budgets = 'smoke'", "did you mean 'budget'?"),
        ("doctor", "yaml = true", "the settings are json"),
    ],
)
def test_a_wrong_key_is_one_line(command, reviews, tmp_path, verb, content, words):  # noqa: F811
    (tmp_path / "f.toml").write_text(content, encoding="utf-8")
    operands = {"study": ["reviews.csv", "--label", "verdict"], "preflight": ["reviews.csv"], "audit": ["m"]}
    operands |= {"tokens": ["runs/x"], "report": ["runs/x"]}
    code, out, err = command(verb, *operands.get(verb, []), "--config", "f.toml")
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_other_verbs_read_files_too(command, reviews, tmp_path):  # noqa: F811
    (tmp_path / "p.toml").write_text('data = "reviews.csv"\nlabel = "verdict"\nwords = 2\njson = true\n')
    code, out, err = command("preflight", "--config", "p.toml")
    assert code == 0, err
    assert len(json.loads(out)["outputs"][0]["most"]) <= 2
    code, out, _ = command("preflight", "--config", "p.toml", "--words", "1")
    assert len(json.loads(out)["outputs"][0]["most"]) == 1
    (tmp_path / "r.toml").write_text('paper = "snell2021"\nnames = ["figure4"]\nbudget = "smoke"\njson = true\n')
    code, out, err = command("reproduce", "--config", "r.toml")
    assert code == 0, err
    assert json.loads(out)[0]["experiment"] == "figure4"
    code, _, err = command("preflight", "--config", "nowhere.toml")
    assert code == 2
    assert "nowhere.toml: no such file" in err


def test_no_data_at_all(command):  # noqa: F811
    code, _, err = command("study")
    assert code == 2
    assert "DATA" in err


def test_a_table_changes_only_what_it_names(tmp_path):
    plain, changed = study_config("sst"), study_config("sst", train={"learning_rate": 0.5}, proxy={"width": 8})
    assert changed.train.learning_rate == 0.5
    assert changed.train.evaluate_at == plain.train.evaluate_at
    assert changed.proxy.train == plain.proxy.train
    assert study_config("sst", validation=tmp_path).validation == str(tmp_path)
    assert study_config("sst", text=None, train={"steps": None}, seeds=None) == plain
    table = {"steps": 300, "batch_size": 7}
    assert study_config("sst", train=table, steps=60) == study_config("sst", train=table | {"steps": 60})
    given = TrainConfig(batch_size=7)
    assert study_config("sst", train=given, steps=60).train == given.changed(steps=60)


def test_a_runs_own_settings_can_be_asked_for_again(tmp_path):
    kept = study_config("sst", budget="smoke", seeds=(4, 9), train={"steps": 3}, text="t")
    table = tomllib.loads(to_toml(kept))
    again = study_config(table.pop("data"), budget=table.pop("budget"), seeds=tuple(table.pop("seeds")), **table)
    assert digest(again) == digest(kept)
