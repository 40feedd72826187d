"""Agreement A(u, v) of attention and importance (snell2021, Eq. 10), and its chance baselines.

Rows: one per output word, with one value per input position.
"""

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.data.ragged import Ragged, paired
from heedful.errors import DataError

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
    top = _first_maximum(first)
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
    top = _first_maximum(first) - first.offsets[:-1]
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


def _in_top(block: NDArray[np.floating], percent: int) -> NDArray[np.bool_]:
    """Which positions have fewer than `percent` of their row above them."""
    L = block.shape[1]
    allowed = -(-percent * L // 100)  # the position may be among this many highest
    threshold = np.partition(block, L - allowed, axis=1)[:, L - allowed]
    return block >= threshold[:, None]


def _first_maximum(rows: Ragged) -> NDArray[np.int64]:
    """Index into `rows.values` of the first maximum of each row."""
    highest = np.maximum.reduceat(rows.values, rows.offsets[:-1])
    at = np.flatnonzero(rows.values == np.repeat(highest, rows.lengths))
    _, first = np.unique(rows.row_of[at], return_index=True)
    return at[first]


def _check_percent(percent: int) -> None:
    if not 0 < percent <= 100:
        raise DataError(f"percent is {percent}; it must lie in 1 … 100")
