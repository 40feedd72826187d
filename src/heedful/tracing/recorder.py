"""Recorder of a model at one step: α, β and Δ of every text or sentence pair of a split, and every head of a few."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.batching import Batch, PairBatch, evaluation_batches
from heedful.data.ragged import FloatArray, Ragged
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import EncodedSplit
from heedful.models.classifier import (
    AttentionClassifier,
    BagOfWordsProxy,
    ClassifierOutput,
    lexical_probe,
    log_odds,
    nll,
    predict,
)
from heedful.models.encoders import Encoder, Hidden, LSTMEncoder, reversal, reverse
from heedful.models.lexicon import Lexicon
from heedful.models.recurrence import gate_inputs, read_gates
from heedful.models.training import evaluation_mode
from heedful.models.translator import PairModel, TranslatorOutput, translator_probe
from heedful.tracing.heads import HeadMaps
from heedful.tracing.store import QUANTITIES, WRONG, Snapshot

MOST_EXAMPLES = 6  # whose heads are recorded
SHORT = 8, 26  # tokens of a text whose matrices can be read


def wrong_labels(labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """A fixed wrong label for each text, the same for all models of a study; they take turns.

    >>> wrong_labels(np.array([0, 0, 0, 2]), 3)
    array([1, 2, 1, 1])
    """
    turn = np.arange(len(labels)) % (classes - 1)
    wrong: NDArray[np.int64] = (labels + 1 + turn) % classes
    return wrong


def record(
    model: AttentionClassifier,
    split: EncodedSplit,
    *,
    saliency: bool = True,
    states: Callable[[Batch], Hidden] | None = None,
    max_tokens: int = 4096,
) -> Snapshot:
    """α, β and Δ of every text (SPEC §1); the model is left unchanged.

        Δ_l = −∂NLL/∂m_l at m = 1,  m a multiplicative mask on embeddings:  Δ_l = −e_l · ∂NLL/∂e_l

    With more than two labels also β of a wrong label; with two its log-odds are those of the right one, negated.
    Memory is bounded by `max_tokens`, the padded tokens held at once. Dropout is off while it runs.

    saliency: whether Δ is computed; two thirds of the time go into its backward pass. states: gives the encoder's
    states of a batch of the split, where they are known already.
    """
    device = next(model.parameters()).device
    names = [
        name for name in (*QUANTITIES, WRONG) if (saliency or name != "delta") and (model.classes > 2 or name != WRONG)
    ]
    wrong = torch.from_numpy(wrong_labels(split.labels, model.classes)).to(device)
    rows: dict[str, list[FloatArray]] = {name: [np.empty(0)] * len(split) for name in names}
    odds, prediction = np.empty(len(split), dtype=np.float32), np.empty(len(split), dtype=np.int32)
    with evaluation_mode([model]):
        for batch in evaluation_batches(split, max_tokens=max_tokens, device=device):
            output, delta = _with_saliency(model, batch) if saliency else (_output(model, batch, states), None)
            with torch.no_grad():
                values = {
                    "alpha": output.alpha.detach(),
                    "beta_logit": lexical_probe(model, output.hidden, batch.labels),
                }
                if delta is not None:
                    values["delta"] = delta
                if WRONG in rows:
                    values[WRONG] = lexical_probe(model, output.hidden, wrong[batch.index])
                odds[batch.index] = log_odds(output.logits, batch.labels).cpu().numpy()
                prediction[batch.index] = predict(output.logits).cpu().numpy()
            lengths = batch.lengths.tolist()
            for name, value in values.items():
                for i, row, length in zip(batch.index, value.cpu().numpy(), lengths, strict=True):
                    rows[name][i] = row[:length].copy()
    return _text_snapshot(split, {name: Ragged.of(rows[name]) for name in names}, prediction, odds)


@torch.no_grad()
def _output(model: AttentionClassifier, batch: Batch, states: Callable[[Batch], Hidden] | None) -> ClassifierOutput:
    if states is not None:
        return model.from_hidden(states(batch), batch.mask)
    output: ClassifierOutput = model(batch.tokens, batch.mask)
    return output


@torch.enable_grad()
def _with_saliency(model: AttentionClassifier, batch: Batch) -> tuple[ClassifierOutput, Float[Tensor, "B L"]]:
    if saliency_by_word(model.encoder, len(batch.index)):
        return _with_saliency_by_word(model, batch)
    embedded = model.embedding(batch.tokens).detach().requires_grad_()
    output = model.from_embeddings(embedded, batch.mask)
    (gradient,) = torch.autograd.grad(nll(output.logits, batch.labels).sum(), embedded)
    return output, -(embedded.detach() * gradient).sum(-1)


def saliency_by_word(encoder: Encoder, texts: int) -> bool:
    """Whether Δ comes from the gates: for one layer of LSTMs wide enough, and enough texts, it is up to twice as fast.

    >>> from heedful.models.encoders import LSTMEncoder
    >>> wide, narrow = (LSTMEncoder(3, hidden, 1, True, 0.0) for hidden in (256, 16))
    >>> saliency_by_word(wide, 90), saliency_by_word(wide, 8), saliency_by_word(narrow, 90)
    (True, False, False)
    """
    if not isinstance(encoder, LSTMEncoder) or len(encoder.forwards) != 1:
        return False
    lstm = encoder.forwards[0]
    return isinstance(lstm, nn.LSTM) and lstm.hidden_size >= _MIN_HIDDEN and texts >= _MIN_TEXTS


_MIN_HIDDEN, _MIN_TEXTS = 64, 24


def _with_saliency_by_word(model: AttentionClassifier, batch: Batch) -> tuple[ClassifierOutput, Float[Tensor, "B L"]]:
    """The same from the gates of a one-layer LSTM, whose input is W_ih e_l + b:

        Δ_l = −e_l · ∂NLL/∂e_l = −(W_ih e_l) · ∂NLL/∂(W_ih e_l + b),    summed over both directions

    W_ih e is computed once per word, and neither its backward pass nor the gradients of weights are computed.
    """
    encoder = model.encoder
    assert isinstance(encoder, LSTMEncoder)
    words, place = torch.unique(batch.tokens, return_inverse=True)
    embedded, backwards = model.embedding(words).detach(), reversal(batch.mask)
    sides, gates, biases = [], [], []
    for lstm, index in zip((*encoder.forwards, *encoder.backwards), (None, backwards), strict=False):
        table, bias = gate_inputs(lstm, embedded)
        order = place if index is None else place.gather(1, index)
        gates.append(table.detach()[order.t()].requires_grad_())
        biases.append(bias)
        states = read_gates(lstm, gates[-1]).transpose(0, 1)
        sides.append(states if index is None else reverse(states, index))
    output = model.from_hidden(torch.cat(sides, dim=-1), batch.mask)
    slopes = torch.autograd.grad(nll(output.logits, batch.labels).sum(), gates)
    deltas = [
        -(slope * (gate.detach() - bias)).sum(-1).t() for slope, gate, bias in zip(slopes, gates, biases, strict=True)
    ]
    delta = deltas[0] if len(deltas) == 1 else deltas[0] + deltas[1].gather(1, backwards)
    return output, delta


def choose_short(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """The first texts whose matrices can be read, at most `MOST_EXAMPLES`; the shortest where there are none.

    >>> choose_short(np.array([5, 9, 30, 12])), choose_short(np.array([50, 40]))
    (array([1, 3]), array([1, 0]))
    """
    low, high = SHORT
    short = np.flatnonzero((lengths >= low) & (lengths <= high))
    return (short if len(short) else np.argsort(lengths, kind="stable"))[:MOST_EXAMPLES]


def has_heads(model: AttentionClassifier | PairModel) -> bool:
    """Whether a model has more than one map: several heads, or self-attention below the attention that is read."""
    if isinstance(model, PairModel):
        return model.config.heads > 1 or (model.config.cell == "transformer" and model.config.layers > 1)
    return model.config.encoder == "transformer"


@torch.no_grad()
def record_heads(model: AttentionClassifier | PairModel, examples: EncodedSplit | EncodedPairs) -> HeadMaps:
    """The matrices of the short examples: self-attention of a classifier, cross-attention of a translator."""
    lengths = examples.lengths if isinstance(examples, EncodedSplit) else examples.source.lengths
    chosen = choose_short(lengths)
    with evaluation_mode([model]):
        weights = tuple(_head_weights(model, examples.take(chosen[k : k + 1])) for k in range(len(chosen)))
    return HeadMaps(chosen.astype(np.int32), weights)


def _head_weights(
    model: AttentionClassifier | PairModel, one: EncodedSplit | EncodedPairs
) -> Float[NDArray[np.float32], "layers H T L"]:
    """Every layer's weights in one example, from the first to the last."""
    device = next(model.parameters()).device
    (batch,) = evaluation_batches(one, device=device)
    if isinstance(model, PairModel):
        assert isinstance(batch, PairBatch)
        weights = model.cross_attention(batch)
    else:
        assert isinstance(batch, Batch)
        weights = model(batch.tokens, batch.mask).self_attention
    stacked: NDArray[np.float32] = torch.stack(weights)[:, 0].float().cpu().numpy()
    return stacked


def probe_snapshot(word_log_odds: NDArray[np.floating], split: EncodedSplit) -> Snapshot:
    """A bag-of-words model's probe (β^px, β^log) of every position: the log-odds its word gives the text's label.

    word_log_odds: (V, K). With more than two labels also those of a wrong label.
    """

    def probe(labels: NDArray[np.int64]) -> Ragged:
        label = np.repeat(labels, split.lengths)
        return Ragged(word_log_odds[split.ids.values, label].astype(np.float64), split.ids.offsets)

    quantities, classes = {"beta_logit": probe(split.labels)}, word_log_odds.shape[1]
    if classes > 2:
        quantities[WRONG] = probe(wrong_labels(split.labels, classes))
    return _text_snapshot(split, quantities)


def _text_snapshot(split: EncodedSplit, quantities: dict[str, Ragged], *predicted: NDArray[Any]) -> Snapshot:
    n = len(split)
    example, output = np.arange(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    return Snapshot(quantities, example, output, split.labels.astype(np.int32), *predicted)


def record_pairs(model: PairModel, pairs: EncodedPairs, *, saliency: bool = True, max_tokens: int = 2048) -> Snapshot:
    """α (the mean over heads), β and Δ of every output word (SPEC §1); the model is left unchanged.

        Δ_{t,l} = −∂NLL_t/∂m_l at m = 1,  m a multiplicative mask on the source's embeddings

    One backward pass for each output position of a batch, none of them through N. Memory is bounded by `max_tokens`,
    the padded tokens held at once, and by the probe's chunks, not by T·L·V. saliency: whether Δ is computed.
    """
    device, outputs = next(model.parameters()).device, pairs.outputs
    n = len(outputs.values)
    names = [name for name in QUANTITIES if saliency or name != "delta"]
    rows: dict[str, list[FloatArray]] = {name: [np.empty(0)] * n for name in names}
    prediction, odds = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32)
    with evaluation_mode([model]), torch.enable_grad():  # without Δ too: torch rounds LSTMs without gradients otherwise
        for batch in evaluation_batches(pairs, max_tokens=max_tokens, device=device):
            embedded = model.embedding(batch.source).detach().requires_grad_()
            output = model.from_embeddings(embedded, batch)
            reached = [end.detach().requires_grad_(saliency) for end in (output.context, output.states)]
            logits = model.read(*reached)
            log_odds_there, words = log_odds(logits, batch.target_out), logits.argmax(-1)
            beta = translator_probe(model, output.hidden, output.states, batch.target_out)
            values = {"alpha": output.alpha.detach().mean(1), "beta_logit": beta}
            if saliency:
                values["delta"] = _saliency(output, reached, log_odds_there, embedded)
            for name, value in values.items():
                _scatter(rows[name], value, outputs, batch)
            for b, i in enumerate(batch.index):
                place = slice(outputs.offsets[i], outputs.offsets[i + 1])
                prediction[place] = words[b, : outputs.lengths[i]].cpu().numpy()
                odds[place] = log_odds_there[b, : outputs.lengths[i]].detach().cpu().numpy()
    return _pair_snapshot(pairs, {name: Ragged.of(rows[name]) for name in names}, prediction, odds)


@torch.no_grad()
def record_proxy(model: BagOfWordsProxy, pairs: EncodedPairs, *, max_tokens: int = 2048) -> Snapshot:
    """β^px of every output word and input position (snell2021, Eq. 6): logit σ(W e_{x_l})_{y_t}."""
    device, outputs = next(model.parameters()).device, pairs.outputs
    rows: list[FloatArray] = [np.empty(0)] * len(outputs.values)
    for batch in evaluation_batches(pairs, max_tokens=max_tokens, device=device):
        B, L = batch.source.shape
        T = batch.target_out.shape[1]
        beta = torch.empty(B, T, L, device=device)
        for b in range(B):
            log_p = model.output(model.embedding(batch.source[b])).double().log_softmax(-1)
            beta[b] = _logit(log_p[:, batch.target_out[b]].T).float()
        _scatter(rows, beta, outputs, batch)
    return _pair_snapshot(pairs, {"beta_logit": Ragged.of(rows)})


def record_lexicon(lexicon: Lexicon, pairs: EncodedPairs) -> Snapshot:
    """α^IBM, and β^IBM on the log-odds scale (snell2021, Eqs 18–19), of every output word."""
    targets = pairs.outputs
    beta, alpha = lexicon.beta(pairs.source, targets), lexicon.alpha(pairs.source, targets)
    with np.errstate(divide="ignore"):
        beta_logit = np.clip(np.log(beta.values) - np.log1p(-beta.values), -50.0, 50.0)
    return _pair_snapshot(pairs, {"alpha": alpha, "beta_logit": Ragged(beta_logit, beta.offsets)})


def _saliency(
    output: TranslatorOutput,
    reached: Sequence[Float[Tensor, "B T _"]],
    odds: Float[Tensor, "B T"],
    embedded: Float[Tensor, "B L E"],
) -> Float[Tensor, "B T L"]:
    """Δ of every output word; reached: copies of c_t and s_t that the log-odds of the correct words depend on.

    NLL_t depends on the source through c_t and s_t alone. Its gradients there come from one backward pass through N
    for all t together; only the layers below need one backward pass for each t.
    """
    slopes = torch.autograd.grad(torch.nn.functional.softplus(-odds).sum(), reached)
    T = odds.shape[1]
    rows = []
    # The states of a Transformer's first decoder layer do not depend on the source.
    through = [
        (end, slope) for end, slope in zip((output.context, output.states), slopes, strict=True) if end.requires_grad
    ]
    for t in range(T):
        here = [torch.zeros_like(slope) for _, slope in through]
        for empty, (_, slope) in zip(here, through, strict=True):
            empty[:, t] = slope[:, t]
        (gradient,) = torch.autograd.grad([end for end, _ in through], embedded, here, retain_graph=t + 1 < T)
        rows.append(-(embedded.detach() * gradient).sum(-1))
    return torch.stack(rows, dim=1)


def _logit(log_p: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """ln p/(1 − p) from ln p."""
    return log_p - torch.log(-torch.expm1(log_p))


def _scatter(rows: list[FloatArray], values: Float[Tensor, "B T L"], outputs: Ragged, batch: PairBatch) -> None:
    """Put the rows of a batch, without padding, where the split has them."""
    matrix, lengths = values.cpu().numpy(), batch.source_mask.sum(1).tolist()
    for b, i in enumerate(batch.index):
        for t in range(outputs.lengths[i]):
            rows[outputs.offsets[i] + t] = matrix[b, t, : lengths[b]].copy()


def _pair_snapshot(pairs: EncodedPairs, quantities: dict[str, Ragged], *predicted: NDArray[Any]) -> Snapshot:
    outputs = pairs.outputs
    output = np.arange(len(outputs.values)) - outputs.offsets[outputs.row_of]
    return Snapshot(quantities, outputs.row_of.astype(np.int32), output.astype(np.int32), outputs.values, *predicted)
