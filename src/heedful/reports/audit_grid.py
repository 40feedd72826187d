"""All heads of all layers in one table, coloured by their τ with an importance."""

import math
from dataclasses import dataclass

from heedful.audits.names import layer_name
from heedful.reports.audit_scores import Scores
from heedful.reports.audit_shades import signed_shade
from heedful.reports.audit_words import decimal
from heedful.reports.numbers import NONE


@dataclass(frozen=True)
class HeadCell:
    """One square: which map, its number, and the class of its colour."""

    map: str
    text: str
    shade: str


@dataclass(frozen=True)
class HeadGrid:
    """τ with one importance: a row per layer, a cell per head, and last the layer's mean."""

    against: str
    rows: tuple[tuple[str, tuple[HeadCell, ...]], ...]


def head_grids(scores: Scores, layers: int, heads: int) -> tuple[HeadGrid, ...]:
    """A grid for each importance, all on one scale; none where there is but one head in one layer."""
    if layers * heads == 1:
        return ()
    largest = largest_tau(scores)
    maps = [[layer_name(layer, head) for head in range(heads)] if heads > 1 else [] for layer in range(layers)]
    rows = [(layer_name(layer), (*maps[layer], layer_name(layer))) for layer in range(layers)]
    return tuple(
        HeadGrid(
            against, tuple((layer, tuple(_cell(scores, m, against, largest) for m in names)) for layer, names in rows)
        )
        for against in scores.importances
    )


def largest_tau(scores: Scores) -> float:
    """The end of the grids' scale: the largest |τ| of any map, rounded up."""
    found = (scores.score("tau", name, against) for name in scores.every_map for against in scores.importances)
    return math.ceil(10 * max((abs(tau.value) for tau in found if tau is not None), default=1.0)) / 10


def _cell(scores: Scores, name: str, against: str, largest: float) -> HeadCell:
    tau = scores.score("tau", name, against)
    if tau is None:
        return HeadCell(name, NONE, "p0")
    return HeadCell(name, decimal(tau.value, 2), signed_shade(tau.value, largest))
