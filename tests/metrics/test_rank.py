import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heedful.data.ragged import Ragged
from heedful.errors import DataError
from heedful.metrics import rank
from heedful.metrics.rank import kendall_ceiling, kendall_tau_b


def plain_tau_b(u, v):
    """All pairs by broadcasting: the kernel's oracle."""
    above = np.triu_indices(len(u), 1)
    a, b = (np.sign(x[:, None] - x[None, :])[above] for x in (np.asarray(u), np.asarray(v)))
    ordered = np.sqrt((a**2).sum()) * np.sqrt((b**2).sum())
    return (a * b).sum() / ordered if ordered else np.nan


def scipy_tau_b(u, v):
    return stats.kendalltau(u, v).statistic if len(u) > 1 else np.nan


def random_pair(rng, n, ties):
    u, v = rng.normal(size=(2, n))
    return (u.round(), v.round()) if ties else (u, v)


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.booleans(), st.integers(0, 10**6))
def test_scipy_and_the_plain_version(lengths, ties, seed):
    rng = np.random.default_rng(seed)
    pairs = [random_pair(rng, n, ties) for n in lengths]
    tau = kendall_tau_b([u for u, _ in pairs], [v for _, v in pairs])
    assert tau.dtype == np.float64
    np.testing.assert_allclose(tau, [plain_tau_b(u, v) for u, v in pairs], atol=1e-12)
    np.testing.assert_allclose(tau, [scipy_tau_b(u, v) for u, v in pairs], atol=1e-12)
    np.testing.assert_array_equal(tau, [kendall_tau_b(u, v).item() for u, v in pairs])


def test_long_rows():
    u, v = np.random.default_rng(0).normal(size=(2, 3, 2003)).round(2)
    np.testing.assert_allclose(kendall_tau_b(u, v), [scipy_tau_b(a, b) for a, b in zip(u, v, strict=True)], atol=1e-12)


def test_every_shape_of_input():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 5, 11)).astype(np.float32)
    mask = np.arange(11) < np.array([3, 11, 7, 2, 5])[:, None]
    rows = [[x[r, mask[r]] for r in range(5)] for x in (u, v)]
    expected = [scipy_tau_b(a, b) for a, b in zip(*rows, strict=True)]
    np.testing.assert_allclose(kendall_tau_b(*rows), expected, atol=1e-12)
    np.testing.assert_allclose(kendall_tau_b(u, v, mask=mask), expected, atol=1e-12)
    np.testing.assert_allclose(kendall_tau_b(Ragged.of(rows[0]), Ragged.of(rows[1])), expected, atol=1e-12)
    tensors = torch.tensor(u, requires_grad=True), torch.tensor(v)
    np.testing.assert_allclose(kendall_tau_b(*tensors, mask=torch.tensor(mask)), expected, atol=1e-12)
    np.testing.assert_allclose(kendall_tau_b(u, v.astype(np.float64), mask=mask), expected, atol=1e-12)


def test_constant_rows_are_undefined_and_counted():
    u, v = [[1.0, 1.0], [1.0, 2.0], [3.0], [1.0, 2.0]], [[1.0, 2.0], [4.0, 4.0], [5.0], [2.0, 3.0]]
    tau, undefined = kendall_tau_b(u, v, return_undefined=True)
    assert np.isnan(tau).tolist() == [True, True, True, False]
    assert undefined == 3


@settings(deadline=None)
@given(st.integers(2, 30), st.integers(0, 10**6))
def test_invariants(n, seed):
    rng = np.random.default_rng(seed)
    u, v = random_pair(rng, n, ties=True)
    order = rng.permutation(n)
    tau = kendall_tau_b(u, v)
    np.testing.assert_array_equal(tau, kendall_tau_b(v, u))
    np.testing.assert_array_equal(tau, kendall_tau_b(u[order], v[order]))
    np.testing.assert_array_equal(tau, kendall_tau_b(np.exp(u), 3 * v - 1))
    np.testing.assert_array_equal(-tau, kendall_tau_b(u, -v))


@settings(deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(0, 10**6))
def test_support_is_the_rows_without_zeros(lengths, seed):
    rng = np.random.default_rng(seed)
    u = [np.maximum(rng.normal(size=n), 0) for n in lengths]
    v = [rng.normal(size=n) for n in lengths]
    expected = [plain_tau_b(a[a != 0], b[a != 0]) for a, b in zip(u, v, strict=True)]
    np.testing.assert_allclose(kendall_tau_b(u, v, support=True), expected, atol=1e-12)


def test_shared_zeros_flatter():
    """A sparse u, and a v unrelated to it but for the same zeros."""
    u, v = [0.0] * 8 + [0.2, 0.3, 0.5], [0.0] * 8 + [0.6, 0.3, 0.1]
    assert kendall_tau_b(u, v).item() > 0.7
    assert kendall_tau_b(u, v, support=True).item() == -1


@pytest.mark.parametrize("n", [2, 8, 50])
def test_ceiling_of_one_hot(n):
    assert kendall_ceiling(np.eye(n)[:1]).item() == pytest.approx(np.sqrt(2 / n))


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_ceiling_is_reached_and_not_passed(n, seed):
    from itertools import permutations

    u = np.random.default_rng(seed).integers(0, 3, size=n).astype(float)
    every = np.array(list(permutations(range(n))), dtype=float)
    ceiling = kendall_ceiling(u).item()
    tau = kendall_tau_b(np.tile(u, (len(every), 1)), every)
    if np.ptp(u) == 0:
        assert np.isnan(ceiling)
        assert np.isnan(tau).all()
    else:
        assert ceiling == pytest.approx(tau.max())


def test_ceiling_of_many_rows():
    u = [[0.0, 0.0, 0.0, 1.0, 2.0], [1.0, 2.0], [3.0, 3.0], [1.0]]
    np.testing.assert_allclose(kendall_ceiling(u), [np.sqrt(7 / 10), 1, np.nan, np.nan])


def test_refuses_nan():
    with pytest.raises(DataError, match="u is NaN in row 0"):
        kendall_tau_b([np.nan, 1.0], [1.0, 2.0])


def total(x):
    t = 0.0
    for i in range(len(x)):
        t += x[i]
    return t


def test_nan_and_infinity_keep_their_meaning():
    fast = rank.compiled(total)
    assert np.isnan(fast(np.array([1.0, np.nan])))
    assert fast(np.array([1.0, np.inf])) == np.inf
    assert fast(np.arange(1000.0)) == pytest.approx(499_500)


def test_a_disk_that_cannot_be_written_to(monkeypatch):
    njit = numba.njit

    def refuse(*args, **options):
        if options.get("cache") is not None:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args, **options)

    monkeypatch.setattr(rank.numba, "njit", refuse)
    assert rank.compiled(total)(np.ones(3)) == 3
