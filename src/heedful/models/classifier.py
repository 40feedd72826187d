"""The attention classifier, its loss and its lexical probe β."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.config import AttentionMode, ModelConfig
from heedful.data.batching import Batch
from heedful.data.vocabulary import PAD
from heedful.errors import ConfigError
from heedful.models.attention import DotScorer, build_scorer, project
from heedful.models.encoders import build_encoder


@dataclass(frozen=True)
class ClassifierOutput:
    """Everything that a forward pass computes.

    Two classes have one logit (that of class 1), K > 2 classes have K.
    """

    logits: Float[Tensor, "B K"]
    scores: Float[Tensor, "B L"]
    alpha: Float[Tensor, "B L"]
    hidden: Float[Tensor, "B L D"]
    self_attention: tuple[Float[Tensor, "B H L L"], ...] = ()


class AttentionClassifier(nn.Module):
    """Embedding → encoder → scorer → projection → linear (snell2021, Eqs 7–8; meister2021 §2; sunlu2020 §3).

    `mode` says how attention is trained: `learned`; `uniform`, α_l = 1/L always (snell2021 §3.2); `frozen`, the scorer
    stays at its initialisation; `only`, everything except the scorer stays at its initialisation (snell2021 A.6).
    """

    def __init__(self, config: ModelConfig, vocabulary: int, classes: int, mode: AttentionMode = "learned") -> None:
        super().__init__()
        if classes < 2:
            raise ConfigError(f"a classifier needs two classes or more; {classes} given")
        self.config, self.classes, self.mode = config, classes, mode
        self.embedding = nn.Embedding(vocabulary, config.embedding, padding_idx=PAD)
        if config.embedding_range is not None:
            nn.init.uniform_(self.embedding.weight, -config.embedding_range, config.embedding_range)
        self.encoder = build_encoder(config)
        self.scorer = build_scorer(config, self.encoder.width)
        self.output = nn.Linear(self.encoder.width, 1 if classes == 2 else classes, bias=config.output_bias)
        self.dropout = nn.Dropout(config.dropout)
        if mode == "frozen":
            self.scorer.requires_grad_(False)
        if mode == "only":
            self.requires_grad_(False)
            self.scorer.requires_grad_(True)

    def forward(self, tokens: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]) -> ClassifierOutput:
        """Scores, attention, hidden states and logits of token ids."""
        return self.from_embeddings(self.embedding(tokens), mask)

    def from_embeddings(self, embedded: Float[Tensor, "B L E"], mask: Bool[Tensor, "B L"]) -> ClassifierOutput:
        """The same from embeddings, so that gradients can be taken with respect to them."""
        hidden, self_attention = self.encoder(self.dropout(embedded), mask)
        scores = self.scorer(hidden)
        projection = "uniform" if self.mode == "uniform" else self.config.projection
        alpha = project(projection, scores, mask, self.config.projection_parameter)
        return ClassifierOutput(self.from_attention(alpha, hidden), scores, alpha, hidden, self_attention)

    def from_attention(self, alpha: Float[Tensor, "B L"], hidden: Float[Tensor, "B L D"]) -> Float[Tensor, "B K"]:
        """Logits of the attention-weighted sum of hidden states (snell2021, Eq. 8, before σ)."""
        pooled = torch.einsum("bl,bld->bd", alpha, hidden)
        logits: Tensor = self.output(self.dropout(pooled))
        return logits

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of the labels, plus coef·∣VᵀW∣ if the model has that regularisation."""
        loss = nll(self(batch.tokens, batch.mask).logits, batch.labels).mean()
        if self.config.orthogonality:
            assert isinstance(self.scorer, DotScorer)
            loss = loss + self.config.orthogonality * (self.output.weight @ self.scorer.context.weight.T).abs().sum()
        return loss


def nll(logits: Float[Tensor, "*rows K"], labels: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """−ln p_y for each row; one logit means two classes.

    >>> nll(torch.zeros(1, 1), torch.tensor([1]))
    tensor([0.6931])
    """
    return F.softplus(-log_odds(logits, labels))


def log_odds(logits: Float[Tensor, "*rows K"], labels: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """ln(p_y / (1 − p_y)) of the label's class, from the logits directly, since a sigmoid would saturate.

    >>> log_odds(torch.tensor([[2.0]]), torch.tensor([0]))
    tensor([-2.])
    """
    if logits.shape[-1] == 1:
        return (2 * labels - 1) * logits.squeeze(-1)
    chosen = labels[..., None]
    others = logits.scatter(-1, chosen, -torch.inf).logsumexp(-1)
    return logits.gather(-1, chosen).squeeze(-1) - others


def predict(logits: Float[Tensor, "*rows K"]) -> Int[Tensor, "*rows"]:
    """The most probable class.

    >>> predict(torch.tensor([[-0.1], [3.0]]))
    tensor([0, 1])
    """
    return (logits.squeeze(-1) > 0).long() if logits.shape[-1] == 1 else logits.argmax(-1)


def lexical_probe(
    model: AttentionClassifier, hidden: Float[Tensor, "B L D"], labels: Int[Tensor, " B"]
) -> Float[Tensor, "B L"]:
    """β on the log-odds scale (snell2021, Eq. 9): the evidence of each position alone for the correct label.

        logit β_l = (2y − 1)(wᵀh_l + b);   K classes: ln p_y/(1 − p_y) of softmax(Wh_l + b)

    Departure: the paper's Eq. 9 has no bias b; its parameter count does.
    """
    logits = model.output(hidden)
    return log_odds(logits, labels[:, None].expand(logits.shape[:2]))
