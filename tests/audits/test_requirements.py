from dataclasses import replace
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import heedful
from heedful.audits.requirements import Requirement, check_audit, junit, model_card
from heedful.audits.result import Score
from heedful.cli.main import app
from heedful.errors import ConfigError, RunError
from heedful.storage.manifest import RunClock
from tests.reports.audit_example import HEADLINE, around, audit_example


def state(*requirements, **changes):
    return check_audit(audit_example(**changes), requirements).state


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("grade=show", "not met"),
        ("grade>=show with a caveat", "met"),
        ("grade = show with a caveat", "met"),
        ("grade!=do not show", "met"),
        ("grade<show", "met"),
        ("moves=yes", "met"),
        ("trained=yes", "not met"),
        ("trained!=yes", "met"),
        ("another=no", "not met"),
        ("layers=yes", "can't tell"),
        ("layers=unclear", "met"),
        ("accuracy>=0.7", "met"),
        ("accuracy>=0.725", "met"),
        ("accuracy>0.725", "can't tell"),
        ("accuracy>=0.85", "can't tell"),
        ("accuracy>=0.96", "not met"),
        ("accuracy<0.99", "met"),
        ("tau(no such importance)>=0", "can't tell"),
    ],
)
def test_one_requirement(requirement, expected):
    assert state(requirement) == expected


def test_a_number_is_of_the_map_shown():
    score = audit_example().score("tau", HEADLINE, "gradient")
    assert state(f"tau(gradient)>={score.low - 1e-9}") == "met"
    assert state(f"tau(gradient)<{score.low}") == "not met"
    assert state(f"tau(gradient)>={score.value}") == "can't tell"


def test_movement_is_of_the_layer_shown_where_it_was_changed_alone():
    everywhere, alone = (
        Score("tvd", "permuted", where, around(value)) for where, value in (("all layers", 0.5), (HEADLINE, 0.1))
    )
    assert state("movement>=0.2", scores=(everywhere,)) == "met"
    assert state("movement>=0.2", scores=(everywhere, alone)) == "not met"


def test_the_worst_outcome_decides():
    assert state("moves=yes", "accuracy>=0.7") == "met"
    assert state("moves=yes", "layers=yes") == "can't tell"
    assert state("moves=yes", "layers=yes", "grade=show") == "not met"


def test_what_was_not_measured_is_not_met_by_silence():
    assert state("tau>=0", scores=()) == "can't tell"
    assert state("accuracy>=0", accuracy=None) == "can't tell"
    assert state("accuracy>=0", accuracy=replace(around(0.5), value=float("nan"))) == "can't tell"
    ungraded = replace(audit_example().verdict, grade=None)
    assert state("grade=show", verdict=ungraded) == "can't tell"


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ("", "such as 'grade=show'"),
        ("tau", "such as"),
        ("tua>=0.1", "did you mean 'tau'"),
        ("tau>=much", "'much' is not a number"),
        ("tau=0.1", "compared by >=, <=, > or <"),
        ("grade=good", "not one of do not show, show with a caveat, show"),
        ("moves=maybe", "not one of yes, no, unclear"),
        ("moves>=yes", "compared by = or !="),
        ("entropy(gradient)>=1", "takes no importance"),
    ],
)
def test_bad_requirements(requirement, words):
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        Requirement.parse(requirement)


def test_nothing_required():
    with pytest.raises(ConfigError, match="at least one requirement"):
        check_audit(audit_example(), [])


def test_in_a_test(tmp_path):
    heedful.check(audit_example(), "moves=yes").assert_met()
    with pytest.raises(AssertionError, match="not met     grade = show: show with a caveat"):
        heedful.check(audit_example(), ["moves=yes", "grade=show"]).assert_met()


def test_junit_is_xml_whatever_the_audit_says():
    check = check_audit(audit_example(), ["moves=yes", "layers=yes", "grade=show"], audit='runs/<a> & "b"\x00')
    suite = ElementTree.fromstring(junit(check))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [[child.tag for child in case] for case in suite] == [[], ["error"], ["failure"]]
    assert suite.get("name") == 'heedful check runs/<a> & "b"\ufffd'


def test_a_model_card_has_no_markup_of_its_own():
    card = model_card(audit_example(), "runs/a")
    assert card.startswith("## Attention as an explanation\n")
    assert "Show it with a caveat" in card
    assert "accuracy 0.85 (0.725 to 0.95), 40 texts" in card
    assert "<test>" not in card
    assert card.count("\n| ") == 1 + 6


@pytest.fixture
def audit(tmp_path):
    folder = tmp_path / "audit"
    RunClock("audit").finish(folder, audit_example())
    return folder


@pytest.mark.parametrize(("requirement", "code"), [("moves=yes", 0), ("grade=show", 1), ("layers=yes", 2)])
def test_exit_codes(audit, tmp_path, requirement, code):
    out = tmp_path / "junit.xml"
    done = CliRunner().invoke(app, ["check", str(audit), "--require", requirement, "--junit", str(out)])
    assert done.exit_code == code, done.output
    assert requirement.replace("=", " = ") in done.output
    assert ElementTree.parse(out).getroot().get("tests") == "1"


def test_the_card_alone(audit):
    done = CliRunner().invoke(app, ["check", str(audit), "--model-card"])
    assert done.exit_code == 0
    assert done.output.startswith("## Attention")


def test_only_audits(smoke_run):
    with pytest.raises(RunError, match="is a study, not an audit; make one with: heedful audit"):
        heedful.check(smoke_run, "grade=show")
