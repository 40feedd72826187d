import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special
from scipy.spatial.distance import jensenshannon

from heedful.errors import DataError
from heedful.metrics.entropy import jensen_shannon, total_variation

R, L = 3, 5
ELEMENTS = st.floats(0, 1) | st.just(0.0) | st.just(5e-324)
DISTRIBUTIONS = (
    arrays(np.float64, (R, L), elements=ELEMENTS)
    .filter(lambda a: (a.sum(1) > 0.1).all())
    .map(lambda a: a / a.sum(1, keepdims=True))
)
ALL = [jensen_shannon, total_variation]


@settings(max_examples=40, deadline=None)
@given(DISTRIBUTIONS, DISTRIBUTIONS)
def test_limits_and_scipy(p, q):
    jsd, tvd = (f(p, q) for f in ALL)
    assert ((jsd >= 0) & (jsd <= math.log(2))).all()
    assert ((tvd >= 0) & (tvd <= 1)).all()
    seen = [np.where(x < 1e-300, 0, x) for x in (p, q)]  # scipy's mean of 5e-324 and 0 is 0, and its JSD infinite
    np.testing.assert_allclose(jsd, jensenshannon(*seen, axis=1) ** 2, atol=1e-9)
    np.testing.assert_allclose(tvd, np.abs(p - q).sum(1) / 2, atol=1e-12)
    assert (2 * tvd**2 <= special.rel_entr(p, q).sum(1) + 1e-9).all()  # Pinsker


@settings(max_examples=40, deadline=None)
@given(DISTRIBUTIONS, DISTRIBUTIONS)
def test_symmetry_batches_and_order(p, q):
    for measure in ALL:
        np.testing.assert_allclose(measure(p, q), measure(q, p), atol=1e-12)
        np.testing.assert_allclose(measure(p, q), [measure(a, b).item() for a, b in zip(p, q, strict=True)])
        np.testing.assert_allclose(measure(p, q), measure(p[:, ::-1], q[:, ::-1]), atol=1e-12)
        np.testing.assert_allclose(measure(p, p), 0, atol=1e-12)


def test_known_values():
    p, q = [[1.0, 0.0]], [[0.0, 1.0]]
    assert jensen_shannon(p, q).item() == pytest.approx(math.log(2))
    assert total_variation(p, q).item() == 1


@pytest.mark.parametrize("measure", ALL)
def test_masked_is_removed(measure):
    p, q = np.array([[0.4, 0.6, np.inf]]), np.array([[0.5, 0.5, -1.0]])
    mask = np.array([[True, True, False]])
    assert measure(p, q, mask=mask).item() == measure([0.4, 0.6], [0.5, 0.5]).item()


@pytest.mark.parametrize("measure", ALL)
def test_refuses_what_is_no_distribution(measure):
    with pytest.raises(DataError, match=r"q is not a distribution: its row 1 sums to 0\.7"):
        measure([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.2]])
    with pytest.raises(DataError, match="p is not a distribution: its row 0 has a negative"):
        measure([[1.5, -0.5]], [[0.5, 0.5]])
