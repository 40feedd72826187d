import json

import pytest
from typer.testing import CliRunner

from heedful.cli.data import app
from heedful.data.catalog import CATALOG
from heedful.data.synthetic.doses import FAMILIES
from heedful.data.synthetic.tasks import TASKS
from heedful.errors import DataError

FORMS = [family.form for family in FAMILIES.values()]


def run(*arguments):
    return CliRunner().invoke(app, arguments, catch_exceptions=True, env={"COLUMNS": "200"})


def test_list(mirror):
    rows = json.loads(run("list", "--json").stdout)
    assert [row["name"] for row in rows] == [*CATALOG, *TASKS, *FORMS]
    assert [row["name"] for row in rows if not row["here"]] == [n for n in CATALOG if n.startswith("news-commentary")]
    assert all(name in run("list").stdout for name in CATALOG)


def test_list_without_a_mirror(empty_mirror):
    here = {row["name"] for row in json.loads(run("list", "--json").stdout) if row["here"]}
    assert here == {"rotten-tomatoes", "imdb-reviews", *TASKS, *FORMS}


def test_show(mirror):
    shown = json.loads(run("show", "sst", "--json").stdout)
    assert shown["splits"]["train"] == {"negative": 3310, "positive": 3610}
    assert shown["labels"] == ["negative", "positive"]
    assert len(shown["digest"]) == 64
    assert shown["digest"] in run("show", "sst").stdout


def test_generated_tasks_and_parallel_corpora(mirror):
    assert json.loads(run("show", "toy-de-en", "--json").stdout)["splits"]["train"] == 10_000
    assert json.loads(run("show", "multi30k", "--json").stdout)["splits"]["validation"] == 1014
    assert json.loads(run("check", "keyword", "--json").stdout)["ok"]
    assert json.loads(run("check", "copy-dose:45", "--json").stdout)["ok"]
    assert json.loads(run("check", "multi30k", "--json").stdout)["ok"]


def test_show_without_a_mirror(empty_mirror):
    assert "splits" not in json.loads(run("show", "sst", "--json").stdout)
    assert "Socher" in run("show", "sst").stdout


def test_check(mirror):
    assert json.loads(run("check", "sst", "--json").stdout)["ok"]
    assert "stsa.binary.train" in run("check", "sst").stdout


def test_a_damaged_corpus_is_told_of_and_fetched_again(empty_mirror, monkeypatch):
    from tests.data.test_hub_fetch import sst5

    monkeypatch.setattr("heedful.data.hub.resolve", lambda source: source)
    monkeypatch.setattr("heedful.data.hub.download_splits", lambda source: sst5())
    folder = run("fetch", "sst").stdout.strip()
    assert folder == str(empty_mirror / "sst")
    (empty_mirror / "sst" / "stsa.fine.dev").write_text("")
    again = run("fetch", "sst")
    assert (again.exit_code, again.stdout.strip()) == (0, folder)
    assert "it is fetched again" in again.stderr


def test_check_without_a_mirror(empty_mirror):
    result = run("check", "sst", "--json")
    assert isinstance(result.exception, DataError)
    assert [file["status"] for file in json.loads(result.stdout)["files"]] == ["missing"] * 3


@pytest.mark.parametrize("command", ["show", "check", "fetch"])
def test_an_unknown_name(command):
    result = run(command, "stt")
    assert isinstance(result.exception, DataError)
    assert "did you mean 'sst'" in str(result.exception)
