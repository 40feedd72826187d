"""A number and how far it may be trusted: `Estimate`, and the bootstrap that makes one."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from heedful.errors import DataError

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, the number of units behind it, and how many units had no value.

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
        """Plain numbers; an estimate of nothing has `None` for its value."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def bootstrap_mean(
    values: ArrayLike, *, groups: ArrayLike | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Mean and 95 % percentile-bootstrap interval; NaN is left out and counted.

    The unit that is resampled is the example: rows of one text share a value in `groups` and are drawn together
    (the mean is then a ratio of sums). With one unit, or none, the interval is the value itself or empty.

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
    if len(x) == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, undefined)
    _, inverse = np.unique(unit, return_inverse=True)
    totals = np.bincount(inverse, weights=x)
    sizes = np.bincount(inverse).astype(np.float64)
    mean = float(totals.sum() / sizes.sum())
    if len(totals) < 2 or np.ptp(totals / sizes) == 0:
        return Estimate(mean, mean, mean, len(totals), undefined)
    interval = stats.bootstrap(
        (totals, sizes),
        _ratio,
        paired=True,
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, 4_000_000 // len(totals)),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(mean, float(interval.low), float(interval.high), len(totals), undefined)


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


def _ratio(totals: NDArray[np.float64], sizes: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = totals.sum(axis=axis) / sizes.sum(axis=axis)
    return ratio
