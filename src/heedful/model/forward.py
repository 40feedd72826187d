"""Our models as `measure` sees them: cut open at embeddings, hidden states, scores and attention weights."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful.data.batch import PairBatch
from heedful.errors import ConfigError
from heedful.measure.importance_forward import Forward, LSTMParts, States
from heedful.model.classifier import AttentionClassifier
from heedful.model.encoder import Encoder, LSTMEncoder
from heedful.model.projection import project
from heedful.model.translator import Translator


def classifier_forward(model: AttentionClassifier) -> Forward:
    """A classifier: σ(logit) of two classes, softmax of more.

    >>> from heedful.config import ModelConfig
    >>> from heedful.measure.importance import g_y_h
    >>> forward = classifier_forward(AttentionClassifier(ModelConfig(embedding=3, hidden=2), vocabulary=7, classes=2))
    >>> g_y_h(forward, torch.tensor([[4, 5, 6]]), torch.tensor([[True, True, True]])).lengths
    array([3])
    """
    name = "uniform" if model.mode == "uniform" else model.config.projection

    def read(states: States, alpha: Tensor) -> Tensor:
        logits = model.from_attention(alpha, states.hidden)
        return logits.sigmoid() if logits.shape[1] == 1 else logits.softmax(-1)

    return Forward(
        embed=model.embedding,
        encode=lambda embedded, mask, text: States(model.encoder(model.dropout(embedded), mask)[0]),
        score=lambda states: model.scorer(states.hidden),
        project=lambda scores, mask: project(name, scores, mask, model.config.projection_parameter),
        read=read,
        modules=(model,),
        lstm=_lstm_parts(model.encoder, lambda hidden, last, text: States(hidden)),
    )


def translator_forward(model: Translator, batch: PairBatch, position: Int[Tensor, " B"]) -> Forward:
    """A translator at output position `position[b]` of pair b: the probability of its word there, all before it given.

    The decoder's state is part of what is encoded: deleting a source token changes where the decoder starts from.
    """
    rows = torch.arange(len(batch.source), device=batch.source.device)
    last = batch.target_mask.sum(1) - 1
    if len(position) != len(rows) or bool(((position < 0) | (position > last)).any()):
        raise ConfigError(f"positions {position.tolist()} must lie in 0 … {last.tolist()}, one for each pair")
    words = batch.target_out[rows, position]

    def decode(hidden: Tensor, start: tuple[Tensor, Tensor], text: Tensor) -> States:
        told = model.embedding(batch.target_in[text, : int(position.max()) + 1])
        states, _ = model.decoder(told, start)
        return States(hidden, (states[torch.arange(len(text), device=text.device), position[text]], words[text]))

    def encode(embedded: Tensor, mask: Tensor, text: Tensor) -> States:
        return decode(*model.encode(embedded, mask), text)

    def finish(hidden: Tensor, last: Sequence[tuple[Tensor, Tensor]], text: Tensor) -> States:
        h, c = (torch.stack(parts).mean(0, keepdim=True) for parts in zip(*last, strict=True))
        return decode(model.bridge(hidden), (h, c), text)

    def project_heads(scores: Tensor, mask: Tensor) -> Tensor:
        name = "uniform" if model.mode == "uniform" else "softmax"
        return project(name, scores, mask[:, None].expand_as(scores))

    def read(states: States, alpha: Tensor) -> Tensor:
        s, word = states.aside
        context = torch.einsum("bhl,bld->bd", alpha, states.hidden)
        return model.read(context, s).softmax(-1).gather(1, word[:, None])

    return Forward(
        embed=model.embedding,
        encode=encode,
        score=lambda states: model.scorer(states.aside[0][:, None], states.hidden)[:, :, 0],
        project=project_heads,
        read=read,
        modules=(model,),
        lstm=_lstm_parts(model.encoder, finish),
    )


def _lstm_parts(encoder: Encoder, finish: object) -> LSTMParts | None:
    """An encoder of one LSTM layer; None of any other."""
    if not isinstance(encoder, LSTMEncoder) or len(encoder.forwards) > 1:
        return None
    ahead = encoder.forwards[0]
    back = encoder.backwards[0] if len(encoder.backwards) else None
    assert isinstance(ahead, nn.LSTM)
    assert back is None or isinstance(back, nn.LSTM)
    return LSTMParts(ahead, back, finish)  # type: ignore[arg-type]
