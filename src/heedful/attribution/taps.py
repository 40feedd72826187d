"""Interception of attention and hidden states in any architecture, by a `TorchFunctionMode`.

The results of torch functions can be recorded and replaced: softmaxes with four axes, which may be attention, and
results with three axes, which may be hidden states. Nothing is patched: the mode ends with its `with` block. Which
result is which is found by comparing them with the attention, or the states, that a model returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from heedful.attribution.network import Change, Embedded
from heedful.errors import DataError

T = TypeVar("T")
Attention = tuple[Float[Tensor, "B H Q L"], ...]
States = Float[Tensor, "B L D"]
SOFTMAX = {F.softmax, torch.softmax, torch.special.softmax, Tensor.softmax}
THE_INPUT = -1  # the number of states that are the embeddings themselves


class Tap(TorchFunctionMode):
    """While entered, the k-th softmax with four axes is replaced by `change(k, α)`; `count` counts them.

    kind: "states" for results with three axes in place of softmaxes; a function may return several in a tuple.

    >>> scores = torch.zeros(1, 1, 2, 4)
    >>> with Tap(lambda k, alpha: torch.eye(4)[:2].expand_as(alpha)) as tap:
    ...     F.softmax(scores, dim=-1)[0, 0, 1], torch.ones(3).softmax(0).ndim, tap.count
    (tensor([0., 1., 0., 0.]), 1, 1)
    >>> with Tap(lambda k, result: 0 * result, "states") as tap:
    ...     (torch.ones(1, 2, 3) + 1).sum().item(), tap.count
    (0.0, 2)
    """

    def __init__(
        self, change: Callable[[int, Tensor], Tensor], kind: Literal["attention", "states"] = "attention"
    ) -> None:
        super().__init__()
        self.change, self.kind, self.count = change, kind, 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Called by torch in place of each of its functions."""
        result = func(*args, **(kwargs or {}))
        if self.kind == "attention":
            return self._changed(result) if func in SOFTMAX and result.ndim == 4 else result
        return tuple(map(self._state, result)) if type(result) is tuple else self._state(result)

    def _state(self, result: Any) -> Any:
        is_state = isinstance(result, Tensor) and result.ndim == 3 and result.is_floating_point()
        return self._changed(result) if is_state else result

    def _changed(self, result: Tensor) -> Tensor:
        changed = self.change(self.count, result)
        self.count += 1
        if changed.shape != result.shape:
            raise DataError(
                f"{self.kind} of shape {tuple(changed.shape)} cannot replace {self.kind} of shape {tuple(result.shape)}"
            )
        return changed.to(result)


@dataclass(frozen=True)
class Taps:
    """Where a model computes its attention: the layer of each softmax that is attention, and the count of all.

    sinks: softmaxes with one more weight, the last, which belongs to no position: a sink that is a parameter.
    """

    layer: Mapping[int, int]
    count: int
    sinks: frozenset[int] = frozenset()

    def run(self, forward: Callable[[], Any], change: Change, first_layer: int = 0) -> Any:
        """`forward()` with every layer's attention replaced by `change(layer, α)`.

        first_layer: the layers below it are not computed by `forward`.
        """
        skipped = min(k for k, layer in self.layer.items() if layer == first_layer) if first_layer else 0

        def changed(k: int, alpha: Tensor) -> Tensor:
            layer = self.layer.get(k + skipped)
            if layer is None:
                return alpha
            if k + skipped not in self.sinks:
                return change(layer, alpha)
            return torch.cat([change(layer, alpha[..., :-1]), alpha[..., -1:]], dim=-1)

        with Tap(changed) as tap:
            result = forward()
        if tap.count + skipped != self.count:
            raise DataError(
                f"the model computed {tap.count} softmaxes for this input, but {self.count - skipped} for a shorter "
                "one; it is unknown which of them to replace"
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
    returned, seen = _recorded(attention, "attention")
    layer: dict[int, int] = {}
    sinks: set[int] = set()
    for k, alpha in enumerate(seen):  # layers come in order; each is the first softmax with its values
        if len(layer) == len(returned):
            break
        has_sink = alpha.shape[-1] == returned[len(layer)].shape[-1] + 1
        if _rounded_same(alpha[..., :-1] if has_sink else alpha, returned[len(layer)]):
            sinks |= {k} if has_sink else set()
            layer[k] = len(layer)
    if len(layer) < len(returned):
        return None
    taps = Taps(layer, len(seen), frozenset(sinks))
    uniform = [seen[k].new_full(returned[number].shape, 1 / returned[number].shape[-1]) for k, number in layer.items()]
    put = taps.run(attention, lambda k, alpha: uniform[k])
    return taps if all(map(_rounded_same, uniform, put)) else None


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
        with Tap(lambda k, result: states if k == self.number else result, "states") as tap:
            output = run(embedded)
        if tap.count != self.count:
            raise DataError(
                f"the model took {tap.count} steps for this input, but {self.count} before; it is unknown which of "
                "them computes a layer's states"
            )
        return output


@torch.no_grad()
def find_states(read: Callable[[Embedded], States], embedded: Embedded) -> Place | None:
    """Where the states are computed that `read(embedded)` returns; None if a replacement has no effect.

    >>> place = find_states(lambda e: (e + 1).tanh(), torch.zeros(1, 2, 3))
    >>> place.number, place.count
    (1, 2)
    >>> place.put(lambda e: (e + 1).tanh().sum().item(), torch.zeros(1, 2, 3), torch.ones(1, 2, 3))
    6.0
    """
    states, seen = _recorded(lambda: read(embedded), "states")
    number = next((k - 1 for k, result in enumerate([embedded, *seen]) if _same(result, states)), None)
    if number is None:
        return None
    place, half = Place(states, number, len(seen)), states / 2
    return place if torch.equal(place.put(read, embedded, half), half) else None


def states_recorded(run: Callable[[], T]) -> tuple[T, list[Tensor]]:
    """What `run` returns, and every result with three axes on the way, in order.

    >>> result, states = states_recorded(lambda: (torch.ones(1, 2, 3) + 1).sum())
    >>> result.item(), len(states)
    (12.0, 2)
    """
    return _recorded(run, "states")


def _recorded(run: Callable[[], T], kind: Literal["attention", "states"]) -> tuple[T, list[Tensor]]:
    """What `run` returns, and every result of that kind on the way."""
    seen: list[Tensor] = []

    def record(k: int, result: Tensor) -> Tensor:
        seen.append(result)
        return result

    with Tap(record, kind):
        return run(), seen


def _same(result: Tensor, states: Tensor) -> bool:
    return result is states or (result.shape == states.shape and torch.equal(result, states))


def _rounded_same(computed: Tensor, returned: Tensor) -> bool:
    """Whether two attentions are equal in the precision of the second, to which a model may cast its softmax."""
    return computed.shape == returned.shape and torch.equal(computed.to(returned.dtype), returned)
