"""Classifiers of Hugging Face's, opened for an audit and left exactly as they were found.

    with open_classifier("folder or Hub id") as (network, reader): ...

Within, attention is eager and the model in evaluation mode. Before it is handed out, it has been asked once whether it
gives attention, whether embeddings put in by hand give what the text itself gives, and where its attention can be
changed (heedful.audits.tap).
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.audits.loading import load
from heedful.audits.network import Change, Output, Query
from heedful.audits.opening import (
    SAMPLE,
    Opened,
    as_found,
    attention_of,
    first_answer,
    in_full,
    longest_input,
    name_of,
    same_as_text,
)
from heedful.audits.passage import Passage
from heedful.audits.tap import Attention, find_taps
from heedful.audits.tokenising import TokenReader
from heedful.errors import ConfigError, DataError

REFUSED = {"regression": "gives numbers", "multi_label_classification": "may give a text several labels"}


@contextmanager
def open_classifier(
    model: str | Path | nn.Module,
    tokenizer: Any = None,
    *,
    device: str | torch.device = "cpu",
    query: Query | None = None,
    trust_remote_code: bool = False,
) -> Iterator[tuple["Classifier", TokenReader]]:
    """A classifier and its tokeniser as an audit wants them.

    model: a folder, a Hub id, or a model, which then stays on its device and comes with its tokeniser. query: whose
    attention explains the prediction; unless given, the last piece's where no piece looks ahead, the classification
    token's where there is one, and otherwise the mean of all.

    >>> from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> made = Tokenizer(models.WordLevel({"[UNK]": 0, "good": 1, "bad": 2}, unk_token="[UNK]"))
    >>> made.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    >>> model = BertForSequenceClassification(BertConfig(vocab_size=3, **sizes))
    >>> with open_classifier(model, PreTrainedTokenizerFast(tokenizer_object=made)) as (network, reader):
    ...     pieces = torch.tensor([reader.read(0, "not bad").pieces])
    ...     output = network.run(network.embed(pieces))
    >>> network.query, network.can_change, output.attention[0].shape, reader.labels
    ('mean', True, torch.Size([1, 2, 2, 2]), ('LABEL_0', 'LABEL_1'))
    """
    loaded, tokenizer = load("classifier", model, tokenizer, device, trust_remote_code=trust_remote_code)
    if loaded.config.is_encoder_decoder:
        raise DataError(f"{name_of(loaded)} reads a text by an encoder and again by a decoder; classifiers have one")
    reader = TokenReader(tokenizer, _labels(loaded.config), longest_input(loaded, tokenizer))
    with as_found(loaded), _no_word_on_padding(loaded):
        yield _classifier(loaded, reader, query), reader


@dataclass(frozen=True)
class Classifier(Opened):
    """A `Network` that gives every label a probability; hidden[l] is what goes into layer l."""

    def embed(self, pieces: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """The word embeddings, with nothing of their position in them."""
        table = self.model.get_input_embeddings()
        embedded: Tensor = table(pieces.to(table.weight.device))
        return embedded

    def run(
        self, embedded: Float[Tensor, "B L E"], before: Int[Tensor, "B T"] | None = None, change: Change | None = None
    ) -> Output:
        """Read B inputs of one length; differentiable. `before` is of no use to a classifier."""
        found = self.ask({"inputs_embeds": embedded}, change)
        attention = attention_of(self.model, found.attentions, embedded.shape[1])
        hidden = found.hidden_states or ()
        if len(hidden) < len(attention):
            raise DataError(f"{name_of(self.model)} gives {len(attention)} attentions, but {len(hidden)} hidden states")
        return Output(_probabilities(self.model, found), attention, tuple(hidden[: len(attention)]))

    def randomised(self, seed: int) -> "Classifier | None":
        """The same architecture with fresh random parameters; None where its class needs more than a config."""
        fresh = self.fresh(seed)
        return None if fresh is None else replace(self, model=fresh)


@torch.no_grad()
def _classifier(model: Any, reader: TokenReader, query: Query | None) -> Classifier:
    passage = reader.read(0, SAMPLE)
    found = first_answer(model, reader.encoded(SAMPLE))
    expected = _probabilities(model, found)
    attention = attention_of(model, getattr(found, "attentions", None), len(passage.pieces))
    if model.config.pad_token_id is None:
        model.config.pad_token_id = 0  # decoders take no second text without one; never read, for nothing is padded
    query = query or _query(attention, passage, reader.tokenizer.cls_token_id)
    network = Classifier(model, query, len(attention), attention[0].shape[1])
    embedded = network.embed(torch.tensor([passage.pieces]))
    same_as_text(model, network.run(embedded).probabilities, expected)
    return replace(network, taps=find_taps(lambda: network.run(embedded).attention))


def _query(attention: Attention, passage: Passage, classification: int | None) -> Query:
    if not any(alpha.triu(1).any() for alpha in attention) or passage.pieces[-1] == classification:
        return "last"
    return "first" if passage.special[0] else "mean"


def _probabilities(model: Any, found: Any) -> Float[Tensor, "B K"]:
    logits = getattr(found, "logits", None)
    if logits is None or logits.ndim != 2:
        raise DataError(f"{name_of(model)} has no classification head: it does not give one number for each label")
    if logits.shape[1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
    return in_full(logits).softmax(-1)


def _labels(config: Any) -> tuple[str, ...]:
    if config.problem_type in REFUSED:
        does = REFUSED[config.problem_type]
        raise ConfigError(
            f"the model {does} (problem_type {config.problem_type!r}); an audit needs one label of several"
        )
    names = tuple(str(config.id2label[i]) for i in range(config.num_labels))
    return names if len(names) > 1 else (f"not {names[0]}", names[0])


@contextmanager
def _no_word_on_padding(model: Any) -> Iterator[None]:
    """Decoders log that they look for no padding among embeddings; there is none."""

    def keep(record: logging.LogRecord) -> bool:
        return "will not detect padding tokens" not in record.getMessage()

    loggers = [logging.getLogger(name) for name in {type(model).__module__, "transformers.modeling_layers"}]
    for logger in loggers:
        logger.addFilter(keep)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)
