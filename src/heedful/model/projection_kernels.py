"""The compiled loops under `projection`: a threshold τ for each row by Newton's method."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.measure.compiled import compiled

SWEEPS = 2  # Newton steps over the whole row, which vectorise, before the few that matter are picked out


@compiled
def project_rows(scores: NDArray[Any], tops: NDArray[Any], alpha: float, scale: float, weights: NDArray[Any]) -> None:
    """Fill `weights`, which are 0, by α-entmax of scale · scores, α = 2 or 1.5. `tops` holds the maximum of each row.

    With x = (α − 1) · scale · (z − max z) the threshold lies in [−1, 0). From τ = −1, on the left of a convex
    function's root, Newton's τ only rises, so that whatever has fallen below it has weight 0.
    """
    rows, L = scores.shape
    factor = (alpha - 1) * scale
    x = np.empty(L, dtype=np.float64)
    at = np.empty(L, dtype=np.int64)
    for r in range(rows):
        z, top, out = scores[r], float(tops[r]), weights[r]
        if not -np.inf < top < np.inf:
            for i in range(L):
                out[i] = np.nan if z[i] != -np.inf or top == -np.inf else 0.0
            continue
        tau = -1.0
        for _ in range(SWEEPS):
            tau += _step(z, factor, top, tau, alpha)
        n = 0
        for i in range(L):
            shifted = factor * (z[i] - top)
            if shifted > tau:
                x[n] = shifted
                at[n] = i
                n += 1
        for _ in range(100):
            step = _step(x[:n], 1.0, 0.0, tau, alpha)
            tau += step
            if step <= 1e-15:
                break
        for j in range(n):
            above = max(x[j] - tau, 0.0)
            out[at[j]] = above if alpha == 2 else above * above


@compiled
def _step(z: NDArray[Any], factor: float, top: float, tau: float, alpha: float) -> float:
    """Newton's step towards Σ [x − τ]₊ = 1 (α = 2) or ‖[x − τ]₊‖ = 1 (α = 1.5), x = factor · (z − top)."""
    first, second = 0.0, 0.0
    if alpha == 2:
        for i in range(len(z)):
            above = max(factor * (z[i] - top) - tau, 0.0)
            first += above
            second += 1.0 if above > 0 else 0.0
        return (first - 1) / second
    for i in range(len(z)):
        above = max(factor * (z[i] - top) - tau, 0.0)
        first += above
        second += above * above
    norm = math.sqrt(second)
    return (norm - 1) * norm / first


@compiled
def multiply_rows(p: NDArray[Any], g: NDArray[Any], alpha: float, scale: float, products: NDArray[Any]) -> None:
    """Fill `products`: scale · s∘(g − ⟨s, g⟩ / Σs), s = p^{2−α} on the support of p."""
    rows, L = p.shape
    for r in range(rows):
        s = products[r]
        if alpha == 2:
            for i in range(L):
                s[i] = 1.0 if p[r, i] > 0 else 0.0
        elif alpha == 1.5:
            for i in range(L):
                s[i] = math.sqrt(p[r, i])
        else:
            for i in range(L):
                s[i] = p[r, i] ** (2 - alpha) if p[r, i] > 0 else 0.0
        total, inner = 0.0, 0.0
        for i in range(L):
            total += s[i]
            inner += s[i] * g[r, i]
        mean = inner / total if total > 0 else np.nan
        for i in range(L):
            s[i] *= scale * (g[r, i] - mean)
