"""Optimal attention α^opt of a linear model, by convex optimisation with a certified gap (snell2021 A.1)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from heedful.errors import ConfigError, DataError, ProjectionError

Weights = Float[np.ndarray, " L"]
CENTRING = 0.1  # t as a share of the current mean of α∘λ
BOUNDARY = 0.99  # largest share of the way to 0 that a weight can go in one step
DRIFT = 1e3  # λ stays within this factor of t/α
STEEPEST = 0.9  # largest slope at the end of a step, as a share of that at its beginning
SHORTEST = 1e-12  # a shorter step counts as none
FINEST, LARGEST = 1e-100, 1e50  # smallest tolerance and largest logit that can be computed with


@dataclass(frozen=True, eq=False)
class OptimalAttention:
    """The optimal attention of N output words; no other attention is better by more than `gap` nats.

    `iterations` counts Newton steps; a word that needs more than allowed is not `converged`.
    """

    alpha: Float[np.ndarray, "N L"]
    loss: Float[np.ndarray, " N"]
    gap: Float[np.ndarray, " N"]
    iterations: Int[np.ndarray, " N"]
    converged: Bool[np.ndarray, " N"]


def optimal_attention(
    gamma: Float[np.ndarray, "N L V"],
    gamma_state: Float[np.ndarray, "N V"],
    target: Int[np.ndarray, " N"],
    mask: Bool[np.ndarray, "N L"] | None = None,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 200,
) -> OptimalAttention:
    """The attention that makes each output word as probable as it can be (snell2021, Eqs 26, 32–36).

        α^opt = argmin over the simplex of ℒ(α) = −ln σ(Σ_l α_l γ_l + γ_s)_y

    ℒ is convex, so the Frank–Wolfe gap bounds what is left to gain:

        ℒ(α) − ℒ(α^opt) ≤ max_l ⟨∇ℒ(α), α − e_l⟩ ≤ tolerance   (nats)

    Departure: the paper descends the gradient; here a primal-dual interior-point method (after Wächter & Biegler 2006)
    takes about ten Newton steps. It approaches the optimum from inside the simplex: a weight that is 0 at the optimum
    comes out tiny, not 0, and if several α are optimal, equal positions get equal weights.

    Words of one sentence share their γ: `np.broadcast_to(gamma, (T, L, V))` costs nothing. Float64 throughout, one word
    at a time, so that memory does not grow with N. A masked position (mask false) is treated as removed: its weight is
    exactly 0, and its logits do not matter.

    >>> gamma = np.array([[[0.0, 0.0, 0.0], [0.0, -10.0, 5.0], [0.0, 5.0, -10.0]]])
    >>> best = optimal_attention(gamma, np.zeros((1, 3)), np.array([0]))
    >>> best.alpha.round(6), best.converged
    (array([[0. , 0.5, 0.5]]), array([ True]))
    """
    if not tolerance >= FINEST:
        raise ConfigError(f"a tolerance of {tolerance} nats cannot be reached; it must be {FINEST:g} or more")
    N, L, V = gamma.shape
    keep = np.ones((N, L), dtype=np.bool_) if mask is None else mask
    if (gamma_state.shape, target.shape, keep.shape) != ((N, V), (N,), (N, L)):
        shapes = f"gamma_state {gamma_state.shape}, target {target.shape} and mask {keep.shape}"
        raise DataError(f"{shapes} do not go with gamma {gamma.shape}; they must be {(N, V)}, {(N,)} and {(N, L)}")
    _check(keep, target, V)
    alpha = np.zeros((N, L))
    loss, gap, iterations = np.empty(N), np.empty(N), np.zeros(N, dtype=np.int64)
    for n in range(N):
        rows = gamma[n, keep[n]].astype(np.float64)
        if not (np.isfinite(rows).all() and np.isfinite(gamma_state[n]).all()):
            raise DataError(f"word {n} has logits that are not finite; its loss has no optimum")
        if max(np.abs(rows).max(), np.abs(gamma_state[n]).max()) > LARGEST:
            raise DataError(
                f"word {n} has logits beyond ±{LARGEST:g}, as no model gives them; check where they come from"
            )
        problem = _Problem(rows - rows[:, target[n], None], gamma_state[n] - np.float64(gamma_state[n, target[n]]))
        point, iterations[n] = _minimise(problem, tolerance, max_iterations)
        alpha[n, keep[n]], loss[n], gap[n] = point.alpha, point.loss, point.gap
    return OptimalAttention(alpha, loss, gap, iterations, gap <= tolerance)


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Logits for which the best attention leaves out the position with the largest β; the correct word is the first."""

    gamma: Float[np.ndarray, "L V"]
    beta: Float[np.ndarray, " L"]
    alpha: Float[np.ndarray, " L"]


def counterexample() -> Counterexample:
    """The paper's case against "α attends to larger β" (snell2021, Eqs 28–30): β = [⅓, ≈e⁻⁵, ≈e⁻⁵], α^opt = [0, ½, ½].

    >>> case = counterexample()
    >>> case.beta.round(4), case.alpha.round(4)
    (array([0.3333, 0.0067, 0.0067]), array([0. , 0.5, 0.5]))
    """
    gamma = np.array([[0.0, 0.0, 0.0], [0.0, -10.0, 5.0], [0.0, 5.0, -10.0]])
    best = optimal_attention(gamma[None], np.zeros((1, 3)), np.array([0]), tolerance=1e-9)
    return Counterexample(gamma, special.softmax(gamma, axis=1)[:, 0], best.alpha[0])


class _Problem(NamedTuple):
    """Logits of one word less that of the correct one, so that ℒ(α) = ln Σ_o exp(Σ_l α_l γ_{l,o} + γ_{s,o})."""

    gamma: Float[np.ndarray, "L V"]
    state: Float[np.ndarray, " V"]

    def at(self, alpha: Weights) -> "_Point":
        z = alpha @ self.gamma + self.state
        p, loss = _softmax(z)
        gradient = self.gamma @ p
        return _Point(alpha, z, p, loss, gradient, float(alpha @ (gradient - gradient.min())))


class _Point(NamedTuple):
    """One α with its loss and gradient."""

    alpha: Weights
    z: Float[np.ndarray, " V"]
    p: Float[np.ndarray, " V"]
    loss: float
    gradient: Weights
    gap: float


def _minimise(problem: _Problem, tolerance: float, max_iterations: int) -> tuple[_Point, int]:
    """Follow ∇ℒ = λ + ν1, α∘λ = t as t decreases, from uniform α; on that path the gap is at most L·t.

    Returns the point of the smallest gap, which can grow again once rounding dominates.
    """
    L = len(problem.gamma)
    best = point = problem.at(np.full(L, 1 / L))
    lam = np.full(L, point.gap)
    t = CENTRING * point.gap / L
    iterations = 0
    while point.gap > tolerance and iterations < max_iterations:
        step, step_lam = _newton(problem, point, lam, t)
        size = _line_search(problem, point, step, t)
        if size < SHORTEST:
            break
        point = problem.at(point.alpha + size * step)
        centre = t / point.alpha
        lam = np.clip(lam + min(1.0, BOUNDARY * _room(lam, step_lam)) * step_lam, centre / DRIFT, centre * DRIFT)
        t = CENTRING * max(float(point.alpha @ lam), tolerance) / L
        iterations += 1
        best = point if point.gap < best.gap else best
    return best, iterations


def _newton(problem: _Problem, point: _Point, lam: Weights, t: float) -> tuple[Weights, Weights]:
    """The step in α, which keeps its sum, and in λ.

        (H + diag(λ/α)) Δα = t/α − ∇ℒ + ν1,   H = Γ (diag p − p pᵀ) Γᵀ,   Δλ = t/α − λ − λ/α Δα

    With D² = α/λ the matrix is D⁻¹ (I + D H D) D⁻¹, whose eigenvalues can be kept from 1 upwards whatever the rounding.
    """
    D = np.sqrt(point.alpha / lam)
    root = problem.gamma - point.gradient[:, None]
    root *= np.sqrt(point.p)
    root *= D[:, None]
    values, vectors = np.linalg.eigh(root @ root.T)
    vectors *= D[:, None]
    aim = t / point.alpha
    excess = point.gradient - point.alpha @ point.gradient  # near 0 where α is not: less of ν is left to cancel
    sides = np.stack([aim - excess, np.ones_like(lam)], axis=1)
    free, constant = ((vectors / (1 + np.maximum(values, 0))) @ (vectors.T @ sides)).T
    step = free - free.sum() / constant.sum() * constant
    step -= step.sum() * point.alpha  # what rounding left
    return step, aim - lam - lam / point.alpha * step


def _line_search(problem: _Problem, point: _Point, step: Weights, t: float) -> float:
    """A size at which ℒ(α) − t Σ_l ln α_l, convex along the step, has not yet turned up as steeply as it went down.

    By its slope, not its value: near the optimum differences of values are lost to rounding.
    """
    dz = step @ problem.gamma
    downhill = abs(float((point.gradient - t / point.alpha) @ step))
    size = min(1.0, BOUNDARY * _room(point.alpha, step))
    while size >= SHORTEST:
        p, _ = _softmax(point.z + size * dz)
        if float(p @ dz - t * np.sum(step / (point.alpha + size * step))) <= STEEPEST * downhill:
            break
        size /= 2
    return size


def _room(x: Weights, step: Weights) -> float:
    """The size at which the first coordinate of x + size · step reaches 0."""
    down = step < 0
    return float(np.min(x[down] / -step[down], initial=np.inf))


def _softmax(z: Float[np.ndarray, " V"]) -> tuple[Float[np.ndarray, " V"], float]:
    """σ(z) and ln Σ_o exp z_o, from one round of exponentials."""
    top = float(z.max())
    p = np.exp(z - top)
    total = float(p.sum())
    p /= total
    return p, top + math.log(total)


def _check(keep: Bool[np.ndarray, "N L"], target: Int[np.ndarray, " N"], V: int) -> None:
    empty = ~keep.any(axis=1)
    if empty.any():
        raise ProjectionError(f"row {int(np.argmax(empty))} has every position masked; attention needs at least one")
    outside = (target < 0) | (target >= V)
    if outside.any():
        n = int(np.argmax(outside))
        raise DataError(f"target {int(target[n])} of word {n} is not one of the {V} output words")
