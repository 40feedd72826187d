"""Do maps of attention put words in the order of their importance? Numbers for each passage, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from heedful.audits.asking import Numbers
from heedful.audits.names import is_head, layer_of
from heedful.measure.agreement import agreement
from heedful.measure.entropy import normalised_entropy
from heedful.measure.importance_batch import Importance
from heedful.measure.ragged import FloatArray
from heedful.measure.rank import kendall_tau_b

NO_STATES: Mapping[str, Mapping[int, Importance]] = MappingProxyType({})
TOP = 5  # percent of a passage's words that count as its most important


@dataclass(frozen=True)
class Orders:
    """Numbers of each passage, NaN where undefined, and what the matched shuffle needs: each row's top.

    numbers: `tau/<map>/<importance>`, `agreement/<map>/<importance>`, `entropy/<map>`, and `top/<map>`, the place of
    its highest word. important: of each importance, the places of the words that are among the top 5 %.
    """

    numbers: dict[str, Numbers]
    important: dict[str, list[list[int]]]


def orders(
    maps: Mapping[str, Importance],
    inputs: Mapping[str, Importance],
    hidden: Mapping[str, Mapping[int, Importance]] = NO_STATES,
) -> Orders:
    """Every map against every importance of the inputs, and against that of its own layer's hidden states.

    Importances are compared with each other too, which says how well any explanation could do. Agreement is not asked
    of single heads.

    >>> from heedful.measure.importance_batch import normalised
    >>> alpha, gradient = (normalised(np.array(row), np.array([3])) for row in ([0.2, 0.7, 0.1], [3.0, 6.0, 1.0]))
    >>> found = orders({"layer 1": alpha}, {"gradient": gradient})
    >>> found.numbers["tau/layer 1/gradient"], found.important
    (array([1.]), {'gradient': [[1]]})
    """
    numbers: dict[str, Numbers] = {}
    names = list(inputs)
    for name, rows in maps.items():
        layer = layer_of(name)
        own = {} if layer is None else {kind: of[layer] for kind, of in hidden.items() if layer in of}
        for other, importance in (*inputs.items(), *own.items()):
            numbers[f"tau/{name}/{other}"] = tau(rows, importance)
            if not is_head(name):
                numbers[f"agreement/{name}/{other}"] = _agreement(rows, importance)
        numbers[f"entropy/{name}"] = np.where(rows.undefined, np.nan, normalised_entropy(rows))
        numbers[f"top/{name}"] = _highest(rows)
    for i, name in enumerate(names):
        numbers[f"top/{name}"] = _highest(inputs[name])
        for other in names[i + 1 :]:
            numbers[f"tau/{name}/{other}"] = tau(inputs[name], inputs[other])
    important = {name: _top(rows) for name, rows in inputs.items()}
    important |= {hidden_name(kind, layer): _top(rows) for kind, of in hidden.items() for layer, rows in of.items()}
    return Orders(numbers, important)


def hidden_name(kind: str, layer: int) -> str:
    """Where `Orders.important` keeps an importance of a layer's states.

    >>> hidden_name("hidden gradient", 0)
    'hidden gradient 1'
    """
    return f"{kind} {layer + 1}"


def tau(rows: Importance, others: Importance) -> Numbers:
    """τ-b of each row; NaN where either is constant, or belongs to a prediction that nothing matters to."""
    return np.where(_flat(rows) | _flat(others), np.nan, kendall_tau_b(rows, others))


def _agreement(rows: Importance, others: Importance) -> Numbers:
    return np.where(_flat(rows) | _flat(others), np.nan, agreement(rows, others, percent=TOP))


def _highest(rows: Importance) -> Numbers:
    """The place of each row's (first) maximum; NaN where it has none that stands out."""
    places = [float(np.argmax(rows.row(r))) for r in range(len(rows))]
    return np.where(_flat(rows), np.nan, places)


def _top(rows: Importance) -> list[list[int]]:
    """The places of each row that fewer than `TOP` percent of its words are above."""
    return [_places(rows.row(r)) for r in range(len(rows))]


def _places(row: FloatArray) -> list[int]:
    allowed = -(-TOP * len(row) // 100)
    found: list[int] = np.flatnonzero(row >= np.sort(row)[-allowed]).tolist()
    return found


def _flat(rows: Importance) -> NDArray[np.bool_]:
    """Which rows put no word above another."""
    starts = rows.offsets[:-1]
    highest, lowest = np.maximum.reduceat(rows.values, starts), np.minimum.reduceat(rows.values, starts)
    flat: NDArray[np.bool_] = (highest == lowest) | rows.undefined
    return flat
