"""Classifiers: with attention, and its lexical probe β; the bag-of-words proxy (snell2021 §2.3); logistic probe."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.config import AttentionMode, ModelConfig
from heedful.data.batching import Batch, PairBatch
from heedful.data.vocabulary import PAD, EncodedSplit
from heedful.errors import ConfigError
from heedful.models.attention import DotScorer, build_scorer, project
from heedful.models.encoders import build_encoder

DECADES = tuple(10.0**k for k in range(-3, 7))


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
        return self.from_hidden(hidden, mask, self_attention)

    def from_hidden(
        self,
        hidden: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"],
        self_attention: tuple[Float[Tensor, "B H L L"], ...] = (),
    ) -> ClassifierOutput:
        """The same from the encoder's states."""
        if self.mode == "uniform":  # uniform weights do not depend on scores, so that none are computed
            scores = hidden.new_zeros(mask.shape)
            alpha = project("uniform", scores, mask)
        else:
            scores = self.scorer(hidden)
            alpha = project(self.config.projection, scores, mask, self.config.projection_parameter)
        return ClassifierOutput(self.from_attention(alpha, hidden), scores, alpha, hidden, self_attention)

    def from_attention(self, alpha: Float[Tensor, "B L"], hidden: Float[Tensor, "B L D"]) -> Float[Tensor, "B K"]:
        """Logits of the attention-weighted sum of hidden states (snell2021, Eq. 8, before σ)."""
        pooled = torch.einsum("bl,bld->bd", alpha, hidden)
        logits: Tensor = self.output(self.dropout(pooled))
        return logits

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of the labels, plus coef·∣VᵀW∣ if the model has that regularisation."""
        return self.loss_of(self(batch.tokens, batch.mask), batch)

    def loss_of(self, output: ClassifierOutput, batch: Batch) -> Float[Tensor, ""]:
        """The loss of a forward pass over a batch."""
        loss = nll(output.logits, batch.labels).mean()
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


class BagOfWordsProxy(nn.Module):
    """Mean of word vectors, one linear map, softmax (snell2021, Eq. 5).

        p = σ(1/L Σ_l W e_{x_l}),   W_o, e_i ~ N(0, I/d)

    Its attention is uniform and its states are single words, so it can learn only co-occurrence.
    """

    def __init__(self, vocabulary: int, classes: int, width: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.output = nn.Linear(width, classes, bias=False)
        for weight in (self.embedding.weight, self.output.weight):
            nn.init.normal_(weight, std=1 / math.sqrt(width))

    def forward(self, tokens: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B K"]:
        """Logits of each text: of its label, or of any word of its translation."""
        ends = mask.sum(1).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]])
        bag = nn.functional.embedding_bag(tokens[mask], self.embedding.weight, starts, mode="mean")
        logits: Tensor = self.output(bag)
        return logits

    def loss(self, batch: Batch | PairBatch) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of the labels, or of the target words (snell2021, Eq. 14)."""
        if isinstance(batch, Batch):
            return nll(self(batch.tokens, batch.mask), batch.labels).mean()
        log_p: Tensor = self(batch.source, batch.source_mask).log_softmax(-1)
        return -log_p.gather(1, batch.target_out)[batch.target_mask].mean()

    @torch.no_grad()
    def word_log_odds(self) -> Float[Tensor, "V K"]:
        """logit β^px of every word for every label (snell2021, Eq. 6)."""
        return _every_log_odds(self.output(self.embedding.weight))


@dataclass(frozen=True)
class LogisticProbe:
    """β^log: the unigram weights of the best ℓ2 logistic regression, as log-odds of every word for every label."""

    word_log_odds: NDArray[np.float64]  # (V, K)
    inverse_penalty: float
    accuracy: float


def logistic_probe(train: EncodedSplit, validation: EncodedSplit, vocabulary: int, classes: int) -> LogisticProbe:
    """Fit ℓ2 logistic regression on length-normalised counts, the penalty chosen on validation (snell2021 A.10).

    Ten decades of C; ties in validation accuracy go to the strongest regularisation. Newton's method, because an
    optimiser that stops early regularises too: L-BFGS with tolerance 1e-3 chose C = 10⁶ on SST; converged, it is 10².
    """
    from sklearn.linear_model import LogisticRegression  # here: it takes as long to import as torch

    X, X_validation = relative_counts(train, vocabulary), relative_counts(validation, vocabulary)
    best: tuple[float, float, LogisticRegression] | None = None
    for C in DECADES:
        fitted = LogisticRegression(C=C, solver="newton-cg", max_iter=500, tol=1e-5).fit(X, train.labels)
        accuracy = float(fitted.score(X_validation, validation.labels))
        if best is None or accuracy > best[0]:
            best = accuracy, C, fitted
    assert best is not None
    accuracy, C, fitted = best
    return LogisticProbe(_word_log_odds(fitted.coef_, classes), C, accuracy)


def relative_counts(split: EncodedSplit, vocabulary: int) -> sparse.csr_matrix:
    """Counts of each word in each text, divided by the text's length: (texts, V)."""
    weights = np.repeat(1.0 / split.lengths, split.lengths)
    matrix = sparse.csr_matrix(
        (weights, split.ids.values.copy(), split.ids.offsets.copy()), shape=(len(split), vocabulary)
    )
    matrix.sum_duplicates()
    return matrix


def _word_log_odds(coefficients: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    if classes == 2:
        return np.stack([-coefficients[0], coefficients[0]], axis=1)
    return _every_log_odds(torch.from_numpy(np.ascontiguousarray(coefficients.T))).numpy()


def _every_log_odds(logits: Float[Tensor, "V K"]) -> Float[Tensor, "V K"]:
    """The log-odds of every label."""
    labels = torch.arange(logits.shape[-1], device=logits.device).expand_as(logits)
    return torch.stack([log_odds(logits, label) for label in labels.unbind(-1)], dim=-1)
