"""Terms A to F of sunlu2020 (§4): how a token's polarity and attention score change under gradient flow.

The model is DP. Text t has n tokens with vectors e_j and a label y = ±1; V is the context vector, W the output layer:

    a_j = e_jᵀV/λ,   α = softmax(a),   h = Σ_j α_j e_j,   s = hᵀW,   ℓ = −(1/m) Σ_t ln σ(y s)          (Eqs 1–5)

Every token e of the vocabulary has a polarity score s_e = eᵀW and an attention score a_e = eᵀV/λ (Eqs 7, 1). Where
the parameters follow the negative gradient, two sums over the token's places (t, j) determine their change:

    π(e) = Σ y β α_j,   ρ(e) = Σ y β α_j (s_e − s),   β = 1 − σ(y s)                                  (Eqs 16, 20)

Labels are 0 and 1 here, as everywhere in heedful; y = 2·label − 1.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import sparse, special

from heedful.data.ragged import Ragged, Sentences, as_ids
from heedful.errors import DataError


@dataclass(frozen=True, eq=False)
class DotModel:
    """The parameters of DP: token vectors, output layer W, context vector V, scale λ."""

    embedding: Float[np.ndarray, "V d"]
    output: Float[np.ndarray, " d"]
    context: Float[np.ndarray, " d"]
    scale: float

    def __post_init__(self) -> None:
        d = self.embedding.shape[1]
        if self.output.shape != (d,) or self.context.shape != (d,):
            raise DataError(f"vectors of width {d} do not go with W {self.output.shape} and V {self.context.shape}")
        if not self.scale > 0:
            raise DataError(f"scale is {self.scale}; it must be above 0")

    @property
    def polarity(self) -> Float[np.ndarray, " V"]:
        """s_e = eᵀW of every token (Eq. 7)."""
        scores: Float[np.ndarray, " V"] = self.embedding @ self.output
        return scores

    @property
    def score(self) -> Float[np.ndarray, " V"]:
        """a_e = eᵀV/λ of every token (Eq. 1)."""
        scores: Float[np.ndarray, " V"] = self.embedding @ self.context / self.scale
        return scores


@dataclass(frozen=True, eq=False)
class Gradients:
    """The gradients of the loss."""

    embedding: Float[np.ndarray, "V d"]
    output: Float[np.ndarray, " d"]
    context: Float[np.ndarray, " d"]


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms A to F of every token, and their sums, the derivatives of its two scores."""

    A: Float[np.ndarray, " V"]
    B: Float[np.ndarray, " V"]
    C: Float[np.ndarray, " V"]
    D: Float[np.ndarray, " V"]
    E: Float[np.ndarray, " V"]
    F: Float[np.ndarray, " V"]

    @property
    def polarity(self) -> Float[np.ndarray, " V"]:
        """ds_e/dτ = A + B + C (Eq. 19)."""
        moved: Float[np.ndarray, " V"] = self.A + self.B + self.C
        return moved

    @property
    def score(self) -> Float[np.ndarray, " V"]:
        """da_e/dτ = D + E + F (Eq. 27)."""
        moved: Float[np.ndarray, " V"] = self.D + self.E + self.F
        return moved


def gradients(texts: Sentences, labels: ArrayLike, model: DotModel) -> Gradients:
    """∂ℓ/∂e of every token, ∂ℓ/∂W and ∂ℓ/∂V (sunlu2020, Eqs 13, 14, 23).

        ∂ℓ/∂e = −(1/m) (ρ(e) V/λ + π(e) W),   ∂ℓ/∂W = −(1/m) Σ_t y β h,   ∂ℓ/∂V = −(1/mλ) Σ_e ρ(e) e

    The paper's sums over places, collected by token: a token that occurs twice in a text counts twice.

    >>> model = DotModel(np.eye(2), output=np.zeros(2), context=np.zeros(2), scale=1.0)
    >>> gradients([[0], [1]], [1, 0], model).output
    array([-0.25,  0.25])
    """
    pull = _pull(texts, labels, model)
    return Gradients(
        -(np.outer(pull.rho, model.context / model.scale) + np.outer(pull.pi, model.output)) / pull.texts,
        -pull.mean,
        -(model.embedding.T @ pull.rho) / (pull.texts * model.scale),
    )


def terms(texts: Sentences, labels: ArrayLike, model: DotModel) -> Terms:
    """The terms A to F of every token of the vocabulary (sunlu2020, Eqs 19 and 27).

        A = (VᵀW/λ) ρ(e)/m    B = ∥W∥² π(e)/m      C = eᵀ(1/m) Σ_t y β h
        D = (VᵀW/λ) π(e)/m    E = ∥V∥² ρ(e)/(mλ²)  F = eᵀ(1/mλ²) Σ_e' ρ(e') e'

    A, B, D and E come from the token's own vector; C from W and F from V, which all tokens share. A token that is in
    no text has only C and F.

    >>> model = DotModel(np.eye(2), output=np.array([1.0, -1.0]), context=np.zeros(2), scale=1.0)
    >>> moved = terms([[0], [1]], [1, 0], model)
    >>> bool(moved.polarity[0] > 0 > moved.polarity[1]), moved.score
    (True, array([0., 0.]))
    """
    pull = _pull(texts, labels, model)
    m, scale, e = pull.texts, model.scale, model.embedding
    W, V = model.output, model.context
    return Terms(
        A=(V @ W / scale) * pull.rho / m,
        B=(W @ W) * pull.pi / m,
        C=e @ pull.mean,
        D=(V @ W / scale) * pull.pi / m,
        E=(V @ V) * pull.rho / (m * scale**2),
        F=e @ (e.T @ pull.rho) / (m * scale**2),
    )


@dataclass(frozen=True, eq=False)
class _Pull:
    """π(e), ρ(e), (1/m) Σ_t y β h, and the number of texts m."""

    pi: Float[np.ndarray, " V"]
    rho: Float[np.ndarray, " V"]
    mean: Float[np.ndarray, " d"]
    texts: int


def _pull(texts: Sentences, labels: ArrayLike, model: DotModel) -> _Pull:
    ids, y = as_ids(texts), 2 * np.asarray(labels, dtype=np.float64).ravel() - 1
    _check(ids, y, len(model.embedding))
    attention = sparse.csr_array((_softmax(ids, model), ids.values, ids.offsets), shape=(len(ids), ids.size))
    e = model.embedding[: ids.size]
    h = attention @ e
    s = h @ model.output
    force = y * special.expit(-y * s)  # y β
    pi, rho = np.zeros(len(model.embedding)), np.zeros(len(model.embedding))
    pi[: ids.size] = attention.T @ force
    rho[: ids.size] = (e @ model.output) * pi[: ids.size] - attention.T @ (force * s)
    return _Pull(pi, rho, force @ h / len(ids), len(ids))


def _softmax(ids: Ragged, model: DotModel) -> Float[np.ndarray, " n"]:
    """α of every place."""
    score = model.score[ids.values]
    starts, lengths = ids.offsets[:-1], ids.lengths
    score = np.exp(score - np.repeat(np.maximum.reduceat(score, starts), lengths))
    alpha: Float[np.ndarray, " n"] = score / np.repeat(np.add.reduceat(score, starts), lengths)
    return alpha


def _check(ids: Ragged, y: Float[np.ndarray, " m"], vocabulary: int) -> None:
    if len(ids) == 0 or ids.lengths.min() == 0:
        raise DataError("there are no texts, or one has no token; attention needs at least one")
    if len(y) != len(ids):
        raise DataError(f"{len(ids)} texts but {len(y)} labels")
    if not np.isin(y, (-1, 1)).all():
        raise DataError("labels must be 0 and 1: the terms are defined for two classes")
    if ids.size > vocabulary:
        raise DataError(f"token {ids.size - 1} does not fit a vocabulary of {vocabulary}")
