import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score

from heedful.errors import DataError
from heedful.metrics.faithfulness import auprc, token_f1
from heedful.metrics.statistics import bootstrap_mean

LENGTHS = st.lists(st.integers(1, 25), min_size=1, max_size=6)


def texts(lengths, seed):
    rng = np.random.default_rng(seed)
    gold = [rng.integers(0, 2, size=n) for n in lengths]
    scores = [rng.integers(0, 6, size=n).astype(float) for n in lengths]
    return scores, gold


@settings(deadline=None, max_examples=40)
@given(LENGTHS, st.integers(0, 10**6))
def test_sklearn(lengths, seed):
    scores, gold = texts(lengths, seed)
    chosen = [(s > 3).astype(int) for s in scores]
    ap = [average_precision_score(g, s) if g.any() else np.nan for s, g in zip(scores, gold, strict=True)]
    f1 = [f1_score(g, c, zero_division=0) if g.any() else np.nan for c, g in zip(chosen, gold, strict=True)]
    np.testing.assert_allclose(auprc(scores, gold), ap, atol=1e-12)
    np.testing.assert_allclose(token_f1(chosen, gold), f1, atol=1e-12)
    np.testing.assert_allclose(auprc(scores, gold), [auprc([s], [g]).item() for s, g in zip(scores, gold, strict=True)])


def test_limits():
    gold = np.array([[0, 1, 1, 0, 0]])
    assert auprc(gold.astype(float), gold).item() == 1
    assert auprc(np.ones((1, 5)), gold).item() == pytest.approx(2 / 5)
    assert token_f1(gold, gold).item() == 1
    assert token_f1(1 - gold, gold).item() == 0
    assert token_f1(np.zeros_like(gold), gold).item() == 0


def test_texts_without_a_rationale_are_counted():
    scores, gold = [[0.1, 0.9], [0.2, 0.8]], [[0, 1], [0, 0]]
    estimate = bootstrap_mean(auprc(scores, gold))
    assert (estimate.value, estimate.n, estimate.undefined) == (1.0, 1, 1)
    assert np.isnan(token_f1([[0, 1]], [[0, 0]])).all()


def test_masked_is_removed_and_booleans_do():
    scores, gold = np.array([[0.9, 0.1, 5.0]]), np.array([[True, False, False]])
    mask = np.array([[True, True, False]])
    assert auprc(scores, gold, mask=mask).item() == 1
    assert token_f1(scores > 0.5, gold, mask=mask).item() == 1


def test_refuses_what_is_not_marked_or_unmarked():
    with pytest.raises(DataError, match="gold holds 2 in row 1"):
        auprc([[0.1], [0.2]], [[1], [2]])
    with pytest.raises(DataError, match=r"predicted holds 0\.5"):
        token_f1([[0.5]], [[1]])
