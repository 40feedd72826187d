"""What the papers print, as data: the numbers of their tables, and their claims, each judged by stored numbers."""

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from heedful.metrics.statistics import Estimate

if TYPE_CHECKING:
    from heedful.papers.experiment import Result

ClaimVerdict = Literal["holds", "fails", "inconclusive", "not run"]
_ROWS = {
    "imdb": "IMDB",
    "sst": "SST",
    "20news-sport": "20 NG",
    "ag-news": "AG News",
    "amazon": "Amzn",
    "multi30k": "Multi30k",
    "multi30k:de-en": "Multi30k",
    "multi30k:en-de": "Multi30k",
}


def published_agreements(corpus_name: str) -> dict[str, float]:
    """Agreements, ξ and Â that snell2021 prints for a corpus, in percent; empty where it is none of the paper's.

    A and ξ are Table 5's (ξ by accuracy), A(α, α^fr) is Table 10's, A(β^uf, β^log) Table 11's. Multi30k stands beside
    either direction: the paper calls it En–De, its released code trains De→En.

    >>> published_agreements("sst")["A(alpha,beta)"], published_agreements("sst")["A(beta_uf,beta_log)"]
    (25.33, 46.0)
    >>> published_agreements("imdb-reviews")
    {}
    """
    found = {name: value for name, (value, _) in _row("5", corpus_name).items()}
    for table, name, scale in (("10", "A(alpha,alpha_fr)", 1.0), ("11", "A(beta_uf,beta_log)", 100.0)):
        if name in _row(table, corpus_name):
            found[name] = round(_row(table, corpus_name)[name][0] * scale, 2)  # Table 11 prints shares
    return found


def published_stars(corpus_name: str) -> frozenset[str]:
    """The ξ that snell2021 marks `*`: an agreement that another seed's attention never exceeded.

    >>> sorted(published_stars("sst"))
    ['xi(beta_uf,beta_px)']
    """
    return frozenset(name for name, (_, star) in _row("5", corpus_name).items() if star)


def published_bleu(corpus_name: str) -> dict[str, float]:
    """ξ by BLEU that snell2021 prints for a parallel corpus (Table 6); empty where it is none of the paper's.

    >>> published_bleu("multi30k:de-en")["xi(alpha,beta)"], published_bleu("sst")
    (16.41, {})
    """
    return {name: value for name, (value, _) in _row("6", corpus_name).items() if name.startswith("xi")}


def _row(table: str, corpus_name: str) -> dict[str, tuple[float, bool]]:
    printed = published_table("snell2021", table)
    return {name: number for (row, name), number in printed.items() if row == _ROWS.get(corpus_name)}


@cache
def published_table(paper: str, table: str) -> dict[tuple[str, str], tuple[float, bool]]:
    """A printed table by (row, quantity): the value, and whether it is marked `*`.

    >>> published_table("snell2021", "2")["SST", "A(alpha,beta)"]
    (25.0, False)
    """
    lines = published_lines(paper, table)
    return {(line["row"], line["quantity"]): (float(line["value"]), line["never_reached"] == "1") for line in lines}


@cache
def published_means(table: str) -> dict[tuple[str, str, str], tuple[float, float | None]]:
    """A table of meister2021 by (dataset, model, quantity): the mean, and its standard deviation where one is printed.

    >>> published_means("1")["SST", "BiLSTM softmax", "entropy(g_h(x))"]
    (0.93, 0.05)
    """
    return {
        (line["dataset"], line["model"], line["quantity"]): (
            float(line["mean"]),
            float(line["std"]) if line["std"] else None,
        )
        for line in published_lines("meister2021", table)
    }


def published_lines(paper: str, table: str) -> list[dict[str, str]]:
    """The lines of a printed table by the heads of its columns.

    >>> published_lines("sunlu2020", "1")[0]["quantity"]
    'average length'
    """
    return [line for line in _read(paper) if line["table"] == table]


@cache
def _read(name: str) -> list[dict[str, str]]:
    text = (files("heedful.papers") / "published" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


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
    for line in _read(f"{paper}_claims"):
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
