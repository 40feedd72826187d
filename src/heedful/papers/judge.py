"""The judge of claims: from measured numbers to verdicts, with tests, corrections for multiplicity, and power.

A claim is tested in cases: one for each corpus and model that it speaks of. Every case has two one-sided p-values, that
its value lies on the right side of the threshold and that it lies on the wrong side.

- *In every case* is an intersection–union test: the p-value of the claim is the largest of its cases (SPEC §6.7).
- That *some* case is wrong is tested by the smallest p-value, times the number of cases (Bonferroni).
- Single cases are told apart at 5 % after Holm's correction within the claim.
- Over the claims of the ledger that can be tested, both kinds of p-values are adjusted by Benjamini and Hochberg.
- The seed is the unit. Few seeds are tested by flipping signs, exactly; the interval, which may include the error over
  texts, must agree. Fewer than five seeds, or fewer texts than the claim asks for, decide nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from heedful.errors import DataError
from heedful.metrics.statistics import Estimate, benjamini_hochberg

ClaimVerdict = Literal["holds", "holds in part", "fails", "inconclusive", "not run"]
Kind = Literal["mean", "share", "z", "exact"]
Status = Literal["right", "wrong", "undecided"]

LEVEL = 0.05  # of every test, one-sided
POWER = 0.80  # at which the smallest effect and the seeds needed are given
MIN_SEEDS = 5  # four seeds cannot reach 5 % by flipping signs
MIN_TEXTS = 100
ENUMERATED = 12  # seeds up to which all flips of signs are tried
RESAMPLES = 9999
MANY = 1000  # more seeds than this are no plan


@dataclass(frozen=True)
class Threshold:
    """Where the values of a claim must lie, and how much evidence decides.

    kind: `mean` over seeds, `share` of runs, `z` (standard normal where there is no effect) or `exact` (no sampling).
    negligible: an effect beyond the bound that is smaller than this counts as none, so that a precise value close to
    the bound can fail. texts: least texts of each case; 0 where nothing is measured on texts.
    """

    kind: Kind = "mean"
    lower: float = -math.inf
    upper: float = math.inf
    negligible: float = 0.0
    texts: int = MIN_TEXTS

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise DataError(f"bounds {self.lower:g} and {self.upper:g}: the lower one must lie below the upper one")
        if self.negligible < 0 or (self.negligible > 0 and math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise DataError(f"negligible effect {self.negligible:g}: give 0, or a size with one bound")


@dataclass(frozen=True)
class Case:
    """What was measured of a claim in one corpus and model.

    estimate: with its 95 % interval. seeds: how many trainings (of a share: runs). texts: how many each was measured
    on; None: unknown, or none. per_seed: the value of each seed, if they were kept. text_error: the part of the
    standard error that texts have, which more seeds do not reduce. statistic: what was measured, where a claim has
    several.
    """

    name: str
    estimate: Estimate
    seeds: int
    texts: int | None = None
    per_seed: tuple[float, ...] = ()
    text_error: float = 0.0
    statistic: str = ""


@dataclass(frozen=True)
class CaseJudgement:
    """A case with its p-values: `right` and `wrong` alone, and its status at 5 % after Holm's correction.

    smallest: the smallest distance from the threshold that would have been seen with power 80 %. reason: why it is
    undecided, and what it would take.
    """

    case: Case
    threshold: Threshold
    right: float
    wrong: float
    status: Status
    smallest: float
    reason: str = ""

    @property
    def margin(self) -> float:
        """How far the value lies on the right side of its threshold; below 0 on the wrong side."""
        value = self.case.estimate.value
        return min(value - self.threshold.lower, self.threshold.upper - value)


@dataclass(frozen=True)
class Judgement:
    """A claim's cases, its two p-values, and after `decide` the one adjusted over the ledger and the verdict.

    right: of "every case is right", NaN where a case has too few seeds or texts to be tested. wrong: of "some case is
    wrong", NaN where no case can be tested. adjusted: that of the verdict; of an open claim, that of "right".
    """

    cases: tuple[CaseJudgement, ...]
    right: float
    wrong: float
    verdict: ClaimVerdict = "not run"
    adjusted: float = math.nan
    missing: tuple[str, ...] = ()

    def of(self, status: Status) -> list[CaseJudgement]:
        """The cases of that status."""
        return [each for each in self.cases if each.status == status]

    @property
    def needs(self) -> str:
        """What would decide the claim: the longest list of cases with one reason first, each reason once."""
        reasons: dict[str, list[str]] = {}
        for each in self.of("undecided"):
            reasons.setdefault(each.reason, []).append(each.case.name)
        return "; ".join(f"{reason} ({_listed(names)})" for reason, names in reasons.items())


@dataclass(frozen=True)
class RandomEffects:
    """The mean over cases as draws from a population of cases: DerSimonian–Laird weights, Hartung–Knapp interval.

    spread: the standard deviation of true values between cases.
    """

    mean: Estimate
    spread: float


def judge_claim(parts: Sequence[tuple[Threshold, Sequence[Case]]], missing: Sequence[str] = ()) -> Judgement:
    """Test a claim in all of its cases; `missing` names statistics that were not measured.

    >>> seeds = (0.21, 0.18, 0.25, 0.22, 0.19, 0.24)
    >>> case = Case("sst", Estimate(0.215, 0.187, 0.243, 6), 6, 872, seeds)
    >>> decide([judge_claim([(Threshold(lower=0.05), [case])])])[0].verdict
    'holds'
    """
    tested = [(threshold, case, _p_values(case, threshold)) for threshold, cases in parts for case in cases]
    right, wrong = (holm([p[side] for _, _, p in tested]) for side in (0, 1))
    judged = []
    for (threshold, case, (p_right, p_wrong)), holds, fails in zip(tested, right, wrong, strict=True):
        why_not = _too_little(case, threshold)
        status: Status = "right" if holds <= LEVEL else "wrong" if fails <= LEVEL else "undecided"
        reason = "" if status != "undecided" else why_not or needed(case, threshold)
        smallest = smallest_effect(case, threshold)
        judged.append(CaseJudgement(case, threshold, p_right, p_wrong, status, smallest, reason))
    decisive = [each for each in judged if not _too_little(each.case, each.threshold)]
    every = max((each.right for each in judged), default=math.nan) if len(decisive) == len(judged) else math.nan
    some = min(1.0, len(judged) * min(each.wrong for each in decisive)) if decisive else math.nan
    return Judgement(tuple(judged), every, some, missing=tuple(missing))


def decide(judgements: Sequence[Judgement]) -> list[Judgement]:
    """The verdict of every claim of a ledger, its p-values adjusted over the ledger.

    *holds*: every case is right. *fails*: some case is wrong and none is right. *holds in part*: some case is wrong,
    others are right. *not run*: a statistic is missing. *inconclusive*: none of these.
    """
    right, wrong = (np.full(len(judgements), np.nan) for _ in range(2))
    for i, each in enumerate(judgements):
        if not each.missing:
            right[i], wrong[i] = each.right, each.wrong
    tested = [i for i, each in enumerate(judgements) if not _is_exact(each)]
    right[tested], wrong[tested] = (benjamini_hochberg(values[tested]) for values in (right, wrong))
    return [_decided(each, float(right[i]), float(wrong[i])) for i, each in enumerate(judgements)]


def _decided(judged: Judgement, right: float, wrong: float) -> Judgement:
    verdict: ClaimVerdict
    if not judged.cases or judged.missing:
        verdict, p = "not run", math.nan
    elif right <= LEVEL:
        verdict, p = "holds", right
    elif wrong <= LEVEL:
        verdict, p = ("holds in part" if judged.of("right") else "fails"), wrong
    else:
        verdict, p = "inconclusive", right
    return Judgement(judged.cases, judged.right, judged.wrong, verdict, p, judged.missing)


def _is_exact(judged: Judgement) -> bool:
    return all(each.threshold.kind == "exact" for each in judged.cases)


def _too_little(case: Case, threshold: Threshold) -> str:
    """Why a case decides nothing whatever its p-values; empty where it may."""
    if threshold.kind == "exact":
        return ""
    if math.isnan(case.estimate.value):
        return "a defined value: none was measured"
    if case.seeds < MIN_SEEDS:
        return f"at least {MIN_SEEDS} seeds, now {case.seeds}"
    if threshold.texts and case.texts is None:
        return f"at least {threshold.texts} texts for each case; the number measured was not recorded"
    if case.texts is not None and case.texts < threshold.texts:
        return f"at least {threshold.texts} texts for each case, now {case.texts}"
    if threshold.kind == "mean" and not _error(case) > 0:
        return "the value of each seed: the stored interval has no width"
    return ""


def _p_values(case: Case, threshold: Threshold) -> tuple[float, float]:
    """One-sided p-values that the case lies on the right side, and on the wrong side, of the threshold."""
    if _too_little(case, threshold):
        return 1.0, 1.0
    lower, upper, slack = threshold.lower, threshold.upper, threshold.negligible
    value = case.estimate.value
    if threshold.kind == "exact":
        inside = lower < value < upper
        return float(not inside), float(inside)
    above = [_p_above(case, threshold.kind, lower)] if math.isfinite(lower) else []
    below = [_p_below(case, threshold.kind, upper)] if math.isfinite(upper) else []
    outside = [_p_below(case, threshold.kind, lower + slack)] if math.isfinite(lower) else []
    outside += [_p_above(case, threshold.kind, upper - slack)] if math.isfinite(upper) else []
    return max(above + below, default=1.0), min(1.0, len(outside) * min(outside, default=1.0))


def _p_above(case: Case, kind: Kind, bound: float) -> float:
    """p of "the true value is at most the bound"."""
    if kind == "z":
        return float(special.ndtr(bound - case.estimate.value))
    if kind == "share":
        return float(stats.binomtest(_successes(case), case.seeds, _unit(bound), alternative="greater").pvalue)
    student = float(special.stdtr(case.seeds - 1, (bound - case.estimate.value) / _error(case)))
    return max(student, sign_flip(np.array(case.per_seed) - bound)) if case.per_seed else student


def _p_below(case: Case, kind: Kind, bound: float) -> float:
    if kind == "z":
        return float(special.ndtr(case.estimate.value - bound))
    if kind == "share":
        return float(stats.binomtest(_successes(case), case.seeds, _unit(bound), alternative="less").pvalue)
    student = float(special.stdtr(case.seeds - 1, (case.estimate.value - bound) / _error(case)))
    return max(student, sign_flip(bound - np.array(case.per_seed))) if case.per_seed else student


def sign_flip(differences: ArrayLike) -> float:
    """One-sided test that the mean lies above 0, by flipping signs: exact up to twelve values, NaN left out.

    Exact where differences are symmetric around 0; n values cannot give less than 2⁻ⁿ.

    >>> sign_flip([1.0, 1.0, 1.0, 1.0, 1.0]), sign_flip([1.0, -1.0])
    (0.03125, 0.75)
    """
    x = np.asarray(differences, dtype=np.float64)
    x = x[~np.isnan(x)]
    if len(x) == 0:
        return 1.0
    flipped = _signs(len(x)) @ x
    reached = int((flipped >= x.sum() - 1e-12 * np.abs(x).sum()).sum())
    return reached / len(flipped) if len(x) <= ENUMERATED else (reached + 1) / (len(flipped) + 1)


@cache
def _signs(n: int) -> NDArray[np.float64]:
    """All signs of n values, or as many random ones as are drawn above twelve: (flips, n)."""
    if n <= ENUMERATED:
        return np.where((np.arange(2**n)[:, None] >> np.arange(n)) & 1, -1.0, 1.0)
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(RESAMPLES, n))


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted so that no true hypothesis is rejected in 95 of 100 families (Holm).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order, adjusted, highest = np.argsort(p), [1.0] * len(p), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = highest
    return adjusted


def random_effects(cases: Sequence[Case]) -> RandomEffects | None:
    """The mean over cases, each weighted by its error and by the spread between cases; None below two.

        w_i = 1 / (SE_i² + τ²),   SE² = Σ w_i (x_i − x̄)² / ((k − 1) Σ w_i),   k − 1 degrees of freedom

    >>> equal = [Case(str(i), Estimate(x, x - 0.1, x + 0.1, 5), 5) for i, x in enumerate((0.2, 0.3, 0.4))]
    >>> round(random_effects(equal).mean.value, 3)
    0.3
    """
    known = [case for case in cases if _error(case) > 0]
    if len(known) < 2:
        return None
    x, v = np.array([c.estimate.value for c in known]), np.array([_error(c) ** 2 for c in known])
    w, k = 1 / v, len(known)
    q = float((w * (x - (w * x).sum() / w.sum()) ** 2).sum())
    between = max(0.0, (q - (k - 1)) / (w.sum() - (w**2).sum() / w.sum()))
    w = 1 / (v + between)
    mean = float((w * x).sum() / w.sum())
    error = math.sqrt((w * (x - mean) ** 2).sum() / ((k - 1) * w.sum()))
    half = float(stats.t.ppf(0.975, k - 1)) * error
    return RandomEffects(Estimate(mean, mean - half, mean + half, k), math.sqrt(between))


def smallest_effect(case: Case, threshold: Threshold) -> float:
    """The smallest distance from the threshold that is seen with power 80 % at 5 %; NaN where nothing is sampled."""
    if threshold.kind == "exact" or case.seeds < 2:
        return math.nan
    if threshold.kind == "z":
        return _quantiles()
    if threshold.kind == "share":
        return _smallest_share(case.seeds, _nearest(case, threshold))
    df = case.seeds - 1
    return float((special.stdtrit(df, 1 - LEVEL) + special.stdtrit(df, POWER)) * _error(case))


def needed(case: Case, threshold: Threshold) -> str:
    """How many seeds, or texts, would decide a case with power 80 % if its value and its spread are as observed.

    >>> case = Case("sst", Estimate(0.02, -0.02, 0.06, 10), 10, 872)
    >>> needed(case, Threshold(lower=0.0))
    'about 49 seeds, now 10'
    """
    if threshold.kind == "share":
        return _needed_runs(case, threshold)
    distance, value = 0.0, case.estimate.value
    if threshold.kind == "z":
        distance = abs(value - _nearest(case, threshold))
        runs = case.seeds * (_quantiles() / distance) ** 2 if distance > 0 else math.inf
        return _plan(runs, case.seeds, "runs")
    if math.isfinite(threshold.lower) and math.isfinite(threshold.upper):
        distance = min(abs(value - threshold.lower), abs(value - threshold.upper))
    else:
        sides = [value - threshold.lower, threshold.upper - value]
        gap = next(side for side in sides if math.isfinite(side))
        distance = gap if gap > 0 else threshold.negligible - gap
    goal = (distance / _quantiles()) ** 2  # the variance of the mean that would do
    texts = min(case.text_error**2, _error(case) ** 2)
    of_seed = (_error(case) ** 2 - texts) * case.seeds
    if texts >= goal > 0 and case.texts:
        more = 2 * texts / goal * case.texts  # half of the goal is left to the seeds
        seeds = max(float(case.seeds), 2 * of_seed / goal)
        return f"about {_rounded(more):,} texts for each case, now {case.texts:,}, from about {_rounded(seeds):,} seeds"
    return _plan(of_seed / (goal - texts) if goal > texts else math.inf, case.seeds, "seeds")


def _plan(count: float, now: int, unit: str) -> str:
    if count > MANY:
        return f"more than {MANY:,} {unit}: the value lies at the threshold"
    return f"about {_rounded(max(count, now + 1.0)):,} {unit}, now {now}"


def _rounded(count: float) -> int:
    """Rounded up to two digits, since the spread is no better known.

    >>> _rounded(7.2), _rounded(123.0)
    (8, 130)
    """
    whole = math.ceil(count)
    step = int(10 ** max(0, len(str(whole)) - 2))
    return -(-whole // step) * step


def _needed_runs(case: Case, threshold: Threshold) -> str:
    bound, k = _nearest(case, threshold), _successes(case)
    share = (k + 1) / (case.seeds + 2) if k in (0, case.seeds) else k / case.seeds
    if math.isclose(share, bound):
        return _plan(math.inf, case.seeds, "runs")
    z = float(special.ndtri(1 - LEVEL)), float(special.ndtri(POWER))
    root = z[0] * math.sqrt(bound * (1 - bound)) + z[1] * math.sqrt(share * (1 - share))
    return _plan((root / (share - bound)) ** 2, case.seeds, "runs")


def _smallest_share(runs: int, bound: float) -> float:
    """The distance of the nearest share, above or below the bound, that an exact test sees with power 80 %."""
    k = np.arange(runs + 1)
    many, few = k[stats.binom.sf(k - 1, runs, bound) <= LEVEL], k[stats.binom.cdf(k, runs, bound) <= LEVEL]
    distances = []
    if len(many):
        shares = np.linspace(bound, 1, 201)
        distances += list((shares - bound)[stats.binom.sf(many[0] - 1, runs, shares) >= POWER])
    if len(few):
        shares = np.linspace(bound, 0, 201)
        distances += list((bound - shares)[stats.binom.cdf(few[-1], runs, shares) >= POWER])
    return float(min(distances, default=math.nan))


def _nearest(case: Case, threshold: Threshold) -> float:
    """The bound that the value lies nearer to."""
    bounds = [bound for bound in (threshold.lower, threshold.upper) if math.isfinite(bound)]
    return min(bounds, key=lambda bound: abs(case.estimate.value - bound))


def _quantiles() -> float:
    return float(special.ndtri(1 - LEVEL) + special.ndtri(POWER))


def _error(case: Case) -> float:
    """The standard error behind the interval, as of Student's with one degree of freedom less than seeds.

    Of an interval with more degrees of freedom this makes p-values below 2.5 % larger, never smaller.
    """
    low, high = case.estimate.low, case.estimate.high
    if case.seeds < 2 or math.isnan(low) or math.isnan(high):
        return math.nan
    value = case.estimate.value
    half = max(value - low, high - value)  # a limit may be cut at the end of the statistic's range
    return half / float(special.stdtrit(case.seeds - 1, 0.975))


def _successes(case: Case) -> int:
    return round(case.estimate.value * case.seeds)


def _unit(bound: float) -> float:
    return min(1.0, max(0.0, bound))


def _listed(names: Sequence[str], most: int = 3) -> str:
    """Some names, and how many more there are.

    >>> _listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    rest = len(names) - most
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:most])} and {rest} more"
