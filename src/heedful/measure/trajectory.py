"""Reading a number off a curve over training: maxima, and the contextualised agreement ξ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.errors import DataError
from heedful.measure.uncertainty import RESAMPLES, Estimate


@dataclass(frozen=True)
class Maximum:
    """The highest mean over recorded steps, and what choosing it cost.

    `split_half` is free of the optimism of choosing and reading on the same examples: the step is chosen on one half
    and read on the other, both ways, averaged.
    """

    value: float
    step: int
    split_half: float
    curve: tuple[float, ...]


def maximum_over_steps(values: ArrayLike, steps: ArrayLike) -> Maximum:
    """The step where the mean over rows is highest (the first of equals), with its split-half check.

    values: one row per recorded step, one column per example; NaN is left out of each mean.

    >>> maximum_over_steps([[0, 0, 0, 0], [1, 1, 1, 0]], steps=[0, 10])
    Maximum(value=0.75, step=10, split_half=0.75, curve=(0.0, 0.75))
    """
    table = np.asarray(values, dtype=np.float64)
    at = np.asarray(steps, dtype=np.int64)
    if table.ndim != 2 or len(table) != len(at) or table.size == 0:
        raise DataError(f"values has shape {table.shape} for {len(at)} steps; it must be (steps, examples)")
    curve = _means(table)
    best = int(np.nanargmax(curve))
    halves = table[:, 0::2], table[:, 1::2]
    held_out = [_means(b)[int(np.nanargmax(_means(a)))] for a, b in (halves, halves[::-1]) if a.size and b.size]
    split_half = float(np.mean(held_out)) if held_out else float(curve[best])
    return Maximum(float(curve[best]), int(at[best]), split_half, tuple(float(c) for c in curve))


@dataclass(frozen=True)
class Contextualised:
    """ξ: how well another seed performed once its attention agreed as much. `reached` is false where it never did."""

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
        raise DataError(f"{len(at)} steps, {len(height)} agreements and {len(p)} performances do not belong together")
    above = np.flatnonzero(height > agreement)
    i = int(above[0]) if len(above) else len(at) - 1
    return Contextualised(float(p[i]), int(at[i]), bool(len(above)))


def contextualised_estimate(
    agreements: Sequence[NDArray[np.float64]],
    curves: Sequence[NDArray[np.float64]],
    performances: Sequence[NDArray[np.float64]],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Estimate:
    """ξ averaged over seeds, with a 95 % bootstrap interval over examples.

    For each seed: A(u, v) of each example; A(α, α̂(τ)) and p̂(τ), (steps, examples) each. Every resample of the
    examples reads ξ off its own curve, so that the interval knows that the step read is itself uncertain.

    >>> a, curve = np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> contextualised_estimate([a], [curve], [curve]).value
    1.0
    """
    n = len(agreements[0])

    def xi(chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        total = np.zeros(chosen.shape[:-1])
        for a, curve, p in zip(agreements, curves, performances, strict=True):
            level, heights, heard = a[chosen].mean(-1), curve[:, chosen].mean(-1), p[:, chosen].mean(-1)
            above = heights > level
            first = np.where(above.any(axis=0), above.argmax(axis=0), len(heights) - 1)
            total += np.take_along_axis(heard, first[None], axis=0)[0]
        mean: NDArray[np.float64] = total / len(agreements)
        return mean

    value = float(xi(np.arange(n)))
    if n < 2:
        return Estimate(value, value, value, n)
    steps = max(len(curve) for curve in curves)
    draws = np.random.default_rng(seed)
    batch = max(1, 4_000_000 // (n * steps))
    sampled = [xi(draws.integers(0, n, size=(min(batch, resamples - i), n))) for i in range(0, resamples, batch)]
    low, high = np.quantile(np.concatenate(sampled), [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def _means(table: NDArray[np.float64]) -> NDArray[np.float64]:
    defined = ~np.isnan(table)
    count = defined.sum(axis=1)
    total = np.where(defined, table, 0.0).sum(axis=1)
    return np.divide(total, count, out=np.full(len(table), np.nan), where=count > 0)
