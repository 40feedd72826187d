"""Claims of the papers, each with its thresholds, judged by stored numbers: the ledger.

The thresholds are part of an experiment's settings: they are stored with its result, and a result made under other
thresholds is out of date.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from heedful.papers.findings import Value
from heedful.papers.judge import (
    MIN_SEEDS,
    MIN_TEXTS,
    Case,
    CaseJudgement,
    ClaimVerdict,
    Judgement,
    RandomEffects,
    Threshold,
    decide,
    judge_claim,
    random_effects,
)
from heedful.papers.published import csv_rows
from heedful.storage.atomic_files import without_nan

if TYPE_CHECKING:
    from heedful.papers.experiment import Result

_SUMMARIES = ("lowest", "highest", "mean")  # values that are no cases of their own


@dataclass(frozen=True)
class Condition:
    """A statistic of an experiment and its threshold. A `*` in `value` stands for a corpus, model or the like.

    decides: whether the verdict rests on it; what does not is shown beside it. reason: why the threshold lies there.
    """

    experiment: str
    value: str
    threshold: Threshold
    decides: bool = True
    reason: str = ""

    def case_name(self, name: str) -> str | None:
        """The case that a value of that name is: what the stars stand for; None where it is another statistic.

        >>> Condition("table5", "JSD, frozen, *, *", Threshold(lower=0.5)).case_name("JSD, frozen, sst, BiLSTM")
        'sst, BiLSTM'
        """
        pattern = re.escape(self.value).replace(r"\*", "([^,]+)")
        match = re.fullmatch(pattern, name)
        if match is None or any(part in _SUMMARIES for part in match.groups()):
            return None
        return ", ".join(match.groups())

    def cases(self, values: Iterable[Value]) -> list[Case]:
        """The cases among the values of an experiment."""
        named = ((self.case_name(value.name), value) for value in values)
        return [value.case(name or self.value, self.value) for name, value in named if name is not None]

    def __str__(self) -> str:
        lower, upper = self.threshold.lower, self.threshold.upper
        if lower == -math.inf:
            bounds = f"< {upper:g}"
        else:
            bounds = f"> {lower:g}" + ("" if upper == math.inf else f" and < {upper:g}")
        small = self.threshold.negligible
        return f"{self.value} {bounds}" + (f" (less than {small:g} beyond it counts as none)" if small else "")

    @property
    def plan(self) -> str:
        """The threshold with the least texts and seeds: what was fixed before the experiment."""
        kind, texts = self.threshold.kind, self.threshold.texts
        if kind == "exact":
            return f"{self}; exact"
        unit = "seeds" if kind == "mean" else "runs"
        return f"{self}; at least {MIN_SEEDS} {unit}" + (f" and {texts} texts" if texts else "")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, in our words, and the conditions under which it holds."""

    id: str
    paper: str
    sentence: str
    conditions: tuple[Condition, ...]


def paper_claims(paper: str) -> list[Claim]:
    """The claims of a paper; in its file a line without an id has one more condition of the claim above.

    >>> [str(condition) for condition in paper_claims("snell2021")[13].conditions]
    ['share learned, permute < 0.5', 'share learned, copy-vocab > 0.8']
    """
    claims: list[Claim] = []
    for line in csv_rows(f"{paper}_claims"):
        if line["id"]:
            claims.append(Claim(line["id"], paper, line["sentence"], ()))
        claims[-1] = replace(claims[-1], conditions=(*claims[-1].conditions, _condition(line)))
    return claims


def _condition(line: Mapping[str, str]) -> Condition:
    kind: Any = line["kind"] or "mean"
    threshold = Threshold(
        kind,
        lower=float(line["lower"] or "-inf"),
        upper=float(line["upper"] or "inf"),
        negligible=float(line["negligible"] or 0),
        texts=int(line["texts"] or (MIN_TEXTS if kind == "mean" else 0)),
    )
    return Condition(line["experiment"], line["value"], threshold, line["role"] != "beside", line["reason"])


def thresholds(paper: str, experiment: str) -> tuple[str, ...]:
    """What is fixed before an experiment: the claims that it decides, with thresholds, texts and seeds.

    >>> thresholds("snell2021", "a9")
    ('S18: between seeds: sms less, * < 0; at least 5 seeds and 100 texts',)
    """
    return tuple(
        f"{claim.id}: {condition.plan}"
        for claim in paper_claims(paper)
        for condition in claim.conditions
        if condition.experiment == experiment and condition.decides
    )


@dataclass(frozen=True)
class LedgerEntry:
    """A claim with what was measured of it.

    beside: cases of the conditions that do not decide. earlier: experiments whose results were made with earlier,
    mostly smaller, settings.
    """

    claim: Claim
    budget: str
    judgement: Judgement
    beside: tuple[CaseJudgement, ...] = ()
    earlier: tuple[str, ...] = ()

    @property
    def verdict(self) -> ClaimVerdict:
        """`holds`, `holds in part`, `fails`, `inconclusive` or `not run`."""
        return self.judgement.verdict

    @property
    def weakest(self) -> CaseJudgement | None:
        """The case that decides: the one least surely on the right side; where the claim fails, most surely wrong."""
        if not self.judgement.cases:
            return None
        if self.verdict in ("fails", "holds in part"):
            return min(self.judgement.cases, key=lambda each: (each.wrong, each.margin))
        return max(self.judgement.cases, key=lambda each: (each.right, -each.margin))

    @property
    def seeds(self) -> int | None:
        """Seeds, or runs, of the case with the fewest; None where nothing is sampled."""
        counts = [each.case.seeds for each in self.judgement.cases if each.threshold.kind != "exact"]
        return min(counts, default=None)

    @property
    def texts(self) -> int | None:
        """Texts of the case with the fewest, where they are known."""
        return min((each.case.texts for each in self.judgement.cases if each.case.texts is not None), default=None)

    @property
    def smallest_effect(self) -> float:
        """The smallest distance from its threshold that the weakest case would have shown with power 80 %."""
        return self.weakest.smallest if self.weakest else math.nan

    @property
    def explanation(self) -> str:
        """The verdict in words: how many cases, which of them, and what it would take."""
        cases, words = self.judgement.cases, []
        if self.verdict == "not run":
            names = ", ".join(self.judgement.missing) or "nothing of it"
            words.append(f"not measured yet: {names}")
        if len(cases) > 1:
            words.append(f"{len(self.judgement.of('right'))} of {len(cases)} cases hold")
        if self.verdict in ("holds in part", "fails") and len(cases) > 1:
            words.append(f"shown wrong: {_names(self.judgement.of('wrong'))}")
        if self.verdict == "holds in part":
            words.append(f"hold: {_names(self.judgement.of('right'))}")
        if self.verdict == "inconclusive" and self.judgement.needs:
            words.append(f"it would take {self.judgement.needs}")
        elif self.verdict == "inconclusive":
            words.append("every case holds alone, but not after the correction for the number of claims")
        if self.earlier:
            words.append(f"measured with earlier settings ({', '.join(self.earlier)})")
        return "; ".join(words)

    def pooled(self, condition: Condition) -> RandomEffects | None:
        """The random-effects mean over the cases of a condition; None below two."""
        if condition.threshold.kind != "mean":
            return None
        return random_effects([each.case for each in self.cases_of(condition)])

    def cases_of(self, condition: Condition) -> list[CaseJudgement]:
        """The judged cases of one condition."""
        return [e for e in (*self.judgement.cases, *self.beside) if e.case.statistic == condition.value]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and for pages."""
        weakest = self.weakest
        entry = {
            "id": self.claim.id,
            "paper": self.claim.paper,
            "sentence": self.claim.sentence,
            "budget": self.budget,
            "verdict": self.verdict,
            "explanation": self.explanation,
            "p": self.judgement.right,
            "p_wrong": self.judgement.wrong,
            "adjusted_p": self.judgement.adjusted,
            "seeds": self.seeds,
            "texts": self.texts,
            "effect": asdict(weakest.case.estimate) if weakest else None,
            "effect_case": f"{weakest.case.statistic}: {weakest.case.name}" if weakest else None,
            "smallest_effect": self.smallest_effect,
            "earlier_settings": list(self.earlier),
            "conditions": [self._condition(condition) for condition in self.claim.conditions],
        }
        plain: dict[str, Any] = without_nan(entry)
        return plain

    def _condition(self, condition: Condition) -> dict[str, Any]:
        pooled = self.pooled(condition)
        return {
            "experiment": condition.experiment,
            "expected": str(condition),
            "plan": condition.plan,
            "reason": condition.reason,
            "decides": condition.decides,
            "random_effects_mean": asdict(pooled.mean) if pooled else None,
            "spread_between_cases": pooled.spread if pooled else None,
            "cases": [
                {
                    "case": each.case.name,
                    "measured": asdict(each.case.estimate),
                    "seeds": each.case.seeds,
                    "texts": each.case.texts,
                    "status": each.status,
                    "p": each.right,
                    "p_wrong": each.wrong,
                    "smallest_effect": each.smallest,
                    "needs": each.reason,
                }
                for each in self.cases_of(condition)
            ],
        }


def _names(cases: Sequence[CaseJudgement]) -> str:
    several = len({each.case.statistic for each in cases}) > 1
    return ", ".join(f"{each.case.statistic}" if several else each.case.name for each in cases)


def judge_paper(paper: str, results: "Iterable[Result]", budget: str, earlier: Sequence[str] = ()) -> list[LedgerEntry]:
    """Every claim of a paper against its results, before `settle`; earlier: experiments with earlier settings."""
    values = {result.experiment: result.finding.values for result in results}
    entries = []
    for claim in paper_claims(paper):
        seen = [(c, c.cases(values.get(c.experiment, ()))) for c in claim.conditions]
        deciding = [(condition.threshold, cases) for condition, cases in seen if condition.decides and cases]
        missing = [f"{c.value} ({c.experiment})" for c, cases in seen if c.decides and not cases]
        others = [(condition.threshold, cases) for condition, cases in seen if not condition.decides]
        beside = judge_claim(others).cases
        old = [name for name in earlier if name in {c.experiment for c, cases in seen if cases}]
        entries.append(LedgerEntry(claim, budget, judge_claim(deciding, missing), beside, tuple(old)))
    return entries


def settle(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """The ledger with its verdicts: p-values are adjusted over all of its claims."""
    judgements = decide([entry.judgement for entry in entries])
    return [replace(entry, judgement=judged) for entry, judged in zip(entries, judgements, strict=True)]
