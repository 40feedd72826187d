"""The command line as a stranger uses it: words for people, JSON for programs, one line for every mistake."""

import errno
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import heedful as library
from heedful.cli.main import VERBS, app
from heedful.errors import ConfigError
from heedful.papers.experiment import Result
from tests.command import heedful


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: heedful(monkeypatch, capsys, *map(str, arguments))


@pytest.fixture
def reviews(tmp_path):
    rows = [f"{'a good' if i % 2 else 'a bad'} film number {i % 7},{'up' if i % 2 else 'down'}" for i in range(80)]
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(["review,verdict", *rows]) + "\n", encoding="utf-8")
    return path


def test_version_and_help(command):
    code, out, _ = command("--version")
    assert (code, out.split()[0]) == (0, "heedful")
    code, out, _ = command("--help")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.startswith("│ ") and line[2].isalpha()]
    assert [row[1] for row in rows] == list(VERBS)


@pytest.mark.parametrize("verb", ["", *VERBS, "data list", "data show", "data check", "data fetch"])
def test_help_has_no_types(command, verb):
    code, out, _ = command(*verb.split(), "--help")
    assert code == 0
    plain = out.replace("runs/<name>", "").replace("runs/audit-<model>", "").replace("runs/<grid>", "")
    for noise in ("<", "x>=", "range", "{"):
        assert noise not in plain


def test_study_of_a_file_of_ones_own(command, reviews, tmp_path):
    code, out, err = command("study", reviews, "--budget", "smoke", "--text", "review", "--label", "verdict", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["data"]["labels"] == ["down", "up"]
    assert {"own", "cross"} == {row["convention"] for row in result["agreements"]}
    assert "standard-0" in err
    page = (tmp_path / "runs" / "reviews" / "report.html").read_text(encoding="utf-8")
    assert result["verdict"]["sentence"] in page
    code, out, err = command("study", reviews, "--budget", "smoke", "--text", "review", "--label", "verdict")
    assert code == 0, err
    assert "report: runs/reviews/report.html" in out.replace("\n", "")
    assert "accuracy" not in err  # nothing was trained again
    code, out, _ = command("report", "runs/reviews", "--out", "page.html")
    assert (code, out.strip()) == (0, "page.html")


def test_preflight_json_and_table(command, reviews):
    code, out, _ = command("preflight", reviews, "--json", "--label", "verdict")
    result = json.loads(out)
    assert (code, result["verdict"]) == (0, "learnable")
    assert result["null"]["p"] <= 0.01 < result["statistic"]
    code, out, _ = command("preflight", reviews, "--label", "verdict")
    assert code == 0
    assert "good" in out


BAD = {
    "missing file": (None, "nowhere.csv", [], "nowhere.csv"),
    "empty file": (b"", "e.csv", [], "e.csv"),
    "header only": (b"text,label\n", "h.csv", [], "h.csv"),
    "wrong column": (b"text,label\na,0\nb,1\n", "c.csv", ["--text", "txet"], "'text'"),
    "one class": (b"text,label\n" + b"a b,1\n" * 30, "o.csv", [], "every label is '1'"),
    "not UTF-8": (b"text,label\ngood,1\nb\xff\xfed,0\n", "u.csv", [], ":3"),
    "ragged row": (b"text,label\ngood,1\nbad,0,extra\n", "r.csv", [], ":3"),
    "bad JSON": (b'{"text": "a", "label": 1}\n{oops\n', "j.jsonl", [], ":2"),
    "unknown corpus": (None, "rotten-tomatos", [], "rotten-tomatoes"),
    "unknown budget": (b"text,label\n" + b"a,0\nb,1\n" * 20, "b.csv", ["--budget", "huge"], "smoke"),
    "unknown task": (b"text,label\n" + b"a,0\nb,1\n" * 20, "t.csv", ["--task", "poetry"], "translation"),
    "no seeds": (b"text,label\n" + b"a,0\nb,1\n" * 20, "s.csv", ["--seeds", "1"], "--seeds is 1; it must be 2 or more"),
    "bad device": (b"text,label\n" + b"a,0\nb,1\n" * 40, "d.csv", ["--device", "abacus"], "abacus"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(command, tmp_path, case):
    content, name, options, words = BAD[case]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, err = command("study", name, "--budget", "smoke", *options)
    assert code == 2
    assert out == ""
    assert words in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("verb", "settings", "words"),
    [
        (library.study, {"txet": "a"}, "unknown setting 'txet'; did you mean 'text'"),
        (library.study, {"task": "poetry"}, "task 'poetry' is not one of classification, translation"),
        (library.preflight, {"wrods": 3}, "preflight: unknown setting 'wrods'; did you mean 'words'"),
        (library.preflight, {"on": "moon"}, "'moon' is not one of local, ray"),
        (library.audit, {"smaple": 3}, "audit: unknown setting 'smaple'; did you mean 'sample'"),
        (library.audit, {"splits": "test"}, "did you mean 'split'"),
        (library.audit, {"sample": 0}, "sample is 0; it must be 1 or more"),
        (library.audit, {"seed": "x"}, "audit: seed: 'x' must be of type int"),
    ],
)
def test_mistakes_in_python(reviews, verb, settings, words):
    with pytest.raises(ConfigError, match=words):
        verb(str(reviews), **settings)


def test_a_label_never_seen_in_training(command, reviews, tmp_path):
    (tmp_path / "v.csv").write_text("review,verdict\nnew thing,sideways\n", encoding="utf-8")
    code, _, err = command("study", reviews, "--label", "verdict", "--validation", "v.csv", "--budget", "smoke")
    assert code == 2
    assert "sideways" in err
    assert "v.csv:2" in err


def test_a_very_long_text_is_cut_and_said(command, tmp_path):
    rows = ["good " * 50_000 + ",1"] + [f"{'good' if i % 2 else 'bad'} film,{i % 2}" for i in range(60)]
    (tmp_path / "long.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    code, out, err = command("study", "long.csv", "--budget", "smoke", "--json")
    assert code == 0, err
    assert any("cut to 40 words" in said for said in json.loads(out)["data"]["decisions"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("study rotten", {"rotten-tomatoes"}),
        ("preflight copy-p", {"copy-permutation"}),
        ("audit model imdb", {"imdb", "imdb-reviews"}),
        ("data show multi", {"multi30k"}),
        ("reproduce meis", {"meister2021"}),
        ("reproduce meister2021 al", {"all"}),
        ("reproduce snell2021 figure", {f"figure{n}" for n in range(1, 9)}),
        ("study sst --budget qu", {"quick"}),
    ],
)
def test_tab_completion(words, expected):
    line = f"heedful {words}"
    asked = {"_HEEDFUL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    shown = CliRunner().invoke(app, [], env=asked, prog_name="heedful")
    assert set(shown.stdout.split()) == expected


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a/b"), 2, "error: the disk is full (a/b); make room"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 2, "error: the disk is full; make room"),
        (KeyboardInterrupt(), 130, "stopped; repeat the command to continue from here"),
    ],
)
def test_faults_from_outside_are_one_line(command, monkeypatch, fault, code, said):
    def fails(*arguments):
        raise fault

    monkeypatch.setattr("heedful.api.runs", fails)
    ended, out, err = command("runs")
    assert (ended, out) == (code, "")
    assert err.startswith(said)
    assert len(err.splitlines()) == 1


def test_other_faults_are_not_hidden(command, monkeypatch):
    def fails(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied", "a/b")

    monkeypatch.setattr("heedful.api.runs", fails)
    with pytest.raises(PermissionError):
        command("runs")


def test_a_page_is_opened_where_asked(command, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("heedful.api.report", lambda *runs, out, results: out)
    monkeypatch.setattr("typer.launch", opened.append)
    assert command("report", "run", "--out", "page.html")[:2] == (0, "page.html\n")
    assert opened == []
    command("report", "run", "--out", "page.html", "--open")
    assert opened == [(tmp_path / "page.html").as_uri()]


def test_debug_shows_the_traceback(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown = subprocess.run(
        [sys.executable, "-m", "heedful", "--debug", "study", "nowhere.csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" in shown.stderr


def test_not_a_run(command, tmp_path):
    code, _, err = command("report", tmp_path)
    assert code == 2
    assert "not a run" in err


def test_reproduce_and_claims(command, tmp_path):
    code, out, _ = command("reproduce")
    assert code == 0
    assert "snell2021" in out
    assert "table2" in out
    code, out, err = command("reproduce", "snell2021", "figure4", "figure5", "--budget", "smoke", "--docs", "docs")
    assert code == 0, err
    assert "Figure 4" in out
    assert (tmp_path / "results/snell2021/smoke/figure4.json").exists()
    assert (tmp_path / "runs/reproduce/snell2021/smoke/report.html").exists()
    page = (tmp_path / "docs/papers/snell2021.md").read_text(encoding="utf-8")
    assert "heedful reproduce snell2021 figure4 --budget smoke" in page
    assert (tmp_path / "docs/papers/figures/snell2021/figure4.svg").exists()
    assert (tmp_path / "docs/papers/figures/snell2021/figure4.png").exists()
    code, out, _ = command("reproduce", "snell2021")
    assert "figure4" in out
    code, out, _ = command("reproduce", "--check")
    assert (code, out) == (0, "every stored result is up to date\n")
    code, out, err = command("reproduce", "snell2021", "figure4", "--budget", "smoke", "--json")
    assert json.loads(out)[0]["experiment"] == "figure4"
    code, out, _ = command("claims", "--json")
    assert {entry["verdict"] for entry in json.loads(out)} == {"not run"}
    code, out, _ = command("claims")
    assert "S18" in out


def test_check_tells_of_stale_results(command, tmp_path):
    command("reproduce", "snell2021", "figure4", "--budget", "smoke")
    path = tmp_path / "results/snell2021/smoke/figure4.json"
    replace(Result.load(path), config_digest="0" * 64).save(path)
    code, out, _ = command("reproduce", "--check")
    assert code == 1
    assert "figure4.json: its settings have changed" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "snell1999", "all"), "no paper 'snell1999'"),
        (("reproduce", "snell2021", "table1"), "has no 'table1'"),
        (("reproduce", "snell2021", "figure4", "--budget", "tiny"), "budget 'tiny' is not one of smoke, quick, paper"),
        (("claims", "--budget", "tiny"), "budget 'tiny' is not one of"),
    ],
)
def test_reproduce_mistakes(command, arguments, words):
    code, _, err = command(*arguments)
    assert code == 2
    assert words in err
    assert "Traceback" not in err


def test_an_interrupt_inside_an_exec_still_ends_with_its_exit_code(tmp_path):
    (tmp_path / "interrupted.py").write_text(
        "import sys\nimport heedful.cli.main as cli\nimport heedful.__main__ as command\n"
        "def run():\n    try:\n        exec('raise KeyboardInterrupt')\n"
        "    except KeyboardInterrupt:\n        sys.exit(130)\n"
        "cli.main = run\ncommand.main()\n",
        encoding="utf-8",
    )
    ended = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, check=False)
    assert ended.returncode == 130
