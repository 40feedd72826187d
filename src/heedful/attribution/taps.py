"""Interception of attention and hidden states in any architecture, by a `TorchFunctionMode`.

Every softmax with four axes can be recorded and replaced. Nothing is patched: the mode ends with its `with` block.
`find_taps` finds which softmax belongs to which layer by comparing them with the attention that a model returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from heedful.attribution.interface import Change
from heedful.errors import DataError

Attention = tuple[Float[Tensor, "B H Q L"], ...]
SOFTMAX = {F.softmax, torch.softmax, torch.special.softmax, Tensor.softmax}


class Results(TorchFunctionMode):
    """While entered, the result of every torch function is replaced by what `replace` makes of it.

    change: the replacement of some results, by their number; `count` counts those results.
    """

    def __init__(self, change: Callable[[int, Tensor], Tensor]) -> None:
        super().__init__()
        self.change = change
        self.count = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Called by torch in place of each of its functions."""
        return self.replace(func, func(*args, **(kwargs or {})))

    def replace(self, func: Callable[..., Any], result: Any) -> Any:
        """The replacement of a result: the result itself, unless a subclass says otherwise."""
        return result


class Tap(Results):
    """While entered, the k-th softmax with four axes is replaced by `change(k, α)`; `count` counts them.

    >>> scores = torch.zeros(1, 1, 2, 4)
    >>> with Tap(lambda k, alpha: torch.eye(4)[:2].expand_as(alpha)) as tap:
    ...     F.softmax(scores, dim=-1)[0, 0, 1], torch.ones(3).softmax(0).ndim, tap.count
    (tensor([0., 1., 0., 0.]), 1, 1)
    """

    def replace(self, func: Callable[..., Any], result: Any) -> Any:
        """Only softmaxes with four axes can be attention."""
        if func not in SOFTMAX or result.ndim != 4:
            return result
        changed = self.change(self.count, result)
        self.count += 1
        if changed.shape != result.shape:
            raise DataError(
                f"attention of shape {tuple(changed.shape)} cannot replace attention of shape {tuple(result.shape)}"
            )
        return changed.to(result)


@dataclass(frozen=True)
class Taps:
    """Where a model computes its attention: the layer of each softmax that is attention, and the count of all."""

    layer: Mapping[int, int]
    count: int

    def run(self, forward: Callable[[], Any], change: Change) -> Any:
        """`forward()` with every layer's attention replaced by `change(layer, α)`."""
        with Tap(lambda k, alpha: change(self.layer[k], alpha) if k in self.layer else alpha) as tap:
            result = forward()
        if tap.count != self.count:
            raise DataError(
                f"the model computed {tap.count} softmaxes for this input, but {self.count} for a shorter one; "
                "it is unknown which of them to replace"
            )
        return result


def find_taps(attention: Callable[[], Attention]) -> Taps | None:
    """Which softmax is which layer's attention; None if that is unknown, or if a replacement has no effect.

    attention: calls the model and returns its attention; called twice.

    >>> scores = torch.arange(8.0).view(1, 1, 2, 4)
    >>> find_taps(lambda: ((2 * scores).softmax(-1), scores.softmax(-1))).layer
    {0: 0, 1: 1}
    >>> find_taps(lambda: (scores.exp() / scores.exp().sum(-1, keepdim=True),)) is None
    True
    """
    seen: list[Tensor] = []

    def record(k: int, alpha: Tensor) -> Tensor:
        seen.append(alpha)
        return alpha

    with Tap(record):
        returned = attention()
    layer = _matched(seen, returned)
    if layer is None:
        return None
    taps = Taps(layer, len(seen))
    uniform = [torch.full_like(alpha, 1 / alpha.shape[-1]) for alpha in returned]
    put = taps.run(attention, lambda k, alpha: uniform[k])
    return taps if all(map(torch.equal, put, uniform)) else None


def _matched(seen: Sequence[Tensor], returned: Attention) -> dict[int, int] | None:
    """The layers in order; each is the first softmax with its values after that of the layer before."""
    layer: dict[int, int] = {}
    for k, alpha in enumerate(seen):
        if len(layer) < len(returned) and torch.equal(alpha, returned[len(layer)]):
            layer[k] = len(layer)
    return layer if len(layer) == len(returned) else None


Embedded = Float[Tensor, "B L E"]
States = Float[Tensor, "B L D"]
THE_INPUT = -1  # the number of states that are the embeddings themselves


class StateTap(Results):
    """While entered, the k-th result with three axes is replaced by `change(k, result)`; `count` counts them.

    >>> with StateTap(lambda k, result: 0 * result) as tap:
    ...     (torch.ones(1, 2, 3) + 1).sum().item(), tap.count
    (0.0, 2)
    """

    def replace(self, func: Callable[..., Any], result: Any) -> Any:
        """A result may be a tuple of tensors."""
        return tuple(map(self._changed, result)) if type(result) is tuple else self._changed(result)

    def _changed(self, result: Any) -> Any:
        if not isinstance(result, Tensor) or result.ndim != 3 or not result.is_floating_point():
            return result
        self.count += 1
        return self.change(self.count - 1, result)


@dataclass(frozen=True)
class Place:
    """Where a network computes the states that a layer reads: `states` are its own, `number` is that of the result.

    count: how many results with three axes there are.
    """

    states: States
    number: int
    count: int

    def put(self, run: Callable[[Embedded], Any], embedded: Embedded, states: States) -> Any:
        """`run(embedded)` with its states replaced."""
        if self.number == THE_INPUT:
            return run(states)

        def change(k: int, result: Tensor) -> Tensor:
            if k != self.number:
                return result
            if result.shape != states.shape:
                raise DataError(
                    f"states of shape {tuple(states.shape)} cannot replace states of shape {tuple(result.shape)}"
                )
            return states

        with StateTap(change) as tap:
            output = run(embedded)
        if tap.count != self.count:
            raise DataError(
                f"the model took {tap.count} steps for this input, but {self.count} before; it is unknown which of "
                "them computes a layer's states"
            )
        return output


def find_states(read: Callable[[Embedded], States], embedded: Embedded) -> Place | None:
    """Where the states are computed that `read(embedded)` returns; None if a replacement has no effect.

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
