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
from numpy.typing import NDArray

from heedful.data.ragged import Ragged
from heedful.errors import DamagedError
from heedful.storage.atomic_files import write_atomically
from heedful.tracing.store import regular_parquet

_SIZES = ("layers", "heads", "outputs")


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """The matrices of all heads in some examples at one step.

    example: their numbers in the split. weights: of each example, (layers, heads, T, L).
    """

    example: NDArray[np.int32]
    weights: tuple[NDArray[np.float32], ...]


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
