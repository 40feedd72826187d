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
    SeedsAndTexts,
    benjamini_hochberg,
    bootstrap_difference,
    bootstrap_mean,
    mean_over_seeds,
    nested_estimate,
    nested_normal,
    nested_share,
    nested_tau,
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


def nested(S, n, seed_sd, text_sd, rng):
    """Shares with a seed effect, a text effect and noise, cut to [0, 1]; their mean is 0.5."""
    means = 0.5 + seed_sd * rng.standard_normal((S, 1)) + text_sd * rng.standard_normal((1, n))
    return (rng.random((S, n)) < means).astype(float)


@pytest.mark.parametrize(("seed_sd", "text_sd"), [(0.05, 0.0), (0.1, 0.1), (0.0, 0.15)])
def test_intervals_over_seeds_and_texts_cover(seed_sd, text_sd):
    rng, covered, of_texts = np.random.default_rng(1), 0, 0
    trials = 200
    for _ in range(trials):
        sample = SeedsAndTexts.of([nested(5, 211, seed_sd, text_sd, rng)], [(s,) for s in range(5)])
        share = nested_share(sample, resamples=200)
        covered += share.seeds.low <= 0.5 <= share.seeds.high
        of_texts += share.texts.low <= 0.5 <= share.texts.high
    assert covered >= 0.9 * trials
    assert seed_sd == 0 or of_texts < 0.9 * trials  # texts alone leave the seeds out


def test_the_interval_of_these_models_leaves_no_seed_out():
    rows = np.stack([np.r_[np.ones(340), np.zeros(660)], np.r_[np.ones(530), np.zeros(470)]])  # 34 and 53 %
    share = nested_share(SeedsAndTexts.of([rows], [(0,), (1,)]))
    assert share.texts.low > 0.34  # over texts alone both seeds are left out
    assert share.texts.high < 0.53
    assert (share.models.low, share.models.high) == (0.34, 0.53)
    tau = nested_tau(SeedsAndTexts.of([2 * rows - 1], [(0,), (1,)]))
    assert (tau.models.value, tau.models.low, tau.models.high) == pytest.approx((-0.13, -0.32, 0.06))


def test_pairs_of_seeds_are_not_independent():
    rng, covered, trials = np.random.default_rng(2), 0, 200
    pairs = [(a, b) for a in range(5) for b in range(5) if a != b]
    for _ in range(trials):
        effect = 0.1 * rng.standard_normal(5)
        rows = [(rng.random(101) < 0.5 + effect[a] + effect[b]).astype(float) for a, b in pairs]
        share = nested_share(SeedsAndTexts.of([rows], pairs), resamples=200).seeds
        covered += share.low <= 0.5 <= share.high
    assert covered >= 0.9 * trials


def test_none_and_all_of_n_have_wilsons_limits():
    for S in (2, 5):
        seeds = [(s,) for s in range(S)]
        low, high = stats.binomtest(0, 31).proportion_ci(method="wilson")
        none = nested_share(SeedsAndTexts.of([np.zeros((S, 31))], seeds)).texts
        assert none.low == 0
        assert high <= none.high < 1.1 * high
        every = nested_share(SeedsAndTexts.of([np.ones((S, 31))], seeds)).texts
        assert (every.low, every.high) == (pytest.approx(1 - none.high), 1)
        excess = nested_estimate(SeedsAndTexts.of([np.zeros((S, 31)), np.zeros((S, 31))], seeds), lambda m: m[0] - m[1])
        assert excess.texts.high == pytest.approx(none.high)
    assert low == 0


def test_an_excess_takes_the_largest_control_in_every_resample():
    rng = np.random.default_rng(3)
    value, one, other = (rng.random((5, 997)) for _ in range(3))
    sample = SeedsAndTexts.of([value, one, other], [(s,) for s in range(5)])
    excess = nested_estimate(sample, lambda means: means[0] - means[1:].max(axis=0))
    assert excess.texts.value == pytest.approx(value.mean() - max(one.mean(), other.mean()))
    assert excess.texts.high < 0.05


def test_seeds_and_texts_leave_nan_out_and_refuse_wrong_shapes():
    sample = SeedsAndTexts.of([[[1.0, np.nan, 0.0]], [[np.nan] * 3]], [(0,)], groups=[3, 3, 5])
    assert sample.means()[0] == 0.5
    assert np.isnan(sample.means()[1])
    assert math.isnan(nested_share(sample).seeds.low)  # one seed has no interval over seeds
    assert nested_share(SeedsAndTexts(np.zeros((1, 1, 3)), np.zeros((1, 1, 3)), ((0,),))).texts.n == 0
    with pytest.raises(DataError, match="must be \\(quantities, trainings, texts\\)"):
        SeedsAndTexts(np.zeros((1, 2, 3)), np.zeros((1, 2, 3)), ((0,),))


def test_two_cross_seeds_have_no_interval_over_seeds():
    share = nested_share(SeedsAndTexts.of([np.eye(2)], [(0, 1), (0, 1)]))
    assert math.isnan(share.seeds.low)
    assert share.texts.low < 0.5 < share.texts.high


def test_nested_normal_adds_both_variances():
    one = nested_normal([1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5, 100)
    assert (one.seeds.low, one.seeds.high) == pytest.approx(
        (mean_over_seeds([1, 2, 3, 4, 5]).low, mean_over_seeds([1, 2, 3, 4, 5]).high)
    )
    assert (one.texts.low, one.texts.high) == (3, 3)
    assert nested_normal([1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5, 100).seeds.high > one.seeds.high


def test_intervals_over_seeds_keep_to_the_range_and_have_a_width():
    for values in ([1.0] * 5, [-1.0] * 5, [0.0] * 7, [1.0, 1.0, -1.0, 1.0, 1.0], [0.98, 0.99, 1.0, 0.7, 1.0]):
        estimate = mean_over_seeds(values, within=(-1.0, 1.0))
        assert -1 <= estimate.low < estimate.high <= 1
        assert estimate.low <= estimate.value <= estimate.high


def test_values_at_both_ends_have_the_exact_interval_of_a_share():
    estimate = mean_over_seeds([1.0, -1.0, 1.0, 1.0, 1.0], within=(-1.0, 1.0))
    share = stats.binomtest(4, 5).proportion_ci(method="exact")
    assert (estimate.low, estimate.high) == pytest.approx((2 * share.low - 1, 2 * share.high - 1))
    agreed = mean_over_seeds([1.0] * 5, within=(-1.0, 1.0))
    assert agreed.low == pytest.approx(2 * stats.binomtest(5, 5).proportion_ci(method="exact").low - 1)


def test_a_value_outside_its_range_is_an_error():
    with pytest.raises(DataError, match="do not lie within 0 and 1"):
        mean_over_seeds([0.5, 1.5], within=(0.0, 1.0))
