"""Adversaries: attention that differs as much as it can from a trained model's, while predictions stay as they were.

All minimise, in the mean over texts, with a penalty λ ≥ 0 (Wiegreffe & Pinter 2019, §4; meister2021, App. C.1),

    TVD(ŷ, ŷ_base) − λ · divergence(α, α_base),   divergence = JSD(α, α_base) or KL(α ‖ α_base)

or, where the penalty is None, −divergence alone: how far attention can go if predictions do not matter.
*frozen*: everything but the scorer stays as the base has it; *instance*: nothing is trained, but the scores of each
text are chosen anew (Jain & Wallace 2019, §4.2); *unfrozen*: a whole new model. Divergences are finite, and so are
their gradients, where weights are exactly 0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.batching import Batch, evaluation_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import ConfigError
from heedful.models.attention import build_scorer
from heedful.models.classifier import AttentionClassifier, ClassifierOutput, predict
from heedful.models.projections import project
from heedful.models.training import undisturbed

FLOOR = 1e-6
DivergenceName = Literal["jsd", "kl"]


def jensen_shannon(p: Float[Tensor, "*rows L"], q: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows"]:
    """Jensen–Shannon divergence in nats, in [0, ln 2], differentiable in both.

        JSD(p, q) = ½ Σ_l p_l ln(2p_l / (p_l + q_l)) + ½ Σ_l q_l ln(2q_l / (p_l + q_l)),   0 ln 0 = 0

    Where p_l = 0 its derivative, −∞ in the limit, counts as 0: no projection lets it through there.

    >>> jensen_shannon(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    return (_relative(2 * p, p + q) + _relative(2 * q, p + q)) / 4


def kullback_leibler(
    p: Float[Tensor, "*rows L"], q: Float[Tensor, "*rows L"], floor: float = FLOOR
) -> Float[Tensor, "*rows"]:
    """Kullback–Leibler divergence in nats with q held above a floor, so that it is finite: at most ln(1/floor).

        KL(p ‖ q) = Σ_l p_l ln(p_l / max(q_l, floor)),   0 ln 0 = 0

    Departure: without the floor, whatever leaves the support of sparse attention diverges infinitely, and nothing can
    be gained any more. Where p_l = 0 its derivative counts as 0.

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


def total_variation_loss(p: Float[Tensor, "*rows L"], q: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows"]:
    """Total variation distance, in [0, 1].

        TVD(p, q) = ½ Σ_l |p_l − q_l|

    >>> total_variation_loss(torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75]))
    tensor(0.2500)
    """
    return (p - q).abs().sum(-1) / 2


def _relative(p: Tensor, q: Tensor) -> Tensor:
    """Σ p ln(p/q) where p > 0; neither value nor gradient from anywhere else."""
    used = p > 0
    ratio = torch.where(used, p, 1.0) / torch.where(used, q, 1.0)
    return torch.where(used, p * ratio.log(), 0.0).sum(-1)


DIVERGENCES: dict[DivergenceName, Callable[[Tensor, Tensor], Tensor]] = {
    "jsd": jensen_shannon,
    "kl": kullback_leibler,
}


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
    """What an adversary makes small; a penalty of None leaves predictions out of it."""

    divergence: DivergenceName
    penalty: float | None

    def __post_init__(self) -> None:
        if self.penalty is not None and self.penalty < 0:
            raise ConfigError(f"penalty is {self.penalty}; it must be 0 or more")

    def of(
        self, alpha: Float[Tensor, "B L"], logits: Float[Tensor, "B K"], wanted: ClassifierOutput
    ) -> Float[Tensor, " B"]:
        """TVD(ŷ, ŷ_base) − λ · divergence(α, α_base) of each text."""
        diverged = DIVERGENCES[self.divergence](alpha, wanted.alpha)
        if self.penalty is None:
            return -diverged
        return total_variation_loss(probabilities(logits), probabilities(wanted.logits)) - self.penalty * diverged


class Adversary:
    """A classifier in training against a base; what `models.training.train` needs of a model. The base is only read.

    A model in mode `only` is taken for a frozen adversary, which differs from its base in the scorer alone.
    """

    def __init__(
        self, model: AttentionClassifier, base: AttentionClassifier, divergence: DivergenceName, penalty: float | None
    ) -> None:
        self.model, self.base, self.goal = model, base, Goal(divergence, penalty)

    @property
    def scorer(self) -> nn.Module:
        """The attention parameters, which may have a learning rate of their own."""
        return self.model.scorer

    def parameters(self) -> Iterator[nn.Parameter]:
        """Those of the adversary, not of its base."""
        return self.model.parameters()

    def train(self, mode: bool = True) -> object:
        """Switch the adversary's dropout on or off."""
        return self.model.train(mode)

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """What the adversary makes small, in the mean over texts."""
        with undisturbed((self.base,)), torch.no_grad():
            wanted = self.base(batch.tokens, batch.mask)
        alpha, logits = self._attend(batch, wanted)
        return self.goal.of(alpha, logits, wanted).mean()

    def _attend(self, batch: Batch, wanted: ClassifierOutput) -> tuple[Tensor, Tensor]:
        """α and logits; a frozen adversary has the base's hidden states, which need not be computed twice."""
        model, config = self.model, self.model.config
        if model.mode != "only":
            seen = model(batch.tokens, batch.mask)
            return seen.alpha, seen.logits
        alpha = project(config.projection, model.scorer(wanted.hidden), batch.mask, config.projection_parameter)
        return alpha, model.from_attention(alpha, wanted.hidden)


def frozen_adversary(base: AttentionClassifier, vocabulary: int, seed: int) -> AttentionClassifier:
    """A copy of the base of which the scorer alone trains, from a new start.

    Departure: a start from the base's own scorer would stay there, as divergence has no gradient where it is 0.
    """
    model = AttentionClassifier(base.config, vocabulary, base.classes, "only").to(base.output.weight.device)
    model.load_state_dict(base.state_dict())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.scorer.load_state_dict(build_scorer(base.config, base.encoder.width).state_dict())
    return model


@dataclass(frozen=True)
class Attack:
    """What an adversary came to, one value for each text of a split; `highest` is the JSD no attention can exceed."""

    jsd: NDArray[np.float64]
    highest: NDArray[np.float64]
    tvd: NDArray[np.float64]
    correct: NDArray[np.bool_]
    base_correct: NDArray[np.bool_]


def compare(model: AttentionClassifier, base: AttentionClassifier, split: EncodedSplit) -> Attack:
    """A frozen or unfrozen adversary against its base on some texts; both are left as they were found."""

    def attacked(batch: Batch, wanted: ClassifierOutput) -> tuple[Tensor, Tensor]:
        seen = model(batch.tokens, batch.mask)
        return seen.alpha, seen.logits

    with undisturbed((model, base)):
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
    """Scores of each text chosen by Adam from a random start, N(0, 1), under the base's own projection.

    Departure: Jain & Wallace bound the change of ŷ by 0.01 instead; their models all have softmax.
    """
    random, goal, config = torch.Generator().manual_seed(seed), Goal(divergence, penalty), base.config

    def attacked(batch: Batch, wanted: ClassifierOutput) -> tuple[Tensor, Tensor]:
        scores = torch.randn(batch.mask.shape, generator=random).to(wanted.hidden).requires_grad_()
        optimiser = torch.optim.Adam([scores], lr=learning_rate)
        for _ in range(steps):
            with torch.enable_grad():
                alpha = project(config.projection, scores, batch.mask, config.projection_parameter)
                loss = goal.of(alpha, base.from_attention(alpha, wanted.hidden), wanted).sum()
            (scores.grad,) = torch.autograd.grad(loss, scores)
            optimiser.step()
        alpha = project(config.projection, scores.detach(), batch.mask, config.projection_parameter)
        return alpha, base.from_attention(alpha, wanted.hidden)

    with undisturbed((base,)):
        return _attack(base, split, attacked)


@torch.no_grad()
def _attack(
    base: AttentionClassifier,
    split: EncodedSplit,
    attacked: Callable[[Batch, ClassifierOutput], tuple[Tensor, Tensor]],
) -> Attack:
    """Each batch's α and logits under attack beside those of the base, back in the order of the split."""
    found = {name: np.empty(len(split)) for name in ("jsd", "highest", "tvd", "correct", "base_correct")}
    for batch in evaluation_batches(split, device=base.output.weight.device):
        wanted = base(batch.tokens, batch.mask)
        alpha, logits = attacked(batch, wanted)
        values = {
            "jsd": jensen_shannon(alpha.double(), wanted.alpha.double()),
            "highest": highest_divergence(wanted.alpha.double(), batch.mask),
            "tvd": total_variation_loss(probabilities(logits), probabilities(wanted.logits)),
            "correct": predict(logits) == batch.labels,
            "base_correct": predict(wanted.logits) == batch.labels,
        }
        for name, value in values.items():
            found[name][batch.index] = value.double().cpu().numpy()
    return Attack(found["jsd"], found["highest"], found["tvd"], found["correct"] > 0, found["base_correct"] > 0)
