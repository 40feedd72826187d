"""Encoder–decoders of Hugging Face's: which words of the source does an output word look at?

    with open_translator("folder or Hub id") as (network, reader):
        passages = output_passages(network, reader, 0, "the source", "its translation")

Attention is cross-attention; what it reads, in every layer, is the encoder's last hidden state. A prediction is that of
one output piece, given the source and the output pieces before it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.audits.loading import load
from heedful.audits.network import Change, Output
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
from heedful.audits.tap import find_taps
from heedful.audits.tokenising import TokenReader
from heedful.errors import DataError

MAX_PIECES = 128
RULES = (  # of a model's generation settings, those that say which pieces may come
    *("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id"),
    *("bad_words_ids", "suppress_tokens", "begin_suppress_tokens"),
)


@contextmanager
def open_translator(
    model: str | Path | nn.Module,
    tokenizer: Any = None,
    *,
    device: str | torch.device = "cpu",
    trust_remote_code: bool = False,
) -> Iterator[tuple["Translator", TokenReader]]:
    """An encoder–decoder and its tokeniser as an audit wants them.

    model: a folder, a Hub id, or a model, which then stays on its device and comes with its tokeniser.

    >>> from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> made = Tokenizer(models.WordLevel({"[UNK]": 0, "</s>": 1, "chat": 2, "cat": 3}, unk_token="[UNK]"))
    >>> made.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", eos_token="</s>")
    >>> parts = {f"{half}_{part}": 2 for half in ("encoder", "decoder") for part in ("layers", "attention_heads")}
    >>> special = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"), 1)
    >>> model = BartForConditionalGeneration(BartConfig(vocab_size=4, d_model=8, **parts, **special))
    >>> with open_translator(model, tokenizer) as (network, reader):
    ...     (passage,) = output_passages(network, reader, 0, "un chat noir", "cat")
    ...     output = network.run(network.embed(torch.tensor([passage.pieces])), torch.tensor([passage.before]))
    >>> passage.output, passage.target, passage.before, output.attention[0].shape
    ('cat', 3, (1,), torch.Size([1, 2, 1, 3]))
    """
    loaded, tokenizer = load("translator", model, tokenizer, device, trust_remote_code=trust_remote_code)
    if not loaded.config.is_encoder_decoder:
        raise DataError(f"{name_of(loaded)} is no encoder–decoder: it has no cross-attention")
    reader = TokenReader(tokenizer, (), longest_input(loaded, tokenizer))
    with as_found(loaded):
        yield _translator(loaded, reader), reader


def output_passages(
    network: "Translator",
    reader: TokenReader,
    number: int,
    text: str,
    translation: str | None = None,
    *,
    max_pieces: int = MAX_PIECES,
) -> list[Passage]:
    """One passage for each output word: that of its first piece, given the pieces before it.

    translation: whose words they are; unless given, the model's own (greedy). At most `max_pieces` are read or written,
    and pieces of a translation beyond them count as cut. The example of `open_translator` shows one.
    """
    source = reader.read(number, text)
    most = min(max_pieces, reader.longest)
    if translation is None:
        written = reader.written(number, network.translate(source.pieces, most))
    else:
        written = reader.read_output(number, translation)
    firsts = [written.word.index(w) for w, special in enumerate(written.special) if not special]
    cut = source.cut + max(0, len(written.pieces) - most)
    return [
        replace(
            source,
            target=written.pieces[first],
            output=written.words[written.word[first]],
            before=(network.start, *written.pieces[:first]),
            cut=cut,
        )
        for first in firsts
        if first < most
    ]


@dataclass(frozen=True)
class Translator(Opened):
    """A `Network` that gives every possible next output piece a probability.

    start: the piece that stands before all output. scale: what embeddings are multiplied with before the encoder takes
    them in.
    """

    start: int = 0
    scale: float = 1.0

    def embed(self, pieces: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """The source's word embeddings, with nothing of their position in them."""
        table = self.model.get_encoder().get_input_embeddings()
        embedded: Tensor = table(pieces.to(table.weight.device)) * self.scale
        return embedded

    def run(
        self, embedded: Float[Tensor, "B L E"], before: Int[Tensor, "B T"] | None = None, change: Change | None = None
    ) -> Output:
        """Read B sources of one length; differentiable. before: the output so far; by default `start` alone."""
        if before is None:
            before = torch.full((len(embedded), 1), self.start)
        inputs = {"inputs_embeds": embedded, "decoder_input_ids": before.to(embedded.device)}
        found = self.ask(inputs, change)
        attention = attention_of(self.model, found.cross_attentions, embedded.shape[1])
        return Output(_probabilities(found), attention, (found.encoder_last_hidden_state,) * len(attention))

    def randomised(self, seed: int) -> "Translator | None":
        """The same architecture with fresh random parameters; None where its class needs more than a config."""
        fresh = self.fresh(seed)
        return None if fresh is None else replace(self, model=fresh)

    @torch.no_grad()
    def translate(self, pieces: Sequence[int], max_pieces: int) -> tuple[int, ...]:
        """The model's own output, at every step the likeliest piece that its generation settings allow."""
        own = self.model.generation_config
        rules = {name: getattr(own, name, None) for name in RULES} | {"decoder_start_token_id": self.start}
        greedy = type(own)(**rules, max_new_tokens=max_pieces, do_sample=False, num_beams=1)
        source = torch.tensor([pieces], device=self.model.device)
        written = self.model.generate(source, attention_mask=torch.ones_like(source), generation_config=greedy)
        return tuple(written[0, 1:].tolist())


@torch.no_grad()
def _translator(model: Any, reader: TokenReader) -> Translator:
    passage = reader.read(0, SAMPLE)
    start = _start(model)
    # One output piece more than the source has: no attention but the cross-attention has its shape.
    before = torch.full((1, min(len(passage.pieces) + 1, reader.longest)), start, device=model.device)
    found = first_answer(model, {**reader.encoded(SAMPLE), "decoder_input_ids": before})
    attention = attention_of(model, getattr(found, "cross_attentions", None), len(passage.pieces))
    network = Translator(model, "last", len(attention), attention[0].shape[1], start=start)
    scaled = replace(network, scale=float(getattr(model.get_encoder(), "embed_scale", 1.0)))
    pieces = torch.tensor([passage.pieces])
    expected = _probabilities(found)
    if not torch.allclose(network.run(network.embed(pieces), before).probabilities, expected):
        network = scaled
    embedded = network.embed(pieces)
    same_as_text(model, network.run(embedded, before).probabilities, expected)
    return replace(network, taps=find_taps(lambda: network.run(embedded, before).attention))


def _start(model: Any) -> int:
    for settings in (model.config, model.generation_config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            found = getattr(settings, name, None)
            if found is not None:
                return int(found)
    raise DataError(
        f"{name_of(model)} does not say which piece its output starts with: set config.decoder_start_token_id"
    )


def _probabilities(found: Any) -> Float[Tensor, "B V"]:
    return in_full(found.logits[:, -1]).softmax(-1)
