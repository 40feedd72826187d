"""Sparse simplex maps, forward and backward, against the entmax package.

Ours call the package in float64, with masks, and have a backward pass of their own, which can be differentiated again.
They must not be slower than half the speed of the package.
"""

from collections.abc import Callable, Iterator

import entmax
import torch
from benchmarks.case import Case, Point
from torch import Tensor

from heedful.models import attention as projection

LAM = 0.5
MAPS: list[tuple[str, Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = [
    ("sparsemax", projection.sparsemax, lambda z: entmax.sparsemax(z, dim=-1)),
    ("sparsegen", lambda z: projection.sparsegen(z, LAM), lambda z: entmax.sparsemax(z / (1 - LAM), dim=-1)),
    ("entmax15", projection.entmax15, lambda z: entmax.entmax15(z, dim=-1)),
]


def cases(quick: bool) -> Iterator[Case]:
    for length in (200, 2_000):
        z, g = _scores(length)
        for name, ours, theirs in MAPS:
            torch.testing.assert_close(ours(z), theirs(z))
            yield Case(
                work=f"{name}, forward and backward, 32 × {length:,}",
                peer="entmax",
                ours=lambda f=ours, z=z, g=g: _there_and_back(f, z, g),
                theirs=lambda f=theirs, z=z, g=g: _there_and_back(f, z, g),
                bar=0.5,
            )


def growth() -> Iterator[Point]:
    for length in (20, 200, 2_000, 20_000):
        z, g = _scores(length)
        for name, ours, _ in MAPS:
            work = f"{name}, forward and backward, 32 rows"
            yield Point(work, f"length {length:,}", lambda f=ours, z=z, g=g: _there_and_back(f, z, g))


def _scores(length: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    z, g = (torch.randn(32, length, generator=generator) for _ in range(2))
    return z.requires_grad_(), g


def _there_and_back(f: Callable[[Tensor], Tensor], z: Tensor, g: Tensor) -> None:
    z.grad = None
    f(z).backward(g)
