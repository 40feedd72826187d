"""The lines that docs/audit.md opens with are run as they stand, with models and data made here."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from heedful.audits.result import AuditResult
from tests.audits import tiny
from tests.command import heedful

PREFACE = Path(__file__).parents[2] / "docs" / "tools" / "audit_preface.md"
LINES = [
    shlex.split(line, comments=True)[1:]
    for line in re.search("```\n(.*?)```", PREFACE.read_text(encoding="utf-8"), re.DOTALL)[1].splitlines()
]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A folder with two models, 60 texts and SHAP's scores of their words; each line is run in it."""
    for seed, name in enumerate(("one", "other")):
        tiny.bert(seed, num_hidden_layers=1).save(tmp_path / name)
    texts = tiny.TEXTS * 10
    labels = [tiny.LABELS[i % 2] for i in range(len(texts))]
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(texts, labels, strict=True))
    (tmp_path / "reviews.csv").write_text(f"text,label\n{rows}")
    draw = np.random.default_rng(0)
    with (tmp_path / "shap.jsonl").open("w") as file:
        for i, text in enumerate(texts):
            words = re.findall(r"\w+|[^\w\s]", text)
            scores = draw.normal(size=len(words)).tolist()
            print(json.dumps({"explainer": "shap", "text": i, "words": words, "scores": scores}), file=file)
    monkeypatch.chdir(tmp_path)

    def run_line(line, model, *more):
        return heedful(monkeypatch, capsys, *(model if word == "MODEL" else word for word in line), *more)

    return run_line


def test_every_line(run, tmp_path):
    against_gradient, faithful, compare, gate = LINES
    quick = ("--integrated-steps", "0")
    code, out, err = run(against_gradient, "one", *quick)
    assert code == 0, err
    result = AuditResult.load(tmp_path / "runs" / "audit-one" / "result.json")
    assert result.passages == 50
    assert -1 <= result.score("tau", "layer 1", "gradient").value <= 1
    code, out, err = run(faithful, "other", *quick, "--adversary-steps", "2", "--maps", "raw")
    assert code == 0, err
    ranked = AuditResult.load(tmp_path / "runs" / "audit-other" / "result.json").ranking()
    assert {row["explanation"] for row in ranked} == {"layer 1", "shap"}
    assert next(row["grade"] for row in ranked if row["explanation"] == "shap") == "do not show"
    code, out, err = run(compare, "")
    assert code == 0, err
    code, out, err = run(gate, "")
    assert code == 1, err
    assert "grade" in out
