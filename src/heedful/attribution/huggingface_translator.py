"""Hugging Face encoder–decoders as networks, left exactly as they were found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attribution.huggingface_text import TokenReader, load, longest_input, table_rows
from heedful.attribution.interface import Passage
from heedful.attribution.model_files import in_words
from heedful.attribution.network import Before, Change, Embedded, Output, Pieces
from heedful.attribution.opened_model import (
    SAMPLE,
    OpenedModel,
    attention_of,
    check_embeddings,
    first_call,
    name_of,
    restored_afterwards,
)
from heedful.attribution.taps import find_taps
from heedful.attribution.tasks import WHOLE, next_piece
from heedful.errors import DataError

MAX_PIECES = 128
RULES = (  # the generation settings that decide which pieces are allowed
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
) -> Iterator[tuple["HuggingFaceTranslator", TokenReader]]:
    """An encoder–decoder as a network, and its tokeniser as a reader.

    model: a folder, a Hub id, or a model with its tokeniser; a model stays on its device.

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
    loaded, tokenizer = load("translation", model, tokenizer, device, trust_remote_code=trust_remote_code)
    if not loaded.config.is_encoder_decoder:
        raise DataError(f"{name_of(loaded)} is not an encoder–decoder: it has no cross-attention")
    with in_words(name_of(loaded), "reading its longest input"):
        reader = TokenReader(tokenizer, (), longest_input(loaded, tokenizer), table_rows(loaded))
    with restored_afterwards(loaded):
        with in_words(name_of(loaded), "a first translation"):
            network = _translator(loaded, reader)
        yield network, reader


def output_passages(
    network: "HuggingFaceTranslator",
    reader: TokenReader,
    number: int,
    text: str,
    translation: str | None = None,
    *,
    max_pieces: int = MAX_PIECES,
) -> list[Passage]:
    """One passage for each output word: it explains the word's first piece, given the pieces before it.

    translation: the output; by default the model's own (greedy). At most `max_pieces` are used, and further pieces of a
    translation count as cut. See the example of `open_translator`.
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
class HuggingFaceTranslator(OpenedModel):
    """A `Network` with a probability for every possible next output piece.

    start: the first piece of every output. scale: the factor of embeddings before the encoder.
    """

    start: int = 0
    scale: float = 1.0

    def embed(self, pieces: Pieces) -> Embedded:
        """The source's word embeddings, without position information."""
        table = self.model.get_encoder().get_input_embeddings()
        embedded: Tensor = table(pieces.to(table.weight.device)) * self.scale
        return embedded

    def run(self, embedded: Embedded, before: Before = None, change: Change | None = None) -> Output:
        """Run on B sources of one length; differentiable. before: the output so far; by default `start` alone."""
        if before is None:
            before = torch.full((len(embedded), 1), self.start)
        inputs = {"inputs_embeds": embedded, "decoder_input_ids": before.to(embedded.device)}
        returned = self.call(inputs, change)
        attention = attention_of(self.model, returned.cross_attentions, embedded.shape[1])
        return Output(_next_probabilities(returned), attention, (returned.encoder_last_hidden_state,) * len(attention))

    @torch.no_grad()
    def translate(self, pieces: Sequence[int], max_pieces: int) -> tuple[int, ...]:
        """The model's own output (greedy), within its generation settings."""
        own = self.model.generation_config
        rules = {name: getattr(own, name, None) for name in RULES} | {"decoder_start_token_id": self.start}
        greedy = type(own)(**rules, max_new_tokens=max_pieces, do_sample=False, num_beams=1)
        source = torch.tensor([pieces], device=self.model.device)
        written = self.model.generate(source, attention_mask=torch.ones_like(source), generation_config=greedy)
        return tuple(written[0, 1:].tolist())


@torch.no_grad()
def _translator(model: Any, reader: TokenReader) -> HuggingFaceTranslator:
    passage = reader.read(0, SAMPLE)
    start = _start(model)
    # One output piece more than the source has: only cross-attention has that shape.
    before = torch.full((1, min(len(passage.pieces) + 1, reader.longest)), start, device=model.device)
    returned = first_call(model, {**reader.encoded(SAMPLE), "decoder_input_ids": before})
    attention = attention_of(model, getattr(returned, "cross_attentions", None), len(passage.pieces))
    network = HuggingFaceTranslator(model, "last", len(attention), attention[0].shape[1], start=start)
    scaled = replace(network, scale=float(getattr(model.get_encoder(), "embed_scale", 1.0)))
    pieces = torch.tensor([passage.pieces])
    expected = _next_probabilities(returned)
    if not torch.allclose(network.run(network.embed(pieces), before).probabilities, expected):
        network = scaled
    embedded = network.embed(pieces)
    check_embeddings(model, network.run(embedded, before).probabilities, expected)
    return replace(network, taps=find_taps(lambda: network.run(embedded, before).attention))


def _start(model: Any) -> int:
    for settings in (model.config, model.generation_config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            piece = getattr(settings, name, None)
            if piece is not None:
                return int(piece)
    raise DataError(
        f"{name_of(model)} does not define the first piece of its output; set config.decoder_start_token_id"
    )


def _next_probabilities(returned: Any) -> Float[Tensor, "B V"]:
    return next_piece(returned, None, WHOLE)
