"""Help for attention at first: held uniform for some steps, or drawn towards α^IBM by a loss that fades."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from heedful.data.batching import Batch, PairBatch
from heedful.errors import ConfigError
from heedful.models.classifier import AttentionClassifier
from heedful.models.lexicon import Lexicon
from heedful.models.training import OtherLoss
from heedful.models.translator import PairModel


class AttentionGuide:
    """α^IBM of a lexicon as the target of attention, for the first `steps` steps of training.

        loss = NLL + w · mean over heads and output words of −Σ_l α^IBM_{t,l} ln α_{t,l},    w = 1 − step / steps

    Weights of attention that underflow to 0 count as the least normal number, so that the loss stays finite.
    """

    def __init__(self, lexicon: Lexicon, steps: int) -> None:
        if steps < 1:
            raise ConfigError(f"attention is guided for {steps} steps; it must be 1 or more")
        self.lexicon, self.steps = lexicon, steps

    def weight(self, step: int) -> float:
        """The weight of the guide at a step: it falls from 1 to 0.

        >>> from scipy import sparse
        >>> guide = AttentionGuide(Lexicon(sparse.csr_array([[1.0]])), steps=4)
        >>> [guide.weight(step) for step in (0, 1, 4, 9)]
        [1.0, 0.75, 0.0, 0.0]
        """
        return max(0.0, 1 - step / self.steps)

    def targets(self, batch: PairBatch) -> Float[Tensor, "B T L"]:
        """α^IBM of every output word; uniform over the words of a source that never met it, 0 at padding."""
        source, target = batch.source.cpu().numpy(), batch.target_out.cpu().numpy()
        B, L = source.shape
        T = target.shape[1]
        words, outputs = self.lexicon.table.shape
        rows = np.broadcast_to(source[:, None, :], (B, T, L)).reshape(-1)
        columns = np.broadcast_to(target[:, :, None], (B, T, L)).reshape(-1)
        known = (rows < words - self.lexicon.null) & (columns < outputs)
        beta = np.zeros(B * T * L)
        if known.any():
            beta[known] = self.lexicon.table[rows[known], columns[known]]
        real = batch.source_mask[:, None, :].expand(B, T, L)
        found = torch.from_numpy(beta.reshape(B, T, L)).to(batch.source.device) * real
        total = found.sum(-1, keepdim=True)
        alpha = torch.where(
            total > 0, found / total.clamp_min(torch.finfo(total.dtype).tiny), real / real.sum(-1, True)
        )
        return alpha.float()

    def loss(self, model: PairModel, batch: PairBatch, step: int) -> Float[Tensor, ""]:
        """The loss of a batch at a step; once the guide has faded, the model's own."""
        weight = self.weight(step)
        if weight == 0.0:
            return model.loss(batch)
        output, real = model(batch), batch.target_mask
        own = F.cross_entropy(model.read(output.context[real], output.states[real]), batch.target_out[real])
        logs = output.alpha.clamp_min(torch.finfo(output.alpha.dtype).tiny).log()
        away = -(self.targets(batch)[:, None] * logs).sum(-1).mean(1)
        loss: Tensor = own + weight * away[real].mean()
        return loss


class HelpedModel(OtherLoss[AttentionClassifier | PairModel]):
    """A model for the training loop whose attention is helped in the first steps; the model itself stays the same.

    uniform_steps: attention is held uniform for so many steps, then released. guide: its steps count from the release.

    >>> from heedful.config import ModelConfig
    >>> helped = HelpedModel(AttentionClassifier(ModelConfig(3, hidden=2), 5, 2), uniform_steps=2)
    >>> [helped.at(step).mode for step in (0, 1, 2)]
    ['uniform', 'uniform', 'learned']
    """

    def __init__(
        self, model: AttentionClassifier | PairModel, *, uniform_steps: int = 0, guide: AttentionGuide | None = None
    ) -> None:
        super().__init__(model)
        self.uniform_steps, self.guide, self.step = uniform_steps, guide, 0

    def at(self, step: int) -> AttentionClassifier | PairModel:
        """The model as it is before this step."""
        self.step, self.model.mode = step, "uniform" if step < self.uniform_steps else "learned"
        return self.model

    def loss(self, batch: Batch | PairBatch) -> Float[Tensor, ""]:
        """The loss of a batch at the present step."""
        if self.guide is None or self.step < self.uniform_steps:
            return self.model.loss(batch)  # type: ignore[arg-type]
        assert isinstance(self.model, PairModel)
        assert isinstance(batch, PairBatch)
        return self.guide.loss(self.model, batch, self.step - self.uniform_steps)
