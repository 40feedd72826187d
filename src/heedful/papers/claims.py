"""Claims of the papers, each judged by stored numbers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from heedful.metrics.statistics import Estimate
from heedful.papers.published import csv_rows

if TYPE_CHECKING:
    from heedful.papers.experiment import Result

ClaimVerdict = Literal["holds", "fails", "inconclusive", "not run"]


@dataclass(frozen=True)
class Condition:
    """A number of an experiment whose whole interval has to lie between the bounds."""

    experiment: str
    value: str
    lower: float = -math.inf
    upper: float = math.inf

    def verdict(self, estimate: Estimate | None) -> ClaimVerdict:
        """Holds where the interval lies inside, fails where it lies outside, inconclusive where it does neither.

        >>> Condition("table2", "a", lower=0.0).verdict(Estimate(0.2, 0.1, 0.3, 5))
        'holds'
        >>> Condition("table2", "a", lower=0.0).verdict(Estimate(0.2, -0.1, 0.5, 5))
        'inconclusive'
        """
        if estimate is None:
            return "not run"
        if any(math.isnan(bound) for bound in (estimate.value, estimate.low, estimate.high)):
            return "inconclusive"
        if self.lower < estimate.low and estimate.high < self.upper:
            return "holds"
        if estimate.high < self.lower or estimate.low > self.upper:
            return "fails"
        return "inconclusive"

    def __str__(self) -> str:
        if self.lower == -math.inf:
            return f"{self.value} < {self.upper:g}"
        above = f"{self.value} > {self.lower:g}"
        return above if self.upper == math.inf else f"{above} and < {self.upper:g}"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, in our words, and the conditions under which it holds."""

    id: str
    paper: str
    sentence: str
    conditions: tuple[Condition, ...]


def paper_claims(paper: str) -> list[Claim]:
    """The claims of a paper; in its file a line without an id has one more condition of the claim above.

    >>> [str(condition) for condition in paper_claims("snell2021")[16].conditions]
    ['rise > 0', 'fall > 0']
    """
    claims: list[Claim] = []
    for line in csv_rows(f"{paper}_claims"):
        if line["id"]:
            claims.append(Claim(line["id"], paper, line["sentence"], ()))
        bounds = float(line["lower"] or "-inf"), float(line["upper"] or "inf")
        condition = Condition(line["experiment"], line["value"], *bounds)
        claims[-1] = replace(claims[-1], conditions=(*claims[-1].conditions, condition))
    return claims


@dataclass(frozen=True)
class LedgerEntry:
    """A claim with what was measured: one line for each of its conditions."""

    claim: Claim
    budget: str
    measured: tuple[Estimate | None, ...]
    verdicts: tuple[ClaimVerdict, ...]

    @property
    def verdict(self) -> ClaimVerdict:
        """Holds if every condition does, fails if one does, not run if one was not measured."""
        for word in ("not run", "fails", "inconclusive"):
            if word in self.verdicts:
                return word
        return "holds"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and for pages."""
        lines = [
            {
                "experiment": condition.experiment,
                "expected": str(condition),
                "measured": None if estimate is None else estimate.to_dict(),
                "verdict": verdict,
            }
            for condition, estimate, verdict in zip(self.claim.conditions, self.measured, self.verdicts, strict=True)
        ]
        return {
            "id": self.claim.id,
            "paper": self.claim.paper,
            "sentence": self.claim.sentence,
            "budget": self.budget,
            "statistics": lines,
            "verdict": self.verdict,
        }


def judge(paper: str, results: "Iterable[Result]", budget: str) -> list[LedgerEntry]:
    """Every claim of a paper against its results; a number that an experiment could not measure was not run."""
    numbers = {(result.experiment, value.name): value.estimate for result in results for value in result.finding.values}
    entries = []
    for claim in paper_claims(paper):
        measured = tuple(numbers.get((condition.experiment, condition.value)) for condition in claim.conditions)
        verdicts = tuple(c.verdict(estimate) for c, estimate in zip(claim.conditions, measured, strict=True))
        entries.append(LedgerEntry(claim, budget, measured, verdicts))
    return entries
