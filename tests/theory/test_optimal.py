"""Optimal attention: the paper's counterexample, scipy, certificates, masks."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from heedful.errors import ConfigError, DataError, ProjectionError
from heedful.theory.optimal import counterexample, optimal_attention

N, L, V = 3, 5, 7


def random_problem(n=N, length=L, vocabulary=V, scale=3.0, seed=0):
    draw = np.random.default_rng(seed)
    gamma, state = scale * draw.normal(size=(n, length, vocabulary)), scale * draw.normal(size=(n, vocabulary))
    return gamma, state, draw.integers(0, vocabulary, n)


def loss_of(alpha, gamma, state, y):
    """Eq. 26 for one word."""
    return -special.log_softmax(alpha @ gamma + state)[y]


def by_scipy(gamma, state, y):
    length = len(gamma)

    def gradient(alpha):
        return gamma @ special.softmax(alpha @ gamma + state) - gamma[:, y]

    return optimize.minimize(
        loss_of,
        np.full(length, 1 / length),
        args=(gamma, state, y),
        jac=lambda alpha, *_: gradient(alpha),
        method="SLSQP",
        bounds=[(0, 1)] * length,
        constraints={"type": "eq", "fun": lambda alpha: alpha.sum() - 1, "jac": lambda alpha: np.ones(length)},
        options={"ftol": 1e-14, "maxiter": 500},
    )


def test_counterexample():
    case = counterexample()
    np.testing.assert_allclose(case.beta[0], 1 / 3)
    np.testing.assert_allclose(case.beta[1:], math.exp(-5), atol=1e-4)
    np.testing.assert_allclose(case.beta[1:], 1 / (1 + math.exp(-10) + math.exp(5)), rtol=1e-12)
    np.testing.assert_allclose(case.alpha, [0, 0.5, 0.5], atol=1e-8)
    assert case.beta.argmax() == case.alpha.argmin() == 0


def test_scipy_finds_no_better_and_the_same():
    gamma, state, target = random_problem(n=20)
    best = optimal_attention(gamma, state, target, tolerance=1e-10)
    assert best.converged.all()
    for n in range(20):
        peer = by_scipy(gamma[n], state[n], target[n])
        assert best.loss[n] <= peer.fun + 1e-10
        np.testing.assert_allclose(best.loss[n], peer.fun, atol=1e-8)
        np.testing.assert_allclose(best.alpha[n], peer.x, atol=1e-3)


def test_what_it_says_of_itself_is_so():
    gamma, state, target = random_problem()
    best = optimal_attention(gamma, state, target)
    for n in range(N):
        gradient = gamma[n] @ special.softmax(best.alpha[n] @ gamma[n] + state[n]) - gamma[n, :, target[n]]
        assert best.loss[n] == pytest.approx(loss_of(best.alpha[n], gamma[n], state[n], target[n]))
        assert best.gap[n] == pytest.approx(max(gradient @ (best.alpha[n] - vertex) for vertex in np.eye(L)), abs=1e-12)
    assert np.all(best.gap <= 1e-6)
    assert np.all(best.alpha >= 0)
    np.testing.assert_allclose(best.alpha.sum(1), 1, atol=1e-12)


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_certified_at_every_scale(scale, tolerance):
    best = optimal_attention(*random_problem(n=11, length=13, vocabulary=17, scale=scale), tolerance=tolerance)
    assert best.converged.all()
    assert best.gap.max() <= tolerance


def test_more_positions_than_output_words_is_degenerate_and_solved():
    best = optimal_attention(*random_problem(n=11, length=23, vocabulary=2))
    assert best.converged.all()


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(1, 9), st.floats(0.1, 100), st.integers(0, 1000))
def test_no_worse_than_uniform_or_any_one_position(length, vocabulary, scale, seed):
    gamma, state, target = random_problem(1, length, vocabulary, scale, seed)
    best = optimal_attention(gamma, state, target)
    assert best.converged[0]
    for alpha in (np.full(length, 1 / length), *np.eye(length)):
        assert best.loss[0] <= loss_of(alpha, gamma[0], state[0], target[0]) + best.gap[0] + 1e-12


def test_two_words_leave_it_to_the_larger_beta():
    """With two output words the loss is monotonic in β, and the paper's heuristic is a theorem."""
    gamma, state, target = random_problem(n=11, vocabulary=2)
    best = optimal_attention(gamma, state, target)
    beta = special.log_softmax(gamma + state[:, None], axis=-1)[np.arange(11), :, target]
    np.testing.assert_array_equal(best.alpha.argmax(1), beta.argmax(1))
    np.testing.assert_allclose(best.loss, -beta.max(1), atol=1e-6)


def test_masked_is_removed():
    gamma, state, target = random_problem()
    mask = np.array([[True, False, True, True, False], [True] * L, [False, False, True, False, False]])
    spoiled = np.where(mask[..., None], gamma, np.nan)
    best = optimal_attention(spoiled, state, target, mask)
    assert np.all(best.alpha[~mask] == 0)
    for n in range(N):
        alone = optimal_attention(gamma[n : n + 1, mask[n]], state[n : n + 1], target[n : n + 1])
        np.testing.assert_array_equal(best.alpha[n, mask[n]], alone.alpha[0])
        assert best.loss[n] == alone.loss[0]


def test_batched_is_one_by_one():
    gamma, state, target = random_problem()
    best = optimal_attention(gamma, state, target)
    for n in range(N):
        alone = optimal_attention(gamma[n : n + 1], state[n : n + 1], target[n : n + 1])
        np.testing.assert_array_equal(alone.alpha[0], best.alpha[n])
        assert (alone.loss[0], alone.gap[0], alone.iterations[0]) == (best.loss[n], best.gap[n], best.iterations[n])


def test_words_may_share_their_logits():
    gamma, state, target = random_problem()
    shared = optimal_attention(np.broadcast_to(gamma[0], gamma.shape), state, target)
    copied = optimal_attention(np.stack([gamma[0]] * N), state, target)
    np.testing.assert_array_equal(shared.alpha, copied.alpha)


def test_order_does_not_matter_and_like_positions_get_like_weights():
    gamma, state, target = random_problem()
    order = np.array([3, 0, 4, 1, 2])
    best = optimal_attention(gamma, state, target)
    np.testing.assert_allclose(optimal_attention(gamma[:, order], state, target).alpha, best.alpha[:, order], atol=1e-9)
    twice = optimal_attention(np.concatenate([gamma, gamma], axis=1), state, target)
    np.testing.assert_allclose(twice.alpha[:, :L], twice.alpha[:, L:], atol=1e-9)
    np.testing.assert_allclose(twice.loss, best.loss, atol=2e-6)


def test_a_constant_added_to_a_positions_logits_changes_nothing():
    gamma, state, target = random_problem()
    best = optimal_attention(gamma, state, target)
    shifted = optimal_attention(gamma + 5 * np.arange(L)[:, None], state - 3, target)
    np.testing.assert_allclose(shifted.alpha, best.alpha, atol=1e-9)


def test_float32_is_solved_in_float64():
    gamma, state, target = random_problem(scale=10.0)
    single = gamma.astype(np.float32), state.astype(np.float32)
    best = optimal_attention(*single, target, tolerance=1e-9)
    double = optimal_attention(*(x.astype(np.float64) for x in single), target, tolerance=1e-9)
    assert best.converged.all()
    np.testing.assert_array_equal(best.alpha, double.alpha)


def test_one_position_takes_all():
    gamma, state, target = random_problem(length=1)
    best = optimal_attention(gamma, state, target)
    np.testing.assert_array_equal(best.alpha, np.ones((N, 1)))
    assert best.converged.all()
    assert not best.gap.any()
    assert not best.iterations.any()


def test_running_out_of_iterations_is_said():
    best = optimal_attention(*random_problem(), max_iterations=2)
    assert not best.converged.any()
    assert np.all(best.gap > 1e-6)
    assert np.all(best.iterations == 2)
    np.testing.assert_allclose(best.alpha.sum(1), 1, atol=1e-12)


def test_no_words():
    best = optimal_attention(*random_problem(n=0))
    assert best.alpha.shape == (0, L)


def test_clear_errors():
    gamma, state, target = random_problem()
    mask = np.ones((N, L), dtype=bool)
    mask[1] = False
    with pytest.raises(ProjectionError, match="row 1 has every position masked"):
        optimal_attention(gamma, state, target, mask)
    with pytest.raises(DataError, match="target 7 of word 2 is not one of the 7 output words"):
        optimal_attention(gamma, state, np.array([0, 1, V]))
    with pytest.raises(ConfigError, match=r"tolerance of 0\.0 nats"):
        optimal_attention(gamma, state, target, tolerance=0.0)
    with pytest.raises(DataError, match=r"word 0 has logits beyond ±1e\+50"):
        optimal_attention(1e300 * gamma, state, target)
    with pytest.raises(DataError, match="word 0 has logits that are not finite"):
        optimal_attention(np.full_like(gamma, np.inf), state, target)
    unchecked = inspect.unwrap(optimal_attention)  # under pytest jaxtyping would speak first
    with pytest.raises(DataError, match=r"gamma_state \(2, 7\), .* do not go with gamma \(3, 5, 7\)"):
        unchecked(gamma, state[:2], target)


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e3, 1e49])
def test_a_gap_that_rounding_keeps_open_is_said(scale):
    best = optimal_attention(*random_problem(n=7, scale=scale), tolerance=1e-100)
    assert np.array_equal(best.converged, best.gap <= 1e-100)
    assert not best.converged.all() or scale < 1
    np.testing.assert_allclose(best.alpha.sum(axis=1), 1)
    assert scale > 1e3 or best.gap.max() < 1e-12 * scale


def test_equal_logits_have_nothing_to_choose():
    best = optimal_attention(np.full((1, L, V), 1e50), np.zeros((1, V)), np.array([3]))
    assert best.converged.all()
    np.testing.assert_allclose(best.alpha, 1 / L)
