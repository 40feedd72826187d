"""Terms A to H: how polarity and attention scores change in the models of sunlu2020's supplement.

The model of `theory.polarity` with an affine input layer, additive attention and several classes, each where wanted:

    h_e = M e + b  (or e),   u_e = tanh(Q h_e + q)  (or h_e),   a_e = u_eᵀV/λ,   s_{e,k} = h_eᵀW_k,   p = softmax(hᵀW)

Two classes have one W and p = σ. Let f_{t,k} be 1[y = k] − p_k of text t (of two classes, y − p). Sums over the places
(t, j) of a token, and the slope of its attention score:

    π_k(e) = Σ f_k α_j,   ρ(e) = Σ α_j Σ_k f_k (s_{e,k} − s_k),   r_e = λ ∂a_e/∂h_e,   v_e = V ⊙ (1 − u_e²)
    g(e) = ρ(e) r_e/λ + Σ_k π_k(e) W_k,   S(e) = Σ_e' g(e') (e'ᵀe + 1)  (0 without an affine layer),   P = M Mᵀ  (or I)

The supplement itself is not among our sources; these follow from the model, and equal autograd to rounding.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import sparse, special

from heedful.data.ragged import Ragged, Sentences, as_ids
from heedful.errors import DataError


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x ↦ weight·x + bias."""

    weight: Float[np.ndarray, "out in"]
    bias: Float[np.ndarray, " out"]

    def __call__(self, rows: Float[np.ndarray, "n in"]) -> Float[np.ndarray, "n out"]:
        """The map of every row."""
        mapped: Float[np.ndarray, "n out"] = rows @ self.weight.T + self.bias
        return mapped


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """Token vectors, output rows W_k (one for two classes), V, λ; an affine input layer and an additive one if any."""

    embedding: Float[np.ndarray, "V d"]
    output: Float[np.ndarray, "K h"]
    context: Float[np.ndarray, " c"]
    scale: float
    affine: AffineMap | None = None
    additive: AffineMap | None = None

    def __post_init__(self) -> None:
        width = self.embedding.shape[1] if self.affine is None else len(self.affine.bias)
        inner = width if self.additive is None else len(self.additive.bias)
        if self.output.shape[1] != width or self.context.shape != (inner,):
            raise DataError(
                f"states of width {width} and {inner} do not go with W {self.output.shape} and V {self.context.shape}"
            )
        if not self.scale > 0:
            raise DataError(f"scale is {self.scale}; it must be above 0")

    @property
    def hidden(self) -> Float[np.ndarray, "V h"]:
        """h_e of every token."""
        return self.embedding if self.affine is None else self.affine(self.embedding)

    @property
    def inner(self) -> Float[np.ndarray, "V c"]:
        """u_e of every token."""
        return self.hidden if self.additive is None else np.tanh(self.additive(self.hidden))

    @property
    def polarity(self) -> Float[np.ndarray, "V K"]:
        """s_{e,k} of every token."""
        scores: Float[np.ndarray, "V K"] = self.hidden @ self.output.T
        return scores

    @property
    def score(self) -> Float[np.ndarray, " V"]:
        """a_e of every token."""
        scores: Float[np.ndarray, " V"] = self.inner @ self.context / self.scale
        return scores


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """The terms of every token; A, B, C and G for each class. G and H come from layers that all tokens share."""

    A: Float[np.ndarray, "V K"]
    B: Float[np.ndarray, "V K"]
    C: Float[np.ndarray, "V K"]
    G: Float[np.ndarray, "V K"]
    D: Float[np.ndarray, " V"]
    E: Float[np.ndarray, " V"]
    F: Float[np.ndarray, " V"]
    H: Float[np.ndarray, " V"]

    @property
    def polarity(self) -> Float[np.ndarray, "V K"]:
        """ds_{e,k}/dτ = A + B + C + G."""
        moved: Float[np.ndarray, "V K"] = self.A + self.B + self.C + self.G
        return moved

    @property
    def score(self) -> Float[np.ndarray, " V"]:
        """da_e/dτ = D + E + F + H."""
        moved: Float[np.ndarray, " V"] = self.D + self.E + self.F + self.H
        return moved


def score_terms(texts: Sentences, labels: ArrayLike, model: ScoreModel) -> ScoreTerms:
    """The terms of every token of the vocabulary, under gradient flow of the mean loss of m texts.

        A_k = ρ W_kᵀP r/(λm)      B_k = Σ_l π_l W_kᵀP W_l/m   C_k = h_eᵀ(1/m) Σ_t f_k h   G_k = W_kᵀS/m
        D = Σ_k π_k rᵀP W_k/(λm)  E = ρ rᵀP r/(λ²m)           F = u_eᵀ Σ ρ u/(λ²m)
        H = rᵀS/(λm) + v_eᵀ Σ_e' ρ(e') v_e' (h_e'ᵀh_e + 1)/(λ²m), the second part with additive attention only

    >>> model = ScoreModel(np.eye(2), output=np.array([[1.0, -1.0]]), context=np.zeros(2), scale=1.0)
    >>> score_terms([[0], [1]], [1, 0], model).polarity.round(3)
    array([[ 0.403],
           [-0.403]])
    """
    ids, y = as_ids(texts), np.asarray(labels, dtype=np.int64).ravel()
    _check(ids, y, model)
    m, lam, e, W, V = len(ids), model.scale, model.embedding, model.output, model.context
    h, u = model.hidden, model.inner
    alpha = sparse.csr_array((_softmax(ids, model.score), ids.values, ids.offsets), shape=(m, len(e)))
    pooled = alpha @ h
    s = pooled @ W.T
    f = _force(s, y)
    pi = alpha.T @ f
    rho = (model.polarity * pi).sum(1) - alpha.T @ (f * s).sum(1)
    v = V * (1 - u**2) if model.additive is not None else np.zeros_like(u)
    r = v @ model.additive.weight if model.additive is not None else np.broadcast_to(V, h.shape)
    P = np.eye(W.shape[1]) if model.affine is None else model.affine.weight @ model.affine.weight.T
    g = rho[:, None] * r / lam + pi @ W
    S = np.zeros_like(h) if model.affine is None else e @ (e.T @ g) + g.sum(0)
    shared = ((h @ (h.T @ (rho[:, None] * v)) + rho @ v) * v).sum(1)
    return ScoreTerms(
        A=rho[:, None] * (r @ P @ W.T) / (lam * m),
        B=pi @ (W @ P @ W.T) / m,
        C=h @ (f.T @ pooled).T / m,
        G=S @ W.T / m,
        D=((r @ P @ W.T) * pi).sum(1) / (lam * m),
        E=rho * ((r @ P) * r).sum(1) / (lam**2 * m),
        F=u @ (u.T @ rho) / (lam**2 * m),
        H=(r * S).sum(1) / (lam * m) + shared / (lam**2 * m),
    )


def _force(s: Float[np.ndarray, "m K"], y: np.ndarray) -> Float[np.ndarray, "m K"]:
    """1[y = k] − p_k; with one column, y − σ(s)."""
    if s.shape[1] == 1:
        binary: Float[np.ndarray, "m K"] = y[:, None] - special.expit(s)
        return binary
    force: Float[np.ndarray, "m K"] = np.eye(s.shape[1])[y] - special.softmax(s, axis=1)
    return force


def _softmax(ids: Ragged, score: Float[np.ndarray, " V"]) -> Float[np.ndarray, " n"]:
    """α of every place."""
    a = score[ids.values]
    starts, lengths = ids.offsets[:-1], ids.lengths
    a = np.exp(a - np.repeat(np.maximum.reduceat(a, starts), lengths))
    alpha: Float[np.ndarray, " n"] = a / np.repeat(np.add.reduceat(a, starts), lengths)
    return alpha


def _check(ids: Ragged, y: np.ndarray, model: ScoreModel) -> None:
    classes = max(2, len(model.output))
    if len(ids) == 0 or ids.lengths.min() == 0:
        raise DataError("there are no texts, or one has no token; attention needs at least one")
    if len(y) != len(ids):
        raise DataError(f"{len(ids)} texts but {len(y)} labels")
    if not ((y >= 0) & (y < classes)).all():
        raise DataError(f"labels must be 0 to {classes - 1}; they are {np.unique(y).tolist()[:9]}")
    if ids.size > len(model.embedding):
        raise DataError(f"token {ids.size - 1} does not fit a vocabulary of {len(model.embedding)}")
