"""Maps made of attention and more: against computations by hand, batched against one by one, and of dead layers."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from heedful.attribution.attention_maps import layer_name
from heedful.attribution.huggingface import open_model
from heedful.attribution.importance import d_y_h
from heedful.attribution.interface import Subject
from heedful.attribution.value_vectors import value_vectors
from heedful.attribution.weighted_maps import gradient_map, norm_map, value_zeroing_map
from tests.audits import tiny, zoo

MAPS = (norm_map, gradient_map, value_zeroing_map)


def read(subject, reader):
    return subject.with_targets([reader.read(i, text) for i, text in enumerate(tiny.TEXTS)])


@pytest.mark.parametrize("layer", [0, 1])
def test_value_vectors_of_bert_are_those_of_its_matrices(layer):
    made = tiny.bert()
    with open_model(made.model, made.tokenizer) as (network, reader):
        subject = Subject(network, reader)

        def compare(batch):
            states = subject.run(batch).hidden[layer]
            attention = made.model.bert.encoder.layer[layer].attention
            values = attention.self.value(states).unflatten(-1, (2, 8))
            by_hand = torch.einsum("blhe,dhe->bhld", values, attention.output.dense.weight.unflatten(-1, (2, 8)))
            assert_allclose(value_vectors(subject, batch, layer), by_hand, atol=1e-5)
            return [None] * len(batch.passages)

        subject.map(read(subject, reader), compare)


@pytest.mark.parametrize(
    "make", [tiny.bert, tiny.gpt2, tiny.deberta, tiny.llama, tiny.modernbert], ids=lambda make: make.__name__
)
def test_batched_equals_one_by_one(make):
    made = make()
    with open_model(made.model, made.tokenizer) as (network, reader):
        subject = Subject(network, reader)
        passages = read(subject, reader)
        for function in MAPS:
            rows = function(subject, passages, layer_name(1))
            assert all(len(row) == len(p.words) and (row >= 0).all() for row, p in zip(rows, passages, strict=True))
            assert max(row.max() for row in rows) > 0
            for i in (1, 4):
                (alone,) = function(subject, passages[i : i + 1], layer_name(1))
                assert_allclose(rows[i], alone, rtol=1e-3, atol=1e-6)


def test_a_layer_whose_output_is_multiplied_by_nothing_has_no_contributions():
    made = tiny.bert()
    with torch.no_grad():
        made.model.bert.encoder.layer[1].attention.output.dense.weight.zero_()
    with open_model(made.model, made.tokenizer) as (network, reader):
        subject = Subject(network, reader)
        passages = read(subject, reader)
        for function in MAPS:
            assert max(row.max() for row in function(subject, passages, layer_name(1))) < 1e-9
        assert max(row.max() for row in norm_map(subject, passages, layer_name(0))) > 0


def test_only_the_key_has_a_value_and_a_gradient_where_the_decoy_has_the_attention():
    subject, passages = zoo.worthless_decoy(), zoo.passages(6)
    targeted = subject.with_targets(passages)
    for function in MAPS:
        for row, passage in zip(function(subject, targeted, "layer 1"), targeted, strict=True):
            assert passage.words[int(np.argmax(row))] in ("dull", "fine")
            assert row[passage.words.index("the")] == 0


def test_gradients_of_all_layers_are_the_sum_and_norms_the_mean():
    made = tiny.bert()
    with open_model(made.model, made.tokenizer) as (network, reader):
        subject = Subject(network, reader)
        passages = read(subject, reader)
        for function, share in ((gradient_map, 1.0), (norm_map, 0.5)):
            layers = [function(subject, passages, layer_name(layer)) for layer in (0, 1)]
            for whole, first, second in zip(function(subject, passages, "mean"), *layers, strict=True):
                assert_allclose(whole, share * (first + second), rtol=1e-4, atol=1e-7)
        assert value_zeroing_map(subject, passages, "mean") is None


@pytest.mark.parametrize("make", [tiny.bert, tiny.gpt2, tiny.modernbert], ids=lambda make: make.__name__)
def test_kept_states_change_nothing(make):
    """States are kept from batches of one text and read in padded ones; in double precision, rounding is small."""
    made = make()
    with open_model(made.model.double(), made.tokenizer) as (network, reader):
        plain, keeping = Subject(network, reader), Subject(network, reader)
        passages, last = read(plain, reader), network.layers - 1
        keeping.keep(last)
        keeping.map(passages, lambda batch: keeping.states_at(batch, last), at_once=lambda length: 1)
        assert len(keeping.kept[last]) == len({passage.pieces for passage in passages})
        for own, kept in zip(
            (*(make_map(plain, passages, layer_name(last)) for make_map in MAPS), d_y_h(plain, passages, last)),
            (*(make_map(keeping, passages, layer_name(last)) for make_map in MAPS), d_y_h(keeping, passages, last)),
            strict=True,
        ):
            for row, same in zip(own, kept, strict=True):
                assert_allclose(same, row, rtol=1e-9, atol=1e-12)
