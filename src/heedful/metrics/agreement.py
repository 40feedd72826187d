"""Agreement A(u, v) of attention and importance (snell2021, Eq. 10), its chance baselines, and its course in training.

Rows: one per output word, with one value per input position. Over training: the maximum of a curve, and the
contextualised agreement ξ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.config import RESAMPLES
from heedful.data.ragged import Ragged, paired
from heedful.errors import DataError
from heedful.metrics.statistics import Estimate, text_draws

Rows = Ragged | ArrayLike | Sequence[ArrayLike]


@overload
def agreement(
    u: Rows, v: Rows, *, mask: ArrayLike | None = ..., percent: int = ..., return_ties: Literal[False] = ...
) -> NDArray[np.float64]: ...
@overload
def agreement(
    u: Rows, v: Rows, *, mask: ArrayLike | None = ..., percent: int = ..., return_ties: Literal[True]
) -> tuple[NDArray[np.float64], int]: ...
def agreement(
    u: Rows, v: Rows, *, mask: ArrayLike | None = None, percent: int = 5, return_ties: bool = False
) -> NDArray[np.float64] | tuple[NDArray[np.float64], int]:
    """Is the highest position of u among the top 5 % of v? One 0 or 1 per row (snell2021, Eq. 10).

        A(u, v) = 1[ #{j : v_j > v_{argmax u}} < 5 % · L ]

    The order of the arguments matters. Of several maxima of u the first counts, and ties in v favour agreement;
    `return_ties` adds the number of rows with either. Counted in integers, since 0.05 · 140 is not 7 in floats.

    >>> agreement([[0.1, 0.7, 0.2]], [[1.0, 3.0, 2.0]])
    array([1.])
    >>> agreement([0.7, 0.1, 0.2], [1.0, 3.0, 2.0]).mean()
    np.float64(0.0)
    """
    first, second = paired(u, v, mask)
    _check_percent(percent)
    top = first_maximum(first)
    chosen = second.values[top]
    starts = first.offsets[:-1]
    higher = np.add.reduceat(second.values > np.repeat(chosen, second.lengths), starts, dtype=np.int64)
    agree = (100 * higher < percent * first.lengths).astype(np.float64)
    if not return_ties:
        return agree
    maxima = np.add.reduceat(first.values == np.repeat(first.values[top], first.lengths), starts, dtype=np.int64)
    equals = np.add.reduceat(second.values == np.repeat(chosen, second.lengths), starts, dtype=np.int64)
    return agree, int(np.sum((maxima > 1) | (equals > 1)))


def random_agreement(lengths: ArrayLike, *, percent: int = 5) -> float:
    """Â: the expected agreement of a random position (snell2021 §3.1).

        Â = mean over rows of ⌈5 % · L⌉ / L

    >>> random_agreement([20, 40])
    0.05
    >>> random_agreement([10])
    0.1
    """
    _check_percent(percent)
    L = np.asarray(lengths, dtype=np.int64).ravel()
    if len(L) == 0 or L.min() < 1:
        raise DataError("random agreement needs at least one row, and every row at least one position")
    return float(np.mean(-(-percent * L // 100) / L))


def shuffled_agreement(
    u: Rows,
    v: Rows,
    *,
    mask: ArrayLike | None = None,
    position: ArrayLike | None = None,
    text: ArrayLike | None = None,
    percent: int = 5,
) -> NDArray[np.float64]:
    """Matched shuffle: mean agreement of u of one text with v of every other text of the same length.

    A baseline for agreement that comes from position alone. `position` (the output position t, if there are several)
    must match like the length; `text` says which rows belong to one text, so that a text is never its own partner. One
    value per row; NaN without a partner. Exact, without random numbers: the mean over all partners is computed from how
    often each position is in the top of v.

    >>> u, v = [[9.0, 1.0], [1.0, 9.0]], [[9.0, 1.0], [1.0, 9.0]]
    >>> agreement(u, v).mean(), shuffled_agreement(u, v).mean()
    (np.float64(1.0), np.float64(0.0))
    """
    first, second = paired(u, v, mask)
    _check_percent(percent)
    rows = len(first)
    for name, given in (("position", position), ("text", text)):
        if given is not None and np.shape(given) != (rows,):
            raise DataError(f"{name} has shape {np.shape(given)} for {rows} rows; it must hold one value for each")
    place = np.zeros(rows, dtype=np.int64) if position is None else np.asarray(position, dtype=np.int64)
    owner = np.arange(rows) if text is None else np.unique(np.asarray(text), return_inverse=True)[1]
    top = first_maximum(first) - first.offsets[:-1]
    result = np.full(rows, np.nan)
    key = np.stack([first.lengths, place])
    order = np.lexsort(key[::-1])
    breaks = np.flatnonzero(np.any(np.diff(key[:, order], axis=1) != 0, axis=0)) + 1
    for group in np.split(order, breaks) if rows else []:
        L = int(first.lengths[group[0]])
        block = second.values[second.offsets[group][:, None] + np.arange(L)]
        in_top = _in_top(block, percent)  # (rows of the group, L)
        _, who, size = np.unique(owner[group], return_inverse=True, return_counts=True)
        own = np.zeros((len(size), L), dtype=np.int64)  # the same counts within each text
        np.add.at(own, who, in_top)
        hits = in_top.sum(axis=0)[top[group]] - own[who, top[group]]
        partners = len(group) - size[who]
        result[group[partners > 0]] = (hits / np.maximum(partners, 1))[partners > 0]
    return result


def other_word_agreement(
    u: Rows, v: Rows, *, text: ArrayLike, word: ArrayLike, percent: int = 5
) -> NDArray[np.float64]:
    """Wrong-word control: mean agreement of u of one output word with v of the other output words of the same sentence.

    Other words are those that differ from the row's own; NaN where a sentence has none. text, word: of each row.

    >>> u, v = [[9.0, 1.0], [1.0, 9.0]], [[9.0, 1.0], [1.0, 9.0]]
    >>> other_word_agreement(u, v, text=[0, 0], word=[5, 6])
    array([0., 0.])
    """
    first, second = paired(u, v, None)
    _check_percent(percent)
    rows = len(first)
    for name, given in (("text", text), ("word", word)):
        if np.shape(given) != (rows,):
            raise DataError(f"{name} has shape {np.shape(given)} for {rows} rows; it must hold one value for each")
    words, owner = np.asarray(word), np.unique(np.asarray(text), return_inverse=True)[1]
    top = first_maximum(first) - first.offsets[:-1]
    result = np.full(rows, np.nan)
    order = np.argsort(owner, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1) if rows else []:
        lengths = first.lengths[group]
        if np.ptp(lengths):
            raise DataError(
                f"rows of one sentence have {lengths.min()} and {lengths.max()} positions; give as many each"
            )
        block = second.values[second.offsets[group][:, None] + np.arange(lengths[0])]
        hits = _in_top(block, percent)[:, top[group]].T  # (row of u, row of v)
        other = words[group][:, None] != words[group][None, :]
        count = other.sum(axis=1)
        result[group[count > 0]] = ((hits & other).sum(axis=1) / np.maximum(count, 1))[count > 0]
    return result


@dataclass(frozen=True)
class Maximum:
    """The highest mean over recorded steps.

    `split_half` avoids the bias of choosing and measuring on the same examples: the step is chosen on one half and
    measured on the other, both ways, averaged.
    """

    value: float
    step: int
    split_half: float
    curve: tuple[float, ...]


def maximum_over_steps(values: ArrayLike, steps: ArrayLike, *, groups: ArrayLike | None = None) -> Maximum:
    """The step with the highest mean over columns (the first of equals), with its split-half check.

    values: one row per recorded step, one column per output word; NaN is left out of each mean. groups: the text each
    column belongs to, so that the halves are of texts.

    >>> maximum_over_steps([[0, 0, 0, 0], [1, 1, 1, 0]], steps=[0, 10])
    Maximum(value=0.75, step=10, split_half=0.75, curve=(0.0, 0.75))
    """
    table = np.asarray(values, dtype=np.float64)
    at = np.asarray(steps, dtype=np.int64)
    if table.ndim != 2 or len(table) != len(at) or table.size == 0:
        raise DataError(f"values has shape {table.shape} for {len(at)} steps; it must be (steps, examples)")
    curve = _means(table)
    if np.isnan(curve).all():
        raise DataError("no step has a defined value, so there is no maximum")
    best = int(np.nanargmax(curve))
    text = np.arange(table.shape[1]) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    halves = table[:, text % 2 == 0], table[:, text % 2 == 1]
    chosen = [(_means(a), _means(b)) for a, b in (halves, halves[::-1])]
    held_out = [b[int(np.nanargmax(a))] for a, b in chosen if not np.isnan(a).all()]
    held_out = [value for value in held_out if not np.isnan(value)]
    split_half = float(np.mean(held_out)) if held_out else float(curve[best])
    return Maximum(float(curve[best]), int(at[best]), split_half, tuple(float(c) for c in curve))


@dataclass(frozen=True)
class Contextualised:
    """ξ: performance of another seed once its attention agreed as much; `reached` is false if it never did."""

    value: float
    step: int
    reached: bool

    def __str__(self) -> str:
        return f"{self.value:.3f}{'' if self.reached else '*'}"


def contextualised_agreement(
    agreement: float, steps: ArrayLike, curve: ArrayLike, performance: ArrayLike
) -> Contextualised:
    """ξ(u, v) (snell2021, Eq. 11).

        ξ(u, v) = p̂(inf{τ : A(α, α̂(τ)) > A(u, v)})

    agreement: A(u, v). curve: A(α, α̂(τ)) at each recorded step τ of another seed's run; performance: that run's p̂(τ).
    Never exceeded → the final performance, with `reached` false (the paper's `*`).

    >>> contextualised_agreement(0.3, steps=[0, 50, 100], curve=[0.1, 0.35, 0.6], performance=[0.5, 0.7, 0.8])
    Contextualised(value=0.7, step=50, reached=True)
    """
    at, height, p = (np.asarray(a, dtype=np.float64).ravel() for a in (steps, curve, performance))
    if not len(at) == len(height) == len(p) or len(at) == 0:
        raise DataError(f"{len(at)} steps, {len(height)} agreements and {len(p)} performances; give as many of each")
    above = np.flatnonzero(height > agreement)
    i = int(above[0]) if len(above) else len(at) - 1
    return Contextualised(float(p[i]), int(at[i]), bool(len(above)))


def contextualised_estimate(
    agreements: Sequence[NDArray[np.float64]],
    curves: Sequence[NDArray[np.float64]],
    performances: Sequence[NDArray[np.float64]],
    *,
    groups: ArrayLike | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Estimate:
    """ξ read once from curves averaged over seeds, with a 95 % bootstrap interval over texts.

    For each seed: A(u, v) of each output word; A(α, α̂(τ)) and p̂(τ), (steps, output words) each, at the same steps.
    Agreements, curves and performances are averaged over seeds before ξ is read, as in the paper's released code.
    groups: the text of each output word. Every resample of the texts has its own curves and step, so the interval
    includes the uncertainty of the step.

    >>> a, curve = np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> contextualised_estimate([a], [curve], [curve]).value
    1.0
    """
    words = len(agreements[0])
    text = np.arange(words) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    n = int(text.max()) + 1
    sizes = np.bincount(text, minlength=n).astype(np.float64)
    if len({len(curve) for curve in (*curves, *performances)}) != 1:
        raise DataError("the seeds were recorded at different steps; their curves cannot be averaged")
    steps = len(curves[0])
    averaged = (np.mean(agreements, axis=0), *np.mean(curves, axis=0), *np.mean(performances, axis=0))
    sums = np.stack([np.bincount(text, weights=row, minlength=n) for row in averaged])

    def xi(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """ξ for each column of `weights`: how often each text was drawn."""
        means = (sums @ weights) / (sizes @ weights)
        above = means[1 : steps + 1] > means[0]
        first = np.where(above.any(axis=0), above.argmax(axis=0), steps - 1)
        read: NDArray[np.float64] = np.take_along_axis(means[steps + 1 :], first[None], axis=0)[0]
        return read

    value = float(xi(np.ones((n, 1)))[0])
    if n < 2:
        return Estimate(value, value, value, n)
    low, high = np.quantile(xi(text_draws(n, resamples, seed)), [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def _in_top(block: NDArray[np.floating], percent: int) -> NDArray[np.bool_]:
    """Which positions have fewer than `percent` of their row above them."""
    L = block.shape[1]
    allowed = -(-percent * L // 100)  # the position may be among this many highest
    threshold = np.partition(block, L - allowed, axis=1)[:, L - allowed]
    return block >= threshold[:, None]


def first_maximum(rows: Ragged) -> NDArray[np.int64]:
    """Index into `rows.values` of the first maximum of each row; rows with a NaN have none.

    >>> first_maximum(Ragged.of([[1.0, 3.0, 3.0], [2.0]]))
    array([1, 3])
    """
    highest = np.maximum.reduceat(rows.values, rows.offsets[:-1])
    at = np.flatnonzero(rows.values == np.repeat(highest, rows.lengths))
    _, first = np.unique(rows.row_of[at], return_index=True)
    return at[first]


def _check_percent(percent: int) -> None:
    if not 0 < percent <= 100:
        raise DataError(f"percent is {percent}; it must lie in 1 … 100")


def _means(table: NDArray[np.float64]) -> NDArray[np.float64]:
    defined = ~np.isnan(table)
    count = defined.sum(axis=1)
    total = np.where(defined, table, 0.0).sum(axis=1)
    means = np.full(len(table), np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means
