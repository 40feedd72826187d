"""Recorder of a model at one step: α, β and Δ of every text or sentence pair of a split."""

from contextlib import AbstractContextManager

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.batching import PairBatch, evaluation_batches
from heedful.data.ragged import FloatArray, Ragged
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import EncodedSplit
from heedful.models.classifier import AttentionClassifier, BagOfWordsProxy, lexical_probe, log_odds, nll, predict
from heedful.models.lexicon import Lexicon
from heedful.models.translator import Translator, TranslatorOutput, translator_probe
from heedful.tracing.store import QUANTITIES, Snapshot


def record(model: AttentionClassifier, split: EncodedSplit, *, max_tokens: int = 2048) -> Snapshot:
    """α, β and Δ of every text (SPEC §1); the model is left unchanged.

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
    """Context without cuDNN, which has no backward pass for recurrent layers in evaluation mode."""
    return torch.backends.cudnn.flags(enabled=False)


def probe_snapshot(word_log_odds: NDArray[np.floating], split: EncodedSplit) -> Snapshot:
    """A bag-of-words model's probe (β^px, β^log) of every position: the log-odds its word gives the text's label.

    word_log_odds: (V, K).
    """
    label = np.repeat(split.labels, split.lengths)
    beta = Ragged(word_log_odds[split.ids.values, label].astype(np.float64), split.ids.offsets)
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


def record_pairs(model: Translator, pairs: EncodedPairs, *, max_tokens: int = 2048) -> Snapshot:
    """α (the mean over heads), β and Δ of every output word (SPEC §1); the model is left unchanged.

        Δ_{t,l} = −∂NLL_t/∂m_l at m = 1,  m a multiplicative mask on the source's embeddings

    One backward pass for each output position of a batch, none of them through N. Memory is bounded by `max_tokens`,
    the padded tokens held at once, and by the probe's chunks, not by T·L·V.
    """
    device = next(model.parameters()).device
    rows = _Rows(pairs)
    training = model.training
    model.eval()
    try:
        for batch in evaluation_batches(pairs, max_tokens=max_tokens, device=device):
            with torch.enable_grad(), without_cudnn():
                embedded = model.embedding(batch.source).detach().requires_grad_()
                output = model.from_embeddings(embedded, batch)
                delta, odds, prediction = _saliency(model, output, embedded, batch)
            rows.take("alpha", output.alpha.detach().mean(1), batch)
            rows.take("beta_logit", translator_probe(model, output.hidden, output.states, batch.target_out), batch)
            rows.take("delta", delta, batch)
            rows.predicted(prediction, odds, batch)
    finally:
        model.train(training)
    return rows.snapshot()


@torch.no_grad()
def record_proxy(model: BagOfWordsProxy, pairs: EncodedPairs, *, max_tokens: int = 2048) -> Snapshot:
    """β^px of every output word and input position (snell2021, Eq. 6): logit σ(W e_{x_l})_{y_t}."""
    rows = _Rows(pairs)
    device = next(model.parameters()).device
    for batch in evaluation_batches(pairs, max_tokens=max_tokens, device=device):
        B, L = batch.source.shape
        T = batch.target_out.shape[1]
        beta = torch.empty(B, T, L, device=device)
        for b in range(B):
            log_p = model.output(model.embedding(batch.source[b])).double().log_softmax(-1)
            beta[b] = _logit(log_p[:, batch.target_out[b]].T).float()
        rows.take("beta_logit", beta, batch)
    return rows.snapshot()


def record_lexicon(lexicon: Lexicon, pairs: EncodedPairs) -> Snapshot:
    """α^IBM, and β^IBM on the log-odds scale (snell2021, Eqs 18–19), of every output word."""
    rows = _Rows(pairs)
    targets = pairs.outputs
    beta, alpha = lexicon.beta(pairs.source, targets), lexicon.alpha(pairs.source, targets)
    with np.errstate(divide="ignore"):
        log_odds_of_beta = np.clip(np.log(beta.values) - np.log1p(-beta.values), -50.0, 50.0)
    rows.quantities = {"alpha": alpha, "beta_logit": Ragged(log_odds_of_beta, beta.offsets)}
    return rows.snapshot()


class _Rows:
    """Collects the rows of a split batch by batch, and puts them into the split's order."""

    def __init__(self, pairs: EncodedPairs) -> None:
        self.lengths = pairs.target.lengths - 1  # output words of each pair, `<eos>` among them
        self.first = np.concatenate([[0], np.cumsum(self.lengths)])
        self.example = np.repeat(np.arange(len(pairs)), self.lengths).astype(np.int32)
        self.output = (np.arange(self.first[-1]) - self.first[self.example]).astype(np.int32)
        self.label = pairs.outputs.values
        self.rows: dict[str, list[FloatArray | None]] = {}
        self.quantities: dict[str, Ragged] = {}
        self.prediction: NDArray[np.int32] | None = None
        self.odds: NDArray[np.float32] | None = None

    def take(self, name: str, values: Float[Tensor, "B T L"], batch: PairBatch) -> None:
        rows = self.rows.setdefault(name, [None] * int(self.first[-1]))
        matrix = values.cpu().numpy()
        sources = batch.source_mask.sum(1).cpu().numpy()
        for b, i in enumerate(batch.index):
            for t in range(int(self.lengths[i])):
                rows[int(self.first[i]) + t] = matrix[b, t, : int(sources[b])].copy()

    def predicted(self, prediction: Tensor, odds: Tensor, batch: PairBatch) -> None:
        if self.prediction is None or self.odds is None:
            self.prediction = np.zeros(int(self.first[-1]), dtype=np.int32)
            self.odds = np.zeros(int(self.first[-1]), dtype=np.float32)
        for b, i in enumerate(batch.index):
            place, n = slice(int(self.first[i]), int(self.first[i + 1])), int(self.lengths[i])
            self.prediction[place] = prediction[b, :n].cpu().numpy()
            self.odds[place] = odds[b, :n].cpu().numpy()

    def snapshot(self) -> Snapshot:
        for name, rows in self.rows.items():
            self.quantities[name] = Ragged.of([row for row in rows if row is not None])
        return Snapshot(self.quantities, self.example, self.output, self.label, self.prediction, self.odds)


def _saliency(
    model: Translator, output: TranslatorOutput, embedded: Float[Tensor, "B L E"], batch: PairBatch
) -> tuple[Float[Tensor, "B T L"], Float[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Δ, the log-odds of the correct words, and the words predicted.

    NLL_t depends on the source through c_t and s_t alone. Its gradients there come from one backward pass through N
    for all t together; only the layers below need one backward pass for each t.
    """
    reached = [t.detach().requires_grad_() for t in (output.context, output.states)]
    logits = model.read(*reached)
    odds = log_odds(logits, batch.target_out)
    slopes = torch.autograd.grad(torch.nn.functional.softplus(-odds).sum(), reached)
    T = odds.shape[1]
    rows = []
    for t in range(T):
        here = [torch.zeros_like(slope) for slope in slopes]
        for empty, slope in zip(here, slopes, strict=True):
            empty[:, t] = slope[:, t]
        (gradient,) = torch.autograd.grad((output.context, output.states), embedded, here, retain_graph=t + 1 < T)
        rows.append(-(embedded.detach() * gradient).sum(-1))
    return torch.stack(rows, dim=1), odds.detach(), logits.detach().argmax(-1)


def _logit(log_p: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """ln p/(1 − p) from ln p."""
    return log_p - torch.log(-torch.expm1(log_p))
