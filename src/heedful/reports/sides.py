"""Results side by side, in words: where their intervals lie apart, what each answers, what they share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import RunError
from heedful.measure.uncertainty import Estimate
from heedful.reports.numbers import NONE
from heedful.reports.summary import with_interval
from heedful.reports.words import symbol
from heedful.studies.result import Question, Verdict

MOST = 6  # as many marks can be told apart


@dataclass(frozen=True)
class Compared:
    """What a result brings to a comparison; its name is short and no other's.

    figures: what can be held against the same of another, by name; facts: what it was made of, in pairs.
    """

    name: str
    verdict: Verdict
    figures: Mapping[str, Estimate]
    facts: Mapping[str, str]


def check_sides(runs: Sequence[Path]) -> list[str]:
    """Short names of the runs, which must be few enough to be told apart, and none named twice."""
    if len(runs) > MOST:
        raise RunError(f"{len(runs)} runs; a page compares {MOST} at most, whose marks can be told apart")
    if len({run.resolve() for run in runs}) < len(runs):
        raise RunError("the same run is named twice; a run is compared with others")
    return short_names(runs)


def short_names(runs: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many before it as it takes to tell them apart.

    >>> short_names([Path("runs/a"), Path("runs/b")]), short_names([Path("x/demo"), Path("y/demo")])
    (['a', 'b'], ['x/demo', 'y/demo'])
    """
    parts = [run.resolve().parts for run in runs]
    for many in range(1, max(map(len, parts)) + 1):
        names = ["/".join(of[-many:]) for of in parts]
        if len(set(names)) == len(names):
            break
    return names


def headline(sides: Sequence[Compared], what: str = "agreements") -> str:
    """What the intervals say about one another, in one sentence; what: the figures, in the plural."""
    apart, all_of = differing(sides), len(common(sides))
    names = " and ".join([", ".join(side.name for side in sides[:-1]), sides[-1].name])
    if not all_of:
        return f"{names} have none of their {what} in common."
    if not apart:
        return f"{names} are not shown to differ in any of {all_of} {what}."
    return f"{names} differ in {len(apart)} of {all_of} {what}: their intervals do not meet."


def differing(sides: Sequence[Compared], spell: Callable[[Estimate], str] = with_interval) -> list[str]:
    """The figures of which two results have intervals that do not meet, each with the value of all."""
    found = []
    for name, estimates in common(sides).items():
        if max(e.low for e in estimates) > min(e.high for e in estimates):
            said = (f"{side.name} {spell(estimate)}" for side, estimate in zip(sides, estimates, strict=True))
            found.append(f"{symbol(name)}: {', '.join(said)}")
    return found


def common(sides: Sequence[Compared]) -> dict[str, list[Estimate]]:
    """The figures that all have."""
    first, *others = [side.figures for side in sides]
    return {name: [first[name], *(one[name] for one in others)] for name in first if all(name in o for o in others)}


def questions(sides: Sequence[Compared]) -> list[tuple[str, list[Question | None]]]:
    """Every question of the verdicts, with each one's answer; None where it was not asked."""
    asked = [{q.question: q for q in side.verdict.questions} for side in sides]
    every = dict.fromkeys(question for answers in asked for question in answers)
    return [(question, [answers.get(question) for answers in asked]) for question in every]


def facts(sides: Sequence[Compared]) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
    """What differs, a value for each; and what all have in common."""
    names = list(dict.fromkeys(name for side in sides for name in side.facts))
    columns = [(name, [side.facts.get(name, NONE) for side in sides]) for name in names]
    different = [(name, values) for name, values in columns if len(set(values)) > 1]
    return different, [(name, values[0]) for name, values in columns if len(set(values)) == 1]
