import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import RunError
from heedful.metrics.statistics import Estimate
from heedful.reports import comparison
from heedful.reports.comparison import (
    ComparedStudy,
    RunSummary,
    differing,
    facts,
    headline,
    open_studies,
    questions,
    render_comparison,
)
from heedful.reports.pages import write_page
from heedful.studies.page_data import comparison_page_data
from heedful.studies.result import StudyResult, Verdict
from heedful.studies.run_directory import RunDirectory


def beside(run: Path, folder: Path) -> Path:
    """A copy of a run under another name: a second study of the same texts."""
    return Path(shutil.copytree(run, folder / "other"))


@pytest.fixture(scope="module")
def runs(smoke_run, tmp_path_factory):
    return [smoke_run, beside(smoke_run, tmp_path_factory.mktemp("comparison"))]


@pytest.fixture(scope="module")
def studies(runs):
    return open_studies(runs)


def page_data(studies: list[ComparedStudy]):
    return comparison_page_data([(study.name, study.run, study.result) for study in studies])


def payload(studies: list[ComparedStudy]):
    return comparison.comparison_payload(studies, page_data(studies))


def compared(studies: list[ComparedStudy]):
    return [study.summary() for study in studies]


def changed(study: ComparedStudy, **parts) -> ComparedStudy:
    return replace(study, result=replace(study.result, **parts))


def answered(study: ComparedStudy) -> ComparedStudy:
    """The study as if its models had learned something; those of a smoke study have not."""
    return changed(study, verdict=replace(study.result.verdict, status="answered"))


def moved(study: ComparedStudy, by: float) -> ComparedStudy:
    """The study with its first agreement between seeds further above chance."""

    def shifted(e: Estimate) -> Estimate:
        return Estimate(e.value + by, e.low + by, e.high + by, e.n)

    rows = study.result.agreements
    first = next(row for row in rows if row.convention == "cross")
    return changed(
        study, agreements=tuple(replace(row, excess=shifted(row.excess)) if row is first else row for row in rows)
    )


def test_equal_runs_are_not_shown_to_differ(studies):
    both = compared([answered(study) for study in studies])
    assert headline(both) == "smoke and other are not shown to differ in any of 7 agreements."
    assert differing(both) == []
    different, shared = facts(both)
    assert different == []
    assert ("seeds", "0, 1") in shared


def test_intervals_that_do_not_meet_are_a_difference(studies):
    one, other = (answered(study) for study in studies)
    apart = compared([one, moved(other, 2.0)])
    assert headline(apart).startswith("smoke and other differ in 1 of 7 agreements")
    (line,) = differing(apart)
    assert (line.concept, line.symbol) == ("attention ↔ word knowledge", "A(α, β)")
    assert line.values.startswith("smoke ")
    assert differing(compared([one, moved(other, 1e-6)])) == []


def test_a_study_that_learned_nothing_is_named_and_not_counted(studies):
    one, other = (answered(study) for study in studies)
    third = replace(moved(studies[1], 2.0), name="third")  # far from both, but its models learned nothing
    three = compared([one, other, third])
    assert [run.title for run in three] == ["smoke", "other", "third (learned nothing)"]
    assert differing(three) == []
    assert headline(three) == (
        "smoke and other are not shown to differ in any of 7 agreements. Not counted: third learned nothing."
    )
    assert headline(compared([one, third])) == "Nothing can be compared: third learned nothing."
    few = changed(other, verdict=replace(other.result.verdict, status="too few texts"))
    assert headline(compared([few, third])) == (
        "Nothing can be compared: other had too few texts and third learned nothing."
    )
    assert differing(compared([few, third])) == []


def test_the_page_shows_a_study_that_learned_nothing(runs):
    page = render_comparison(open_studies(runs))
    assert "Nothing can be compared: smoke learned nothing and other learned nothing." in page
    assert '"titles":["smoke (learned nothing)","other (learned nothing)"]' in page
    assert "They differ in:" not in page
    assert "How far each exceeds chance" not in page


def test_what_differs_is_told_apart_from_what_is_shared(studies):
    different, shared = facts(compared([studies[0], changed(studies[1], budget="paper")]))
    ((name, values),) = different
    assert name == "budget"
    assert [value.split(":")[0] for value in values] == ["smoke", "paper"]
    assert "budget" not in dict(shared)


def test_the_same_examples_as_every_model_saw_them(studies):
    content = payload(studies).content
    names = [model["name"] for model in content["models"]]
    assert names == ["smoke/standard-0", "smoke/uniform-0", "other/standard-0", "other/uniform-0"]
    assert content["beside"] == "other/standard-0"
    assert {f"{name}/beta_logit" for name in names} <= set(content["arrays"])
    assert {f"{run}/tokens/attention" for run in ("smoke", "other")} <= set(content["arrays"])
    assert [run["name"] for run in content["tokens"]["runs"]] == ["smoke", "other"]
    assert content["runs"] == ["smoke", "other"]
    assert {row["run"] for row in content["rows"]} == {"smoke", "other"}
    assert [model["places"] for model in content["models"]] == [list(range(len(content["steps"])))] * 4


def test_a_model_is_shown_at_its_last_step_before(studies):
    ((model, _), _) = page_data(studies).models
    shorter = replace(model, steps=(4, 8))
    assert comparison.last_before(shorter.steps, [0, 4, 6, 8, 12]) == [0, 0, 0, 1, 1]


def test_other_texts_are_not_set_side_by_side(runs, monkeypatch):
    pair, words = open_studies(runs), RunDirectory.words
    other = pair[1].run.root
    monkeypatch.setattr(RunDirectory, "words", lambda run: words(run)[::-1] if run.root == other else words(run))
    assert page_data(pair).examples is None
    page = render_comparison(pair)
    assert "so there are none to set side by side" in page
    assert '"texts":{' not in page


def test_translations_side_by_side(smoke_translation_run, tmp_path):
    pair = open_studies([smoke_translation_run, beside(smoke_translation_run, tmp_path)])
    content = payload(pair).content
    assert content["task"] == "translation"
    assert "other/standard-0/alpha" in content["arrays"]
    assert {f"translations/{run['name']}/attention" for run in content["translations"]["runs"]} <= set(
        content["arrays"]
    )
    assert len({curve["kind"] for curve in content["bleu"]}) == 2


def test_texts_beside_translations(runs, smoke_translation_run):
    page = render_comparison(open_studies([runs[0], smoke_translation_run]))
    assert "so there are none to set side by side" in page
    assert "texts or output words" in page
    assert "Nothing can be compared: smoke learned nothing and smoke-translation had too few texts." in page


def test_the_page_says_how_to_run_both_again(runs, tmp_path):
    page = write_page(runs, out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 studies side by side" in page
    assert "No recorded fact about these runs differs" in page
    assert "differences" not in re.findall(r'data-name="(\w+)"', page)
    assert len(re.findall(r"<h3 dir=.auto.>(?:smoke|other)</h3>", page)) == 2
    assert "<script>alert(1)" not in page


def test_what_cannot_be_compared(runs, tmp_path):
    with pytest.raises(RunError, match="named twice"):
        open_studies([runs[0], runs[0]])
    with pytest.raises(RunError, match="7 runs"):
        open_studies([runs[0]] * 7)
    unfinished = beside(runs[0], tmp_path)
    RunDirectory(unfinished).result_path.unlink()
    with pytest.raises(RunError, match="not finished"):
        open_studies([runs[0], unfinished])


def test_nothing_to_compare():
    verdict = Verdict("so be it", ())
    studies = [RunSummary(name, verdict, {f"A({name})": Estimate(0.5, 0.4, 0.6, 9)}, {}) for name in ("a", "b", "c")]
    assert headline(studies, "figures") == "a, b and c have none of their figures in common."


def test_a_question_that_one_run_was_not_asked(studies):
    result: StudyResult = studies[1].result
    fewer = changed(studies[1], verdict=replace(result.verdict, questions=result.verdict.questions[1:]))
    asked = questions(compared([studies[0], fewer]))
    assert asked[0][1][1] is None
    assert all(answer is not None for _, answers in asked[1:] for answer in answers)
