"""The bag-of-words proxy (snell2021 §2.3) and its convex counterpart, ℓ2 logistic regression (A.10)."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from heedful.data.batching import Batch, PairBatch
from heedful.data.vocabulary import EncodedSplit
from heedful.models.classifier import log_odds, nll

DECADES = tuple(10.0**k for k in range(-3, 7))


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
        logits = self.output(self.embedding.weight)
        return torch.stack([log_odds(logits, _constant(logits, k)) for k in range(logits.shape[-1])], dim=-1)


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
    logits = torch.from_numpy(np.ascontiguousarray(coefficients.T))
    return torch.stack([log_odds(logits, _constant(logits, k)) for k in range(classes)], dim=-1).numpy()


def _constant(logits: Float[Tensor, "V K"], label: int) -> Int[Tensor, " V"]:
    return torch.full((len(logits),), label, dtype=torch.long)
