import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution.attention_maps import normalised
from heedful.audits.scores import above_random_models, orders
from heedful.metrics.agreement import agreement
from heedful.metrics.rank import kendall_tau_b
from heedful.metrics.statistics import Estimate


def rows(*values):
    return normalised(
        np.concatenate([np.array(row, dtype=float) for row in values]), np.array([len(row) for row in values])
    )


def test_known_values():
    maps = {
        "layer 1": rows([1, 2, 3], [3, 2, 1]),
        "layer 2 head 1": rows([1, 2, 3], [1, 1, 1]),
        "mean": rows([1, 3], [2, 1]),
    }
    same = rows([1, 2, 3], [1, 2, 3])
    found = orders(
        {k: v for k, v in maps.items() if k != "mean"},
        {"gradient": same, "leave one out": same},
        {"hidden gradient": {0: same, 1: same}},
    )
    np.testing.assert_array_equal(found.numbers["tau/layer 1/gradient"], [1, -1])
    np.testing.assert_array_equal(found.numbers["agreement/layer 1/hidden gradient"], [1, 0])
    np.testing.assert_array_equal(found.numbers["tau/layer 2 head 1/gradient"], [1, np.nan])
    np.testing.assert_array_equal(found.numbers["tau/gradient/leave one out"], [1, 1])
    np.testing.assert_array_equal(found.numbers["top/layer 1"], [2, 0])
    np.testing.assert_array_equal(found.numbers["top/layer 2 head 1"], [2, np.nan])
    np.testing.assert_allclose(found.numbers["entropy/layer 2 head 1"][1], 1)
    assert "agreement/layer 2 head 1/gradient" not in found.numbers
    assert found.important == {
        name: [[2], [2]] for name in ("gradient", "leave one out", "hidden gradient 1", "hidden gradient 2")
    }


def test_where_nothing_matters_nothing_agrees():
    found = orders({"layer 1": rows([1, 2, 3])}, {"gradient": rows([0, 0, 0])})
    assert np.isnan([found.numbers["tau/layer 1/gradient"], found.numbers["agreement/layer 1/gradient"]]).all()
    assert np.isnan(orders({"layer 1": rows([0, 0])}, {}).numbers["entropy/layer 1"]).all()


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 1000))
def test_the_top_that_is_kept_is_the_one_that_agreement_means(length, seed):
    draw = np.random.default_rng(seed)
    u, v = (rows(draw.integers(0, 9, length) + draw.random()) for _ in range(2))
    found = orders({"mean": u}, {"gradient": v})
    kept = int(np.argmax(u[0])) in found.important["gradient"][0]
    assert kept == bool(agreement(u, v)[0])
    if not np.isnan(found.numbers["tau/mean/gradient"][0]):
        assert found.numbers["tau/mean/gradient"][0] == kendall_tau_b(u, v)[0]


def test_random_models_whose_spread_is_that_of_their_texts_do_not_differ():
    t = 2.7764451051977987  # of 4 degrees of freedom
    own = Estimate(0.5, 0.5, 0.5, 60)
    wide = [np.array([m - 0.3, m + 0.3, np.nan]) for m in (0.0, 0.1, -0.1, 0.05, -0.05)]
    difference, _ = above_random_models(own, wide)  # s² = 0.00625, w² = 0.09
    assert difference.value == pytest.approx(0.5)
    assert difference.high - 0.5 == pytest.approx(t * math.sqrt(0.00625 / 5))
    exact = [np.full(3, m) for m in (0.0, 0.1, -0.1, 0.05, -0.05)]  # no text differs: all of s² lies between models
    assert above_random_models(own, exact)[0].high - 0.5 == pytest.approx(t * math.sqrt(0.00625 * (1 + 1 / 5)))


@pytest.mark.parametrize("between", [0.0, 0.05, 0.1])
def test_one_of_the_random_models_is_seldom_above_them(between):
    draw, above, trials = np.random.default_rng(3), 0, 1000
    for _ in range(trials):
        models = [m + draw.normal(0, 0.15, 16) for m in draw.normal(0, between, 5)]
        value, half = draw.normal(0, between) + draw.normal(0, 0.15 / math.sqrt(40)), 1.96 * 0.15 / math.sqrt(40)
        above += above_random_models(Estimate(value, value - half, value + half, 40), models)[0].low > 0.05
    assert above / trials <= 0.05
