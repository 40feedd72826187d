"""Gradient flow of the bag-of-words proxy: its derivative at initialisation, and the limit (snell2021 §4.1, A.2).

Input word i of I, output word o of O, width d, sentence pair m with L^m input and T^m output words. The proxy

    p^m = σ((1/L^m) Σ_l W e_{x_l}),   ℒ = −Σ_m Σ_t ln p^m_{y_t}                                     (Eqs 14, 37, 41)

follows ∂W/∂τ = −∂ℒ/∂W and ∂e/∂τ = −∂ℒ/∂e (Eq. 38). The logits θ̂ = We and the probabilities θ = σ(θ̂) are those that a
single word gives to every output (Eqs 13, 39). Matrices of words have one word per row: here θ̂ = e Wᵀ.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import sparse, special

from heedful.data.ragged import Ragged, Sentences, paired_ids
from heedful.errors import DataError

OutputVectors = Float[np.ndarray, "O d"]
InputVectors = Float[np.ndarray, "I d"]
WordTable = Float[np.ndarray, "I O"]


def logit_derivative(sources: Sentences, targets: Sentences, W: OutputVectors, e: InputVectors) -> WordTable:
    """∂θ̂/∂τ at any W and e, exactly (snell2021, Eqs 44–46 summed over the corpus, and the same for W).

        ∂e/∂τ = G W,   ∂W/∂τ = Gᵀ e,   G = C − Σ_m T^m b^m (p^m)ᵀ,   b^m_i = (1/L^m) Σ_l 1[x_l = i]
        ∂θ̂/∂τ = ∂e/∂τ Wᵀ + e (∂W/∂τ)ᵀ = G W Wᵀ + e eᵀ G

    Departure: Eq. 40 has minus signs before both terms of the product rule, and the second half of Eq. 42 lacks the one
    that Eqs 45 and 46 then use; the flow of Eq. 38 gives plus in the first and minus in the second.

    >>> logit_derivative([[0], [1]], [[0], [1]], W=np.eye(2), e=np.zeros((2, 2)))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    bags, counts = _bags(sources, targets, len(e), len(W))
    if W.shape[1] != e.shape[1]:
        raise DataError(f"W has width {W.shape[1]} but e has {e.shape[1]}; the proxy multiplies them")
    p = special.softmax(bags @ (e @ W.T), axis=1)
    G = (bags.T @ counts).toarray() - bags.T @ (counts.sum(axis=1)[:, None] * p)
    derivative: WordTable = (G @ W) @ W.T + e @ (e.T @ G)
    return derivative


def probability_derivative(sources: Sentences, targets: Sentences, W: OutputVectors, e: InputVectors) -> WordTable:
    """∂θ/∂τ at any W and e, exactly: the chain rule over `logit_derivative`.

        ∂θ_{i,o}/∂τ = θ_{i,o} (∂θ̂_{i,o}/∂τ − Σ_o' θ_{i,o'} ∂θ̂_{i,o'}/∂τ)

    >>> probability_derivative([[0], [1]], [[0], [1]], W=np.eye(2), e=np.zeros((2, 2)))
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    return _through_softmax(logit_derivative(sources, targets, W, e), W, e)


def logit_limit(C: WordTable) -> WordTable:
    """The limit of ∂θ̂/∂τ at initialisation as d → ∞, from the count table (snell2021, Eq. 53).

        2 (C_{i,o} − (1/|O|) Σ_o' C_{i,o'})

    Exactly 0 where a row of C is constant: there is nothing to learn.

    >>> logit_limit(np.array([[1.0, 0.5, 0.0], [0.1, 0.1, 0.1]]))
    array([[ 1.,  0., -1.],
           [ 0.,  0.,  0.]])
    """
    if C.shape[1] == 0:
        raise DataError(f"a count table of shape {C.shape} has no output words")
    centred = C - C[:, :1]  # the mean of equal numbers need not be that number; the mean of zeros is zero
    limit: WordTable = 2 * (centred - centred.mean(axis=1, keepdims=True))
    return limit


def probability_limit(C: WordTable) -> WordTable:
    """The limit of ∂θ/∂τ at initialisation as d → ∞.

        (2/|O|) (C_{i,o} − (1/|O|) Σ_o' C_{i,o'})

    Departure: Eqs 15 and 54 lack the factor 1/|O|. Since θ → 1/|O|, the chain rule brings it in; without it the
    right-hand side is the derivative of the logit.

    >>> probability_limit(np.array([[1.0, 0.0]]))
    array([[ 0.5, -0.5]])
    """
    limit: WordTable = logit_limit(C) / C.shape[1]
    return limit


def draw_proxy(source_size: int, target_size: int, width: int, seed: int) -> tuple[OutputVectors, InputVectors]:
    """Initial W and e of the proxy: W_o, e_i ~ N(0, I_d/d) (snell2021 §4.1).

    >>> W, e = draw_proxy(2, 3, width=5, seed=0)
    >>> W.shape, e.shape
    ((3, 5), (2, 5))
    """
    if min(source_size, target_size, width) < 1:
        raise DataError(f"a proxy of {source_size} input words, {target_size} output words and width {width} is empty")
    draw = np.random.default_rng(seed)
    W, e = (draw.normal(scale=1 / math.sqrt(width), size=(size, width)) for size in (target_size, source_size))
    return W, e


@dataclass(frozen=True)
class LimitComparison:
    """The exact derivative at one random initialisation (y) against its limit (x), over all pairs of words.

    Correlations are Pearson's; slopes are of least squares through the origin, Σxy / Σx²: an intercept would not change
    them, since the limit has mean 0. `probability_slope` tends to 1; `printed_slope`, against Eq. 15 as it is printed,
    to 1/|O|. All are NaN where the limit is 0 everywhere: there is no line through one point.
    """

    width: int
    logit_correlation: float
    logit_slope: float
    probability_correlation: float
    probability_slope: float
    printed_slope: float


def compare_with_limit(
    sources: Sentences, targets: Sentences, source_size: int, target_size: int, width: int, seed: int
) -> LimitComparison:
    """Compare the derivative of a proxy of that width and seed with its limit (snell2021, Eqs 53, 54).

    >>> x, y = [[0, 1], [0, 2], [1, 3]], [[0, 1], [0, 2], [1, 3]]
    >>> near = compare_with_limit(x, y, 4, 4, width=4096, seed=0)
    >>> round(near.logit_slope, 1), round(near.probability_slope, 1), round(near.printed_slope, 2)
    (1.0, 1.0, 0.25)
    """
    pairs = paired_ids(sources, targets)
    bags, counts = _bags(*pairs, source_size, target_size)
    C = (bags.T @ counts).toarray()
    W, e = draw_proxy(source_size, target_size, width, seed)
    logit = logit_derivative(*pairs, W, e)
    probability = _through_softmax(logit, W, e)
    return LimitComparison(
        width,
        *_fit(logit_limit(C), logit),
        *_fit(probability_limit(C), probability),
        printed_slope=_fit(logit_limit(C), probability)[1],
    )


def _bags(
    sources: Sentences, targets: Sentences, source_size: int, target_size: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """b^m of every source, (M, I), and how often each target has each word, (M, O)."""
    first, second = paired_ids(sources, targets)
    weights = np.repeat(1 / first.lengths, first.lengths)
    counts = np.ones(len(second.values))
    return _rows(first, weights, source_size, "source"), _rows(second, counts, target_size, "target")


def _rows(ids: Ragged, weights: Float[np.ndarray, " n"], size: int, side: str) -> sparse.csr_array:
    if ids.size > size:
        raise DataError(f"{side} id {ids.size - 1} does not fit a vocabulary of {size}")
    return sparse.csr_array((weights, ids.values, ids.offsets), shape=(len(ids), size))


def _through_softmax(logit: WordTable, W: OutputVectors, e: InputVectors) -> WordTable:
    theta = special.softmax(e @ W.T, axis=1)
    derivative: WordTable = theta * (logit - (theta * logit).sum(axis=1, keepdims=True))
    return derivative


def _fit(x: WordTable, y: WordTable) -> tuple[float, float]:
    """Correlation and slope of y on x."""
    if not x.any():
        return math.nan, math.nan
    return float(np.corrcoef(x.ravel(), y.ravel())[0, 1]), float(np.vdot(x, y) / np.vdot(x, x))
