import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from heedful.errors import DataError
from heedful.metrics.entropy import entropy_nats, normalised_entropy

R, L = 3, 7


def test_uniform_and_one_hot():
    np.testing.assert_allclose(entropy_nats(np.full((R, L), 1 / L)), math.log(L))
    np.testing.assert_array_equal(entropy_nats(np.eye(L)), 0)
    np.testing.assert_allclose(normalised_entropy(np.full((R, L), 1 / L)), 1)
    np.testing.assert_array_equal(normalised_entropy(np.eye(L)), 0)


@given(arrays(np.float64, (R, L), elements=st.floats(0, 1)).filter(lambda a: (a.sum(1) > 0.1).all()))
def test_scipy(weights):
    p = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(entropy_nats(p), stats.entropy(p, axis=1), atol=1e-12)
    assert (normalised_entropy(p) <= 1 + 1e-12).all()
    np.testing.assert_allclose(entropy_nats(p), entropy_nats(p[:, ::-1]), atol=1e-12)
    np.testing.assert_allclose(entropy_nats(p), [entropy_nats(row).item() for row in p], atol=1e-12)


def test_masked_is_removed():
    p = np.array([[0.5, 0.5, 7.0]])
    mask = np.array([[True, True, False]])
    assert normalised_entropy(p, mask=mask).item() == pytest.approx(1)


def test_one_position_has_nothing_to_spread_over():
    assert np.isnan(normalised_entropy([[1.0]])).all()
    assert entropy_nats([[1.0]]).item() == 0


def test_float32_is_summed_in_float64():
    assert entropy_nats(np.full((1, 1000), 1e-3, dtype=np.float32)).item() == pytest.approx(math.log(1000), rel=1e-6)


@pytest.mark.parametrize("bad", [-0.1, np.nan])
def test_refuses_what_is_no_distribution(bad):
    with pytest.raises(DataError, match="0 or more"):
        entropy_nats([[bad, 1.0]])
