"""One instant of training: α, β and Δ of every text, and what the model predicted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.measure.ragged import Ragged

QUANTITIES = ("alpha", "beta_logit", "delta")


@dataclass(frozen=True)
class Snapshot:
    """One step's quantities: a row per text, a value per position; and what the model predicted.

    `beta_logit` is β on the log-odds scale, where float32 does not tie at the top.
    """

    alpha: Ragged
    beta_logit: Ragged
    delta: Ragged
    log_odds: NDArray[np.float32]  # of the correct label
    prediction: NDArray[np.int32]
    labels: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Share of texts whose label is predicted."""
        return float(np.mean(self.prediction == self.labels))

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood."""
        return float(np.mean(np.logaddexp(0, -self.log_odds.astype(np.float64))))
