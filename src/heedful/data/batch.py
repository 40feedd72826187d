"""Encoded texts become padded batches, bucketed by length.

Which texts make up the batch of a step is a function of the seed and the step alone: nothing has to be remembered
to take training up again at any step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.tokens import PAD, EncodedSplit
from heedful.errors import DataError

POOL = 50  # batches shuffled together before they are sorted by length


@dataclass(frozen=True)
class Batch:
    """Texts padded on the right to the longest; `mask` is true at real tokens."""

    tokens: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"]
    labels: Int[Tensor, " B"]
    index: NDArray[np.int64]  # which texts of the split these are

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        """How many real tokens each text has."""
        return self.mask.sum(1)


def collate(split: EncodedSplit, index: NDArray[np.int64], device: torch.device | str = "cpu") -> Batch:
    """Pad the texts named by `index` into one batch."""
    lengths = split.lengths[index]
    places = np.arange(lengths.max())
    mask = places < lengths[:, None]
    tokens = np.full(mask.shape, PAD, dtype=np.int64)
    tokens[mask] = np.concatenate([split.text(int(i)) for i in index])
    return Batch(
        torch.from_numpy(tokens).to(device),
        torch.from_numpy(mask).to(device),
        torch.from_numpy(split.labels[index]).to(device),
        index,
    )


def batch_indices(lengths: NDArray[np.int64], batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """The batches of one epoch: shuffled, sorted by length within pools, and shuffled again as batches.

    >>> sorted(int(i) for batch in batch_indices(np.array([3, 9, 4]), 2, seed=0, epoch=0) for i in batch)
    [0, 1, 2]
    """
    if len(lengths) == 0:
        raise DataError("there are no texts to make batches of")
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), batch_size * POOL):
        pool = order[start : start + batch_size * POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def training_batches(
    split: EncodedSplit, batch_size: int, seed: int, *, start: int = 0, device: torch.device | str = "cpu"
) -> Iterator[Batch]:
    """Batches for ever, from step `start` on; step s has the same batch whether or not training was interrupted."""
    per_epoch = -(-len(split) // batch_size)
    step = start
    while True:
        epoch, first = divmod(step, per_epoch)
        for index in batch_indices(split.lengths, batch_size, seed, epoch)[first:]:
            yield collate(split, index, device)
            step += 1


def evaluation_batches(
    split: EncodedSplit, *, max_tokens: int = 8192, device: torch.device | str = "cpu"
) -> Iterator[Batch]:
    """Every text once, shortest first, as many at a time as stay within `max_tokens` with their padding."""
    order = np.argsort(split.lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and int(split.lengths[order[end]]) * (end + 1 - start) <= max_tokens:
            end += 1
        yield collate(split, order[start:end], device)
        start = end
