import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heedful.errors import DataError
from heedful.metrics.statistics import (
    Estimate,
    benjamini_hochberg,
    bootstrap_difference,
    bootstrap_mean,
    mean_over_seeds,
    paired_permutation,
)

RNG = np.random.default_rng(0)


def test_interval_is_that_of_the_normal_theory():
    x = np.random.default_rng(1).normal(3, 2, size=2000)
    estimate = bootstrap_mean(x)
    half = 1.96 * x.std() / math.sqrt(len(x))
    assert estimate.value == pytest.approx(x.mean())
    assert estimate.low == pytest.approx(x.mean() - half, abs=0.15 * half)
    assert estimate.high == pytest.approx(x.mean() + half, abs=0.15 * half)


def test_rows_of_one_text_are_drawn_together():
    """Each value thrice: no more is known than from one of each."""
    x = np.random.default_rng(1).normal(size=50)
    one, thrice = bootstrap_mean(x), bootstrap_mean(np.repeat(x, 3), groups=np.repeat(np.arange(50), 3))
    assert thrice.n == one.n == 50
    assert (thrice.low, thrice.high) == pytest.approx((one.low, one.high))
    naive = bootstrap_mean(np.repeat(x, 3))
    assert naive.high - naive.low < 0.7 * (thrice.high - thrice.low)


def test_groups_of_unequal_size_give_the_mean_of_rows():
    assert bootstrap_mean([1.0, 1.0, 1.0, 5.0], groups=["a", "a", "a", "b"]).value == 2.0


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(-5, 5) | st.just(math.nan), max_size=20))
def test_nan_is_left_out_and_counted(values):
    estimate = bootstrap_mean(values, resamples=50)
    defined = [v for v in values if not math.isnan(v)]
    assert (estimate.n, estimate.undefined) == (len(defined), len(values) - len(defined))
    if defined:
        assert estimate.value == pytest.approx(np.mean(defined))
        assert min(defined) - 1e-9 <= estimate.low <= estimate.high <= max(defined) + 1e-9
    else:
        assert math.isnan(estimate.value)


def test_same_seed_same_interval():
    x = RNG.normal(size=30)
    assert bootstrap_mean(x, seed=3) == bootstrap_mean(x, seed=3) != bootstrap_mean(x, seed=4)


def test_one_value_and_constant_values():
    assert bootstrap_mean([2.0]) == Estimate(2.0, 2.0, 2.0, 1)
    assert bootstrap_mean([2.0, 2.0]) == Estimate(2.0, 2.0, 2.0, 2)


def test_estimate_is_plain_json():
    assert json.loads(json.dumps(bootstrap_mean([math.nan]).to_dict())) == {
        "value": None, "low": None, "high": None, "n": 0, "undefined": 1,
    }  # fmt: skip
    assert str(Estimate(0.5, 0.4, 0.6, 9, 2)) == "0.500 [0.400, 0.600] (n = 9, 2 undefined)"


def test_mean_over_seeds_is_students():
    x = [0.1, 0.4, 0.35, 0.2]
    estimate = mean_over_seeds([*x, math.nan])
    low, high = stats.t.interval(0.95, 3, loc=np.mean(x), scale=stats.sem(x))
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((np.mean(x), low, high))
    assert (estimate.n, estimate.undefined) == (4, 1)
    assert math.isnan(mean_over_seeds([0.3]).low)
    assert mean_over_seeds([]).n == 0


def test_difference_knows_about_the_pairs():
    rng = np.random.default_rng(2)
    hard = rng.normal(0, 10, size=100)
    a, b = hard + 1, hard + rng.normal(0, 0.1, size=100)
    estimate = bootstrap_difference(a, b)
    assert 0.9 < estimate.low < 1 < estimate.high < 1.1
    assert bootstrap_difference([1.0, math.nan, 2.0], [0.0, 1.0, math.nan]).undefined == 2


def test_permutation_is_exact_for_few_pairs():
    a, b = np.array([3.0, 1.0, 2.5, 4.0]), np.array([1.0, 1.5, 0.5, 2.0])
    d = a - b
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
    null = np.abs((signs * d).mean(axis=1))
    comparison = paired_permutation(a, b)
    assert comparison.p == pytest.approx(np.mean(null >= abs(d.mean()) - 1e-12))
    assert comparison.difference == pytest.approx(d.mean())


def test_permutation_by_drawing():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    assert paired_permutation(a + 1, a + rng.normal(size=200), resamples=999).p < 0.01
    assert paired_permutation(a, a + rng.normal(size=200), resamples=999, seed=1).p > 0.01


def test_nothing_to_test():
    assert paired_permutation([1.0, 2.0], [1.0, 2.0]).p == 1
    assert math.isnan(paired_permutation([math.nan], [1.0]).p)
    assert paired_permutation([2.0], [1.0]).p == 1
    with pytest.raises(DataError, match="as many of each"):
        paired_permutation([1.0], [1.0, 2.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_benjamini_hochberg_by_the_book(p):
    m, order = len(p), np.argsort(p)
    expected = np.empty(m)
    smallest = 1.0
    for rank in range(m, 0, -1):
        smallest = min(smallest, p[order[rank - 1]] * m / rank)
        expected[order[rank - 1]] = smallest
    np.testing.assert_allclose(benjamini_hochberg(p), expected)


def test_benjamini_hochberg_of_nothing():
    assert np.isnan(benjamini_hochberg([math.nan])).all()
    assert benjamini_hochberg([]).shape == (0,)
    with pytest.raises(DataError, match=r"\[0, 1\]"):
        benjamini_hochberg([1.2])


def test_every_value_has_its_group():
    with pytest.raises(DataError, match="3 values but 2 groups"):
        bootstrap_mean([1.0, 2.0, 3.0], groups=[0, 1])
