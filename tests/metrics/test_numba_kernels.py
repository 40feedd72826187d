import numba
import numpy as np
import pytest

from heedful.metrics import numba_kernels as module


def total(x):
    t = 0.0
    for i in range(len(x)):
        t += x[i]
    return t


def test_nan_and_infinity_keep_their_meaning():
    fast = module.compiled(total)
    assert np.isnan(fast(np.array([1.0, np.nan])))
    assert fast(np.array([1.0, np.inf])) == np.inf
    assert fast(np.arange(1000.0)) == pytest.approx(499_500)


def test_a_disk_that_cannot_be_written_to(monkeypatch):
    njit = numba.njit

    def refuse(*args, **options):
        if options.get("cache") is not None:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args, **options)

    monkeypatch.setattr(module.numba, "njit", refuse)
    assert module.compiled(total)(np.ones(3)) == 3
