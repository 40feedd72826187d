"""The stack of layers of a model: runs that begin at one of its layers, or end with the first position alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

Remembered = dict[nn.Module, tuple[Tensor, Tensor, tuple[int, int]]]  # what a module was given, and what it computed


@dataclass(frozen=True)
class LayerStack:
    """The modules of a model's layers, in order: each takes states (B, L, D) first and returns states."""

    layers: tuple[nn.Module, ...]

    @contextmanager
    def starting_at(self, layer: int, states: Tensor, remembered: Remembered | None = None) -> Iterator[None]:
        """While entered, the layers below `layer` are not computed; `layer` reads `states`.

        remembered: what the parts of `layer` computed from these states before; a part that is given the same tensor
        again does not compute it again. Projections of states are thus computed once, however often attention changes.

        >>> import torch
        >>> layers = tuple(nn.Linear(2, 2) for _ in range(3))
        >>> model, states = nn.Sequential(*layers), torch.ones(1, 1, 2)
        >>> with LayerStack(layers).starting_at(2, states):
        ...     torch.equal(model(torch.zeros(1, 1, 2)), layers[2](states))
        True
        """
        replaced = {module: _constant(states) for module in self.layers[:layer]}
        if remembered is not None:
            leaves = (part for part in self.layers[layer].modules() if not any(part.children()))
            replaced |= {part: _remembering(part, remembered) for part in leaves}
        with _replaced(replaced):
            yield

    @contextmanager
    def first_position_after(self, parts: Sequence[str]) -> Iterator[None]:
        """While entered, the last layer computes only the first position after these parts of it.

        A head that reads no other position then predicts the same, if the rest of the layer treats positions one by
        one.

        >>> import torch
        >>> layer = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
        >>> with LayerStack((layer,)).first_position_after(["0"]):
        ...     tuple(layer(torch.zeros(1, 5, 2)).shape)
        (1, 1, 3)
        """
        modules = [self.layers[-1].get_submodule(part) for part in parts]
        with _replaced({module: _first_position(module) for module in modules}):
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


def _first_position(module: nn.Module) -> Callable[..., Any]:
    """The module's function, of whose result (the first, if there are several) only the first position is kept."""
    own = module.forward

    def first(*given: Any, **options: Any) -> Any:
        result = own(*given, **options)
        return (result[0][:, :1], *result[1:]) if isinstance(result, tuple) else result[:, :1]

    return first


def _remembering(module: nn.Module, remembered: Remembered) -> Callable[..., Any]:
    """The module's function, not computed again for the very tensor that it was last given.

    Nothing is remembered of inputs with gradients, and what was changed in place since is computed again.
    """
    own = module.forward

    def forward(*given: Any, **options: Any) -> Any:
        if len(given) != 1 or options or not isinstance(given[0], Tensor) or given[0].requires_grad:
            return own(*given, **options)
        known = remembered.get(module)
        if known is not None and known[0] is given[0] and known[2] == (given[0]._version, known[1]._version):
            return known[1]
        result = own(given[0])
        if isinstance(result, Tensor) and not result.requires_grad:
            remembered[module] = (given[0], result, (given[0]._version, result._version))
        return result

    return forward


def _constant(states: Tensor) -> Callable[..., Any]:
    """A layer that returns these states, whatever it is given."""
    return lambda *given, **options: states
