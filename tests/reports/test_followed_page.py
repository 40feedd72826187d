"""The page of a followed training: it shows what such a run has, and nothing else."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from heedful.attribution.modules import ModuleNetwork, WordReader
from heedful.attribution.network import Output
from heedful.errors import RunError
from heedful.followed.result import FollowedDirectory
from heedful.followed.training import Recorder
from heedful.reports import followed_page
from heedful.reports.followed_page import FollowedRun, following_payload, render_following
from heedful.reports.pages import write_report
from tests.reports.elements import Elements
from tests.reports.test_study_payload import read

LABELS = ("<b>bad</b>", 'good "&"')
TEXTS = (
    "a good film",
    "</script><script>alert(1)</script> bad",
    "the film was bad",
    "good good 🙂 فيلم",
    "a bad plot",
) * 5
RIGHT = (1, 0, 0, 1, 0) * 5
NAME = "my <i>model</i>"


def follow(folder: Path, labels: tuple[int, ...] | None = RIGHT, steps: int = 30, heads: int = 1) -> FollowedDirectory:
    """Recordings of a small model that learns, every ten steps."""
    vocabulary = {word: i for i, word in enumerate(sorted({w for text in TEXTS for w in text.split()}), start=1)}
    reader = WordReader(vocabulary, LABELS, first=("<s>", 0))
    torch.manual_seed(0)
    table, output = nn.Embedding(len(vocabulary) + 1, 4), nn.Linear(4, 2)
    model = nn.ModuleList([table, output])

    def run(embedded, change):
        alpha = embedded[..., 0].softmax(-1)[:, None, None]
        return Output(
            output((alpha[:, 0] @ embedded)[:, 0]).softmax(-1), (alpha.expand(-1, heads, -1, -1),), (embedded,)
        )

    @contextmanager
    def opening(model):
        yield ModuleNetwork((model,), table, run, layers=1, heads=heads), reader

    recorder = Recorder(folder, TEXTS, opening=opening, labels=labels, every=10, name=NAME)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(steps):
        recorder.record(model, step)
        loss = torch.zeros(())
        for text, label in zip(TEXTS[:5], RIGHT, strict=False):
            pieces = torch.tensor([reader.read(0, text).pieces])
            loss = loss - run(table(pieces), None).probabilities[0, label].log()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    recorder.close(model, steps)
    return FollowedDirectory(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return follow(tmp_path_factory.mktemp("followed") / "run")


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory):
    return follow(tmp_path_factory.mktemp("followed") / "unlabelled", labels=None)


def test_what_was_recorded_is_on_the_page(run):
    page = render_following(run.root)
    result = run.result()
    text = " ".join("".join(Elements(page).text).split())
    assert result.verdict.sentence in text
    assert all(question.question in text for question in result.verdict.questions)
    for row in result.steps[-1].agreements:
        assert f"{100 * row.estimate.value:.1f}\N{NO-BREAK SPACE}%" in page
    assert NAME in text
    assert ", ".join(LABELS) in text
    assert "ModuleList" in text


def test_parts_that_such_a_run_does_not_have_are_not_there(run, unlabelled):
    page, without = render_following(run.root), render_following(unlabelled.root)
    for absent in ('id="model-table"', 'id="rerun"', 'href="#rerun"', 'name="convention"', "seeds"):
        assert absent not in page.split("<script", 1)[0], absent
    assert 'id="accuracy-chart"' in page
    assert 'id="accuracy-chart"' not in without
    assert "label that is predicted" in without
    assert "label that is predicted" not in page


def test_words_are_never_markup(run):
    page = render_following(run.root)
    seen = Elements(page)
    assert "i" not in seen.tags
    assert seen.tags.count("script") == 3
    assert "<script>alert(1)" not in page


def test_the_slider_has_every_recorded_step(run):
    payload = following_payload(FollowedRun.open("model", run.root))
    content = payload.content
    assert content["steps"] == [0, 10, 20, 30]
    assert content["accuracy"][0]["values"] == [step.accuracy for step in run.result().steps]
    chosen = np.array(content["texts"]["index"])
    alpha = run.trace().quantity("alpha", 30).take(chosen).values
    shown = (read(payload, "model/alpha").reshape(4, -1)[3] / 255.0) ** 2
    np.testing.assert_allclose(shown, alpha, atol=0.005)
    places = read(payload, "places")
    assert content["texts"]["length"][0] == len(run.probe().words[chosen[0]])
    first = [content["words"][p] for p in places[: content["texts"]["length"][0]]]
    assert tuple(first) == run.probe().words[chosen[0]]
    assert json.dumps(content, allow_nan=False)


def test_without_labels_nothing_is_right_or_wrong(unlabelled):
    content = following_payload(FollowedRun.open("model", unlabelled.root)).content
    assert set(content["texts"]["label"]) == {None}
    assert (content["accuracy"], content["references"]) == ([], [])
    facts = dict(followed_page.data_facts(unlabelled.probe()))
    assert facts["right labels"].startswith("not given")
    assert "accuracy" not in dict(followed_page.training_facts(unlabelled.result()))


def test_written_by_the_same_command(run, tmp_path):
    page = write_report(run.root, out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == render_following(run.root)
    assert re.search("<title>my &lt;i&gt;model&lt;/i&gt;: how attention was learned</title>", page)


def test_no_step_yet(run, tmp_path):
    for name in ("following.json", "manifest.json"):
        shutil.copy(run.root / name, tmp_path)
    with pytest.raises(RunError, match="no step of this training"):
        write_report(tmp_path)


def test_the_page_needs_no_torch(run, tmp_path):
    code = (
        "import sys; from pathlib import Path; from heedful.reports.pages import write_report; "
        "write_report(Path(sys.argv[1]), out=Path(sys.argv[2])); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(run.root), str(tmp_path / "page.html")], check=True)
