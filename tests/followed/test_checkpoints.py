"""Saved checkpoints followed afterwards: the same course as a training followed while it ran, and weights named."""

import json

import numpy as np
import pytest
import torch

from heedful import api
from heedful.errors import ConfigError
from heedful.followed.checkpoints import checkpoints_of
from heedful.followed.result import FollowedDirectory
from heedful.followed.training import Recorder
from tests.audits import tiny
from tests.command import heedful

LABELS = (1, 0, 0, 1, 0, 1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Three checkpoints, the last of which holds the same weights as the second; and a file of texts."""
    root = tmp_path_factory.mktemp("checkpoints")
    for step, seed in ((0, 0), (40, 1), (100, 1)):
        tiny.bert(seed).save(root / f"checkpoint-{step}")
    rows = [{"text": text, "label": tiny.LABELS[y]} for text, y in zip(tiny.TEXTS, LABELS, strict=True)]
    (root / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return root


def test_checkpoints_give_the_course_that_a_recorder_gives(saved, tmp_path):
    places = [saved / f"checkpoint-{step}" for step in (100, 0, 40)]
    result = api.follow(places, saved / "texts.jsonl", out=tmp_path / "saved", progress=False)
    assert [(step.step, step.source) for step in result.steps] == [
        (0, "checkpoint-0"), (40, "checkpoint-40"), (100, "checkpoint-100")
    ]  # fmt: skip
    recorder = Recorder(tmp_path / "live", tiny.TEXTS, tiny.bert().tokenizer, labels=LABELS, every=1)
    for step, seed in ((0, 0), (40, 1)):
        recorder.record(tiny.bert(seed).model, step)
    live = recorder.close(tiny.bert(1).model, 100)
    for one, other in zip(result.steps, live.steps, strict=True):
        assert one.agreements == other.agreements
        assert one.accuracy == other.accuracy
    traces = [FollowedDirectory(tmp_path / name).trace() for name in ("saved", "live")]
    first, second = (trace.quantity("alpha", 40).values for trace in traces)
    np.testing.assert_array_equal(first, second)


def test_the_same_weights_are_named_by_the_command(saved, tmp_path, monkeypatch, capsys):
    arguments = [str(saved / f"checkpoint-{step}") for step in (0, 40, 100)]
    out = tmp_path / "run"
    texts = str(saved / "texts.jsonl")
    code, printed, errors = heedful(monkeypatch, capsys, "follow", *arguments, "--data", texts, "--out", str(out))
    assert code == 0, errors
    sentence = "checkpoint-100 (step 100) has the same weights as checkpoint-40 (step 40)"
    assert sentence in " ".join(printed.split())
    assert sentence in (out / "report.html").read_text()
    sums = [step.sha256 for step in FollowedDirectory(out).result().steps]
    assert sums[1] == sums[2] != sums[0]


def test_revisions_are_looked_up_one_by_one(saved, tmp_path, monkeypatch):
    import huggingface_hub

    asked = []

    def snapshot(model, revision, ignore_patterns):
        asked.append((model, revision))
        return str(saved / f"checkpoint-{revision.removeprefix('step')}")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    revisions = ["step0", "step40"]
    result = api.follow("some/model", saved / "texts.jsonl", revisions=revisions, out=tmp_path, progress=False)
    assert asked == [("some/model", "step0"), ("some/model", "step40")]
    assert [step.step for step in result.steps] == [0, 40]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"],), "two checkpoints or more"),
        ((["a", "b"], ["main"]), "revisions are those of one model"),
        ((["a", "b"], (), [1]), "2 checkpoints, but 1 steps"),
        ((["a", "b"], (), [1, 1]), "must be different"),
        (([__file__], ["main", "other"]), "has no revisions"),
    ],
)
def test_what_is_no_course_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        checkpoints_of(*arguments)


def test_a_checkpoint_that_is_not_finite_is_left_out(saved, tmp_path):
    broken = tiny.bert(2)
    with torch.no_grad():
        next(broken.model.parameters()).fill_(float("nan"))
    broken.save(tmp_path / "checkpoint-7")
    places = [saved / "checkpoint-0", tmp_path / "checkpoint-7", saved / "checkpoint-40"]
    with pytest.warns(UserWarning, match="step 7 is not recorded"):
        result = api.follow(places, saved / "texts.jsonl", out=tmp_path / "run", progress=False)
    assert [step.step for step in result.steps] == [0, 40]
