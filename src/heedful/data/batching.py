"""Padded batches of encoded texts and sentence pairs, bucketed by length or in random order.

The batch of a step depends on the seed and the step alone, so training can resume at any step without stored state.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import overload

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.subwords import EncodedPairs
from heedful.data.synthetic.tasks import CHUNK, LENGTH, stream_numbers
from heedful.data.vocabulary import BOS, EOS, PAD, EncodedSplit
from heedful.errors import DataError

POOL = 50  # batches shuffled together before they are sorted by length
Device = torch.device | str


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


@dataclass(frozen=True)
class PairBatch:
    """Sentence pairs padded on the right; the decoder reads `target_in` and should predict `target_out`."""

    source: Int[Tensor, "B L"]
    source_mask: Bool[Tensor, "B L"]
    target_in: Int[Tensor, "B T"]
    target_out: Int[Tensor, "B T"]
    target_mask: Bool[Tensor, "B T"]
    index: NDArray[np.int64]  # which pairs of the split these are


@overload
def collate(split: EncodedSplit, index: NDArray[np.int64], device: Device = ...) -> Batch: ...
@overload
def collate(split: EncodedPairs, index: NDArray[np.int64], device: Device = ...) -> PairBatch: ...
def collate(split: EncodedSplit | EncodedPairs, index: NDArray[np.int64], device: Device = "cpu") -> Batch | PairBatch:
    """Pad the texts or pairs named by `index` into one batch."""
    if isinstance(split, EncodedSplit):
        tokens, mask = _pad([split.text(int(i)) for i in index], device)
        return Batch(tokens, mask, torch.from_numpy(split.labels[index]).to(device), index)
    source, source_mask = _pad([split.source[int(i)] for i in index], device)
    target, target_mask = _pad([split.target[int(i)] for i in index], device)
    return PairBatch(source, source_mask, target[:, :-1], target[:, 1:], target_mask[:, 1:], index)


def batch_indices(
    lengths: NDArray[np.int64], batch_size: int, seed: int, epoch: int, *, bucketed: bool = True
) -> list[NDArray[np.int64]]:
    """The batches of one epoch: shuffled, sorted by length within pools, and shuffled again as batches.

    bucketed: false leaves out the sorting, so that every batch is a random sample.

    >>> sorted(int(i) for batch in batch_indices(np.array([3, 9, 4]), 2, seed=0, epoch=0) for i in batch)
    [0, 1, 2]
    """
    if len(lengths) == 0:
        raise DataError("there are no texts to make batches of")
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    if not bucketed:
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    batches = []
    for start in range(0, len(order), batch_size * POOL):
        pool = order[start : start + batch_size * POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


@overload
def training_batches(
    split: EncodedSplit, batch_size: int, seed: int, *, start: int = ..., device: Device = ..., bucketed: bool = ...
) -> Iterator[Batch]: ...
@overload
def training_batches(
    split: EncodedPairs, batch_size: int, seed: int, *, start: int = ..., device: Device = ..., bucketed: bool = ...
) -> Iterator[PairBatch]: ...
def training_batches(
    split: EncodedSplit | EncodedPairs,
    batch_size: int,
    seed: int,
    *,
    start: int = 0,
    device: Device = "cpu",
    bucketed: bool = True,
) -> Iterator[Batch] | Iterator[PairBatch]:
    """Endless batches from step `start` on; step s has the same batch whether or not training was interrupted.

    bucketed: texts of similar length together, else in random order.
    """
    lengths = sort_key(split)
    per_epoch = max(1, -(-len(split) // batch_size))
    step = start
    while True:
        epoch, first = divmod(step, per_epoch)
        for index in batch_indices(lengths, batch_size, seed, epoch, bucketed=bucketed)[first:]:
            yield collate(split, index, device)
            step += 1


@overload
def evaluation_batches(split: EncodedSplit, *, max_tokens: int = ..., device: Device = ...) -> Iterator[Batch]: ...
@overload
def evaluation_batches(split: EncodedPairs, *, max_tokens: int = ..., device: Device = ...) -> Iterator[PairBatch]: ...
def evaluation_batches(
    split: EncodedSplit | EncodedPairs, *, max_tokens: int = 8192, device: Device = "cpu"
) -> Iterator[Batch] | Iterator[PairBatch]:
    """Every example once, shortest first, as many at a time as stay within `max_tokens` with their padding."""
    order = np.argsort(sort_key(split), kind="stable")
    lengths = split.lengths if isinstance(split, EncodedSplit) else split.source.lengths + split.target.lengths
    start = 0
    while start < len(order):
        end, longest = start + 1, int(lengths[order[start]])
        while end < len(order):
            longest = max(longest, int(lengths[order[end]]))
            if longest * (end + 1 - start) > max_tokens:
                break
            end += 1
        yield collate(split, order[start:end], device)
        start = end


def parts_by_length(batch: Batch) -> list[Batch]:
    """A batch of texts of any lengths as batches of similar ones, so that less padding is computed.

    A part of n texts, the longest of L tokens, is taken to cost L·n tokens and 128 more, as measured: a recurrent layer
    over few texts takes as long per token as over many, and each part adds to all embeddings once. The parts have the
    lowest sum.

    >>> lengths = torch.tensor([90, 5, 100, 7])
    >>> mask = torch.arange(100) < lengths[:, None]
    >>> [part.index.tolist() for part in parts_by_length(Batch(mask.long(), mask, mask[:, 0].long(), np.arange(4)))]
    [[1, 3], [0, 2]]
    """
    lengths = batch.lengths.cpu().numpy()
    order = np.argsort(lengths, kind="stable")
    best, cut = [0.0], [0]  # the lowest cost of the first k texts, and where their last part begins
    for k in range(1, len(order) + 1):
        costs = [best[i] + float(lengths[order[k - 1]]) * (k - i) + _PART_TOKENS for i in range(k)]
        cut.append(int(np.argmin(costs)))
        best.append(min(costs))
    parts, end = [], len(order)
    while end:
        rows = order[cut[end] : end]
        length, chosen = int(lengths[rows[-1]]), torch.from_numpy(rows).to(batch.tokens.device)
        tokens, mask = (each[chosen, :length] for each in (batch.tokens, batch.mask))
        parts.append(Batch(tokens, mask, batch.labels[chosen], batch.index[rows]))
        end = cut[end]
    return parts[::-1]


_PART_TOKENS = 128


def copying_batches(task: str, batch_size: int, *, seed: int = 0, device: Device = "cpu") -> Iterator[PairBatch]:
    """Endless fresh batches of a copying task: the number n is id n + 3, sources and targets end with `<eos>`.

    >>> batch = next(copying_batches("copy-vocab", 2))
    >>> batch.source.shape, bool((batch.source == batch.target_out).all())
    (torch.Size([2, 41]), True)
    """
    real = torch.ones(batch_size, LENGTH + 1, dtype=torch.bool, device=device)
    begin, end = (torch.full((batch_size, 1), token, device=device) for token in (BOS, EOS))
    stream = stream_numbers(task, seed=seed)
    while drawn := tuple(islice(stream, -(-batch_size // CHUNK))):  # enough for one batch or more
        sides = map(np.concatenate, zip(*drawn, strict=True))
        x, y = (torch.from_numpy(side.astype(np.int64) + EOS).to(device) for side in sides)
        for i in range(0, len(x) - batch_size + 1, batch_size):
            source, target = x[i : i + batch_size], y[i : i + batch_size]
            yield PairBatch(
                torch.cat([source, end], dim=1),
                real,
                torch.cat([begin, target], dim=1),
                torch.cat([target, end], dim=1),
                real,
                np.arange(i, i + batch_size),
            )


def sort_key(split: EncodedSplit | EncodedPairs) -> NDArray[np.int64]:
    """The sort key of each example: the length of a text; the source's length, then the target's, of a pair.

    >>> sort_key(EncodedSplit.of([[2, 3], [2, 9, 3]], [0, 1]))
    array([2, 3])
    """
    if isinstance(split, EncodedSplit):
        return split.lengths
    return split.source.lengths * (1 + int(split.target.lengths.max(initial=0))) + split.target.lengths


def _pad(rows: list[NDArray[np.int32]], device: Device) -> tuple[Int[Tensor, "B L"], Bool[Tensor, "B L"]]:
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    tokens = np.full(mask.shape, PAD, dtype=np.int64)
    tokens[mask] = np.concatenate(rows)
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)
