import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.metrics.faithfulness import PERCENTS, aopc, comprehensiveness, sufficiency, top_percent


class Additive:
    """A model whose probability is the share of weight that it is shown; it remembers what it was asked."""

    def __init__(self, weights):
        self.weights = np.asarray(weights)
        self.asked = []

    def __call__(self, keep):
        assert keep.any(axis=1).all()
        self.asked.append(keep.copy())
        return (keep * self.weights).sum(axis=1)


def test_additive_model():
    weights = np.array([[0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.2, 0.4]])
    comp = comprehensiveness(weights, Additive(weights), percents=[20, 40])
    suff = sufficiency(weights, Additive(weights), percents=[20, 40])
    np.testing.assert_allclose(comp, [[0.5, 0.7], [0.4, 0.6]])
    np.testing.assert_allclose(suff, [[0.5, 0.3], [0.6, 0.4]])
    np.testing.assert_allclose(comp + suff, 1)
    np.testing.assert_allclose(aopc(comp), [0.6, 0.5])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.sampled_from([1, 5, 50, 100]), st.integers(0, 999))
def test_top_percent_one_by_one(lengths, percent, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 5, size=n).astype(float) for n in lengths]
    for row, chosen in zip(rows, top_percent(rows, percent), strict=True):
        k = -(-percent * len(row) // 100)
        assert set(np.flatnonzero(chosen)) == set(np.argsort(-row, kind="stable")[:k])


def test_the_best_order_is_most_comprehensive():
    weights = np.random.default_rng(0).dirichlet(np.ones(31), size=7)
    best, worst = (aopc(comprehensiveness(s, Additive(weights))) for s in (weights, -weights))
    assert (best > worst).all()
    assert (aopc(sufficiency(weights, Additive(weights))) < aopc(sufficiency(-weights, Additive(weights)))).all()


def test_ragged_and_masked_are_the_same():
    rng = np.random.default_rng(0)
    matrix, mask = rng.random((3, 9)), np.arange(9) < np.array([[9], [4], [6]])
    rows = [row[keep] for row, keep in zip(matrix, mask, strict=True)]
    a, b = Additive(matrix), Additive(matrix)
    np.testing.assert_allclose(comprehensiveness(rows, a), comprehensiveness(matrix, b, mask=mask))
    for asked in a.asked + b.asked:
        assert not asked[~mask].any()
    assert len(a.asked) == 1 + len(PERCENTS)


def test_a_mask_with_holes_stays_in_place():
    weights = np.array([[9.0, 0.3, 0.7]])
    model = Additive(weights)
    value = comprehensiveness(weights, model, percents=[50], mask=[[False, True, True]])
    assert value.item() == pytest.approx(0.7)
    assert model.asked[1].tolist() == [[False, True, False]]


def test_nothing_left_is_undefined():
    value = comprehensiveness([[1.0], [0.4, 0.6]], Additive([[1.0, 0.0], [0.4, 0.6]]), percents=[10, 50])
    assert np.isnan(value).tolist() == [[True, True], [False, False]]
    assert np.isnan(aopc(value)).tolist() == [True, False]


def test_refusals():
    with pytest.raises(DataError, match=r"predict gave shape \(1, 1\)"):
        sufficiency([[1.0, 2.0]], lambda keep: keep[:, :1])
    with pytest.raises(DataError, match="1 … 100"):
        top_percent([[1.0]], 0)
    with pytest.raises(DataError, match="NaN in row 1"):
        top_percent([[1.0], [np.nan]], 5)
    with pytest.raises(DataError, match="texts, percents"):
        aopc([0.1, 0.2])
