"""Memory of explaining a prompt of 4,000 tokens, beside a plain run of the model that returns all of its attention."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import transformers
from benchmarks.case import Limit
from benchmarks.run import peak_mb
from tests.audits import tiny

from heedful.attribution.attention_maps import layer_name, read_attention
from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.weighted_maps import gradient_map, norm_map

LAYERS, HEADS, WIDTH, TOKENS = 4, 8, 128, 4000
AT_MOST = {"reading its attention": 1.0, "norms of its last layer": 1.5, "weights × gradient of its last layer": 1.75}


def limits(quick: bool) -> Iterator[Limit]:
    tokens = TOKENS // 4 if quick else TOKENS
    sizes = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS}
    longest = {"hidden_size": WIDTH, "max_position_embeddings": tokens, "initializer_range": 0.1}
    tokenizer = tiny.byte_pieces(template=False)
    made = tiny.for_task(transformers.LlamaConfig, "text-generation", tokenizer, **sizes, **longest)
    prompt = [Passage.of_pieces(0, np.random.default_rng(0).integers(2, 300, tokens).tolist(), target=5)]
    with open_model(made.model, tokenizer, task="text-generation") as (network, reader):
        subject, last = Subject(network, reader), layer_name(LAYERS - 1)
        work: tuple[Callable[[], Any], ...] = (
            lambda: read_attention(subject, prompt),
            lambda: norm_map(subject, prompt, last),
            lambda: gradient_map(subject, prompt, last),
        )
        with torch.no_grad():
            plain = peak_mb(lambda: made.model(torch.tensor([prompt[0].pieces]), output_attentions=True))
        for (name, most), run in zip(AT_MOST.items(), work, strict=True):
            value = peak_mb(run)
            if value is not None and plain is not None:
                what = f"{tokens:,} tokens, {LAYERS} layers × {HEADS} heads: {name}"
                beside = f"{what}; a plain run that returns all of it: {plain:,.0f} MB"
                yield Limit(beside, "MB", value, most * plain, "at most")
