"""The stack of layers of a model, and runs that begin at one of its layers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class LayerStack:
    """The modules of a model's layers, in order: each takes states (B, L, D) first and returns states."""

    layers: tuple[nn.Module, ...]

    @contextmanager
    def starting_at(self, layer: int, states: Tensor) -> Iterator[None]:
        """While entered, the layers below `layer` are not computed; `layer` reads `states`.

        >>> import torch
        >>> layers = tuple(nn.Linear(2, 2) for _ in range(3))
        >>> model, states = nn.Sequential(*layers), torch.ones(1, 1, 2)
        >>> with LayerStack(layers).starting_at(2, states):
        ...     torch.equal(model(torch.zeros(1, 1, 2)), layers[2](states))
        True
        """
        skipped = self.layers[:layer]
        own = [module.__dict__.get("forward") for module in skipped]
        try:
            for module in skipped:
                module.__dict__["forward"] = _constant(states)
            yield
        finally:
            for module, forward in zip(skipped, own, strict=True):
                if forward is None:
                    del module.__dict__["forward"]
                else:
                    module.__dict__["forward"] = forward


def find_stack(model: nn.Module, layers: int) -> LayerStack | None:
    """The first list of as many modules of one class; None if there is none.

    >>> find_stack(nn.Sequential(nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])), 2).layers[0]
    Linear(in_features=2, out_features=2, bias=True)
    >>> find_stack(nn.Linear(2, 2), 2) is None
    True
    """
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == layers and len({type(part) for part in module}) == 1:
            return LayerStack(tuple(module))
    return None


def _constant(states: Tensor) -> Callable[..., Any]:
    """A layer that returns these states, whatever it is given."""
    return lambda *given, **options: states
