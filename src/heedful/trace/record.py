"""A classifier at one instant: α, β and Δ of every text of a split."""

from contextlib import AbstractContextManager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.batch import evaluation_batches
from heedful.data.tokens import EncodedSplit
from heedful.measure.ragged import FloatArray, Ragged
from heedful.model.classifier import AttentionClassifier, lexical_probe, log_odds, nll, predict
from heedful.trace.snapshot import QUANTITIES, Snapshot


def record(model: AttentionClassifier, split: EncodedSplit, *, max_tokens: int = 2048) -> Snapshot:
    """α, β and Δ of every text (SPEC §1), with the model left as it was found.

        Δ_l = −∂NLL/∂m_l at m = 1,  m a multiplicative mask on embeddings:  Δ_l = −e_l · ∂NLL/∂e_l

    Memory is bounded by `max_tokens`, the padded tokens held at once. Dropout is off while it runs.
    """
    device = next(model.parameters()).device
    rows: dict[str, list[FloatArray | None]] = {name: [None] * len(split) for name in QUANTITIES}
    odds = np.empty(len(split), dtype=np.float32)
    prediction = np.empty(len(split), dtype=np.int32)
    training = model.training
    model.eval()
    try:
        for batch in evaluation_batches(split, max_tokens=max_tokens, device=device):
            with torch.enable_grad(), without_cudnn():
                embedded = model.embedding(batch.tokens).detach().requires_grad_()
                output = model.from_embeddings(embedded, batch.mask)
                (gradient,) = torch.autograd.grad(nll(output.logits, batch.labels).sum(), embedded)
            with torch.no_grad():
                values = {
                    "alpha": output.alpha,
                    "beta_logit": lexical_probe(model, output.hidden, batch.labels),
                    "delta": -(embedded * gradient).sum(-1),
                }
                odds[batch.index] = log_odds(output.logits, batch.labels).cpu().numpy()
                prediction[batch.index] = predict(output.logits).cpu().numpy()
            for name, value in values.items():
                _scatter(rows[name], value, batch.mask, batch.index)
    finally:
        model.train(training)
    return Snapshot(
        {name: Ragged.of([row for row in rows[name] if row is not None]) for name in QUANTITIES},
        example=np.arange(len(split), dtype=np.int32),
        output=np.zeros(len(split), dtype=np.int32),
        log_odds=odds,
        prediction=prediction,
        label=split.labels.astype(np.int32),
    )


def without_cudnn() -> AbstractContextManager[object]:
    """cuDNN has no backward pass for recurrent layers in evaluation mode; PyTorch's own kernels have."""
    return torch.backends.cudnn.flags(enabled=False)


def probe_snapshot(word_log_odds: NDArray[np.floating], split: EncodedSplit) -> Snapshot:
    """A bag-of-words model's probe (β^px, β^log) of every position: the log-odds its word gives the text's label.

    word_log_odds: (V, K).
    """
    label = np.repeat(split.labels, split.lengths)
    beta = Ragged(word_log_odds[split.ids, label].astype(np.float64), split.offsets)
    return Snapshot(
        {"beta_logit": beta},
        example=np.arange(len(split), dtype=np.int32),
        output=np.zeros(len(split), dtype=np.int32),
        label=split.labels.astype(np.int32),
    )


def _scatter(rows: list[FloatArray | None], values: Tensor, mask: Tensor, index: NDArray[np.int64]) -> None:
    matrix, lengths = values.detach().cpu().numpy(), mask.sum(1).cpu().numpy()
    for place, row, length in zip(index, matrix, lengths, strict=True):
        rows[int(place)] = row[: int(length)].copy()
