"""Which texts a page shows, and what each model saw in them at every recorded step, small enough to embed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heedful.measure.agreement import agreement
from heedful.measure.ragged import Ragged
from heedful.reports.packing import Arrays
from heedful.trace.store import Trace

MOST, FEWEST = 200, 12
LARGEST = 3_500_000  # bytes of embedded values, so that a page stays under 5 MB even if nothing compresses
ALPHA_LEVELS, SIGNED_LEVELS = 255, 127
ODDS_SCALE, ODDS_LIMIT = 1000, 32  # log-odds are kept to a thousandth, up to ±32


def choose_examples(trace: Trace, lengths: NDArray[np.int64], bytes_per_position: int) -> NDArray[np.int64]:
    """A varied set of texts, the same for the same run.

    Texts are sorted into eight drawers (right or wrong at the end; changed its mind or not; α agrees with β or not)
    and taken from each in turn, so that rare cases are shown too. As many as `LARGEST` bytes hold, `FEWEST` at least.
    """
    predictions = np.stack([trace.prediction(step) for step in trace.steps])
    last = trace.steps[-1]
    right = trace.correct(last)
    settled = np.all(predictions == predictions[-1], axis=0)
    agree = agreement(trace.quantity("alpha", last), trace.quantity("beta_logit", last)) > 0
    chosen = in_turn(4 * right + 2 * settled + agree)[:MOST]
    size = np.cumsum(lengths[chosen]) * bytes_per_position
    return chosen[: max(FEWEST, int(np.sum(size <= LARGEST)))]


def in_turn(drawer: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers, one from each drawer at a time, from the last drawer to the first; at random within each.

    >>> in_turn(np.array([0, 0, 1]))[0]
    np.int64(2)
    """
    order = np.random.default_rng(0).permutation(len(drawer))
    turn = np.empty(len(drawer), dtype=np.int64)
    for d in np.unique(drawer):
        members = order[drawer[order] == d]
        turn[members] = np.arange(len(members))
    numbers: NDArray[np.int64] = np.lexsort((-drawer, turn))
    return numbers


def add_examples(
    arrays: Arrays, name: str, trace: Trace, steps: Sequence[int], chosen: NDArray[np.int64], *, attends: bool
) -> None:
    """One model's α, β and Δ of the chosen texts, quantised, step by step; and what is exact in them.

    α is kept as √α in 255 levels, β's log-odds and Δ as signed square roots in 127 levels each way of the largest.
    `top` (where α is highest) and `higher` (how many positions β ranks above it) are taken before any rounding, so
    that the page agrees with `result.json`. A model whose attention is frozen uniform has neither, nor α.
    """
    read = {q: [trace.quantity(q, step).rows(chosen) for step in steps] for q in ("alpha", "beta_logit", "delta")}
    for quantity in ("beta_logit", "delta"):
        values = np.stack([rows.values for rows in read[quantity]])
        largest = float(np.abs(values).max()) or 1.0
        levels = np.rint(np.sign(values) * np.sqrt(np.abs(values) / largest) * SIGNED_LEVELS)
        arrays.add(f"{name}/{quantity}", levels.astype(np.int8), largest=largest)
    if attends:
        alpha = np.stack([rows.values for rows in read["alpha"]])
        arrays.add(f"{name}/alpha", np.rint(np.sqrt(alpha) * ALPHA_LEVELS).astype(np.uint8))
        ranks = [_top_and_higher(a, b) for a, b in zip(read["alpha"], read["beta_logit"], strict=True)]
        arrays.add(f"{name}/top", np.stack([top for top, _ in ranks]).astype(np.uint16))
        arrays.add(f"{name}/higher", np.stack([higher for _, higher in ranks]).astype(np.uint16))
        moved = np.abs(np.diff(alpha.astype(np.float64), axis=0)).sum(axis=0) / 2
        arrays.add(f"{name}/moved", np.add.reduceat(moved, read["alpha"][0].offsets[:-1]).astype(np.float32))
    predictions = np.stack([trace.prediction(step)[chosen] for step in steps])
    arrays.add(f"{name}/prediction", predictions.astype(np.uint16))
    odds = np.stack([trace.log_odds(step)[chosen] for step in steps])
    bounded = np.clip(odds, -ODDS_LIMIT, ODDS_LIMIT)
    arrays.add(f"{name}/log_odds", np.rint(bounded * ODDS_SCALE).astype(np.int16))


def _top_and_higher(alpha: Ragged, beta: Ragged) -> tuple[list[int], list[int]]:
    """The first position of highest α in each row, and how many positions have a higher β (snell2021, Eq. 10)."""
    top = [int(np.argmax(alpha.row(r))) for r in range(len(alpha))]
    higher = [int(np.sum(beta.row(r) > beta.row(r)[t])) for r, t in enumerate(top)]
    return top, higher
