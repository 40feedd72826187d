"""Rank correlation: Kendall's τ-b of many rows at once by a compiled loop, its highest value, and Somers' d."""

import inspect
import math
from collections.abc import Callable
from typing import Literal, ParamSpec, TypeVar, overload

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.data.ragged import as_ragged, offsets_of, paired
from heedful.metrics.agreement import Rows

P = ParamSpec("P")
R = TypeVar("R")
FREEDOMS = {"reassoc", "contract"}  # sums in any order, so that they vectorise; NaN and infinities keep their meaning


@overload
def kendall_tau_b(
    u: Rows, v: Rows, *, mask: ArrayLike | None = ..., support: bool = ..., return_undefined: Literal[False] = ...
) -> NDArray[np.float64]: ...
@overload
def kendall_tau_b(
    u: Rows, v: Rows, *, mask: ArrayLike | None = ..., support: bool = ..., return_undefined: Literal[True]
) -> tuple[NDArray[np.float64], int]: ...
def kendall_tau_b(
    u: Rows, v: Rows, *, mask: ArrayLike | None = None, support: bool = False, return_undefined: bool = False
) -> NDArray[np.float64] | tuple[NDArray[np.float64], int]:
    """Kendall's τ-b of each row of u with the same row of v, in [−1, 1].

        τ_b = (P − Q) / √((n₀ − n₁)(n₀ − n₂)),   n₀ = L(L − 1)/2

    P and Q count the pairs of positions that u and v put in the same and in opposite order, n₁ and n₂ the pairs tied in
    u and in v. NaN if either is constant or has one position; `return_undefined` adds the number of such rows.
    `support=True` uses only the positions where u is not 0: sparse attention agrees with any importance that has the
    same zeros, and this measures the rest. All pairs are compared: O(L²), compiled.

    >>> kendall_tau_b([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0], [6.0, 5.0, 4.0]])
    array([ 1., -1.])
    >>> kendall_tau_b([0.0, 0.0, 0.5, 0.5], [0.1, 0.2, 0.4, 0.3], support=True, return_undefined=True)
    (array([nan]), 1)
    """
    first, second = paired(u, v, mask)
    x, y, offsets = first.values, second.values, first.offsets
    if support:  # rows can be empty then
        keep = x != 0
        offsets = offsets_of(np.add.reduceat(keep, offsets[:-1], dtype=np.int64))
        x, y = x[keep], y[keep]
    tau = np.empty(len(first), dtype=np.float64)
    _tau_rows(np.ascontiguousarray(x, dtype=np.float64), np.ascontiguousarray(y, dtype=np.float64), offsets, tau)
    return (tau, int(np.isnan(tau).sum())) if return_undefined else tau


def kendall_ceiling(u: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """The highest τ-b with each row of u that any v without ties could reach.

        τ_max = √((n₀ − n₁) / n₀)

    The best v orders every pair that u orders, so P − Q = n₀ − n₁, and has n₂ = 0. With k distinct weights above n − k
    zeros n₁ = (n − k)(n − k − 1)/2; one-hot attention (k = 1) cannot exceed √(2/n). NaN where τ-b is undefined.

    >>> kendall_ceiling([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]])
    array([0.5, 1. ])
    """
    rows = as_ragged(u, mask)
    pairs = rows.lengths * (rows.lengths - 1) / 2
    order = np.lexsort((rows.values, rows.row_of))
    sorted_values = rows.values[order]
    starts = np.ones(len(sorted_values), dtype=bool)
    starts[1:] = sorted_values[1:] != sorted_values[:-1]
    starts[rows.offsets[:-1]] = True
    at = np.flatnonzero(starts)
    sizes = np.diff(np.append(at, len(sorted_values))).astype(np.float64)
    tied = np.bincount(rows.row_of[at], weights=sizes * (sizes - 1) / 2, minlength=len(rows))
    ceiling = np.full(len(rows), np.nan)
    np.sqrt((pairs - tied) / np.maximum(pairs, 1), out=ceiling, where=tied < pairs)
    return ceiling


def somers_d(u: Rows, v: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Somers' d of each row of u given the same row of v (Somers 1962), in [−1, 1].

        d = (P − Q) / (n₀ − n₂)

    P, Q, n₀ and n₂ as in `kendall_tau_b`: of the pairs of positions that v tells apart, how many more u puts in the
    same order than in the opposite one. Pairs tied in v do not count, so the value 1 can be reached however many there
    are. NaN where τ-b is.

    >>> somers_d([[0.1, 0.7, 0.2]], [[0.0, 1.0, 0.0]]), kendall_tau_b([[0.1, 0.7, 0.2]], [[0.0, 1.0, 0.0]]).round(3)
    (array([1.]), array([0.816]))
    """
    ratio: NDArray[np.float64] = kendall_ceiling(u, mask=mask) / kendall_ceiling(v, mask=mask)
    return np.clip(kendall_tau_b(u, v, mask=mask) * ratio, -1.0, 1.0)


def compiled(kernel: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over arrays and numbers by numba, at its first call; kept on disk where the disk allows it.

    >>> @compiled
    ... def triple(x: float) -> float:
    ...     return 3 * x
    >>> triple(2.0)
    6.0
    """
    plain = inspect.unwrap(kernel)  # a type checker may have wrapped it, and numba compiles only the function itself
    # The file on disk names its module: one imported under another name would leave a file that nobody else can read.
    cache = plain.__module__.startswith("heedful.")
    try:
        fast: Callable[P, R] = numba.njit(cache=cache, nogil=True, fastmath=FREEDOMS)(plain)
    except RuntimeError:  # neither the package's directory nor the user's can be written to
        fast = numba.njit(nogil=True, fastmath=FREEDOMS)(plain)
    return fast


@compiled
def _tau_rows(
    x: NDArray[np.float64], y: NDArray[np.float64], offsets: NDArray[np.int64], tau: NDArray[np.float64]
) -> None:
    """With a, b ∈ {−1, 0, 1} the order of a pair: Σab = P − Q, Σa² = n₀ − n₁, Σb² = n₀ − n₂."""
    for r in range(len(tau)):
        u, v = x[offsets[r] : offsets[r + 1]], y[offsets[r] : offsets[r + 1]]
        both, in_u, in_v = 0, 0, 0
        for i in range(1, len(u)):
            for j in range(i):
                a = int(u[i] > u[j]) - int(u[i] < u[j])
                b = int(v[i] > v[j]) - int(v[i] < v[j])
                both += a * b
                in_u += a * a
                in_v += b * b
        tau[r] = both / math.sqrt(float(in_u) * float(in_v)) if in_u > 0 and in_v > 0 else np.nan
