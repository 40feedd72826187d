"""The audit must be right about every model of the zoo."""

from dataclasses import replace

import pytest

from heedful.audits.audit import run_audit
from tests.audits.zoo import EXHIBITS, SETTINGS, passages


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_a_model_with_a_known_answer_gets_it(tmp_path, exhibit):
    settings = replace(SETTINGS, headline=exhibit.headline)
    result = run_audit(exhibit.make(), passages(60, key_first=exhibit.key_first), out=tmp_path, settings=settings)
    verdict = result.verdict
    wrong = [
        f"{question.question} {question.answer}, must be {allowed}: {question.because}"
        for question, allowed in zip(verdict.questions, exhibit.answers, strict=True)
        if question.answer not in allowed.split("|")
    ]
    assert not wrong
    assert exhibit.allows(verdict.grade), verdict.sentence
    (norm,) = (e.verdict for e in result.explanations if e.method == "norm")
    assert norm.grade in exhibit.norm.split("|"), norm.sentence
