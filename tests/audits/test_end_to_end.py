"""Every architecture from its folder to a verdict, and the command line."""

import json

import pytest
from typer.testing import CliRunner

import heedful
from heedful.cli.main import app
from tests.audits import tiny
from tests.audits.test_request import PAIRS, REVIEWS

FAST = {"adversary_steps": 3, "integrated_steps": 4, "resamples": 20, "progress": False}


@pytest.mark.parametrize("name", tiny.CLASSIFIERS)
def test_every_classifier(name, tmp_path):
    folder = tiny.CLASSIFIERS[name]().save(tmp_path / name)
    result = heedful.audit(folder, REVIEWS, out=tmp_path / "audit", **FAST)
    assert (result.layers, result.heads, result.passages) == (2, 2, 6)
    assert {q.answer for q in result.verdict.questions} <= {"yes", "no", "unclear"}
    assert result.accuracy is not None
    assert (tmp_path / "audit" / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", tiny.SEQUENCES)
def test_every_encoder_decoder(name, tmp_path):
    folder = tiny.SEQUENCES[name]().save(tmp_path / name)
    result = heedful.audit(folder, PAIRS, out=tmp_path / "audit", **FAST)
    assert result.passages == 7
    assert result.accuracy is None


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = "".join(f'"{text}",{name}\n' for text, name in zip(tiny.TEXTS * 5, tiny.LABELS * 15, strict=True))
    path.write_text("text,label\n" + rows)
    return path


def test_the_command(tmp_path, reviews):
    model = tiny.bert().save(tmp_path / "model")
    options = ["--sample", "2", "--adversary-steps", "2", "--integrated-steps", "2", "--out", str(tmp_path / "audit")]
    asked = ["audit", str(model), str(reviews), *options, "--labels", "negative=positive, positive=negative"]
    ran = CliRunner().invoke(app, [*asked, "--json"], catch_exceptions=False)
    found = json.loads(ran.stdout)
    assert all(one["label"] == tiny.LABELS[1 - one["text"] % 2] for one in found["examples"])
    assert len(found["examples"]) == 2
    assert found["texts"] == 2
    assert found["settings"]["sample"] == 2
    said = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert said.exit_code == 0
    assert found["verdict"]["sentence"].split()[0] in said.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--split", "dev"], "--split 'dev' is not one of train, validation, test"),
        (["--query", "cls"], "--query 'cls' is not one of first, last, mean"),
        (["--labels", "negative"], "is not of the form data=model"),
        (["--labels", "negative=bad, positive=good"], "labels must give each of negative, positive one of negative"),
        (["--headline", "layer 9"], "layer 9"),
    ],
)
def test_bad_options_are_named(tmp_path, reviews, options, said):
    model = tiny.bert().save(tmp_path / "model")
    ran = CliRunner().invoke(app, ["audit", str(model), str(reviews), "--out", str(tmp_path / "audit"), *options])
    assert said in str(ran.exception)
