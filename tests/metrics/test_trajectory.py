import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful.errors import DataError
from heedful.metrics.agreement import contextualised_agreement, contextualised_estimate, maximum_over_steps

TABLES = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.integers(0, 3).map(float))


@given(TABLES)
def test_maximum_by_hand(table):
    steps = 10 * np.arange(len(table))
    best = maximum_over_steps(table, steps)
    curve = [np.mean(row) for row in table]
    assert best.curve == pytest.approx(tuple(curve))
    assert best.value == pytest.approx(max(curve))
    assert best.step == 10 * int(np.argmax(best.curve))  # the first of equals
    assert min(curve) - 3 <= best.split_half <= 3


def test_split_half_is_not_fooled_by_noise():
    """Nothing but noise: the maximum is above the mean, the value on the other half is not."""
    noise = np.random.default_rng(0).normal(size=(200, 40))
    best = maximum_over_steps(noise, np.arange(200))
    assert best.value > 0.3
    assert abs(best.split_half) < 0.35
    assert best.split_half < best.value


def test_halves_are_of_texts():
    table = [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    assert maximum_over_steps(table, [0, 1]).split_half == 0.5
    assert maximum_over_steps(table, [0, 1], groups=["a", "a", "b", "b"]).split_half == 0


def test_nan_is_left_out():
    best = maximum_over_steps([[math.nan, 1.0], [0.5, math.nan], [math.nan, math.nan]], [0, 1, 2])
    assert (best.value, best.step) == (1.0, 0)
    one_half_empty = maximum_over_steps([[1.0, math.nan], [2.0, math.nan]], [0, 1])
    assert (one_half_empty.value, one_half_empty.split_half) == (2.0, 2.0)
    with pytest.raises(DataError, match="no step has a defined value"):
        maximum_over_steps([[math.nan]], [0])


def test_xi_is_read_where_the_curve_first_exceeds():
    steps, curve, accuracy = [0, 10, 20, 30], [0.1, 0.4, 0.3, 0.6], [0.5, 0.6, 0.7, 0.8]
    assert contextualised_agreement(0.35, steps, curve, accuracy).value == 0.6
    assert contextualised_agreement(0.4, steps, curve, accuracy).step == 30  # strictly above
    never = contextualised_agreement(0.9, steps, curve, accuracy)
    assert (never.value, never.reached, str(never)) == (0.8, False, "0.800*")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_xi_step_never_falls_as_agreement_rises(curve, a, b):
    steps = list(range(len(curve)))
    low, high = (contextualised_agreement(x, steps, curve, steps) for x in sorted([a, b]))
    assert low.step <= high.step


def test_estimate_of_xi_reads_the_same_curve():
    rng = np.random.default_rng(0)
    agreements = rng.integers(0, 2, size=60).astype(float) * 0.5
    curve = np.clip(np.linspace(0, 1, 9)[:, None] + rng.normal(0, 0.1, size=(9, 60)), 0, 1)
    performance = np.clip(np.linspace(0.4, 0.9, 9)[:, None] + rng.normal(0, 0.1, size=(9, 60)), 0, 1)
    xi = contextualised_agreement(agreements.mean(), range(9), curve.mean(1), performance.mean(1))
    estimate = contextualised_estimate([agreements], [curve], [performance], resamples=300)
    assert estimate.value == pytest.approx(xi.value)
    assert estimate.low <= estimate.value <= estimate.high


def test_xi_is_read_once_from_averaged_curves():
    """Two seeds, each above the threshold at its own step alone; the averaged curve passes it at the last."""
    agreements = [np.full(2, 0.5), np.full(2, 0.5)]
    curves = [np.repeat(np.array([[0.9], [0.0], [0.6]]), 2, 1), np.repeat(np.array([[0.0], [0.9], [0.6]]), 2, 1)]
    performances = [np.repeat(np.array([[0.1], [0.2], [0.3]]), 2, 1)] * 2
    estimate = contextualised_estimate(agreements, curves, performances, resamples=10)
    alone = [contextualised_agreement(0.5, [0, 1, 2], curve[:, 0], [0.1, 0.2, 0.3]).value for curve in curves]
    assert alone == [0.1, 0.2]
    assert estimate.value == pytest.approx(0.3)
    with pytest.raises(DataError, match="recorded at different steps"):
        contextualised_estimate(agreements, [curves[0], curves[1][:2]], performances)


def test_xi_of_one_text_has_no_interval():
    curve, performance = np.array([[0.1, 0.3], [0.6, 0.8]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    estimate = contextualised_estimate([np.array([0.4, 0.2])], [curve], [performance], groups=[7, 7])
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (1.0, 1.0, 1.0, 1)


def test_refusals():
    with pytest.raises(DataError, match="must be"):
        maximum_over_steps([1.0, 2.0], [0, 1])
    with pytest.raises(DataError, match="give as many of each"):
        contextualised_agreement(0.1, [0, 1], [0.1], [0.5, 0.6])
