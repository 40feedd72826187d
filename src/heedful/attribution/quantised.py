"""Quantised models: linear layers whose weights are stored in 8 or 4 bits.

While a model is audited, each such layer computes with its rounded weights in single precision. They are unpacked for
each call, so that no more than one layer's weights are in memory in full. What a library does besides to save time
(inputs rounded to 8 bits, weights repacked for one kind of processor) is left out: rounded inputs have no gradient, and
some kernels run on some shapes alone.
"""

import hashlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import DataError

Unpack = Callable[[], tuple[Tensor, Tensor | None]]  # the weights (out, in) and the bias of a layer
FOUR_BITS = ("Linear4bit", "LinearNF4", "LinearFP4")
PACKED = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.float8_e4m3fn, torch.float8_e5m2)


class UnpackedLinear(nn.Module):
    """A linear layer with the weights of a quantised one, in the precision of its input.

        y = x Wᵀ + b,   ∂y/∂x = W

    It has no parameters of its own; its state is a digest of its weights.
    """

    def __init__(self, unpack: Unpack) -> None:
        super().__init__()
        self.unpack = unpack

    def forward(self, inputs: Float[Tensor, "... D"]) -> Float[Tensor, "... O"]:
        """The layer's output."""
        output: Tensor = _RoundedProduct.apply(inputs, self.unpack)  # type: ignore[no-untyped-call]
        return output

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Under the names of a linear layer, the SHA-256 of its weights: whole weights would need their memory."""
        for name, tensor in zip(("weight", "bias"), self.unpack(), strict=True):
            if tensor is not None:
                content = tensor.detach().float().cpu().contiguous().numpy().tobytes()
                destination[f"{prefix}{name}"] = torch.tensor(list(hashlib.sha256(content).digest()), dtype=torch.uint8)


@contextmanager
def unpacked(model: nn.Module) -> Iterator[None]:
    """While entered, the quantised linear layers of a model are `UnpackedLinear`; afterwards they are its own.

    >>> model = nn.Sequential(nn.Linear(2, 2))
    >>> with unpacked(model):
    ...     model[0]
    Linear(in_features=2, out_features=2, bias=True)
    """
    places = [(parent, name, part) for parent in model.modules() for name, part in parent.named_children()]
    found = [(parent, name, part, unpack) for parent, name, part in places if (unpack := unpacking(part))]
    known = {id(part) for _, _, part, _ in found}
    if unknown := next((part for part in model.modules() if id(part) not in known and _is_packed(part)), None):
        raise DataError(
            f"{type(model).__name__} has quantised layers of the class {type(unknown).__module__}."
            f"{type(unknown).__name__}, whose weights cannot be unpacked here; those of bitsandbytes, torchao, quanto, "
            "hqq and torch's quantize_dynamic can"
        )
    try:
        for parent, name, _, unpack in found:
            parent._modules[name] = UnpackedLinear(unpack)
        yield
    finally:
        for parent, name, part, _ in found:
            parent._modules[name] = part


def unpacking(part: Any) -> Unpack | None:
    """How the weights of a quantised linear layer are unpacked; None of any other module.

    >>> unpacking(nn.Linear(2, 2)) is None
    True
    """
    kind, weight = type(part).__name__, getattr(part, "weight", None)
    if type(part).__module__.startswith(("torch.ao.nn.quantized", "torch.nn.quantized")) and callable(weight):
        return lambda: (part.weight().dequantize(), part.bias())
    if any(part.children()):  # a layer that wraps another, such as an adapter's of the same name
        return None
    if kind == "Linear8bitLt" and weight is not None and weight.dtype == torch.int8:
        return lambda: (_from_8_bits(part), part.bias)
    if kind in FOUR_BITS and getattr(weight, "quant_state", None) is not None:
        return lambda: (_from_4_bits(part), part.bias)
    if kind == "QLinear" and hasattr(part, "qweight"):  # quanto
        return lambda: (part.qweight.dequantize(), part.bias)
    if kind == "HQQLinear":
        return lambda: (part.dequantize(), part.bias)
    if isinstance(part, nn.Linear) and _is_wrapped(weight):  # torchao
        return lambda: (part.weight.dequantize(), part.bias)
    return None


def _from_8_bits(part: Any) -> Tensor:
    """bitsandbytes: int8 rows and the largest absolute value of each, W = q s / 127."""
    scale = part.weight.SCB if getattr(part.weight, "SCB", None) is not None else part.state.SCB
    weight: Tensor = part.weight.data.float() * scale.float().reshape(-1, 1) / 127
    return weight


def _from_4_bits(part: Any) -> Tensor:
    """bitsandbytes: its own function, after weights that it repacked for a processor are in their usual order."""
    if getattr(part.weight.quant_state, "packing_format_for_cpu", False):
        part.state_dict()  # restores the order, since a file has no other
    weight: Tensor = importlib.import_module("bitsandbytes.functional").dequantize_4bit(
        part.weight.data, part.weight.quant_state
    )
    return weight


def _is_wrapped(weight: Any) -> bool:
    """Whether a weight is of a class of its own that can be turned into a plain tensor."""
    return isinstance(weight, Tensor) and type(weight).dequantize is not Tensor.dequantize


def _is_packed(part: nn.Module) -> bool:
    """Whether a module other than a model's own holds integers or 8-bit floats as weights."""
    if type(part).__module__.startswith(("transformers.models.", "torch.nn.", "heedful.")) or any(part.children()):
        return any(map(_is_wrapped, part._parameters.values()))
    tensors = [*part._parameters.values(), *part._buffers.values()]
    return any(t is not None and t.ndim > 1 and t.dtype in PACKED for t in tensors)


class _RoundedProduct(torch.autograd.Function):
    """x Wᵀ + b, where W is unpacked again for the gradient rather than kept."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, unpack: Unpack) -> Tensor:
        ctx.unpack = unpack
        weight, bias = unpack()
        return nn.functional.linear(inputs, weight.to(inputs), None if bias is None else bias.to(inputs))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        return gradient @ ctx.unpack()[0].to(gradient), None
