"""The first screen of a study's page: its words over many simulated results."""

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.api import audit
from heedful.config import with_architecture
from heedful.metrics.statistics import Estimate
from heedful.reports.first_screen import MOST_WORDS, cards, gain_sentence, headline, kicker, trust
from heedful.reports.pages import renew_audited_study, write_report
from heedful.reports.study_page import render_study
from heedful.storage import run_files
from heedful.storage.manifest import RunClock
from heedful.studies.page_data import attention_gain
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory
from tests.reports.answered_study import answered, answered_run
from tests.reports.audit_example import audit_example

GAINS = {
    "none": None,
    "unknown": Estimate(0.02, float("nan"), float("nan"), 90),
    "unclear": Estimate(0.01, -0.01, 0.03, 90),
    "small": Estimate(0.021, 0.004, 0.04, 90),
    "large": Estimate(0.23, 0.2, 0.26, 90),
    "tiny": Estimate(0.004, 0.001, 0.007, 90_000),
    "loss": Estimate(-0.08, -0.1, -0.06, 90),
}


@pytest.fixture(scope="module", params=["smoke_run", "smoke_translation_run"])
def run(request):
    return RunDirectory(request.getfixturevalue(request.param))


@pytest.fixture(scope="module")
def result(run):
    return StudyResult.load(run.result_path)


def simulated(result):
    """Headlines of every answer to the two questions they rest on, both sizes, and every kind of gain."""
    for attends, stable, size in itertools.product(
        ("yes", "no", "unclear"), ("yes", "no", "unclear"), ("strongly", "partly")
    ):
        answers = (attends, "yes", "yes", "yes", stable, "no")
        for name, gain in GAINS.items():
            yield (attends, stable, size, name), headline(answered(result, answers, size), gain)


def test_headlines_are_short_and_say_what_was_found(result):
    seen = dict(simulated(result))
    assert all(len(line.split()) <= MOST_WORDS for line in seen.values())
    assert len(set(seen.values())) >= 20
    for (attends, stable, size, gain), line in seen.items():
        assert ("does not find" in line) == (attends == "no")
        assert ("can’t tell" in line) == (attends == "unclear")
        assert ("partly" in line) == (attends == "yes" and size == "partly")
        assert ("another seed" in line) == (stable == "no") or attends == "unclear"
        if stable != "no" and gain == "loss" and attends != "unclear":
            assert "costs eight points" in line
        if gain in ("none", "unknown"):
            assert "accuracy" not in line


def test_the_example_of_a_small_gain(smoke_run):
    result = answered(StudyResult.load(smoke_run / "result.json"))
    films = replace(result, data=result.data | {"labels": ["negative", "positive"]})
    line = headline(films, GAINS["small"])
    assert line == "Attention finds sentiment words, but adds only two points of accuracy"
    assert headline(films, GAINS["tiny"]).endswith("only under one point of accuracy")
    assert headline(films, GAINS["large"]) == "Attention finds sentiment words and adds 23 points of accuracy"


def test_films_and_translation_differ(smoke_run, smoke_translation_run):
    lines = [
        headline(answered(StudyResult.load(run / "result.json")), GAINS["large"])
        for run in (smoke_run, smoke_translation_run)
    ]
    assert lines[0] != lines[1]


@pytest.mark.parametrize("status", ["learned nothing", "too few texts"])
def test_a_closed_gate_has_no_finding(result, status):
    gate = replace(result.verdict.gate, gain=Estimate(0.0, -0.1, 0.1, 90))
    closed = replace(result, verdict=replace(result.verdict, status=status, gate=gate))
    line = headline(closed, GAINS["large"])
    assert len(line.split()) <= MOST_WORDS
    assert "Attention" not in line
    assert ("learned nothing" in line) == (status == "learned nothing")


def test_a_translator_that_beats_the_frequent_word_but_does_not_translate(smoke_translation_run):
    result = StudyResult.load(smoke_translation_run / "result.json")
    gate = replace(result.verdict.gate, gain=Estimate(0.2, 0.1, 0.3, 90), bleu=0.5)
    closed = replace(result, verdict=replace(result.verdict, status="learned nothing", gate=gate))
    assert headline(closed, None) == "The model did not learn to translate: BLEU 0.5 after training"


def test_cards_have_effects_and_tones(result):
    good = cards(answered(result))
    assert [card.title for card in good] == ["What does it look at?", "Where did that come from?", "Is it stable?"]
    assert {card.tone for card in good} == {"good"}
    assert all("chance" in card.pill and "%" in card.pill for card in good)
    assert sorted(fact.question for card in good for fact in card.facts) == sorted(
        question.question for question in result.verdict.questions
    )
    assert {card.tone for card in cards(answered(result, ("no",) * 6))} == {"bad"}
    assert {card.tone for card in cards(answered(result, ("unclear",) * 6))} == {"open"}
    assert {card.tone for card in cards(answered(result, size="partly"))} == {"middling"}
    unasked = cards(answered(result, ("not asked",) * 6, status="learned nothing"))
    assert {(card.pill, card.value) for card in unasked} == {("not asked", None)}


def test_the_gain_is_the_difference_of_accuracies(run, result):
    gain = attention_gain(run, result)

    def mean(kind):
        best = {model.name: model.best_step for model in result.models}
        right = [run.model(ModelSpec(kind, s)).trace().correct(best[f"{kind}-{s}"]).mean() for s in result.seeds]
        return sum(right) / len(right)

    assert gain.value == pytest.approx(mean("standard") - mean("uniform"), abs=1e-9)
    assert gain.low <= gain.value <= gain.high
    assert "points" in gain_sentence(gain, result.task)
    assert gain_sentence(None, result.task) == ""


def test_kickers(run, result):
    said = kicker(result, run.config())
    assert said.endswith(" · 2 seeds")
    assert f"{result.data['train']:,}" in said
    assert "Transformer" in kicker(result, with_architecture(run.config(), "transformer"))


def test_the_grade_of_an_audit_beside_the_run(smoke_run, tmp_path):
    root = Path(shutil.copytree(smoke_run, tmp_path / "runs" / "demo"))
    assert trust(root).command == "heedful audit runs/demo"
    folder = root.parent / "audit-demo"
    folder.mkdir()
    RunClock("audit").begin(folder)
    assert trust(root).words == "not tested"  # the audit is not finished
    audit = audit_example()
    RunClock("audit").finish(folder, replace(audit, model="runs/another"))
    assert trust(root).words == "not tested"
    verdict = replace(audit.verdict, grade="do not show")
    RunClock("audit").finish(folder, replace(audit, model="runs/demo", verdict=verdict))
    found = trust(root)
    assert (found.words, found.tone, found.link) == ("do not show it", "bad", "../audit-demo/report.html")
    assert 'href="../audit-demo/report.html"' in render_study(RunDirectory(root))


def test_an_audit_renews_the_trust_line_of_the_page_of_its_study(smoke_run, tmp_path):
    root = Path(shutil.copytree(smoke_run, tmp_path / "runs" / "demo"))
    page = write_report(root)
    assert "As an explanation: not tested" in page.read_text(encoding="utf-8")
    settings = {"sample": 3, "only": "tau", "integrated_steps": 2, "resamples": 20, "progress": False}
    audit(root, out=root.parent / "audit-demo", **settings)
    renewed = page.read_text(encoding="utf-8")
    assert "As an explanation: not tested" not in renewed
    assert 'href="../audit-demo/report.html"' in renewed


def test_no_other_page_is_renewed(smoke_run, tmp_path):
    assert renew_audited_study("some/model-of-the-hub") is None
    root = Path(shutil.copytree(smoke_run, tmp_path / "demo", ignore=shutil.ignore_patterns("report.html")))
    assert renew_audited_study(str(root)) is None
    assert not (root / "report.html").exists()
    (root / "report.html").mkdir()  # nothing can be written there, and the audit is complete without it
    assert renew_audited_study(str(root)) is None


@pytest.mark.parametrize("name", ["a**", "a[1]", "**", "é?"])
def test_names_that_are_patterns(name, tmp_path, monkeypatch):
    (tmp_path / name).mkdir()
    (tmp_path / f"audit-{name}").mkdir()
    assert trust(tmp_path / name).words == "not tested"
    monkeypatch.setattr(run_files, "MAX_ENTRIES", 1)
    assert trust(tmp_path / name).words == "not tested"


def test_the_stage_is_set_only_where_something_was_learned(smoke_run, tmp_path):
    assert 'id="stage"' not in render_study(RunDirectory(smoke_run))
    page = render_study(answered_run(smoke_run, tmp_path))
    assert 'id="stage"' in page
    assert 'id="accuracy-chart"' in page
