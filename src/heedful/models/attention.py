"""Attention: scorers give a score a_l to each hidden state h_l, projections map scores onto the simplex.

All projections but `uniform` are one family. α-entmax (Peters et al. 2019) solves

    p = argmax over the simplex of ⟨p, z⟩ + (1 − Σ p^α) / (α(α − 1))   ⇒   p_l = [(α − 1) z_l − τ]₊^{1/(α−1)}

with α → 1 softmax, α = 2 sparsemax; sparsegen(λ) is sparsemax of z / (1 − λ). Each projection works on the last axis. A
masked position (mask false) is treated as removed: its weight is exactly 0 and it gets no gradient. A NaN among the
other scores makes its row NaN, as in torch.softmax.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from entmax import entmax15 as exact_entmax15
from entmax import entmax_bisect
from entmax import sparsemax as exact_sparsemax
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.errors import ConfigError, ProjectionError
from heedful.models.matmul import Linear

States = Float[Tensor, "*rows L D"]
Scores = Float[Tensor, "*rows L"]
Weights = Float[Tensor, "*rows L"]
Mask = Bool[Tensor, "*#rows #L"] | None


class MLPScorer(nn.Module):
    """One hidden ReLU layer (snell2021, Eq. 7).

        a_l = vᵀ ReLU(Q h_l)

    Departure: both maps have a bias; the paper's Eq. 7 has none, its parameter count does.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = Linear(width, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, h: States) -> Scores:
        """One score per hidden state."""
        scores: Tensor = self.out(self.hidden(h).relu()).squeeze(-1)
        return scores


class AdditiveScorer(nn.Module):
    """Additive attention without a query (meister2021 §2; sunlu2020 §3.5).

    a_l = vᵀ tanh(W h_l + b) / λ
    """

    def __init__(self, width: int, hidden: int, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.hidden = Linear(width, hidden)
        self.out = nn.Linear(hidden, 1, bias=False)

    def forward(self, h: States) -> Scores:
        """One score per hidden state."""
        scores: Tensor = self.out(self.hidden(h).tanh()).squeeze(-1) / self.scale
        return scores


class DotScorer(nn.Module):
    """Scaled dot product with a learned context vector V (sunlu2020, Eq. 1).

        a_l = h_lᵀV / λ

    V ~ N(0, 1). With λ = √D it is the Transformer's scaled dot product with a learned query.
    """

    def __init__(self, width: int, scale: float) -> None:
        super().__init__()
        self.context = nn.Linear(width, 1, bias=False)
        nn.init.normal_(self.context.weight)
        self.scale = scale

    def forward(self, h: States) -> Scores:
        """One score per hidden state."""
        scores: Tensor = self.context(h).squeeze(-1) / self.scale
        return scores


SCORERS: dict[str, Callable[[ModelConfig, int], nn.Module]] = {
    "mlp": lambda config, width: MLPScorer(width, config.scorer_hidden),
    "additive": lambda config, width: AdditiveScorer(width, config.scorer_hidden, config.scale),
    "dot": lambda config, width: DotScorer(width, config.scale),
}


def build_scorer(config: ModelConfig, width: int) -> nn.Module:
    """Build the scorer that a configuration names, for hidden states of the given width.

    >>> sum(p.numel() for p in build_scorer(ModelConfig(), width=512).parameters())
    131585
    """
    if config.scorer not in SCORERS:
        raise ConfigError(f"model.scorer {config.scorer!r} is not one of {', '.join(SCORERS)}")
    return SCORERS[config.scorer](config, width)


def softmax(scores: Scores, mask: Mask = None) -> Weights:
    """Every position gets some weight: p_l ∝ exp z_l.

    >>> softmax(torch.tensor([0.0, 0.0, 9.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return torch.softmax(_masked(scores, mask), dim=-1)


def uniform(scores: Scores, mask: Mask = None) -> Weights:
    """The same weight everywhere, whatever the scores: p_l = 1 / L. No gradient.

    >>> uniform(torch.tensor([5.0, 1.0, 2.0]), torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    keep = torch.ones_like(scores) if mask is None else _checked(scores, mask).to(scores.dtype)
    return keep / keep.sum(-1, keepdim=True)


def sparsemax(scores: Scores, mask: Mask = None) -> Weights:
    """The nearest point on the simplex (Martins & Astudillo 2016): p_l = [z_l − τ]₊, τ such that Σ p = 1.

    >>> sparsemax(torch.tensor([1.0, 0.8, 0.1]))
    tensor([0.6000, 0.4000, 0.0000])
    """
    return _entmax(scores, mask, 2.0)


def sparsegen(scores: Scores, lam: float, mask: Mask = None) -> Weights:
    """Sparsemax with a sparsity parameter λ < 1 (Laha et al. 2018): sparsemax(z / (1 − λ)).

    λ = 0 is sparsemax, λ → 1 one-hot, λ → −∞ uniform.

    >>> sparsegen(torch.tensor([1.0, 0.8, 0.1]), lam=0.75)
    tensor([0.9000, 0.1000, 0.0000])
    """
    if not -math.inf < lam < 1:
        raise ProjectionError(f"sparsegen's lambda is {lam}; it must be a number below 1")
    return _entmax(scores, mask, 2.0, scale=1 / (1 - lam))


def entmax15(scores: Scores, mask: Mask = None) -> Weights:
    """Halfway between softmax and sparsemax: p_l = [z_l / 2 − τ]₊².

    >>> entmax15(torch.tensor([2.0, 2.0, -2.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return _entmax(scores, mask, 1.5)


def entmax(scores: Scores, alpha: float, mask: Mask = None) -> Weights:
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


def project(name: str, scores: Scores, mask: Mask = None, parameter: float | None = None) -> Weights:
    """Apply a projection by name; `parameter` is sparsegen's λ or entmax's α.

    >>> project("sparsegen", torch.tensor([1.0, 0.8, 0.1]), parameter=0.75)
    tensor([0.9000, 0.1000, 0.0000])
    """
    if name not in PROJECTIONS:
        raise ProjectionError(f"unknown projection {name!r}; there are {', '.join(PROJECTIONS)}")
    if (name in PARAMETERS) != (parameter is not None):
        needs = f"needs its {PARAMETERS[name]}" if name in PARAMETERS else f"takes no parameter, but {parameter} came"
        raise ProjectionError(f"{name} {needs}")
    return PROJECTIONS[name](scores, mask=mask) if parameter is None else PROJECTIONS[name](scores, parameter, mask)


def _entmax(scores: Tensor, mask: Tensor | None, alpha: float, scale: float = 1.0) -> Tensor:
    if scores.shape[-1] == 0:
        raise ProjectionError(f"scores of shape {tuple(scores.shape)} have no position to put weight on")
    if scores.dtype not in (torch.float32, torch.float64):
        return _entmax(scores.float(), mask, alpha, scale).to(scores.dtype)
    if mask is not None:
        mask = mask.expand_as(scores)
    p: Tensor = _Entmax.apply(scores, mask, alpha, scale)  # type: ignore[no-untyped-call]
    return p


class _Entmax(torch.autograd.Function):
    """α-entmax of scale · scores. Its Jacobian is symmetric, and backward multiplies by it.

    In the form that `torch.func` needs: `forward` without a context, and a rule for `vmap`.
    """

    @staticmethod
    def forward(scores: Tensor, mask: Tensor | None, alpha: float, scale: float) -> Tensor:
        return _solve(_masked(scores, mask), alpha, scale).to(scores.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.alpha, ctx.scale = inputs[2:]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        """scale · s∘(g − ⟨s, g⟩ / Σs), s = p^{2−α} on the support of p; differentiable once more."""
        (p,), (g,) = ctx.saved_tensors, grads
        support = p > 0
        # The inner `where` keeps an infinite derivative at 0 out of the second derivative.
        s = torch.where(support, torch.where(support, p, 1.0).double() ** (2 - ctx.alpha), 0.0).to(p.dtype)
        mean = (s * g).double().sum(-1, keepdim=True) / s.double().sum(-1, keepdim=True)
        return (s * (ctx.scale * (g - mean))).to(p.dtype), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        def batched(x: Tensor, dim: int | None) -> Tensor:
            return x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)

        mask = None if inputs[1] is None else batched(inputs[1], in_dims[1])
        return _entmax(batched(inputs[0], in_dims[0]), mask, *inputs[2:]), 0


def _solve(z: Scores, alpha: float, scale: float) -> Weights:
    """α-entmax by the package entmax, in float64: an α just above 1 is not yet 1, and thresholds are hardly rounded.

    The maximum is subtracted first: only differences of scores matter, and the threshold is then near 0.
    """
    top = z.amax(-1, keepdim=True)
    x = (z.double() - top.double()) * scale  # in single precision a difference could overflow
    if alpha not in (1.5, 2):
        p: Tensor = entmax_bisect(x, alpha, dim=-1)
    else:
        undefined = x.isnan().any(-1, keepdim=True)  # the package has no threshold for such a row
        bounded = torch.where(undefined, 0.0, x).clamp(min=-4)  # no weight below −2; squares could overflow
        p = exact_sparsemax(bounded, dim=-1) if alpha == 2 else exact_entmax15(bounded, dim=-1)
        p = p.masked_fill(undefined, torch.nan)
    return p.masked_fill((z == -torch.inf) & (top > -torch.inf), 0.0)


def _masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    return scores if mask is None else scores.masked_fill(~_checked(scores, mask), -torch.inf)


def _checked(scores: Tensor, mask: Tensor) -> Tensor:
    """The mask in the shape of the scores; an error if a row has no position left."""
    mask = mask.expand_as(scores)
    kept = mask.any(-1)
    if not kept.all():
        row = (~kept).nonzero()[0].tolist()
        raise ProjectionError(f"row {row} has every position masked; a distribution needs at least one")
    return mask
