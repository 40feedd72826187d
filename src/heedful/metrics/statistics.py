"""Estimates with intervals: bootstrap over texts, seeds and texts together, and tests of a paired difference."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from heedful.config import RESAMPLES
from heedful.errors import DataError

DRAWS_AT_ONCE = 4_000_000  # of a bootstrap
KEPT_DRAWS = 500_000


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, the number of units, and the number of units without a value.

    >>> print(Estimate(0.25, 0.2, 0.31, 872))
    0.250 [0.200, 0.310] (n = 872)
    """

    value: float
    low: float
    high: float
    n: int
    undefined: int = 0

    def __str__(self) -> str:
        left_out = f", {self.undefined} undefined" if self.undefined else ""
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] (n = {self.n}{left_out})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers; NaN becomes `None`."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def bootstrap_mean(
    values: ArrayLike, *, groups: ArrayLike | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Mean and 95 % percentile-bootstrap interval; NaN is left out and counted.

    Examples are resampled: rows of one text have the same value in `groups` and are drawn together (the mean is then a
    ratio of sums). With one unit the interval is the value itself; with none it is NaN.

    >>> bootstrap_mean([0.0, 1.0, float("nan"), 1.0, 0.0]).n
    4
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    unit = np.arange(len(x)) if groups is None else np.asarray(groups).ravel()
    if len(unit) != len(x):
        raise DataError(f"{len(x)} values but {len(unit)} groups")
    defined = ~np.isnan(x)
    undefined = int(np.sum(~defined))
    x, unit = x[defined], unit[defined]
    _, inverse = np.unique(unit, return_inverse=True)
    totals = np.bincount(inverse, weights=x).astype(np.float64)
    sizes = np.bincount(inverse).astype(np.float64)
    return bootstrap_ratio(totals, sizes, undefined=undefined, seed=seed, resamples=resamples)


def bootstrap_ratio(
    totals: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    undefined: int = 0,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Σ totals / Σ sizes over units, with its 95 % percentile-bootstrap interval; units of size 0 are left out.

    >>> bootstrap_ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0])).value
    0.5
    """
    defined = sizes > 0
    undefined += int(np.sum(~defined))
    totals, sizes = totals[defined], sizes[defined]
    if len(totals) == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, undefined)
    value = float(totals.sum() / sizes.sum())
    if len(totals) < 2 or np.ptp(totals / sizes) == 0:
        return Estimate(value, value, value, len(totals), undefined)
    drawn = _drawn_units(len(totals), resamples, seed)
    ratios = np.concatenate([totals[units].sum(axis=1) / sizes[units].sum(axis=1) for units in drawn])
    low, high = np.quantile(ratios, (0.025, 0.975)).tolist()
    return Estimate(value, low, high, len(totals), undefined)


def _drawn_units(n: int, resamples: int, seed: int) -> Iterable[NDArray[np.int64]]:
    """The units of each resample of a bootstrap, in batches; few of them are kept for other statistics of the same n.

    >>> [units.shape for units in _drawn_units(40, 2000, seed=0)]
    [(2000, 40)]
    """
    if n * resamples <= KEPT_DRAWS:
        return (_kept_draws(n, resamples, seed),)
    rng, batch = np.random.default_rng(seed), max(1, DRAWS_AT_ONCE // n)
    return (rng.integers(0, n, (min(batch, resamples - k), n)) for k in range(0, resamples, batch))


@functools.lru_cache(8)
def _kept_draws(n: int, resamples: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, n, (resamples, n))


def mean_over_seeds(values: ArrayLike, within: tuple[float, float] | None = None) -> Estimate:
    """Mean over seeds with Student's 95 % interval; the unit of every claim about training.

    within: the range of the statistic. The interval then ends there. Values at both ends and nowhere else have the
    exact interval of a share. Where all seeds agree, a value that has not been seen may still occur with a probability
    of up to 1 − 0.025^(1/n), and lie at either end; so the interval always has a width.

    Below two seeds there is no interval: low and high are NaN.

    >>> print(mean_over_seeds([0.2, 0.3, 0.4]))
    0.300 [0.052, 0.548] (n = 3)
    >>> print(mean_over_seeds([1.0, 1.0, 1.0, 1.0, 1.0], within=(-1.0, 1.0)))
    1.000 [-0.044, 1.000] (n = 5)
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    undefined = int(np.isnan(x).sum())
    x = x[~np.isnan(x)]
    if within is not None and len(x) and not within[0] - 1e-9 <= x.min() <= x.max() <= within[1] + 1e-9:
        raise DataError(f"values from {x.min():g} to {x.max():g} do not lie within {within[0]:g} and {within[1]:g}")
    if len(x) == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, undefined)
    mean = float(x.mean())
    if len(x) < 2:
        return Estimate(mean, math.nan, math.nan, 1, undefined)
    half = float(stats.sem(x) * stats.t.ppf(0.975, len(x) - 1))
    low, high = mean - half, mean + half
    if within is not None:
        start, end = within
        if np.ptp(x) == 0:
            unseen = 1 - 0.025 ** (1 / len(x))
            low, high = mean - unseen * (mean - start), mean + unseen * (end - mean)
        elif set(x.tolist()) == {start, end}:
            share = stats.binomtest(int((x == end).sum()), len(x)).proportion_ci(method="exact")
            low, high = start + (end - start) * float(share.low), start + (end - start) * float(share.high)
        low, high = max(start, low), min(end, high)
    return Estimate(mean, low, high, len(x), undefined)


@dataclass(frozen=True, eq=False)
class SeedsAndTexts:
    """What several trainings measured on the same texts, as sums and counts of each text.

    totals, sizes: (quantities, trainings, texts). seeds: the seeds that each training involves; a comparison of two
    seeds involves both.
    """

    totals: NDArray[np.float64]
    sizes: NDArray[np.float64]
    seeds: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if self.totals.shape != self.sizes.shape or self.totals.ndim != 3 or self.totals.shape[1] != len(self.seeds):
            raise DataError(
                f"totals {self.totals.shape} and sizes {self.sizes.shape} of {len(self.seeds)} trainings; "
                "both must be (quantities, trainings, texts)"
            )

    @classmethod
    def of(
        cls, quantities: Sequence[ArrayLike], seeds: Sequence[tuple[int, ...]], groups: ArrayLike | None = None
    ) -> "SeedsAndTexts":
        """From rows: each quantity is (trainings, rows); groups: the text of each row. NaN is left out.

        >>> SeedsAndTexts.of([[[0.0, 1.0, 1.0]]], [(0,)], groups=[7, 7, 9]).totals
        array([[[1., 1.]]])
        """
        table = np.asarray(quantities, dtype=np.float64)
        text = np.arange(table.shape[2]) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        n = int(text.max()) + 1 if len(text) else 0
        rows = table.reshape(-1, table.shape[2])
        defined = ~np.isnan(rows)
        totals = [np.bincount(text[d], weights=row[d], minlength=n) for row, d in zip(rows, defined, strict=True)]
        sizes = [np.bincount(text[d], minlength=n) for d in defined]
        shape = (*table.shape[:2], n)
        return cls(np.reshape(totals, shape).astype(float), np.reshape(sizes, shape).astype(float), tuple(seeds))

    def means(self) -> NDArray[np.float64]:
        """The mean of each quantity over all trainings and texts."""
        return _ratio(self.totals.sum(axis=(1, 2)), self.sizes.sum(axis=(1, 2)))


@dataclass(frozen=True)
class NestedEstimate:
    """One value with two intervals: over texts alone, and over seeds and texts (training in general).

    extremes: the lowest and the highest value of a single training.
    """

    texts: Estimate
    seeds: Estimate
    extremes: tuple[float, float]

    @property
    def models(self) -> Estimate:
        """With the interval of these models: over texts, and wide enough for the value of each of them.

        >>> print(nested_normal([1.0, 3.0], [0.5, 0.5], 1000).models)
        2.000 [1.000, 3.000] (n = 1000)
        """
        if math.isnan(self.texts.low):
            return self.texts
        low, high = self.extremes
        return replace(self.texts, low=min(self.texts.low, low), high=max(self.texts.high, high))


def nested_share(sample: SeedsAndTexts, *, seed: int = 0, resamples: int = RESAMPLES) -> NestedEstimate:
    """The mean of the first quantity, values from 0 to 1; see `nested_estimate`. Limits are Wilson's.

    >>> nothing = nested_share(SeedsAndTexts.of([np.zeros((5, 30))], [(s,) for s in range(5)]))
    >>> nothing.texts.low, round(nothing.texts.high, 3)
    (0.0, 0.122)
    """
    return nested_estimate(sample, lambda means: means[0], share=True, seed=seed, resamples=resamples)


def nested_estimate(
    sample: SeedsAndTexts,
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    share: bool = False,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> NestedEstimate:
    """A function of the quantities' means, with 95 % intervals over texts, and over seeds and texts.

        SE² = jackknife variance over seeds + bootstrap variance over texts of the mean over trainings

    Dropping a seed drops every training that involves it, so that comparisons of two seeds, which share models, are not
    counted as independent. Student's quantile with Satterthwaite's degrees of freedom. The first quantity is a share;
    near 0 and 1 the limits are widened to Wilson's, so that 0 of n has an upper limit above 0. With too few seeds for a
    jackknife the interval over seeds is NaN.

    statistic: from means (quantities, resamples) to values (resamples,) in [−1, 1]; share: it is the first mean itself.

    >>> rng = np.random.default_rng(0)
    >>> sample = SeedsAndTexts.of([rng.random((5, 40)), rng.random((5, 40))], [(s,) for s in range(5)])
    >>> apart = nested_estimate(sample, lambda means: means[0] - means[1])
    >>> apart.seeds.low < apart.texts.low < apart.texts.value < apart.texts.high < apart.seeds.high
    True
    """
    n = int((sample.sizes[0].sum(axis=0) > 0).sum())
    if n == 0:
        nothing = Estimate(math.nan, math.nan, math.nan, 0)
        return NestedEstimate(nothing, nothing, (math.nan, math.nan))
    drawn = text_draws(sample.totals.shape[2], resamples, seed)
    totals, sizes = sample.totals.sum(axis=1), sample.sizes.sum(axis=1)
    value = float(statistic(sample.means()[:, None])[0])
    first = float(sample.means()[0])
    resampled = _ratio(totals @ drawn, sizes @ drawn)
    over_texts = np.array([np.nanvar(statistic(resampled)), np.nanvar(resampled[0])])
    left_out = [_without(sample, k) for k in sorted({k for involved in sample.seeds for k in involved})]
    over_seeds = np.array([_jackknife([float(statistic(m[:, None])[0]) for m in left_out]), 0.0])
    over_seeds[1] = _jackknife([float(m[0]) for m in left_out])

    def estimate(variance: NDArray[np.float64], df: float) -> Estimate:
        if np.isnan(variance).any() or df < 1:
            return Estimate(value, math.nan, math.nan, n)
        t = float(stats.t.ppf(0.975, df))
        half, half_first = t * np.sqrt(variance)
        low, high = _wilson(first, float(variance[1]), t, n)
        if share:
            return Estimate(value, low, high, n)
        below = half + max(0.0, first - low - half_first)
        above = half + max(0.0, high - first - half_first)
        return Estimate(value, float(max(-1.0, value - below)), float(min(1.0, value + above)), n)

    both = over_texts + over_seeds
    parts = over_seeds[0] ** 2 / max(1, len(left_out) - 1) + over_texts[0] ** 2 / max(1, n - 1)
    df = both[0] ** 2 / parts if parts > 0 else n - 1.0
    alone = statistic(_ratio(sample.totals.sum(axis=2), sample.sizes.sum(axis=2)))
    return NestedEstimate(estimate(over_texts, n - 1.0), estimate(both, df), _extremes(alone))


def nested_tau(sample: SeedsAndTexts) -> NestedEstimate:
    """The mean of the first quantity, values from −1 to 1, as of the share (1 + τ)/2; see `nested_estimate`.

    >>> sample = SeedsAndTexts.of([[[0.2, 0.4, 0.6], [0.0, 0.2, 0.4]]], [(0,), (1,)])
    >>> round(nested_tau(sample).texts.value, 6)
    0.3
    """
    shares = SeedsAndTexts((sample.totals + sample.sizes) / 2, sample.sizes, sample.seeds)
    share = nested_share(shares)

    def back(estimate: Estimate) -> Estimate:
        return Estimate(2 * estimate.value - 1, 2 * estimate.low - 1, 2 * estimate.high - 1, estimate.n)

    low, high = share.extremes
    return NestedEstimate(back(share.texts), back(share.seeds), (2 * low - 1, 2 * high - 1))


def _extremes(values: NDArray[np.float64]) -> tuple[float, float]:
    """The lowest and the highest value; NaN is left out."""
    return float(np.fmin.reduce(values)), float(np.fmax.reduce(values))


def nested_normal(values: Sequence[float], errors: Sequence[float], n: int) -> NestedEstimate:
    """The mean of one value for each seed, with intervals over n texts, and over seeds and texts.

    errors: each value's standard error over texts. The texts are the same for all seeds, so that of the mean is at most
    their mean.

    >>> print(nested_normal([1.0, 3.0], [0.5, 0.5], 1000).texts)
    2.000 [1.019, 2.981] (n = 1000)
    """
    x, error = np.asarray(values, dtype=np.float64), float(np.mean(errors))
    mean, texts = float(x.mean()), error**2
    seeds = float(x.var(ddof=1) / len(x)) if len(x) > 1 else math.nan
    parts = seeds**2 / max(1, len(x) - 1) + texts**2 / max(1, n - 1)
    df = (seeds + texts) ** 2 / parts if parts > 0 else n - 1.0

    def estimate(variance: float, df: float) -> Estimate:
        half = float(stats.t.ppf(0.975, max(1.0, df)) * math.sqrt(variance)) if not math.isnan(variance) else math.nan
        return Estimate(mean, mean - half, mean + half, n)

    return NestedEstimate(estimate(texts, n - 1.0), estimate(seeds + texts, df), _extremes(x))


def _ratio(totals: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    ratio = np.full(totals.shape, np.nan)
    np.divide(totals, sizes, out=ratio, where=sizes > 0)
    return ratio


@functools.lru_cache(maxsize=2)
def text_draws(n: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """How often each text is drawn: (texts, resamples); cached, since all agreements of a study have the same texts."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples).T.astype(np.float64)


def _without(sample: SeedsAndTexts, seed: int) -> NDArray[np.float64]:
    kept = [i for i, involved in enumerate(sample.seeds) if seed not in involved]
    return _ratio(sample.totals[:, kept].sum(axis=(1, 2)), sample.sizes[:, kept].sum(axis=(1, 2)))


def _jackknife(values: Sequence[float]) -> float:
    """The jackknife variance of a statistic from its values without one seed each; NaN below two seeds."""
    return float((len(values) - 1) * np.var(values)) if len(values) > 1 else math.nan


def _wilson(share: float, variance: float, quantile: float, n: int) -> tuple[float, float]:
    """Wilson's limits for a share, with as many texts as would give this variance; at 0 and 1, n."""
    effective = share * (1 - share) / variance if variance > 0 and 0 < share < 1 else float(n)
    z2 = quantile**2
    centre = (share + z2 / (2 * effective)) / (1 + z2 / effective)
    half = quantile / (1 + z2 / effective) * math.sqrt(share * (1 - share) / effective + z2 / (4 * effective**2))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def bootstrap_difference(
    a: ArrayLike, b: ArrayLike, *, groups: ArrayLike | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Mean of a − b over pairs with its 95 % bootstrap interval; a pair with a NaN is left out and counted.

    >>> bootstrap_difference([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    Estimate(value=1.0, low=1.0, high=1.0, n=3, undefined=0)
    """
    x, y = _pairs(a, b)
    return bootstrap_mean(x - y, groups=groups, seed=seed, resamples=resamples)


@dataclass(frozen=True)
class Comparison:
    """Result of a paired, two-sided test: the mean of a − b and its p-value; `p` is NaN if there are no pairs."""

    difference: float
    p: float
    n: int
    undefined: int
    test: str

    def __str__(self) -> str:
        return f"{self.difference:+.3f} (p = {self.p:.2g}, {self.test}, n = {self.n})"


def paired_permutation(a: ArrayLike, b: ArrayLike, *, seed: int = 0, resamples: int = 9999) -> Comparison:
    """Is the mean of a − b different from 0? By exchanging a and b within pairs.

    Exact if there are few pairs (2ⁿ ≤ `resamples`), so five seeds can give p = 0.0625 at best.

    >>> print(paired_permutation([0.9, 0.8, 0.7, 0.9, 0.8], [0.1, 0.2, 0.2, 0.3, 0.1]))
    +0.640 (p = 0.062, permutation, n = 5)
    """
    x, y = _pairs(a, b)
    defined = ~(np.isnan(x) | np.isnan(y))
    x, y, undefined = x[defined], y[defined], int(np.sum(~defined))
    if len(x) == 0:
        return Comparison(math.nan, math.nan, 0, undefined, "permutation")
    if len(x) == 1 or not np.any(x - y):  # nothing to exchange, or no exchange that changes anything
        return Comparison(float(np.mean(x - y)), 1.0, len(x), undefined, "permutation")
    result = stats.permutation_test(
        (x, y),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, 4_000_000 // len(x)),
        rng=np.random.default_rng(seed),
    )
    return Comparison(float(np.mean(x - y)), float(result.pvalue), len(x), undefined, "permutation")


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """p-values adjusted for multiple tests: of those below q, at most a share q is expected to be false.

    NaN, of tests without data, stays NaN and does not count.

    >>> benjamini_hochberg([0.01, 0.04, float("nan"), 0.5])
    array([0.03, 0.06,  nan, 0.5 ])
    """
    values = np.asarray(p, dtype=np.float64)
    defined = ~np.isnan(values)
    if np.any((values[defined] < 0) | (values[defined] > 1)):
        raise DataError("p-values lie in [0, 1]")
    adjusted = np.full(values.shape, np.nan)
    if defined.any():
        adjusted[defined] = stats.false_discovery_control(values[defined])
    return adjusted


def _pairs(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (a, b))
    if len(x) != len(y):
        raise DataError(f"{len(x)} values against {len(y)}; a paired comparison needs as many of each")
    return x, y
