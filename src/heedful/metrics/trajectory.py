"""Curves over training: their maxima, and the contextualised agreement ξ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.config import RESAMPLES
from heedful.errors import DataError
from heedful.metrics.statistics import Estimate


@dataclass(frozen=True)
class Maximum:
    """The highest mean over recorded steps.

    `split_half` avoids the bias of choosing and measuring on the same examples: the step is chosen on one half and
    measured on the other, both ways, averaged.
    """

    value: float
    step: int
    split_half: float
    curve: tuple[float, ...]


def maximum_over_steps(values: ArrayLike, steps: ArrayLike, *, groups: ArrayLike | None = None) -> Maximum:
    """The step with the highest mean over columns (the first of equals), with its split-half check.

    values: one row per recorded step, one column per output word; NaN is left out of each mean. groups: the text each
    column belongs to, so that the halves are of texts.

    >>> maximum_over_steps([[0, 0, 0, 0], [1, 1, 1, 0]], steps=[0, 10])
    Maximum(value=0.75, step=10, split_half=0.75, curve=(0.0, 0.75))
    """
    table = np.asarray(values, dtype=np.float64)
    at = np.asarray(steps, dtype=np.int64)
    if table.ndim != 2 or len(table) != len(at) or table.size == 0:
        raise DataError(f"values has shape {table.shape} for {len(at)} steps; it must be (steps, examples)")
    curve = _means(table)
    if np.isnan(curve).all():
        raise DataError("no step has a defined value, so there is no maximum")
    best = int(np.nanargmax(curve))
    text = np.arange(table.shape[1]) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    halves = table[:, text % 2 == 0], table[:, text % 2 == 1]
    chosen = [(_means(a), _means(b)) for a, b in (halves, halves[::-1])]
    held_out = [b[int(np.nanargmax(a))] for a, b in chosen if not np.isnan(a).all()]
    held_out = [value for value in held_out if not np.isnan(value)]
    split_half = float(np.mean(held_out)) if held_out else float(curve[best])
    return Maximum(float(curve[best]), int(at[best]), split_half, tuple(float(c) for c in curve))


@dataclass(frozen=True)
class Contextualised:
    """ξ: performance of another seed once its attention agreed as much; `reached` is false if it never did."""

    value: float
    step: int
    reached: bool

    def __str__(self) -> str:
        return f"{self.value:.3f}{'' if self.reached else '*'}"


def contextualised_agreement(
    agreement: float, steps: ArrayLike, curve: ArrayLike, performance: ArrayLike
) -> Contextualised:
    """ξ(u, v) (snell2021, Eq. 11).

        ξ(u, v) = p̂(inf{τ : A(α, α̂(τ)) > A(u, v)})

    agreement: A(u, v). curve: A(α, α̂(τ)) at each recorded step τ of another seed's run; performance: that run's p̂(τ).
    Never exceeded → the final performance, with `reached` false (the paper's `*`).

    >>> contextualised_agreement(0.3, steps=[0, 50, 100], curve=[0.1, 0.35, 0.6], performance=[0.5, 0.7, 0.8])
    Contextualised(value=0.7, step=50, reached=True)
    """
    at, height, p = (np.asarray(a, dtype=np.float64).ravel() for a in (steps, curve, performance))
    if not len(at) == len(height) == len(p) or len(at) == 0:
        raise DataError(f"{len(at)} steps, {len(height)} agreements and {len(p)} performances; give as many of each")
    above = np.flatnonzero(height > agreement)
    i = int(above[0]) if len(above) else len(at) - 1
    return Contextualised(float(p[i]), int(at[i]), bool(len(above)))


def contextualised_estimate(
    agreements: Sequence[NDArray[np.float64]],
    curves: Sequence[NDArray[np.float64]],
    performances: Sequence[NDArray[np.float64]],
    *,
    groups: ArrayLike | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Estimate:
    """ξ averaged over seeds, with a 95 % bootstrap interval over texts.

    For each seed: A(u, v) of each output word; A(α, α̂(τ)) and p̂(τ), (steps, output words) each. groups: the text of
    each output word. Every resample of the texts has its own curve and step, so the interval includes the uncertainty
    of the step.

    >>> a, curve = np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> contextualised_estimate([a], [curve], [curve]).value
    1.0
    """
    words = len(agreements[0])
    text = np.arange(words) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    n = int(text.max()) + 1
    sizes = np.bincount(text, minlength=n).astype(np.float64)
    per_seed = [
        np.stack([np.bincount(text, weights=row, minlength=n) for row in (a, *curve, *p)])
        for a, curve, p in zip(agreements, curves, performances, strict=True)
    ]

    def xi(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """ξ for each row of `weights`: how often each text was drawn."""
        total = np.zeros(len(weights))
        for sums in per_seed:
            means = (sums @ weights.T) / (sizes @ weights.T)
            steps = (len(means) - 1) // 2
            above = means[1 : steps + 1] > means[0]
            first = np.where(above.any(axis=0), above.argmax(axis=0), steps - 1)
            total += np.take_along_axis(means[steps + 1 :], first[None], axis=0)[0]
        mean: NDArray[np.float64] = total / len(per_seed)
        return mean

    value = float(xi(np.ones((1, n)))[0])
    if n < 2:
        return Estimate(value, value, value, n)
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)
    low, high = np.quantile(xi(drawn), [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def _means(table: NDArray[np.float64]) -> NDArray[np.float64]:
    defined = ~np.isnan(table)
    count = defined.sum(axis=1)
    total = np.where(defined, table, 0.0).sum(axis=1)
    means = np.full(len(table), np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means
