"""A prompt of thousands of tokens fits: of a layer's attention only what is needed is kept when the next is computed.

Bytes are counted as torch allocates them, so that the tests do not depend on the machine.
"""

import numpy as np
import pytest
import torch
import transformers

from heedful.attribution.attention_maps import layer_name, needed_rows, query_rows, read_attention
from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import LONG, Passage, Subject
from heedful.attribution.interventions import prediction_changes
from heedful.attribution.weighted_maps import norm_map
from tests.audits import tiny

L, HEADS = LONG + 9, 4
ONE_LAYER = 4 * HEADS * L * L  # bytes of its attention in single precision
FEW, MANY = 2, 6
PROMPT = Passage.of_pieces(0, np.random.default_rng(0).integers(2, 300, L).tolist(), target=5)


def peak_bytes(run):
    """The largest number of bytes that were allocated at once, beyond those before."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    changes = [e.nbytes() for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    return int(np.cumsum(changes).max())


def language_model(layers):
    sizes = {"num_hidden_layers": layers, "num_attention_heads": HEADS, "num_key_value_heads": HEADS}
    longest = {"max_position_embeddings": 2 * L, "initializer_range": 0.1}
    tokenizer = tiny.byte_pieces(template=False)
    made = tiny.for_task(transformers.LlamaConfig, "text-generation", tokenizer, **sizes, **longest)
    return open_model(made.model, made.tokenizer, task="text-generation")


def read(subject):
    return read_attention(subject, [PROMPT])


def norms(subject):
    return norm_map(subject, [PROMPT], layer_name(subject.network.layers - 1))


def changes(subject):
    pieces = subject.network.model.config.vocab_size
    return prediction_changes(subject, [PROMPT], np.full((1, pieces), 1 / pieces), seed=0)


@pytest.mark.parametrize("explain", [read, norms, changes])
def test_more_layers_need_no_more_memory(explain):
    peaks = []
    for layers in (FEW, MANY):
        with language_model(layers) as (network, reader):
            subject = Subject(network, reader)
            peaks.append(peak_bytes(lambda subject=subject: explain(subject)))
    assert peaks[1] - peaks[0] < ONE_LAYER / 2


def test_reading_needs_little_more_than_predicting():
    """Besides the rows, two maps of one head's size in double precision: those of the rollout."""
    with language_model(MANY) as (network, reader):
        subject = Subject(network, reader)
        predicting = peak_bytes(lambda: subject.predict([PROMPT], [np.ones(L, dtype=bool)]))
        reading = peak_bytes(lambda: read(subject))
        whole = peak_bytes(lambda: subject.map([PROMPT], lambda batch: [subject.run(batch)]))
    assert reading < predicting + 5 * L * L * 8
    assert whole > predicting + (MANY - 2) * ONE_LAYER


@pytest.mark.parametrize("query", ["first", "last", "mean", "only"])
def test_the_needed_rows_are_read_as_all_are(query):
    alpha = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0))
    rows, weights = needed_rows(alpha, query)
    assert weights is None
    assert rows.shape[2] == (5 if query == "mean" else 1)
    assert torch.equal(query_rows(rows, query), query_rows(alpha, query))


def test_rows_without_weight_are_not_needed():
    alpha = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0))
    given = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
    rows, weights = needed_rows(alpha, "at", given)
    assert rows.shape == (2, 3, 2, 7)
    torch.testing.assert_close(query_rows(rows, "at", weights), query_rows(alpha, "at", given))
