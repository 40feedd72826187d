"""What is measured on one trained model, text by text: importance, entropy, and how attention is ordered beside them.

Every list has one number for each text, None where there is none: τ of a constant row, entropy of an importance that is
0 everywhere. `detached` is the gradient with the attention weights held fixed (Jain & Wallace 2019).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.data.batch import Batch, collate
from heedful.data.tokens import EncodedSplit
from heedful.measure.entropy import normalised_entropy
from heedful.measure.importance import d_y_h, d_y_x, g_h_x, g_y_h, g_y_x
from heedful.measure.importance_batch import Importance
from heedful.measure.ragged import Ragged, as_ragged
from heedful.measure.rank import kendall_ceiling, kendall_tau_b
from heedful.model.classifier import AttentionClassifier
from heedful.model.forward import classifier_forward

IMPORTANCES = ("g_y_x", "d_y_x", "g_y_h", "d_y_h", "g_y_x detached", "g_y_h detached")
DIGITS = 6
EXAMPLE_LENGTH = 14  # words of the text that is shown as an example, or the next longer one


def measure(model: AttentionClassifier, texts: EncodedSplit, matrices: int, words: Sequence[str]) -> dict[str, Any]:
    """All measures of some texts, `matrices` of which have g_h(x); and one text with its g_h(x) and α in full."""
    batch = collate(texts, np.arange(len(texts)), model.output.weight.device)
    alpha = attention(model, batch)
    rows = importances(model, batch)
    found: dict[str, Any] = {
        "length": alpha.lengths.tolist(),
        "support": np.add.reduceat(alpha.values > 0, alpha.offsets[:-1], dtype=np.int64).tolist(),
        "ceiling": listed(kendall_ceiling(alpha)),
        "entropy alpha": listed(normalised_entropy(alpha)),
    }
    for name, importance in rows.items():
        found[f"tau {name}"] = listed(kendall_tau_b(alpha, importance))
        found[f"tau {name} support"] = listed(kendall_tau_b(alpha, importance, support=True))
        found[f"entropy {name}"] = listed(_entropy(importance))
    found |= _contextualisation(model, texts, min(matrices, len(texts)))
    found["layers"] = _layers(model, batch, rows)
    found["example"] = _example(model, texts, words)
    return found


@torch.no_grad()
def attention(model: AttentionClassifier, batch: Batch) -> Ragged:
    """α of each text."""
    alpha = model(batch.tokens, batch.mask).alpha
    return as_ragged(alpha.double().cpu().numpy(), batch.mask.cpu().numpy())


def importances(model: AttentionClassifier, batch: Batch) -> dict[str, Importance]:
    """The importances of `IMPORTANCES`; leaving a token or a state out knows no gradient to detach."""
    forward, tokens, mask = classifier_forward(model), batch.tokens, batch.mask
    return {
        "g_y_x": g_y_x(forward, tokens, mask),
        "d_y_x": d_y_x(forward, tokens, mask),
        "g_y_h": g_y_h(forward, tokens, mask),
        "d_y_h": d_y_h(forward, tokens, mask),
        "g_y_x detached": g_y_x(forward, tokens, mask, attach=False),
        "g_y_h detached": g_y_h(forward, tokens, mask, attach=False),
    }


def _entropy(importance: Importance) -> NDArray[np.float64]:
    """H̃; NaN where nothing matters, which is not the same as everything mattering alike."""
    return np.where(importance.undefined, np.nan, normalised_entropy(importance))


def _contextualisation(model: AttentionClassifier, texts: EncodedSplit, count: int) -> dict[str, list[float | None]]:
    """H̃(g_{h_p}(x)), and the share of h_p that is its own token's, both in the mean over p."""
    chosen = texts.take(np.arange(count))
    batch = collate(chosen, np.arange(count), model.output.weight.device)
    matrix = g_h_x(classifier_forward(model), batch.tokens, batch.mask)
    lengths = chosen.lengths
    of_text = np.concatenate([[0], np.cumsum(lengths)])[:-1]  # where the rows of each text begin
    place = np.concatenate([np.arange(n) for n in lengths])
    own = np.where(matrix.undefined, np.nan, matrix.values[matrix.offsets[:-1] + place])
    return {
        "entropy g_h_x": listed(_mean_of_rows(_entropy(matrix), of_text)),
        "own g_h_x": listed(_mean_of_rows(own, of_text)),
    }


def _mean_of_rows(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean within each text over the rows that have a value; NaN where none has."""
    defined = ~np.isnan(values)
    total = np.add.reduceat(np.where(defined, values, 0.0), starts)
    count = np.add.reduceat(defined, starts, dtype=np.int64)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@torch.no_grad()
def _layers(
    model: AttentionClassifier, batch: Batch, rows: dict[str, Importance]
) -> list[dict[str, list[float | None]]]:
    """Of each self-attention layer: how much each token receives, averaged over queries, as if it were α."""
    found = []
    mask = batch.mask
    for weights in model(batch.tokens, mask).self_attention:
        per_query = weights.double().mean(1)  # over heads: (B, L, L)
        received = (per_query * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        layer = as_ragged(received.cpu().numpy(), mask.cpu().numpy())
        query = mask.cpu().numpy()
        each = [as_ragged(p[q][:, q]) for p, q in zip(per_query.cpu().numpy(), query, strict=True)]
        found.append(
            {
                "entropy received": listed(normalised_entropy(layer)),
                "entropy of a query": listed([normalised_entropy(text).mean() for text in each]),
                "tau g_y_x": listed(kendall_tau_b(layer, rows["g_y_x"])),
                "tau d_y_x": listed(kendall_tau_b(layer, rows["d_y_x"])),
            }
        )
    return found


def _example(model: AttentionClassifier, texts: EncodedSplit, words: Sequence[str]) -> dict[str, Any]:
    """The words of one text, its g_h(x), a row for each p, and its α."""
    long_enough = np.where(texts.lengths >= EXAMPLE_LENGTH, texts.lengths, np.iinfo(np.int64).max)
    at = int(np.argmin(long_enough)) if texts.lengths.max() >= EXAMPLE_LENGTH else int(np.argmax(texts.lengths))
    batch = collate(texts, np.array([at]), model.output.weight.device)
    matrix = g_h_x(classifier_forward(model), batch.tokens, batch.mask)
    n = int(texts.lengths[at])
    return {
        "words": [words[int(i)] for i in texts.text(at)],
        "g_h_x": np.round(matrix.values.reshape(n, n), DIGITS).tolist(),
        "alpha": np.round(attention(model, batch).values, DIGITS).tolist(),
    }


def listed(values: NDArray[np.float64] | Sequence[float]) -> list[float | None]:
    """Numbers for JSON: rounded, None for NaN.

    >>> listed(np.array([0.12345678, np.nan]))
    [0.123457, None]
    """
    return [None if np.isnan(value) else round(float(value), DIGITS) for value in values]
