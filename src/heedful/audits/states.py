"""Hidden states intercepted, whatever the architecture: what a layer's attention reads, and others in their place.

As with attention (heedful.audits.tap) nothing is patched: the tap is a mode of torch's. Which result of torch's is the
state that a layer reads is found out by comparing all of them with the states that a network returns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.audits.tap import Results
from heedful.errors import DataError

Embedded = Float[Tensor, "B L E"]
States = Float[Tensor, "B L D"]
THE_INPUT = -1  # the place of states that are the embeddings themselves


class StateTap(Results):
    """While entered, the k-th result of three axes is what `change(k, result)` makes of it; `count` is how many came.

    >>> with StateTap(lambda k, result: 0 * result) as tap:
    ...     (torch.ones(1, 2, 3) + 1).sum().item(), tap.count
    (0.0, 2)
    """

    def seen(self, func: Callable[..., Any], result: Any) -> Any:
        """Every tensor of a result is looked at."""
        return tuple(map(self._changed, result)) if type(result) is tuple else self._changed(result)

    def _changed(self, result: Any) -> Any:
        if not isinstance(result, Tensor) or result.ndim != 3 or not result.is_floating_point():
            return result
        self.count += 1
        return self.change(self.count - 1, result)


@dataclass(frozen=True)
class Place:
    """Where a network makes the states that a layer reads: `states` are its own, `number` says which result they are.

    count: how many results there are.
    """

    states: States
    number: int
    count: int

    def put(self, run: Callable[[Embedded], Any], embedded: Embedded, states: States) -> Any:
        """`run(embedded)` with other states in the place of its own."""
        if self.number == THE_INPUT:
            return run(states)

        def change(k: int, result: Tensor) -> Tensor:
            if k != self.number:
                return result
            if result.shape != states.shape:
                raise DataError(
                    f"states of shape {tuple(states.shape)} cannot stand in for those of {tuple(result.shape)}"
                )
            return states

        with StateTap(change) as tap:
            found = run(embedded)
        if tap.count != self.count:
            raise DataError(
                f"the model took {tap.count} steps over this input, but {self.count} before; it cannot be said which "
                "of them makes a layer's states"
            )
        return found


def find_states(read: Callable[[Embedded], States], embedded: Embedded) -> Place | None:
    """Where the states are made that `read(embedded)` returns, or None if others put there are not returned.

    >>> place = find_states(lambda e: (e + 1).tanh(), torch.zeros(1, 2, 3))
    >>> place.number, place.count
    (1, 2)
    >>> place.put(lambda e: (e + 1).tanh().sum().item(), torch.zeros(1, 2, 3), torch.ones(1, 2, 3))
    6.0
    """
    seen: list[Tensor] = []

    def record(k: int, result: Tensor) -> Tensor:
        seen.append(result)
        return result

    with torch.no_grad():
        with StateTap(record):
            states = read(embedded)
        number = next((k - 1 for k, result in enumerate([embedded, *seen]) if _same(result, states)), None)
        if number is None:
            return None
        place = Place(states, number, len(seen))
        half = states / 2
        return place if torch.equal(place.put(read, embedded, half), half) else None


def _same(result: Tensor, states: Tensor) -> bool:
    return result is states or (result.shape == states.shape and torch.equal(result, states))
