"""Kendall's τ-b against scipy, one row at a time."""

from collections.abc import Iterator

import numpy as np
from benchmarks.case import Case, Point
from scipy import stats

from heedful.metrics.rank import kendall_tau_b


def cases(quick: bool) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for rows, length, bar in ((10_000, 20, 1000), (2_000, 200, 30)):
        u, v = rng.normal(size=(2, rows, length))
        given = rows // 20 if quick else rows

        def theirs(u=u[:given], v=v[:given]):
            return [stats.kendalltau(a, b).statistic for a, b in zip(u, v, strict=True)]

        np.testing.assert_allclose(kendall_tau_b(u[:20], v[:20]), theirs(u[:20], v[:20]), atol=1e-12)
        yield Case(
            work=f"Kendall τ-b, {rows:,} rows of {length}",
            peer="scipy.stats.kendalltau in a loop",
            ours=lambda u=u, v=v: kendall_tau_b(u, v),
            theirs=theirs,
            bar=bar,
            share=given / rows,
        )


def growth() -> Iterator[Point]:
    rng = np.random.default_rng(0)
    for length in (20, 200, 2_000):
        u, v = rng.normal(size=(2, 100, length))
        yield Point("Kendall τ-b, 100 rows", f"length {length:,}", lambda u=u, v=v: kendall_tau_b(u, v))
