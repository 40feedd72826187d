"""What can be asked of an audit."""

from dataclasses import dataclass

from heedful.errors import ConfigError
from heedful.measure.uncertainty import RESAMPLES


@dataclass(frozen=True)
class AuditSettings:
    """Everything but model and data that decides an audit's result.

    sample: how many texts are drawn, all unless said. include_special: whether words that the tokeniser added are
    part of explanations. headline: the map that a reader is shown, the last layer's mean unless said. integrated_steps:
    points on the way of integrated gradients, 0 for none. adversary_steps: of the search for another attention, 0 for
    none. random_orders: over how many orders of words chance is averaged. chunk: passages measured, and written down,
    together. examples: how many passages are kept to be looked at.

    >>> AuditSettings(sample=0)
    Traceback (most recent call last):
      ...
    heedful.errors.ConfigError: sample is 0; it must be 1 or more
    """

    sample: int | None = None
    seed: int = 0
    include_special: bool = False
    headline: str | None = None
    integrated_steps: int = 50
    adversary_steps: int = 100
    random_orders: int = 5
    chunk: int = 32
    resamples: int = RESAMPLES
    examples: int = 50

    def __post_init__(self) -> None:
        least = {"sample": 1, "random_orders": 1, "chunk": 1, "resamples": 1}
        for name in (
            "sample",
            "seed",
            "integrated_steps",
            "adversary_steps",
            "random_orders",
            "chunk",
            "resamples",
            "examples",
        ):
            value, lowest = getattr(self, name), least.get(name, 0)
            if value is not None and value < lowest:
                raise ConfigError(f"{name} is {value}; it must be {lowest} or more")
