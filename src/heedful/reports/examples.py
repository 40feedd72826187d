"""Which texts a page shows, and what each model saw in them at every recorded step, small enough to embed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.data.ragged import Ids, Ragged
from heedful.data.subwords import EncodedPairs
from heedful.metrics.agreement import agreement
from heedful.metrics.alignment import attention_between_words, links_from_attention
from heedful.reports.html import Arrays
from heedful.tracing.store import Trace

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


MOST_PAIRS, FEWEST_PAIRS = 150, 8
LARGEST_PAIRS = 2_000_000  # bytes of embedded values, so that a page stays under 3 MB even if nothing compresses
ROW_LEVELS = 255
POSSIBLE, SURE = 1, 2


@dataclass(frozen=True, eq=False)
class ChosenPairs:
    """Some pairs of a split: their numbers, their rows in the traces, and the two sides as ids (no `<bos>` said)."""

    index: NDArray[np.int64]
    rows: NDArray[np.int64]
    source: Ids
    outputs: Ids

    @property
    def cells(self) -> NDArray[np.int64]:
        """How many cells each pair's matrix has."""
        return self.source.lengths * self.outputs.lengths


def take_pairs(pairs: EncodedPairs, index: NDArray[np.int64]) -> ChosenPairs:
    """The pairs of those numbers, with the rows that a trace of the split keeps of them."""
    outputs = pairs.outputs
    first, lengths = outputs.offsets[index], outputs.lengths[index]
    rows = np.concatenate([np.arange(a, a + n) for a, n in zip(first, lengths, strict=True)])
    return ChosenPairs(index, rows, pairs.source.take(index), outputs.take(index))


def choose_pairs(trace: Trace, pairs: EncodedPairs, bytes_per_cell: int, bytes_per_row: int) -> ChosenPairs:
    """A varied set of pairs, the same for the same run.

    As for texts, pairs are sorted into eight drawers (more or fewer words right at the end than in the middle pair;
    more or fewer changes of mind; α agrees with β in more or fewer rows) and taken from each in turn, as many as
    `LARGEST_PAIRS` bytes hold, `FEWEST_PAIRS` at least.
    """
    example, last = trace.example(), trace.steps[-1]
    predictions = np.stack([trace.prediction(step) for step in trace.steps])
    changes = np.sum(predictions[1:] != predictions[:-1], axis=0)
    agree = agreement(trace.quantity("alpha", last), trace.quantity("beta_logit", last))
    right, changing, agreeing = (
        _upper_half(_mean_of_pairs(each, example)) for each in (trace.correct(last), changes, agree)
    )
    order = in_turn(4 * right + 2 * ~changing + agreeing)[:MOST_PAIRS]
    rows = pairs.target.lengths[order] - 1
    size = np.cumsum(rows * (pairs.source.lengths[order] * bytes_per_cell + bytes_per_row))
    return take_pairs(pairs, order[: max(FEWEST_PAIRS, int(np.sum(size <= LARGEST_PAIRS)))])


def add_pairs(
    arrays: Arrays, name: str, trace: Trace, steps: Sequence[int], chosen: ChosenPairs, *, attends: bool
) -> None:
    """One model's α, β and Δ of the chosen pairs, quantised, step by step; and what is exact in them.

    α is kept as √α in 255 levels; β's log-odds in 255 levels between the lowest and the highest of their row; Δ as
    signed square roots in 127 levels each way of the row's largest. Where each is highest (`…_top`), and how many
    positions β ranks above α's highest (`higher`), is taken before any rounding. A uniform twin has no α.
    """
    read = {q: [trace.quantity(q, step).rows(chosen.rows) for step in steps] for q in ("alpha", "beta_logit", "delta")}
    _add_beta(arrays, name, read["beta_logit"])
    _add_delta(arrays, name, read["delta"])
    if attends:
        add_attention(arrays, f"{name}/alpha", read["alpha"])
        higher = [_higher(a, b) for a, b in zip(read["alpha"], read["beta_logit"], strict=True)]
        arrays.add(f"{name}/higher", np.stack(higher).astype(np.uint16))
    odds = np.clip([trace.log_odds(step)[chosen.rows] for step in steps], -ODDS_LIMIT, ODDS_LIMIT)
    arrays.add(f"{name}/log_odds", np.rint(odds * ODDS_SCALE).astype(np.int16))


def add_attention(arrays: Arrays, name: str, alphas: Sequence[Ragged]) -> None:
    """α, or α^IBM, of every cell at every step, and the highest place of every row."""
    values = np.stack([rows.values for rows in alphas])
    arrays.add(name, np.rint(np.sqrt(values) * ALPHA_LEVELS).astype(np.uint8))
    arrays.add(f"{name}_top", np.stack([top(rows) for rows in alphas]).astype(np.uint16))


def top(rows: Ragged) -> NDArray[np.int64]:
    """The first highest position of each row.

    >>> top(Ragged.of([[0.1, 0.9], [0.5, 0.5]]))
    array([1, 0])
    """
    highest = np.maximum.reduceat(rows.values, rows.offsets[:-1])
    at = np.flatnonzero(rows.values == np.repeat(highest, rows.lengths))
    _, first = np.unique(rows.row_of[at], return_index=True)
    places: NDArray[np.int64] = at[first] - rows.offsets[:-1]
    return places


def gold_cells(pairs: EncodedPairs, index: NDArray[np.int64]) -> NDArray[np.uint8]:
    """`SURE` or `POSSIBLE` for cells whose words gold links, 0 for all others; every part of a word counts."""
    marks = []
    for m in map(int, index):
        source, target = _word_positions(pairs, m)
        gold = (pairs.alignments or ())[m]
        marks += [
            SURE if (s, t) in gold.sure else POSSIBLE if (s, t) in gold.possible else 0 for t in target for s in source
        ]
    return np.array(marks, dtype=np.uint8)


def alignment_errors(alpha: Ragged, pairs: EncodedPairs, chosen: ChosenPairs) -> NDArray[np.float32]:
    """The alignment error rate of each chosen pair, its target words linked to where α is highest (Och & Ney 2003)."""
    errors = []
    for m, start, end in zip(chosen.index, chosen.outputs.offsets[:-1], chosen.outputs.offsets[1:], strict=True):
        source, target = _word_positions(pairs, int(m))
        matrix = np.stack([alpha.row(r) for r in range(int(start), int(end))])
        (links,) = links_from_attention([attention_between_words(matrix, source, target)])
        gold = (pairs.alignments or ())[int(m)]
        hits, made = len(links & gold.sure) + len(links & gold.possible), len(links) + len(gold.sure)
        errors.append(1 - hits / made if made else np.nan)
    return np.array(errors, dtype=np.float32)


def _add_beta(arrays: Arrays, name: str, betas: Sequence[Ragged]) -> None:
    levels, lows, highs = [], [], []
    for rows in betas:
        starts = rows.offsets[:-1]
        low, high = np.minimum.reduceat(rows.values, starts), np.maximum.reduceat(rows.values, starts)
        span = np.where(high > low, high - low, 1.0)
        share = (rows.values - np.repeat(low, rows.lengths)) / np.repeat(span, rows.lengths)
        levels.append(np.rint(share * ROW_LEVELS))
        lows.append(low)
        highs.append(high)
    arrays.add(f"{name}/beta", np.stack(levels).astype(np.uint8))
    for end, values in (("low", lows), ("high", highs)):
        bounded = np.clip(values, -ODDS_LIMIT, ODDS_LIMIT)
        arrays.add(f"{name}/beta_{end}", np.rint(bounded * ODDS_SCALE).astype(np.int16))
    arrays.add(f"{name}/beta_top", np.stack([top(rows) for rows in betas]).astype(np.uint16))


def _add_delta(arrays: Arrays, name: str, deltas: Sequence[Ragged]) -> None:
    levels, peaks = [], []
    for rows in deltas:
        peak = np.maximum.reduceat(np.abs(rows.values), rows.offsets[:-1])
        share = rows.values / np.repeat(np.where(peak > 0, peak, 1.0), rows.lengths)
        levels.append(np.rint(np.sign(share) * np.sqrt(np.abs(share)) * SIGNED_LEVELS))
        peaks.append(peak)
    arrays.add(f"{name}/delta", np.stack(levels).astype(np.int8))
    arrays.add(f"{name}/delta_peak", np.stack(peaks).astype(np.float32))
    arrays.add(f"{name}/delta_top", np.stack([top(rows) for rows in deltas]).astype(np.uint16))


def _higher(alpha: Ragged, beta: Ragged) -> NDArray[np.int64]:
    """How many positions of each row have a higher β than the one of highest α (snell2021, Eq. 10)."""
    chosen = beta.values[alpha.offsets[:-1] + top(alpha)]
    counts: NDArray[np.int64] = np.add.reduceat(
        beta.values > np.repeat(chosen, beta.lengths), beta.offsets[:-1], dtype=np.int64
    )
    return counts


def _word_positions(pairs: EncodedPairs, m: int) -> tuple[list[int], list[int]]:
    """The word that each source position and each output of a pair is a part of; -1 at the ends."""
    source = pairs.source_words[pairs.source.offsets[m] : pairs.source.offsets[m + 1]]
    target = pairs.target_words[pairs.target.offsets[m] + 1 : pairs.target.offsets[m + 1]]
    return source.tolist(), target.tolist()


def _mean_of_pairs(values: NDArray[np.generic], example: NDArray[np.int32]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.bincount(example, weights=values) / np.bincount(example)
    return means


def _upper_half(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    half: NDArray[np.bool_] = values > np.median(values)
    return half
