"""One instant of training: what a model attends to, knows and depends on, for every output word of a split."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.measure.ragged import Ragged

QUANTITIES = ("alpha", "beta_logit", "delta")


@dataclass(frozen=True)
class Snapshot:
    """A row per output word, a value per input position; and what the model predicted.

    `quantities` holds some or all of `alpha`, `beta_logit` (β on the log-odds scale, where float32 does not tie at
    the top) and `delta`. A probe that predicts nothing itself leaves out prediction and log-odds. Rows are ordered by
    text, then by output position; in classification that is always 0.
    """

    quantities: Mapping[str, Ragged]
    example: NDArray[np.int32]
    output: NDArray[np.int32]
    label: NDArray[np.int32]  # the correct label or word
    prediction: NDArray[np.int32] | None = None
    log_odds: NDArray[np.float32] | None = None  # of the correct label or word

    @property
    def accuracy(self) -> float:
        """Share of rows whose label or word is predicted."""
        return float("nan") if self.prediction is None else float(np.mean(self.prediction == self.label))

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood."""
        return float("nan") if self.log_odds is None else float(np.mean(np.logaddexp(0.0, -self.log_odds)))
