"""Attention of every head in a few texts: one Parquet file per recorded step.

    trace-heads/<step>.parquet     example, layers, heads, outputs: int32, weights: list<float32>

A row is one text or sentence pair; its weights are the matrices of all heads, end to end: layers × heads × T × L. The
trace itself keeps α alone, which is one row of weights per output.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from heedful.data.batching import Batch, PairBatch, evaluation_batches
from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import DamagedError
from heedful.models.classifier import AttentionClassifier
from heedful.models.training import evaluation_mode
from heedful.models.translator import PairModel
from heedful.storage.atomic_files import write_atomically
from heedful.tracing.store import regular_parquet

MOST_EXAMPLES = 6
SHORT = 8, 26  # tokens of a text whose matrices can be read
_SIZES = ("layers", "heads", "outputs")


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """The matrices of all heads in some examples at one step.

    example: their numbers in the split. weights: of each example, (layers, heads, T, L).
    """

    example: NDArray[np.int32]
    weights: tuple[NDArray[np.float32], ...]


def choose_short(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """The first texts whose matrices can be read, at most `MOST_EXAMPLES`; the shortest where there are none.

    >>> choose_short(np.array([5, 9, 30, 12])), choose_short(np.array([50, 40]))
    (array([1, 3]), array([1, 0]))
    """
    low, high = SHORT
    short = np.flatnonzero((lengths >= low) & (lengths <= high))
    return (short if len(short) else np.argsort(lengths, kind="stable"))[:MOST_EXAMPLES]


def has_heads(model: AttentionClassifier | PairModel) -> bool:
    """Whether a model has more than one map: several heads, or self-attention below the attention that is read."""
    if isinstance(model, PairModel):
        return model.config.heads > 1 or (model.config.cell == "transformer" and model.config.layers > 1)
    return model.config.encoder == "transformer"


@torch.no_grad()
def record_heads(model: AttentionClassifier | PairModel, examples: EncodedSplit | EncodedPairs) -> HeadMaps:
    """The matrices of the short examples: self-attention of a classifier, cross-attention of a translator."""
    lengths = examples.lengths if isinstance(examples, EncodedSplit) else examples.source.lengths
    chosen = choose_short(lengths)
    with evaluation_mode([model]):
        weights = tuple(_weights(model, examples.take(chosen[k : k + 1])) for k in range(len(chosen)))
    return HeadMaps(chosen.astype(np.int32), weights)


def _weights(
    model: AttentionClassifier | PairModel, one: EncodedSplit | EncodedPairs
) -> Float[NDArray[np.float32], "layers H T L"]:
    """Every layer's weights in one example, from the first to the last."""
    device = next(model.parameters()).device
    (batch,) = evaluation_batches(one, device=device)
    if isinstance(model, PairModel):
        assert isinstance(batch, PairBatch)
        weights = model.cross_attention(batch)
    else:
        assert isinstance(batch, Batch)
        weights = model(batch.tokens, batch.mask).self_attention
    stacked: NDArray[np.float32] = torch.stack(weights)[:, 0].float().cpu().numpy()
    return stacked


def write_heads(folder: Path, step: int, maps: HeadMaps) -> str:
    """Store the matrices of a step as `<folder>/<step>.parquet`; returns the file's SHA-256."""
    sizes = np.array([weights.shape[:3] for weights in maps.weights], dtype=np.int32).reshape(-1, 3)
    table = pa.table(
        {
            "example": pa.array(maps.example),
            **{name: pa.array(sizes[:, k]) for k, name in enumerate(_SIZES)},
            "weights": Ragged.of([weights.ravel() for weights in maps.weights]).to_arrow(),
        }
    )
    return write_atomically(
        folder / f"{step}.parquet", lambda path: pq.write_table(table, path, compression="zstd"), size=table.nbytes
    )


def read_heads(path: Path) -> HeadMaps:
    """The matrices in a file; `DamagedError` where it holds anything else."""
    try:
        table = pq.ParquetFile(regular_parquet(path)).read()
        flat = Ragged.from_arrow(table.column("weights"))
        sizes = np.stack([table.column(name).to_numpy() for name in _SIZES], axis=1)
        weights = tuple(row.reshape(*size, -1) for row, size in zip(flat, sizes.tolist(), strict=True))
        return HeadMaps(table.column("example").to_numpy(), weights)
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        raise DamagedError(path, str(error)) from None
