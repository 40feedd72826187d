"""Entropy of a distribution over positions, and the divergence of two, row by row.

`models.adversary` has the divergences in torch.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from heedful.data.ragged import Ragged, as_ragged, paired
from heedful.errors import DataError
from heedful.metrics.agreement import Rows


def entropy_nats(alpha: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Shannon entropy of each row.

        H(α) = −Σ_l α_l ln α_l,   0 ln 0 = 0

    In [0, ln L]: 0 when one-hot, ln L when uniform.

    >>> entropy_nats([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([0.6931, 0.    ])
    """
    rows = as_ragged(alpha, mask)
    if np.any(rows.values < 0) or np.isnan(rows.values).any():
        raise DataError("entropy is of a distribution: its values must be 0 or more")
    return np.add.reduceat(special.entr(rows.values.astype(np.float64)), rows.offsets[:-1])


def normalised_entropy(alpha: Rows, *, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """H̃ = H / ln L in [0, 1] (meister2021, footnote 1); NaN where L = 1, which has nothing to spread over.

    >>> normalised_entropy([[0.25, 0.25, 0.25, 0.25]])
    array([1.])
    """
    rows = as_ragged(alpha, mask)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = np.where(rows.lengths > 1, entropy_nats(rows) / np.log(rows.lengths), np.nan)
    return ratio


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
