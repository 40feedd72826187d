"""How spread out a distribution over positions is."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from heedful.data.ragged import Ragged, as_ragged
from heedful.errors import DataError


def entropy_nats(
    alpha: Ragged | ArrayLike | Sequence[ArrayLike], *, mask: ArrayLike | None = None
) -> NDArray[np.float64]:
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


def normalised_entropy(
    alpha: Ragged | ArrayLike | Sequence[ArrayLike], *, mask: ArrayLike | None = None
) -> NDArray[np.float64]:
    """H̃ = H / ln L in [0, 1] (meister2021, footnote 1); NaN where L = 1, which has nothing to spread over.

    >>> normalised_entropy([[0.25, 0.25, 0.25, 0.25]])
    array([1.])
    """
    rows = as_ragged(alpha, mask)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = np.where(rows.lengths > 1, entropy_nats(rows) / np.log(rows.lengths), np.nan)
    return ratio
