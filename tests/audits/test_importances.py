import sys

import numpy as np
import pytest
import torch

from heedful.attribution.attention_maps import (
    DELETION,
    GRADIENT,
    HIDDEN,
    HIDDEN_DELETION,
    HIDDEN_PRODUCT,
    INTEGRATED,
    PRODUCT,
)
from heedful.attribution.importance import d_y_x
from heedful.audits.scores import importances
from tests.audits.constructed import in_pieces, passages, pooled, stacked


def merged(passage, row):
    words = passage.words_of(row)[1:-1]
    return words / np.abs(words).sum()


def test_gradients_are_those_of_autograd_summed_into_words():
    subject = stacked()
    some = subject.with_targets(in_pieces())
    found = importances(subject, some, steps=0)
    assert sorted(found.inputs) == sorted([GRADIENT, PRODUCT, DELETION])
    for i, passage in enumerate(some):
        embedded = subject.network.embed(torch.tensor([passage.pieces])).detach().requires_grad_()
        subject.network.modules[0].eval()
        y = subject.network.run(embedded).probabilities[0, passage.target]
        (gradient,) = torch.autograd.grad(y, embedded)
        norms, products = gradient[0].norm(dim=-1), (gradient * embedded).detach()[0].sum(-1)
        np.testing.assert_allclose(found.inputs[GRADIENT][i], merged(passage, norms.numpy()))
        np.testing.assert_allclose(found.inputs[PRODUCT][i], merged(passage, products.numpy()))


def test_the_hidden_gradient_of_a_layer_is_that_of_what_its_attention_reads():
    """The first layer reads embeddings with places added: their gradient is that of the embeddings."""
    subject = stacked()
    found = importances(subject, subject.with_targets(in_pieces()), steps=0)
    assert list(found.hidden[HIDDEN]) == list(found.hidden[HIDDEN_PRODUCT]) == [0, 1]
    assert HIDDEN_DELETION not in found.hidden
    np.testing.assert_allclose(found.hidden[HIDDEN][0].values, found.inputs[GRADIENT].values)
    assert not np.allclose(found.hidden[HIDDEN][1].values, found.inputs[GRADIENT].values)


def test_integrated_gradients_of_a_linear_prediction_add_up():
    """Where attention is ignored the logit is linear in tanh(e), so every filler counts by its size alone."""
    subject = pooled(listens=False)
    some = subject.with_targets(passages(3))
    found = importances(subject, some, steps=50).inputs[INTEGRATED]
    for i, passage in enumerate(some):
        assert passage.words[1 + int(found[i].argmax())] in ("dull", "fine")


def test_leave_one_out_deletes_whole_words():
    subject = stacked()
    some = subject.with_targets(in_pieces())
    found = d_y_x(subject, some)
    for passage, row in zip(some, found, strict=True):
        assert row[0] == row[-1] == 0
        everything = np.ones(len(passage.words), dtype=bool)
        (whole,) = subject.predict([passage], [everything])
        for word in range(1, len(row) - 1):
            (without,) = subject.predict([passage], [np.arange(len(row)) != word])
            np.testing.assert_allclose(row[word], whole - without, atol=1e-12)


@pytest.mark.parametrize("max_tokens", [1, 10_000])
def test_many_at_once_are_as_one_by_one(max_tokens):
    subject = stacked(max_tokens=max_tokens)
    some = subject.with_targets(in_pieces())
    together = importances(subject, some, steps=3, layer=1)
    for i, passage in enumerate(some):
        single = importances(stacked(), [passage], steps=3, layer=1)
        for name, rows in together.inputs.items():
            np.testing.assert_allclose(rows[i], single.inputs[name][0], atol=1e-10)
        for name, layers in together.hidden.items():
            for layer, many in layers.items():
                np.testing.assert_allclose(many[i], single.hidden[name][layer][0], atol=1e-10)


def test_without_captum_there_are_no_integrated_gradients(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    subject = stacked()
    assert INTEGRATED not in importances(subject, subject.with_targets(in_pieces(2))).inputs


def test_where_nothing_matters_the_row_is_undefined():
    subject = pooled()
    with torch.no_grad():
        subject.network.modules[0].embedding.weight.zero_()
    found = importances(subject, subject.with_targets(passages(2)), steps=0)
    assert found.inputs[DELETION].undefined.all()
    assert not found.inputs[GRADIENT].undefined.any()
