"""Estimates with intervals: bootstrap, Student's t over seeds, and tests of a paired difference."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from heedful.config import RESAMPLES
from heedful.errors import DataError


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
    interval = stats.bootstrap(
        (totals, sizes),
        lambda part, whole, axis: part.sum(axis=axis) / whole.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, 4_000_000 // len(totals)),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high), len(totals), undefined)


def mean_over_seeds(values: ArrayLike) -> Estimate:
    """Mean over seeds with Student's 95 % interval; the unit of every claim about training.

    Below two seeds there is no interval: low and high are NaN.

    >>> print(mean_over_seeds([0.2, 0.3, 0.4]))
    0.300 [0.052, 0.548] (n = 3)
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    undefined = int(np.isnan(x).sum())
    x = x[~np.isnan(x)]
    if len(x) == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, undefined)
    mean = float(x.mean())
    if len(x) < 2:
        return Estimate(mean, math.nan, math.nan, 1, undefined)
    half = float(stats.sem(x) * stats.t.ppf(0.975, len(x) - 1))
    return Estimate(mean, mean - half, mean + half, len(x), undefined)


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
