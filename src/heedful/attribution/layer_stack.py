"""The stack of layers of a model: runs that begin at one of its layers, or end with the first position alone."""

from collections.abc import Callable, Iterator, Mapping
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
        with _replaced({module: _constant(states) for module in self.layers[:layer]}):
            yield

    @contextmanager
    def first_position_after(self, part: str) -> Iterator[None]:
        """While entered, the last layer computes only the first position after this part of it.

        A head that reads no other position then predicts the same, if the rest of the layer treats positions one by
        one.

        >>> import torch
        >>> layer = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
        >>> with LayerStack((layer,)).first_position_after("0"):
        ...     tuple(layer(torch.zeros(1, 5, 2)).shape)
        (1, 1, 3)
        """
        module = self.layers[-1].get_submodule(part)
        own = module.forward

        def first(*given: Any, **options: Any) -> Any:
            result = own(*given, **options)
            return (result[0][:, :1], *result[1:]) if isinstance(result, tuple) else result[:, :1]

        with _replaced({module: first}):
            yield


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


@contextmanager
def _replaced(forwards: Mapping[nn.Module, Callable[..., Any]]) -> Iterator[None]:
    """While entered, these modules compute something else; afterwards their own function is restored."""
    own = {module: module.__dict__.get("forward") for module in forwards}
    try:
        for module, forward in forwards.items():
            module.__dict__["forward"] = forward
        yield
    finally:
        for module, before in own.items():
            if before is None:
                del module.__dict__["forward"]
            else:
                module.__dict__["forward"] = before


def _constant(states: Tensor) -> Callable[..., Any]:
    """A layer that returns these states, whatever it is given."""
    return lambda *given, **options: states
