"""Requirements on an audit, such as `grade=show` or `tau>=0.1`, for tests and continuous integration.

A requirement on a number is *met* where the whole 95 % interval fulfils it, *not met* where none of the interval does,
and otherwise nobody can tell. A check of several requirements is not met if one is not met, and met if all are.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from heedful.attribution.attention_maps import DELETION
from heedful.audits.result import AuditResult, Grade
from heedful.errors import ConfigError
from heedful.metrics.statistics import Estimate
from heedful.storage.serialization import Stored, known

State = Literal["met", "not met", "can't tell"]
EXIT_CODES: dict[State, int] = {"met": 0, "not met": 1, "can't tell": 2}
GRADES: tuple[Grade, ...] = ("do not show", "show with a caveat", "show")  # the worst first
ANSWERS = ("yes", "no", "unclear")
QUESTION_NAMES = ("moves", "agrees", "trained", "needs", "another", "layers")  # in the order of the verdict
ALONE = ("comprehensiveness", "sufficiency", "entropy", "adversary", "token f1", "iou f1", "auprc")  # of the map
WITH = ("tau", "agreement", "excess agreement")  # of the map against an importance
NAMES = ("grade", "accuracy", *QUESTION_NAMES, "movement", "flips", *WITH, *ALONE)
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt
}  # fmt: skip
FORM = re.compile(r"\s*([a-z0-9 ]+?)\s*(?:\(([^()]*)\))?\s*(>=|<=|!=|=|>|<)\s*(.*?)\s*")


@dataclass(frozen=True)
class Requirement:
    """One requirement. against: the importance that a map is compared with, such as `gradient`; empty by default.

    >>> Requirement.parse("tau(gradient) >= 0.1")
    Requirement(name='tau', comparison='>=', value='0.1', against='gradient')
    >>> str(Requirement.parse("grade=show"))
    'grade = show'
    """

    name: str
    comparison: str
    value: str
    against: str = ""

    def __str__(self) -> str:
        against = f"({self.against})" if self.against else ""
        return f"{self.name}{against} {self.comparison} {self.value}"

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Read a requirement; refuse a name, a comparison or a value that no audit could answer."""
        match = FORM.fullmatch(text)
        if match is None:
            raise ConfigError(f"--require {text!r} is not a requirement such as 'grade=show' or 'tau>=0.1'")
        name, against, comparison, value = (part or "" for part in match.groups())
        known(name, dict.fromkeys(NAMES), f"--require {text!r}")
        if against and name not in WITH:
            raise ConfigError(f"--require {text!r}: {name} takes no importance in brackets; tau and agreement do")
        requirement = cls(name, comparison, value, against)
        if name == "grade":
            _one_of(text, value, GRADES)
        elif name in QUESTION_NAMES:
            _one_of(text, value, ANSWERS)
            if comparison not in ("=", "!="):
                raise ConfigError(f"--require {text!r}: an answer is compared by = or !=")
        else:
            requirement._number(text)
        return requirement

    def _number(self, text: str) -> float:
        if self.comparison not in COMPARISONS:
            raise ConfigError(f"--require {text!r}: a number with an interval is compared by >=, <=, > or <")
        try:
            return float(self.value)
        except ValueError as error:
            raise ConfigError(f"--require {text!r}: {self.value!r} is not a number") from error


@dataclass(frozen=True)
class Outcome:
    """What became of one requirement. found: what the audit has, in words."""

    requirement: str
    state: State
    found: str


@dataclass(frozen=True)
class AuditCheck(Stored):
    """The outcomes of all requirements on one audit."""

    audit: str
    state: State
    outcomes: tuple[Outcome, ...]

    def assert_met(self) -> None:
        """Raise an `AssertionError` that lists what is not met, for tests: `heedful.check(run, …).assert_met()`."""
        missed = [outcome for outcome in self.outcomes if outcome.state != "met"]
        if missed:
            raise AssertionError("\n".join([f"{self.audit}:", *map(line, missed)]))


def check_audit(result: AuditResult, requirements: Iterable[str], *, audit: str = "audit") -> AuditCheck:
    """Compare an audit with requirements. audit: the name to report.

    >>> check_audit(AuditResult.load("runs/model-reviews/result.json"), ["grade=show"]).state    # doctest: +SKIP
    'not met'
    """
    parsed = [Requirement.parse(text) for text in requirements]
    if not parsed:
        raise ConfigError("a check needs at least one requirement, such as --require grade=show")
    outcomes = tuple(_outcome(result, requirement) for requirement in parsed)
    states = {outcome.state for outcome in outcomes}
    state: State = "not met" if "not met" in states else "can't tell" if "can't tell" in states else "met"
    return AuditCheck(audit, state, outcomes)


def line(outcome: Outcome) -> str:
    """One outcome as a line of text.

    >>> line(Outcome("tau >= 0.1", "not met", "0.02 (0.01 to 0.03), 40 texts"))
    'not met     tau >= 0.1: 0.02 (0.01 to 0.03), 40 texts'
    """
    return f"{outcome.state:10}  {outcome.requirement}: {outcome.found}"


def junit(check: AuditCheck) -> str:
    """The check as JUnit XML: a failure for what is not met, an error where nobody can tell.

    >>> print(junit(AuditCheck("runs/a", "met", (Outcome("grade = show", "met", "show"),))))
    <?xml version='1.0' encoding='utf-8'?>
    <testsuite name="heedful check runs/a" tests="1" failures="0" errors="0">
      <testcase classname="heedful.check" name="grade = show" />
    </testsuite>
    """
    states = [outcome.state for outcome in check.outcomes]
    counts = {"tests": len(states), "failures": states.count("not met"), "errors": states.count("can't tell")}
    attributes = {"name": _xml_text(f"heedful check {check.audit}")} | {name: str(n) for name, n in counts.items()}
    suite = ElementTree.Element("testsuite", attributes)
    for outcome in check.outcomes:
        case = ElementTree.SubElement(suite, "testcase", classname="heedful.check", name=_xml_text(outcome.requirement))
        if outcome.state != "met":
            tag = "failure" if outcome.state == "not met" else "error"
            ElementTree.SubElement(case, tag, message=_xml_text(outcome.found))
    ElementTree.indent(suite)
    return str(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True), "utf-8")


def model_card(result: AuditResult, audit: str = "") -> str:
    """A Markdown section for the card of a model: the grade, the reason and the six answers with their numbers."""
    accuracy = "" if result.accuracy is None else f", accuracy {_estimate(result.accuracy)}"
    rows = [
        f"| {_cell(q.question)} | {q.answer} | {'' if q.estimate is None else _cell(_estimate(q.estimate))} |"
        for q in result.verdict.questions
    ]
    source = f" (`heedful audit`, {audit})" if audit else " (`heedful audit`)"
    return "\n".join(
        [
            "## Attention as an explanation",
            "",
            f"{_cell(result.verdict.sentence)}",
            "",
            f"Audited{source}: {_cell(result.headline)}, {result.texts} texts of {_cell(result.data)}{accuracy}.",
            "",
            "| question | answer | deciding number |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _outcome(result: AuditResult, requirement: Requirement) -> Outcome:
    text, name = str(requirement), requirement.name
    if name == "grade":
        return _graded(result.verdict.grade, requirement)
    if name in QUESTION_NAMES:
        question = result.verdict.questions[QUESTION_NAMES.index(name)]
        found = f"{question.answer}; {question.because}"
        equal = question.answer == requirement.value
        if question.answer == "unclear" and requirement.value != "unclear":
            return Outcome(text, "can't tell", found)
        return Outcome(text, "met" if equal == (requirement.comparison == "=") else "not met", found)
    estimate = _measured(result, requirement)
    if estimate is None or math.isnan(estimate.value):
        why = "not measured in this audit" if estimate is None else "no text has a value"
        return Outcome(text, "can't tell", why)
    compare, value = COMPARISONS[requirement.comparison], float(requirement.value)
    ends = {compare(end, value) for end in (estimate.low, estimate.high)}
    state: State = "can't tell" if len(ends) > 1 else "met" if ends == {True} else "not met"
    return Outcome(text, state, _estimate(estimate))


def _graded(grade: Grade | None, requirement: Requirement) -> Outcome:
    text = str(requirement)
    if grade is None:
        return Outcome(text, "can't tell", "not graded")
    names: tuple[str, ...] = GRADES
    comparisons = {**COMPARISONS, "=": operator.eq, "!=": operator.ne}
    fulfilled = comparisons[requirement.comparison](names.index(grade), names.index(requirement.value))
    return Outcome(text, "met" if fulfilled else "not met", grade)


def _measured(result: AuditResult, requirement: Requirement) -> Estimate | None:
    """The number that a requirement is about, of the map that the audit's verdict is about."""
    name, shown = requirement.name, result.headline
    if name == "accuracy":
        return result.accuracy
    if name in ("movement", "flips"):
        quantity = "tvd" if name == "movement" else "flip"
        changed = [s for s in result.scores if (s.quantity, s.of) == (quantity, "permuted")]
        return next((s.estimate for s in sorted(changed, key=lambda s: s.against != shown)), None)
    against = requirement.against or (DELETION if name in WITH else "")
    key = (name, shown, against)
    return next((s.estimate for s in result.scores if (s.quantity, s.of, s.against) == key), None)


def _one_of(text: str, value: str, names: Iterable[str]) -> None:
    if value not in names:
        raise ConfigError(f"--require {text!r}: {value!r} is not one of {', '.join(names)}")


def _estimate(estimate: Estimate) -> str:
    return f"{estimate.value:.3g} ({estimate.low:.3g} to {estimate.high:.3g}), {estimate.n} texts"


def _cell(text: str) -> str:
    """Text that cannot break a Markdown table or add markup of its own."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _xml_text(text: str) -> str:
    """Text without the characters that XML does not have."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
