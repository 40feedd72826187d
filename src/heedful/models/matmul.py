"""Matrix products by oneDNN where torch's own are slow: MKL uses no AVX-512 on AMD processors.

There oneDNN takes half the time for the same product in single precision. On other processors and devices, and for
other types, everything here is torch's own function. Which one is used depends on the machine alone, so that a run
that is resumed there gives the same bytes.
"""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

CPU_INFO = Path("/proc/cpuinfo")


@cache
def is_onednn_faster() -> bool:
    """Whether this machine has an AMD processor with AVX-512, and torch has both oneDNN and MKL."""
    libraries = torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    if not libraries or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    return CPU_INFO.exists() and "AuthenticAMD" in CPU_INFO.read_text(encoding="utf-8", errors="replace")


def _by_onednn(*tensors: Tensor) -> bool:
    """Whether oneDNN multiplies these; it does not take empty ones."""
    return is_onednn_faster() and all(t.is_cpu and t.dtype == torch.float32 and t.numel() for t in tensors)


def matmul(a: Float[Tensor, "M K"], b: Float[Tensor, "K N"]) -> Float[Tensor, "M N"]:
    """a b, without gradients; either may be transposed, which costs nothing.

    >>> matmul(torch.ones(2, 3), torch.ones(3, 5))[0]
    tensor([3., 3., 3., 3., 3.])
    """
    if not _by_onednn(a, b):
        return a @ b
    product: Tensor = torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")
    return product


def addmm(c: Float[Tensor, "M N"], a: Float[Tensor, "M K"], b: Float[Tensor, "K N"]) -> Float[Tensor, "M N"]:
    """c + a b, without gradients.

    >>> addmm(torch.ones(2, 1), torch.ones(2, 3), torch.ones(3, 1)).flatten()
    tensor([4., 4.])
    """
    if not _by_onednn(c, a, b):
        return torch.addmm(c, a, b)
    total: Tensor = torch.ops.mkldnn._linear_pointwise(a, c, b.t(), None, "add")
    return total


class Linear(nn.Linear):
    """torch.nn.Linear, by oneDNN where that is faster, forwards and backwards.

    >>> _ = torch.manual_seed(0)
    >>> layer, x = Linear(3, 2), torch.ones(5, 3)
    >>> torch.allclose(layer(x), x @ layer.weight.t() + layer.bias)
    True
    """

    def forward(self, x: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows N"]:
        """x Wᵀ + b."""
        if not _by_onednn(x, self.weight):
            return super().forward(x)
        y: Tensor = _Linear.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return y


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        flat = x.reshape(-1, x.shape[-1])
        y: Tensor = torch.ops.mkldnn._linear_pointwise(flat, weight, bias, "none", [], "")
        return y.view(*x.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        dy = grads[0].reshape(-1, len(weight))
        dx = matmul(dy, weight).view_as(x) if ctx.needs_input_grad[0] else None
        dw = matmul(dy.t(), x.reshape(-1, x.shape[-1])) if ctx.needs_input_grad[1] else None
        return dx, dw, dy.sum(0) if ctx.needs_input_grad[2] else None
