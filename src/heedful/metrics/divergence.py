"""Jensen–Shannon divergence and total variation of attention maps, row by row; `models.adversary` has them in torch."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from heedful.data.ragged import Ragged, paired
from heedful.errors import DataError
from heedful.metrics.agreement import Rows


def jensen_shannon(p: Rows, q: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Jensen–Shannon divergence in nats.

        JSD(p, q) = ½ KL(p‖m) + ½ KL(q‖m),   m = ½(p + q)

    Symmetric, in [0, ln 2]: 0 when equal, ln 2 when they share no position. Zeros are allowed.

    >>> jensen_shannon([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]).round(4)
    array([0.6931, 0.    ])
    """
    first, second = _distributions(p, q, mask)
    x, y = first.values, second.values
    # ½ p ln(p/m) = ¼ · 2p ln(2p/(p+q)): the sum, unlike the mean, cannot underflow below p.
    terms = (special.rel_entr(2 * x, x + y) + special.rel_entr(2 * y, x + y)) / 4
    return np.clip(np.add.reduceat(terms, first.offsets[:-1]), 0.0, np.log(2))


def total_variation(p: Rows, q: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Total variation distance, in [0, 1]: the largest difference on any set of positions.

        TVD(p, q) = ½ Σ_l |p_l − q_l|

    >>> total_variation([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.25, 0.75]])
    array([1.  , 0.25])
    """
    first, second = _distributions(p, q, mask)
    return np.clip(np.add.reduceat(np.abs(first.values - second.values), first.offsets[:-1]) / 2, 0.0, 1.0)


def _distributions(p: Rows, q: Rows, mask: ArrayLike | None) -> tuple[Ragged, Ragged]:
    """Both in float64; an error where a row is not a distribution (with 1 % tolerance for half precision)."""
    pair = paired(p, q, mask)
    for name, rows in zip("pq", pair, strict=True):
        total = np.add.reduceat(rows.values, rows.offsets[:-1], dtype=np.float64)
        negative = np.minimum.reduceat(rows.values, rows.offsets[:-1]) < 0
        bad = negative | ~(np.abs(total - 1) < 0.01)
        if bad.any():
            r = int(np.argmax(bad))
            problem = "has a negative value" if negative[r] else f"sums to {total[r]:.4g}"
            raise DataError(f"{name} is not a distribution: its row {r} {problem}")
    first, second = (Ragged(rows.values.astype(np.float64), rows.offsets) for rows in pair)
    return first, second
