import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from captum.attr import LayerIntegratedGradients

from heedful.attribution.huggingface import open_model
from heedful.attribution.huggingface_translator import open_translator, output_passages
from heedful.attribution.importance import (
    can_integrate,
    captum_missing,
    hidden_integrated_gradients,
    integrated_gradients,
)
from heedful.attribution.interface import Subject, target_probability
from heedful.attribution.modules import classifier_network
from heedful.config import ModelConfig
from heedful.models.classifier import AttentionClassifier
from tests.audits import tiny
from tests.audits.constructed import READER, in_pieces, passages, pooled, stacked

UNREAD = torch.ones(1, 6, 4, dtype=torch.float64)


def from_nothing(subject, some):
    """ŷ − ŷ of embeddings of 0."""

    def answer(batch):
        nothing = subject.run(batch, 0 * subject.network.embed(batch.pieces))
        return (
            target_probability(subject.run(batch).probabilities, batch)
            - target_probability(nothing.probabilities, batch)
        ).tolist()

    return np.array(subject.map(some, answer))


def sums(rows):
    return np.array([row.sum() for row in rows])


@pytest.mark.parametrize("subject", [pooled(), stacked(), stacked(causal=True)])
def test_rows_sum_to_what_the_prediction_gained(subject):
    """Of inputs as of the states of every layer: all that these networks know of a passage goes through them."""
    some = subject.with_targets(in_pieces())
    gained = from_nothing(subject, some)
    np.testing.assert_allclose(sums(integrated_gradients(subject, some, 200)), gained, atol=1e-6)
    for layer in range(subject.network.layers):
        np.testing.assert_allclose(sums(hidden_integrated_gradients(subject, some, layer, 200)), gained, atol=1e-6)


def test_it_is_what_captum_makes_of_a_layer():
    made = tiny.bert()
    made.model.double()
    with open_model(made.model, made.tokenizer) as (network, reader):
        subject = Subject(network, reader)
        some = subject.with_targets([reader.read(i, text) for i, text in enumerate(tiny.TEXTS)])
        found = hidden_integrated_gradients(subject, some, 1, 7)
        peer = LayerIntegratedGradients(lambda e: network.run(e).probabilities, made.model.bert.encoder.layer[0])
        for passage, row in zip(some, found, strict=True):
            embedded = network.embed(torch.tensor([passage.pieces]))
            given = peer.attribute(
                embedded, target=passage.target, n_steps=7
            )  # of what layer 1 gives, and layer 2 reads
            np.testing.assert_allclose(row, passage.words_of(given.sum(-1)[0].detach().numpy()), atol=1e-10)


def test_of_a_translator_it_is_that_of_what_its_encoder_says():
    made = tiny.marian()
    made.model.double()
    with open_translator(made.model, made.tokenizer) as (network, reader):
        subject = Subject(network, reader)
        some = [p for i, pair in enumerate(tiny.PAIRS) for p in output_passages(network, reader, i, *pair)]
        first, last = (hidden_integrated_gradients(subject, some, layer, 100) for layer in (0, 1))
        np.testing.assert_allclose(sums(first), from_nothing(subject, some), atol=1e-6)
        assert all(map(np.array_equal, first, last))


def test_where_states_are_embeddings_the_two_are_one():
    torch.manual_seed(0)
    model = AttentionClassifier(ModelConfig(encoder="embedding", embedding=5), vocabulary=40, classes=2).double()
    subject = Subject(classifier_network(model), READER)
    some = subject.with_targets(passages(4))
    for of_states, of_inputs in zip(
        hidden_integrated_gradients(subject, some, 0, 9), integrated_gradients(subject, some, 9), strict=True
    ):
        np.testing.assert_allclose(of_states, of_inputs, atol=1e-12)


@pytest.mark.parametrize("states", [lambda e: UNREAD, lambda e: 0 * e])
def test_states_that_nothing_reads_have_no_importance(states):
    """Nor can others be put in the place of those that are not made while the network runs."""
    subject = pooled()
    run = subject.network._run
    subject.network._run = lambda e, change: replace(run(e, change), hidden=(states(e),))
    (passage,) = subject.with_targets(passages(1))
    found = hidden_integrated_gradients(subject, [passage], 0, 2)
    assert found is None if states(UNREAD) is UNREAD else not found[0].any()


@pytest.mark.parametrize("lost", ["captum", "captum.attr"])
def test_without_captum_the_words_say_what_to_install(monkeypatch, lost):
    assert can_integrate()
    monkeypatch.delitem(sys.modules, "captum.attr", raising=False)
    monkeypatch.setitem(sys.modules, lost, None)
    assert not can_integrate()
    assert captum_missing() == (
        "integrated gradients were left out: taking them needs the package captum; install it with: "
        "pip install 'heedful[hf]'"
    )
