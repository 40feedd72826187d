"""Adversaries: attention that differs as much as possible from a trained model's, while predictions stay the same.

All minimise, in the mean over texts, with a penalty λ ≥ 0 (Wiegreffe & Pinter 2019, §4; meister2021, App. C.1),

    TVD(ŷ, ŷ_base) − λ · divergence(α, α_base),   divergence = JSD(α, α_base) or KL(α ‖ α_base)

or, if the penalty is None, −divergence alone: how far attention can move if predictions do not matter.
*frozen*: only the scorer is trained, the rest is the base's; *instance*: nothing is trained, but the scores of each
text are optimised (Jain & Wallace 2019, §4.2); *unfrozen*: a new model. Divergences and their gradients are finite
where weights are exactly 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.batching import Batch, evaluation_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import ConfigError
from heedful.models.attention import build_scorer, project
from heedful.models.classifier import AttentionClassifier, ClassifierOutput, predict
from heedful.models.training import OtherLoss, evaluation_mode

Rows = Float[Tensor, "*rows L"]
FLOOR = 1e-6
DivergenceName = Literal["jsd", "kl"]


def jensen_shannon(p: Rows, q: Rows) -> Float[Tensor, "*rows"]:
    """Jensen–Shannon divergence in nats, in [0, ln 2], differentiable in both (`metrics.entropy` takes arrays).

        JSD(p, q) = ½ Σ_l p_l ln(2p_l / (p_l + q_l)) + ½ Σ_l q_l ln(2q_l / (p_l + q_l)),   0 ln 0 = 0

    Where p_l = 0 its derivative, −∞ in the limit, counts as 0: the gradient of every projection is 0 there.

    >>> jensen_shannon(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    return (_relative(2 * p, p + q) + _relative(2 * q, p + q)) / 4


def kullback_leibler(p: Rows, q: Rows, floor: float = FLOOR) -> Float[Tensor, "*rows"]:
    """Kullback–Leibler divergence in nats with q clamped to a floor, so that it is finite: at most ln(1/floor).

        KL(p ‖ q) = Σ_l p_l ln(p_l / max(q_l, floor)),   0 ln 0 = 0

    Departure: without the floor, any weight outside the support of sparse attention makes the divergence infinite.
    Where p_l = 0 its derivative counts as 0.

    >>> kullback_leibler(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]))
    tensor(13.8155)
    """
    return _relative(p, q.clamp_min(floor))


def highest_divergence(q: Float[Tensor, "B L"], mask: Bool[Tensor, "B L"]) -> Float[Tensor, " B"]:
    """The largest JSD(p, q) of any p: all weight where q has least, as JSD is convex in p. Below ln 2 unless q has a 0.

    >>> highest_divergence(torch.tensor([[0.5, 0.5]]), torch.tensor([[True, True]]))
    tensor([0.2158])
    """
    least = q.masked_fill(~mask, torch.inf).argmin(-1, keepdim=True)
    return jensen_shannon(torch.zeros_like(q).scatter(-1, least, 1.0), q)


def total_variation(p: Rows, q: Rows) -> Float[Tensor, "*rows"]:
    """Total variation distance, in [0, 1], differentiable in both (`metrics.entropy` takes arrays).

        TVD(p, q) = ½ Σ_l |p_l − q_l|

    >>> total_variation(torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75]))
    tensor(0.2500)
    """
    return (p - q).abs().sum(-1) / 2


def _relative(p: Tensor, q: Tensor) -> Tensor:
    """Σ p ln(p/q) over p > 0; other positions add neither value nor gradient."""
    used = p > 0
    ratio = torch.where(used, p, 1.0) / torch.where(used, q, 1.0)
    return torch.where(used, p * ratio.log(), 0.0).sum(-1)


DIVERGENCES: dict[DivergenceName, Callable[[Tensor, Tensor], Tensor]] = {"jsd": jensen_shannon, "kl": kullback_leibler}


def probabilities(logits: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows C"]:
    """The distribution over classes; one logit means two classes.

    >>> probabilities(torch.zeros(1, 1))
    tensor([[0.5000, 0.5000]])
    """
    if logits.shape[-1] > 1:
        return logits.softmax(-1)
    return torch.cat([(-logits).sigmoid(), logits.sigmoid()], dim=-1)


@dataclass(frozen=True)
class Goal:
    """The loss of an adversary; a penalty of None leaves predictions out."""

    divergence: DivergenceName
    penalty: float | None

    def __post_init__(self) -> None:
        if self.penalty is not None and self.penalty < 0:
            raise ConfigError(f"penalty is {self.penalty}; it must be 0 or more")

    def loss(
        self, alpha: Float[Tensor, "B L"], logits: Float[Tensor, "B K"], base_output: ClassifierOutput
    ) -> Float[Tensor, " B"]:
        """TVD(ŷ, ŷ_base) − λ · divergence(α, α_base) of each text."""
        divergence = DIVERGENCES[self.divergence](alpha, base_output.alpha)
        if self.penalty is None:
            return -divergence
        return total_variation(probabilities(logits), probabilities(base_output.logits)) - self.penalty * divergence


class Adversary(OtherLoss[AttentionClassifier]):
    """A classifier trained against a base, for `models.training.train`. The base is not changed.

    A model in mode `only` is a frozen adversary: it differs from its base in the scorer alone.
    """

    def __init__(
        self, model: AttentionClassifier, base: AttentionClassifier, divergence: DivergenceName, penalty: float | None
    ) -> None:
        super().__init__(model)
        self.base, self.goal = base, Goal(divergence, penalty)

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """The mean loss over texts."""
        with evaluation_mode((self.base,)), torch.no_grad():
            base_output = self.base(batch.tokens, batch.mask)
        alpha, logits = self._attend(batch, base_output)
        return self.goal.loss(alpha, logits, base_output).mean()

    def _attend(self, batch: Batch, base_output: ClassifierOutput) -> tuple[Tensor, Tensor]:
        """α and logits; a frozen adversary reuses the base's hidden states."""
        model, config = self.model, self.model.config
        if model.mode != "only":
            output = model(batch.tokens, batch.mask)
            return output.alpha, output.logits
        alpha = project(config.projection, model.scorer(base_output.hidden), batch.mask, config.projection_parameter)
        return alpha, model.from_attention(alpha, base_output.hidden)


def frozen_adversary(base: AttentionClassifier, vocabulary: int, seed: int) -> AttentionClassifier:
    """A copy of the base with a new scorer, which alone is trained.

    Departure: training would not leave the base's own scorer, since the divergence has no gradient where it is 0.
    """
    model = AttentionClassifier(base.config, vocabulary, base.classes, "only").to(base.output.weight.device)
    model.load_state_dict(base.state_dict())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.scorer.load_state_dict(build_scorer(base.config, base.encoder.width).state_dict())
    return model


@dataclass(frozen=True)
class Attack:
    """Result of an adversary, one value for each text of a split; `highest` is the largest possible JSD."""

    jsd: NDArray[np.float64]
    highest: NDArray[np.float64]
    tvd: NDArray[np.float64]
    correct: NDArray[np.bool_]
    base_correct: NDArray[np.bool_]


def compare(model: AttentionClassifier, base: AttentionClassifier, split: EncodedSplit) -> Attack:
    """A frozen or unfrozen adversary compared with its base on some texts; both are left as they were found."""

    def attacked(batch: Batch, base_output: ClassifierOutput) -> tuple[Tensor, Tensor]:
        output = model(batch.tokens, batch.mask)
        return output.alpha, output.logits

    with evaluation_mode((model, base)):
        return _attack(base, split, attacked)


def attack_instances(
    base: AttentionClassifier,
    split: EncodedSplit,
    divergence: DivergenceName,
    penalty: float | None,
    *,
    steps: int,
    learning_rate: float,
    seed: int,
) -> Attack:
    """Scores of each text optimised by Adam from a random start, N(0, 1), under the base's own projection.

    Departure: Jain & Wallace bound the change of ŷ by 0.01 instead; their models all have softmax.
    """
    random, goal, config = torch.Generator().manual_seed(seed), Goal(divergence, penalty), base.config

    def attacked(batch: Batch, base_output: ClassifierOutput) -> tuple[Tensor, Tensor]:
        scores = torch.randn(batch.mask.shape, generator=random).to(base_output.hidden).requires_grad_()
        optimiser = torch.optim.Adam([scores], lr=learning_rate)
        for _ in range(steps):
            with torch.enable_grad():
                alpha = project(config.projection, scores, batch.mask, config.projection_parameter)
                loss = goal.loss(alpha, base.from_attention(alpha, base_output.hidden), base_output).sum()
            (scores.grad,) = torch.autograd.grad(loss, scores)
            optimiser.step()
        alpha = project(config.projection, scores.detach(), batch.mask, config.projection_parameter)
        return alpha, base.from_attention(alpha, base_output.hidden)

    with evaluation_mode((base,)):
        return _attack(base, split, attacked)


@torch.no_grad()
def _attack(
    base: AttentionClassifier, split: EncodedSplit, attacked: Callable[[Batch, ClassifierOutput], tuple[Tensor, Tensor]]
) -> Attack:
    """Compare each batch's α and logits under attack with the base's; results in the order of the split."""
    results: dict[str, NDArray[Any]] = {name: np.empty(len(split)) for name in ("jsd", "highest", "tvd")}
    results |= {name: np.empty(len(split), dtype=bool) for name in ("correct", "base_correct")}
    for batch in evaluation_batches(split, device=base.output.weight.device):
        base_output = base(batch.tokens, batch.mask)
        alpha, logits = attacked(batch, base_output)
        values = {
            "jsd": jensen_shannon(alpha.double(), base_output.alpha.double()),
            "highest": highest_divergence(base_output.alpha.double(), batch.mask),
            "tvd": total_variation(probabilities(logits), probabilities(base_output.logits)),
            "correct": predict(logits) == batch.labels,
            "base_correct": predict(base_output.logits) == batch.labels,
        }
        for name, value in values.items():
            results[name][batch.index] = value.cpu().numpy()
    return Attack(**results)
