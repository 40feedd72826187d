"""The compiled loops under `projection`: a threshold τ for each row by Newton's method."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.measure.compiled import compiled


@compiled
def project_rows(scores: NDArray[Any], tops: NDArray[Any], alpha: float, scale: float, weights: NDArray[Any]) -> None:
    """Fill `weights` by α-entmax of scale · scores, α = 2 or 1.5. `tops` holds the maximum of each row.

    With x = (α − 1) · scale · (z − max z) the threshold τ lies in [−1, 0). Each step of Newton's method sweeps the
    whole row without a branch: picking out the few positions that still matter would cost more than it saves.
    """
    rows, L = scores.shape
    factor = (alpha - 1) * scale
    for r in range(rows):
        z, top, out = scores[r], float(tops[r]), weights[r]
        if not -np.inf < top < np.inf:
            for i in range(L):
                out[i] = np.nan if z[i] != -np.inf or top == -np.inf else 0.0
        elif alpha == 2:
            tau = _sparsemax_threshold(z, factor, top)
            for i in range(L):
                out[i] = max(factor * (z[i] - top) - tau, 0.0)
        else:
            tau = _entmax15_threshold(z, factor, top)
            for i in range(L):
                above = max(factor * (z[i] - top) - tau, 0.0)
                out[i] = above * above


@compiled
def _sparsemax_threshold(z: NDArray[Any], factor: float, top: float) -> float:
    """Σ [x − τ]₊ = 1. From the left of a convex function's root τ only rises and the support only shrinks.

    A support that stays is the right one; one that grows again differs by a position at the threshold, where rounding
    decides, and waiting for it to stay would take forever.
    """
    tau, before = -1.0, len(z) + 1.0
    while True:
        total, size = 0.0, 0.0
        for i in range(len(z)):
            above = max(factor * (z[i] - top) - tau, 0.0)
            total += above
            size += 1.0 if above > 0 else 0.0
        if size >= before:
            return tau
        tau += (total - 1) / size
        before = size


@compiled
def _entmax15_threshold(z: NDArray[Any], factor: float, top: float) -> float:
    """‖[x − τ]₊‖ = 1, convex like Σ [x − τ]₊² = 1 and more nearly linear; a step of 1e-9 leaves an error of 1e-15."""
    tau, step = -1.0, 1.0
    while step > 1e-9:
        total, squares = 0.0, 0.0
        for i in range(len(z)):
            above = max(factor * (z[i] - top) - tau, 0.0)
            total += above
            squares += above * above
        norm = math.sqrt(squares)
        step = (norm - 1) * norm / total
        tau += step
    return tau


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
