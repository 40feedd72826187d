"""Scorers: what makes an attention score a_l of a hidden state h_l, before any projection."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.errors import ConfigError


class MLPScorer(nn.Module):
    """One hidden ReLU layer (snell2021, Eq. 7).

        a_l = vᵀ ReLU(Q h_l)

    Departure: both maps have a bias; the paper's Eq. 7 has none, its parameter count does.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, h: Float[Tensor, "*rows L D"]) -> Float[Tensor, "*rows L"]:
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
        self.hidden = nn.Linear(width, hidden)
        self.out = nn.Linear(hidden, 1, bias=False)

    def forward(self, h: Float[Tensor, "*rows L D"]) -> Float[Tensor, "*rows L"]:
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

    def forward(self, h: Float[Tensor, "*rows L D"]) -> Float[Tensor, "*rows L"]:
        """One score per hidden state."""
        scores: Tensor = self.context(h).squeeze(-1) / self.scale
        return scores


SCORERS: dict[str, Callable[[ModelConfig, int], nn.Module]] = {
    "mlp": lambda config, width: MLPScorer(width, config.scorer_hidden),
    "additive": lambda config, width: AdditiveScorer(width, config.scorer_hidden, config.scale),
    "dot": lambda config, width: DotScorer(width, config.scale),
}


def build_scorer(config: ModelConfig, width: int) -> nn.Module:
    """The scorer a configuration names, for hidden states of the given width.

    >>> sum(p.numel() for p in build_scorer(ModelConfig(), width=512).parameters())
    131585
    """
    if config.scorer not in SCORERS:
        raise ConfigError(f"model.scorer {config.scorer!r} is not one of {', '.join(SCORERS)}")
    return SCORERS[config.scorer](config, width)
