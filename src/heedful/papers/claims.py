"""Claims of the papers, each judged by stored numbers: holds, fails, inconclusive or not run."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from heedful.metrics.statistics import Estimate
from heedful.papers.results import Result

ClaimVerdict = Literal["holds", "fails", "inconclusive", "not run"]


@dataclass(frozen=True)
class Condition:
    """A number of an experiment whose whole interval has to lie between the bounds."""

    experiment: str
    value: str
    lower: float = -math.inf
    upper: float = math.inf

    def verdict(self, estimate: Estimate) -> ClaimVerdict:
        """Holds where the interval lies inside, fails where it lies outside, inconclusive where it does neither.

        >>> Condition("table2", "a", lower=0.0).verdict(Estimate(0.2, 0.1, 0.3, 5))
        'holds'
        >>> Condition("table2", "a", lower=0.0).verdict(Estimate(0.2, -0.1, 0.5, 5))
        'inconclusive'
        """
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


def judge(claims: Iterable[Claim], results: Mapping[tuple[str, str], Result], budget: str) -> list[LedgerEntry]:
    """Every claim against the stored results, by (paper, experiment), of one budget."""
    entries = []
    for claim in claims:
        measured: list[Estimate | None] = []
        verdicts: list[ClaimVerdict] = []
        for condition in claim.conditions:
            estimate = _look_up(results.get((claim.paper, condition.experiment)), condition.value)
            measured.append(estimate)
            verdicts.append("not run" if estimate is None else condition.verdict(estimate))
        entries.append(LedgerEntry(claim, budget, tuple(measured), tuple(verdicts)))
    return entries


def _look_up(result: Result | None, name: str) -> Estimate | None:
    """The number of that name; an experiment that ran but could not measure it leaves the claim not run."""
    if result is None:
        return None
    return next((value.estimate for value in result.finding.values if value.name == name), None)
