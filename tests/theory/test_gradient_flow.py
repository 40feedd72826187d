"""The proxy's gradient flow: autograd, its limit in width, and corpora from which it learns nothing."""

import dataclasses
import inspect
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heedful.data.ragged import as_ids
from heedful.errors import DataError
from heedful.models.lexicon import count_table
from heedful.theory.gradient_flow import (
    compare_with_limit,
    draw_proxy,
    logit_derivative,
    logit_limit,
    probability_derivative,
    probability_limit,
)

I, O, D, M = 7, 5, 3, 11  # noqa: E741 - the paper's names, distinct primes
WIDTHS = (16, 64, 256, 1024, 4096)

corpora = st.lists(
    st.tuples(st.lists(st.integers(0, I - 1), min_size=1, max_size=5), st.lists(st.integers(0, O - 1), max_size=5)),
    min_size=1,
    max_size=M,
)


def random_corpus(inputs=I, outputs=O, pairs=M, longest=6, seed=0):
    draw = np.random.default_rng(seed)
    sources, targets = (
        [draw.integers(0, size, draw.integers(1, longest + 1)) for _ in range(pairs)] for size in (inputs, outputs)
    )
    return as_ids(sources), as_ids(targets)


def by_autograd(sources, targets, W, e):
    """∂θ̂/∂τ and ∂θ/∂τ: the loss as Eq. 14 writes it, its gradient, and how θ̂ and θ change along minus that."""
    W, e = (torch.from_numpy(x).requires_grad_() for x in (W, e))
    loss = torch.zeros((), dtype=torch.float64)
    for x, y in zip(sources, targets, strict=True):
        log_p = torch.stack([W @ e[int(i)] for i in x]).mean(0).log_softmax(0)
        for o in y:
            loss = loss - log_p[int(o)]
    flow = tuple(-g for g in torch.autograd.grad(loss, (W, e)))

    def along(of):
        return torch.autograd.functional.jvp(of, (W, e), flow)[1].numpy()

    return along(lambda W, e: e @ W.T), along(lambda W, e: (e @ W.T).softmax(-1))


def test_derivatives_are_those_of_autograd():
    for seed in range(5):
        sources, targets = random_corpus(seed=seed)
        W, e = draw_proxy(I, O, D, seed)
        logit, probability = by_autograd(sources, targets, W, e)
        np.testing.assert_allclose(logit_derivative(sources, targets, W, e), logit, rtol=0, atol=1e-10)
        np.testing.assert_allclose(probability_derivative(sources, targets, W, e), probability, rtol=0, atol=1e-10)


@settings(deadline=None, max_examples=30)
@given(corpora, st.floats(0.1, 10))
def test_any_corpus_and_any_scale(corpus, scale):
    sources, targets = zip(*corpus, strict=True)
    assume(any(targets))
    W, e = (scale * x for x in draw_proxy(I, O, D, seed=0))
    logit, probability = by_autograd(sources, targets, W, e)
    np.testing.assert_allclose(logit_derivative(sources, targets, W, e), logit, rtol=0, atol=1e-10)
    np.testing.assert_allclose(probability_derivative(sources, targets, W, e), probability, rtol=0, atol=1e-10)


def test_a_small_step_down_the_gradient_moves_the_logits_so():
    sources, targets = random_corpus()
    W, e = (torch.from_numpy(x) for x in draw_proxy(I, O, D, seed=0))
    bags = torch.stack([torch.bincount(torch.from_numpy(x), minlength=I) / len(x) for x in sources])
    counts = torch.stack([torch.bincount(torch.from_numpy(y), minlength=O) for y in targets])

    def loss(W, e):
        return -(counts * (bags.double() @ e @ W.T).log_softmax(-1)).sum()

    step = 1e-6
    W_dot, e_dot = (-g for g in torch.func.grad(loss, (0, 1))(W, e))
    forward, backward = ((e + h * e_dot) @ (W + h * W_dot).T for h in (step, -step))
    measured = ((forward - backward) / (2 * step)).numpy()
    np.testing.assert_allclose(logit_derivative(sources, targets, W.numpy(), e.numpy()), measured, atol=1e-7)


def test_probabilities_stay_probabilities():
    sources, targets = random_corpus()
    W, e = draw_proxy(I, O, D, seed=0)
    np.testing.assert_allclose(probability_derivative(sources, targets, W, e).sum(1), 0, atol=1e-12)


def test_limit_is_twice_the_centred_count_table():
    sources, targets = random_corpus()
    C = count_table(sources, targets, source_size=I, target_size=O).matrix().toarray()
    np.testing.assert_allclose(logit_limit(C), 2 * (C - C.mean(1, keepdims=True)), atol=1e-14)
    np.testing.assert_allclose(probability_limit(C), 2 / O * (C - C.mean(1, keepdims=True)), atol=1e-14)


def test_limit_is_exact_for_orthonormal_words():
    """W Wᵀ = e eᵀ = I and θ̂ = 0, which width brings about, can be had at once."""
    sources, targets = random_corpus()
    W, e = np.hstack([np.eye(O), np.zeros((O, I))]), np.hstack([np.zeros((I, O)), np.eye(I)])
    C = count_table(sources, targets, source_size=I, target_size=O).matrix().toarray()
    np.testing.assert_allclose(logit_derivative(sources, targets, W, e), logit_limit(C), atol=1e-13)
    np.testing.assert_allclose(probability_derivative(sources, targets, W, e), probability_limit(C), atol=1e-13)


def test_the_derivative_nears_its_limit_as_width_grows():
    words, seeds = 12, 5
    sources, _ = random_corpus(words, words, pairs=200)
    drawn = [
        [compare_with_limit(sources, sources, words, words, width, seed) for seed in range(seeds)] for width in WIDTHS
    ]

    def mean(name):
        return np.array([np.mean([getattr(one, name) for one in row]) for row in drawn])

    for name in ("logit_correlation", "probability_correlation"):
        r = mean(name)
        assert np.all(np.diff(r) > 0)
        assert r[0] < 0.9 < 0.99 < r[3] < 0.998 < r[4]
        # the noise of a scalar product is of order 1/√d, so 1/r² − 1 falls as 1/d
        slope = np.polyfit(np.log(WIDTHS), np.log(1 / r**2 - 1), 1)[0]
        assert slope == pytest.approx(-1, abs=0.15)
    assert mean("logit_slope")[-1] == pytest.approx(1, abs=0.02)
    assert mean("probability_slope")[-1] == pytest.approx(1, abs=0.02)
    assert mean("printed_slope")[-1] == pytest.approx(1 / words, abs=0.02 / words)


def test_slope_needs_no_intercept():
    sources, targets = random_corpus()
    C = count_table(sources, targets, source_size=I, target_size=O).matrix().toarray()
    W, e = draw_proxy(I, O, 16, seed=3)
    exact = logit_derivative(sources, targets, W, e)
    found = compare_with_limit(sources, targets, I, O, 16, seed=3)
    assert found.logit_slope == pytest.approx(np.polyfit(logit_limit(C).ravel(), exact.ravel(), 1)[0])
    assert found.logit_correlation == pytest.approx(np.corrcoef(logit_limit(C).ravel(), exact.ravel())[0, 1])
    assert found.printed_slope == pytest.approx(found.probability_slope / O)


def test_permutations_of_one_set_leave_nothing_to_learn():
    words = 40
    draw = np.random.default_rng(0)
    sources, targets = (as_ids([draw.permutation(words) for _ in range(50)]) for _ in range(2))
    C = count_table(sources, targets).matrix().toarray()
    assert not logit_limit(C).any()
    assert not probability_limit(C).any()
    found = dataclasses.asdict(compare_with_limit(sources, targets, words, words, 16, seed=0))
    assert found.pop("width") == 16
    assert all(math.isnan(value) for value in found.values())


def test_a_mixture_of_two_sets_teaches_the_set_but_no_word():
    draw = np.random.default_rng(0)
    sources = [draw.permutation(4) + 4 * (m % 2) for m in range(40)]
    targets = [draw.permutation(4) + 4 * (m % 2) for m in range(40)]
    limit = logit_limit(count_table(sources, targets).matrix().toarray())
    np.testing.assert_allclose(limit, np.kron([[1, -1], [-1, 1]], np.full((4, 4), 5.0)), atol=1e-12)


def test_sentences_may_come_one_by_one():
    sources, targets = random_corpus()
    lists = compare_with_limit(iter(list(sources)), iter(list(targets)), I, O, D, seed=0)
    assert lists == compare_with_limit(sources, targets, I, O, D, seed=0)


def test_draws_have_the_stated_scale():
    W, e = draw_proxy(I, O, 40_000, seed=0)
    assert (W.shape, e.shape) == ((O, 40_000), (I, 40_000))
    np.testing.assert_allclose((W**2).sum(1), 1, atol=0.05)
    np.testing.assert_allclose(W @ e.T, 0, atol=0.05)
    assert not np.array_equal(draw_proxy(I, O, D, seed=0)[0], draw_proxy(I, O, D, seed=1)[0])


def test_clear_errors():
    W, e = draw_proxy(I, O, D, seed=0)
    with pytest.raises(DataError, match="source id 7 does not fit a vocabulary of 7"):
        logit_derivative([[I]], [[0]], W, e)
    with pytest.raises(DataError, match="target id 5 does not fit a vocabulary of 5"):
        compare_with_limit([[0]], [[O]], I, O, D, seed=0)
    with pytest.raises(DataError, match="1 source sentences but 2 target sentences"):
        probability_derivative([[0]], [[0], [1]], W, e)
    with pytest.raises(DataError, match="no output words"):
        logit_limit(np.empty((I, 0)))
    with pytest.raises(DataError, match="width 0 is empty"):
        draw_proxy(I, O, 0, seed=0)
    unchecked = inspect.unwrap(logit_derivative)  # under pytest jaxtyping would speak first
    with pytest.raises(DataError, match="W has width 3 but e has 2"):
        unchecked([[0]], [[0]], W, e[:, :2])
