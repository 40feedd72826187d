"""Scores become distributions over input positions: softmax, uniform, sparsemax, sparsegen, entmax.

All are one family. α-entmax (Peters et al. 2019) solves

    p = argmax over the simplex of ⟨p, z⟩ + (1 − Σ p^α) / (α(α − 1))   ⇒   p_l = [(α − 1) z_l − τ]₊^{1/(α−1)}

with α → 1 softmax, α = 2 sparsemax; sparsegen(λ) is sparsemax of z / (1 − λ). Each map works over the last axis, and a
position where the mask is false is as good as removed: its weight is exactly 0 and no gradient passes through it. A NaN
among the scores that remain makes its row NaN, as in torch.softmax.
"""

import math
from collections.abc import Callable
from typing import Any, cast

import entmax as peer
import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import ProjectionError
from heedful.metrics.numba_kernels import compiled


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


def softmax(
    scores: Float[Tensor, "*rows L"], mask: Bool[Tensor, "*#rows #L"] | None = None
) -> Float[Tensor, "*rows L"]:
    """Every position gets some weight: p_l ∝ exp z_l.

    >>> softmax(torch.tensor([0.0, 0.0, 9.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return torch.softmax(_masked(scores, mask), dim=-1)


def uniform(
    scores: Float[Tensor, "*rows L"], mask: Bool[Tensor, "*#rows #L"] | None = None
) -> Float[Tensor, "*rows L"]:
    """The same weight everywhere, whatever the scores: p_l = 1 / L. No gradient.

    >>> uniform(torch.tensor([5.0, 1.0, 2.0]), torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    keep = torch.ones_like(scores) if mask is None else _checked(scores, mask).to(scores.dtype)
    return keep / keep.sum(-1, keepdim=True)


def sparsemax(
    scores: Float[Tensor, "*rows L"], mask: Bool[Tensor, "*#rows #L"] | None = None
) -> Float[Tensor, "*rows L"]:
    """The nearest point of the simplex (Martins & Astudillo 2016): p_l = [z_l − τ]₊, τ such that Σ p = 1.

    >>> sparsemax(torch.tensor([1.0, 0.8, 0.1]))
    tensor([0.6000, 0.4000, 0.0000])
    """
    return _entmax(scores, mask, 2.0)


def sparsegen(
    scores: Float[Tensor, "*rows L"], lam: float, mask: Bool[Tensor, "*#rows #L"] | None = None
) -> Float[Tensor, "*rows L"]:
    """Sparsemax with its sparsity set by λ < 1 (Laha et al. 2018): sparsemax(z / (1 − λ)).

    λ = 0 is sparsemax, λ → 1 one-hot, λ → −∞ uniform.

    >>> sparsegen(torch.tensor([1.0, 0.8, 0.1]), lam=0.75)
    tensor([0.9000, 0.1000, 0.0000])
    """
    if not -math.inf < lam < 1:
        raise ProjectionError(f"sparsegen's lambda is {lam}; it must be a number below 1")
    return _entmax(scores, mask, 2.0, scale=1 / (1 - lam))


def entmax15(
    scores: Float[Tensor, "*rows L"], mask: Bool[Tensor, "*#rows #L"] | None = None
) -> Float[Tensor, "*rows L"]:
    """Halfway between softmax and sparsemax: p_l = [z_l / 2 − τ]₊².

    >>> entmax15(torch.tensor([2.0, 2.0, -2.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return _entmax(scores, mask, 1.5)


def entmax(
    scores: Float[Tensor, "*rows L"], alpha: float, mask: Bool[Tensor, "*#rows #L"] | None = None
) -> Float[Tensor, "*rows L"]:
    """α-entmax for any α ≥ 1: softmax at 1, entmax15 at 1.5, sparsemax at 2; bisection in between.

    >>> entmax(torch.tensor([2.0, 2.0, -2.0]), alpha=1.7)
    tensor([0.5000, 0.5000, 0.0000])
    """
    if not 1 <= alpha < float("inf"):
        raise ProjectionError(f"entmax's alpha is {alpha}; it must be 1 or more")
    return softmax(scores, mask) if alpha == 1 else _entmax(scores, mask, float(alpha))


PROJECTIONS: dict[str, Callable[..., Tensor]] = {
    "softmax": softmax,
    "uniform": uniform,
    "sparsemax": sparsemax,
    "sparsegen": sparsegen,
    "entmax15": entmax15,
    "entmax": entmax,
}
PARAMETERS = {"sparsegen": "lambda", "entmax": "alpha"}


def project(
    name: str,
    scores: Float[Tensor, "*rows L"],
    mask: Bool[Tensor, "*#rows #L"] | None = None,
    parameter: float | None = None,
) -> Float[Tensor, "*rows L"]:
    """The projection of that name; `parameter` is sparsegen's λ or entmax's α.

    >>> project("sparsegen", torch.tensor([1.0, 0.8, 0.1]), parameter=0.75)
    tensor([0.9000, 0.1000, 0.0000])
    """
    if name not in PROJECTIONS:
        raise ProjectionError(f"no projection is called {name!r}; there are {', '.join(PROJECTIONS)}")
    if (name in PARAMETERS) != (parameter is not None):
        needs = f"needs its {PARAMETERS[name]}" if name in PARAMETERS else f"takes no parameter, but {parameter} came"
        raise ProjectionError(f"{name} {needs}")
    return PROJECTIONS[name](scores, mask=mask) if parameter is None else PROJECTIONS[name](scores, parameter, mask)


def _entmax(scores: Tensor, mask: Tensor | None, alpha: float, scale: float = 1.0) -> Tensor:
    if scores.dtype not in (torch.float32, torch.float64):
        return _entmax(scores.float(), mask, alpha, scale).to(scores.dtype)
    if mask is not None:
        mask = mask.expand_as(scores)
    function = _EntmaxUnderTransforms if torch._C._are_functorch_transforms_active() else _Entmax
    p: Tensor = function.apply(scores, mask, alpha, scale)  # type: ignore[no-untyped-call]
    return p


class _Entmax(torch.autograd.Function):
    """α-entmax of scale · scores; its Jacobian is symmetric, and backward multiplies by it."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, alpha: float, scale: float) -> Tensor:
        p = _solve(scores, mask, alpha, scale)
        ctx.alpha, ctx.scale = alpha, scale
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        inputs = *ctx.saved_tensors, *grads, ctx.alpha, ctx.scale
        if torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
            return _Multiply.apply(*inputs), None, None, None  # type: ignore[no-untyped-call]
        return _multiply(*inputs), None, None, None


class _EntmaxUnderTransforms(torch.autograd.Function):
    """The same for torch.func, whose form of a Function costs 20 µs more a call."""

    @staticmethod
    def forward(scores: Tensor, mask: Tensor | None, alpha: float, scale: float) -> Tensor:
        return _solve(scores, mask, alpha, scale)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.alpha, ctx.scale = inputs[2:]
        ctx.save_for_backward(output)

    backward = _Entmax.backward

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        scores, mask = _batch_first(info.batch_size, in_dims, inputs)
        return _entmax(scores, mask, *inputs[2:]), 0


class _Multiply(torch.autograd.Function):
    """The Jacobian times g, once more differentiable."""

    @staticmethod
    def forward(p: Tensor, g: Tensor, alpha: float, scale: float) -> Tensor:
        return _multiply(p, g, alpha, scale)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.alpha, ctx.scale = inputs[2:]
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        p, g = ctx.saved_tensors
        (h,) = grads
        s = _curvature(p, ctx.alpha)
        total = s.sum(-1, keepdim=True)
        g_centred, h_centred = (x - (s * x).sum(-1, keepdim=True) / total for x in (g, h))
        slope = (2 - ctx.alpha) * _curvature(p, ctx.alpha + 1)  # ds/dp = (2 − α) p^{1−α}
        return ctx.scale * slope * g_centred * h_centred, ctx.scale * s * h_centred, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        p, g = _batch_first(info.batch_size, in_dims, inputs)
        return _Multiply.apply(p, g, *inputs[2:]), 0  # type: ignore[no-untyped-call]


def _solve(scores: Tensor, mask: Tensor | None, alpha: float, scale: float) -> Tensor:
    if scores.shape[-1] == 0:
        raise ProjectionError(f"scores of shape {tuple(scores.shape)} have no position to put weight on")
    if not scores.is_cpu or alpha not in (1.5, 2.0):
        return plain_entmax(scores, mask, alpha, scale)
    z = _rows(scores)
    if mask is not None:
        z = np.where(_rows(mask), z, z.dtype.type(-np.inf))
    p = np.empty(scores.shape, dtype=z.dtype)
    tops = z.max(axis=1)
    if mask is not None and tops.min(initial=np.inf) == -np.inf:
        _checked(scores, mask)
    project_rows(z, tops, alpha, scale, p.reshape(z.shape))
    return torch.from_numpy(p)


def _multiply(p: Tensor, g: Tensor, alpha: float, scale: float) -> Tensor:
    if not p.is_cpu or torch._C._functorch.is_legacy_batchedtensor(g):  # the latter from grad(is_grads_batched=True)
        return plain_multiply(p, g, alpha, scale)
    weights = _rows(p)
    product = np.empty(p.shape, dtype=weights.dtype)
    multiply_rows(weights, _rows(g), alpha, scale, product.reshape(weights.shape))
    return torch.from_numpy(product)


def plain_entmax(scores: Tensor, mask: Tensor | None, alpha: float, scale: float = 1.0) -> Tensor:
    """The entmax package's map: what a GPU runs, and what the compiled kernel is tested against.

    Only differences of scores matter, so the highest is taken off first: bisection looks for τ between max z − 1 and
    max z, which beyond 2²⁴ are one float32. It is done in float64, where an α just above 1 is not yet 1.
    """
    z = _masked(scores, mask)
    z = (z - z.amax(-1, keepdim=True)) * scale
    if alpha == 2:
        p = peer.sparsemax(z, dim=-1)
    elif alpha == 1.5:
        p = peer.entmax15(z, dim=-1)
    else:
        p = peer.entmax_bisect(z.double(), alpha, dim=-1).to(z.dtype)
    return cast(Tensor, p)


def plain_multiply(p: Tensor, g: Tensor, alpha: float, scale: float = 1.0) -> Tensor:
    """The Jacobian times g, without the Jacobian: scale · s∘(g − ⟨s, g⟩ / Σs), s = p^{2−α} on the support."""
    s = _curvature(p, alpha)
    return scale * s * (g - (s * g).sum(-1, keepdim=True) / s.sum(-1, keepdim=True))


def _curvature(p: Tensor, alpha: float) -> Tensor:
    """p^{2−α} on the support, 0 elsewhere, with no infinite derivative at 0."""
    support = p > 0
    return torch.where(support, torch.where(support, p, 1.0) ** (2 - alpha), 0.0)


def _rows(x: Tensor) -> NDArray[Any]:
    """A contiguous matrix, without a copy where the tensor is contiguous."""
    return x.detach().numpy().ravel().reshape(-1, x.shape[-1])


def _masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    return scores if mask is None else scores.masked_fill(~_checked(scores, mask), -torch.inf)


def _checked(scores: Tensor, mask: Tensor) -> Tensor:
    """The mask over the scores' shape, refused where a row has no position left."""
    mask = mask.expand_as(scores)
    left = mask.any(-1)
    if not left.all():
        row = (~left).nonzero()[0].tolist()
        raise ProjectionError(f"row {row} has every position masked; a distribution needs at least one")
    return mask


def _batch_first(size: int, dims: tuple[int | None, ...], inputs: tuple[Any, ...]) -> tuple[Any, Any]:
    """The first two inputs with vmap's axis in front."""

    def front(x: Tensor | None, dim: int | None) -> Tensor | None:
        if x is None:
            return None
        return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)

    return front(inputs[0], dims[0]), front(inputs[1], dims[1])
