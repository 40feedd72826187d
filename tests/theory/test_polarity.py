"""The terms A to F: autograd, small steps of descent, worked texts, and what exchanging the labels does."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import logsigmoid

from heedful.data.ragged import Ragged, as_ids
from heedful.errors import DataError
from heedful.theory.polarity import DotModel, gradients, terms

V, D, M = 11, 5, 13  # distinct primes
NAMES = "ABCDEF"

corpora = st.lists(
    st.tuples(st.lists(st.integers(0, V - 1), min_size=1, max_size=7), st.integers(0, 1)), min_size=1, max_size=M
)


def draw(scale: float, seed: int = 0) -> DotModel:
    rng = np.random.default_rng(seed)
    return DotModel(rng.normal(size=(V, D)), rng.normal(size=D), rng.normal(size=D), scale)


def random_texts(seed: int = 0) -> tuple[Ragged, np.ndarray]:
    rng = np.random.default_rng(seed)
    return as_ids([rng.integers(0, V, rng.integers(1, 8)) for _ in range(M)]), rng.integers(0, 2, M)


def by_autograd(texts, labels, model):
    """Gradients of the loss written out text by text, and how both scores change along minus them."""
    e, W, C = (torch.from_numpy(x).requires_grad_() for x in (model.embedding, model.output, model.context))
    loss = torch.zeros((), dtype=torch.float64)
    for text, label in zip(texts, labels, strict=True):
        vectors = torch.stack([e[int(j)] for j in text])
        alpha = (vectors @ C / model.scale).softmax(0)
        loss = loss - logsigmoid((2 * int(label) - 1) * (alpha @ vectors) @ W) / len(labels)
    found = torch.autograd.grad(loss, (e, W, C))
    flow = tuple(-g for g in found)
    moved = [
        torch.autograd.functional.jvp(of, (e, W, C), flow)[1].numpy()
        for of in (lambda e, W, C: e @ W, lambda e, W, C: e @ C / model.scale)
    ]
    return [g.numpy() for g in found], moved


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10 * max(1.0, float(np.abs(theirs).max())))


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1e4])
def test_everything_is_what_autograd_says(scale):
    model, (texts, labels) = draw(scale), random_texts()
    (of_e, of_W, of_V), (polarity, score) = by_autograd(texts, labels, model)
    ours = gradients(texts, labels, model)
    close(ours.embedding, of_e)
    close(ours.output, of_W)
    close(ours.context, of_V)
    moved = terms(texts, labels, model)
    close(moved.polarity, polarity)
    close(moved.score, score)


@given(corpora, st.sampled_from([0.5, 3.0, 100.0]), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_any_corpus(corpus, scale, seed):
    texts, labels = as_ids([text for text, _ in corpus]), np.array([label for _, label in corpus])
    model = draw(scale, seed)
    (of_e, of_W, of_V), (polarity, score) = by_autograd(texts, labels, model)
    ours, moved = gradients(texts, labels, model), terms(texts, labels, model)
    for left, right in (
        (ours.embedding, of_e),
        (ours.output, of_W),
        (ours.context, of_V),
        (moved.polarity, polarity),
        (moved.score, score),
    ):
        close(left, right)


def test_a_small_step_of_descent_moves_the_scores_so():
    model, (texts, labels) = draw(3.0), random_texts()
    slope, step = gradients(texts, labels, model), 1e-6
    after = DotModel(
        model.embedding - step * slope.embedding,
        model.output - step * slope.output,
        model.context - step * slope.context,
        model.scale,
    )
    moved = terms(texts, labels, model)
    np.testing.assert_allclose((after.polarity - model.polarity) / step, moved.polarity, atol=1e-4)
    np.testing.assert_allclose((after.score - model.score) / step, moved.score, atol=1e-4)


def test_texts_of_one_token():
    """α = 1 and s = s_e: ρ is 0, and only B, C and D are left."""
    model = draw(2.0)
    moved = terms([[4]], [1], model)
    e, W, C = model.embedding[4], model.output, model.context
    beta = 1 / (1 + np.exp(e @ W))
    for name in "AEF":
        np.testing.assert_allclose(getattr(moved, name), 0, atol=1e-15)
    assert moved.B[4] == pytest.approx(beta * W @ W)
    assert moved.C[4] == pytest.approx(beta * e @ e)
    assert moved.D[4] == pytest.approx(beta * (C @ W) / 2.0)
    assert moved.B[:4].tolist() == [0.0] * 4
    assert moved.C[0] == pytest.approx(beta * model.embedding[0] @ e)


def test_labels_exchanged():
    """With y and W turned around, polarity moves the other way and attention as before."""
    model, (texts, labels) = draw(3.0), random_texts()
    turned = DotModel(model.embedding, -model.output, model.context, model.scale)
    one, other = terms(texts, labels, model), terms(texts, 1 - labels, turned)
    for name, sign in zip(NAMES, (-1, -1, -1, 1, 1, 1), strict=True):
        np.testing.assert_allclose(getattr(other, name), sign * getattr(one, name), atol=1e-12)


def test_a_token_that_stands_evenly_is_not_pulled():
    """Two texts that differ in one token and in their label: what they share has π = ρ = 0 while W is 0."""
    model = DotModel(draw(1.0).embedding, np.zeros(D), np.zeros(D), 1.0)
    slope = gradients([[0, 1], [0, 2]], [1, 0], model)
    assert slope.embedding[0].tolist() == [0.0] * D
    np.testing.assert_allclose(slope.output, -(model.embedding[1] - model.embedding[2]) / 8, atol=1e-15)


def test_at_a_large_scale_attention_is_moved_by_d_alone():
    texts, labels = random_texts()
    moved = [terms(texts, labels, draw(scale)) for scale in (1e3, 1e5)]
    for one in moved:
        assert np.abs(one.D).max() > 100 * max(np.abs(one.E).max(), np.abs(one.F).max())
    assert np.abs(moved[0].D).max() / np.abs(moved[1].D).max() == pytest.approx(100, rel=1e-2)


def test_order_of_texts_and_a_larger_vocabulary_change_nothing():
    model, (texts, labels) = draw(3.0), random_texts()
    order = np.arange(M)[::-1]
    one, other = terms(texts, labels, model), terms(texts.take(order), labels[order], model)
    wide = DotModel(np.vstack([model.embedding, np.ones((3, D))]), model.output, model.context, model.scale)
    more = terms(texts, labels, wide)
    for name in NAMES:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-14)
        np.testing.assert_allclose(getattr(more, name)[:V], getattr(one, name), atol=1e-14)
    for name in "ABDE":
        assert getattr(more, name)[V:].tolist() == [0.0] * 3


def test_bad_input_is_named():
    model = draw(1.0)
    with pytest.raises(DataError, match="0 and 1"):
        terms([[1]], [2], model)
    with pytest.raises(DataError, match="one has no token"):
        terms([[1], []], [0, 1], model)
    with pytest.raises(DataError, match="2 texts but 1 labels"):
        terms([[1], [2]], [0], model)
    with pytest.raises(DataError, match="vocabulary of 11"):
        terms([[11]], [0], model)
    with pytest.raises(DataError, match="above 0"):
        DotModel(model.embedding, model.output, model.context, 0.0)
    unchecked = inspect.unwrap(DotModel.__post_init__)  # under pytest jaxtyping would speak first
    with pytest.raises(DataError, match="do not go with W"):
        unchecked(SimpleNamespace(embedding=model.embedding, output=np.zeros(3), context=model.context, scale=1.0))
