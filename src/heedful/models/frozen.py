"""Training of attention alone (snell2021 A.6): the encoder never changes, so each text is encoded once."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.data.batching import Batch
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import ConfigError
from heedful.models.classifier import AttentionClassifier
from heedful.models.training import OtherLoss

MAX_BYTES = 512 * 2**20  # of kept states; with more, texts are encoded anew in each batch, without gradients


class FrozenStates:
    """The states of a frozen encoder for the texts of a split: each text's are kept once it has been encoded.

    If those of all texts take more than `max_bytes`, or the encoder has dropout, nothing is kept.
    """

    def __init__(self, model: AttentionClassifier, split: EncodedSplit, max_bytes: int = MAX_BYTES) -> None:
        size = int(split.lengths.sum()) * model.encoder.width * model.output.weight.element_size()
        self._model, self._keeps = model, size <= max_bytes and not model.config.dropout
        self._kept: dict[int, Float[Tensor, "L D"]] = {}

    @torch.no_grad()
    def __call__(self, batch: Batch) -> Float[Tensor, "B L D"]:
        """The states of a batch of the split's texts; those of padding may be anything finite."""
        texts = batch.index.tolist()
        if all(i in self._kept for i in texts):
            return nn.utils.rnn.pad_sequence([self._kept[i] for i in texts], batch_first=True)
        hidden: Tensor = self._model.encoder(self._model.embedding(batch.tokens), batch.mask)[0]
        if self._keeps:
            for i, states, length in zip(texts, hidden, batch.lengths.tolist(), strict=True):
                self._kept[i] = states[:length].clone()
        return hidden


class AttentionTraining(OtherLoss[AttentionClassifier]):
    """A classifier of mode `only` for the training loop, on states that are computed once."""

    def __init__(self, model: AttentionClassifier, train: EncodedSplit, max_bytes: int = MAX_BYTES) -> None:
        if model.mode != "only":
            raise ConfigError(f"attention alone is trained in a model of mode 'only'; this one's is {model.mode!r}")
        super().__init__(model)
        self._states = FrozenStates(model, train, max_bytes)

    def at(self, step: int) -> AttentionClassifier:
        """The model, which is the same before every step."""
        return self.model

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """The model's loss of a batch."""
        return self.model.loss_of(self.model.from_hidden(self._states(batch), batch.mask), batch)
