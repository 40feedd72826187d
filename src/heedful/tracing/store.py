"""A trace on disk: one Parquet file of α, β and Δ per recorded step.

    trace/<step>.parquet     example: int32, output: int32, alpha, beta_logit, delta: list<float32>,
                             beta_wrong_logit: list<float32> (classification with more than two labels),
                             label: int32, prediction: int32, log_odds: float32

A row is one output word of one text; in classification `output` is 0. pandas, Polars and DuckDB can open the files.
β is the logistic function of `beta_logit`; `beta_wrong_logit` is the same probe asked for a wrong label. With two
labels that is −`beta_logit`, which is not stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import expit

from heedful.data.ragged import Ragged
from heedful.errors import DamagedError, RunError
from heedful.storage.atomic_files import verify_checksum, write_atomically
from heedful.storage.parquet_pages import number_bytes
from heedful.storage.run_files import listed

QUANTITIES = ("alpha", "beta_logit", "delta")
WRONG = "beta_wrong_logit"  # the wrong-label control, where it cannot be computed from `beta_logit`


@dataclass(frozen=True)
class Snapshot:
    """The quantities of one step: a row per output word, a value per input position; and the predictions.

    `quantities` holds some or all of `alpha`, `beta_logit` (β on the log-odds scale, where float32 does not tie at
    the top), `delta` and `beta_wrong_logit`. A probe has no predictions and log-odds. Rows are ordered by text, then by
    output position; in classification that is always 0.
    """

    quantities: Mapping[str, Ragged]
    example: NDArray[np.int32]
    output: NDArray[np.int32]
    label: NDArray[np.int32]  # the correct label or word
    prediction: NDArray[np.int32] | None = None
    log_odds: NDArray[np.float32] | None = None  # of the correct label or word

    @property
    def accuracy(self) -> float:
        """Share of rows whose label or word is predicted."""
        return float("nan") if self.prediction is None else float(np.mean(self.prediction == self.label))

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood."""
        return float("nan") if self.log_odds is None else float(np.mean(np.logaddexp(0.0, -self.log_odds)))


def write_step(folder: Path, step: int, snapshot: Snapshot) -> str:
    """Store one step's snapshot as `<folder>/<step>.parquet`; returns the file's SHA-256."""
    recorded = [name for name in (*QUANTITIES, WRONG) if name in snapshot.quantities]
    columns = {
        "example": pa.array(snapshot.example),
        "output": pa.array(snapshot.output),
        **{name: _float32(snapshot.quantities[name]).to_arrow() for name in recorded},
        "label": pa.array(snapshot.label),
    }
    for name in ("prediction", "log_odds"):
        if (values := getattr(snapshot, name)) is not None:
            columns[name] = pa.array(values)
    table = pa.table(columns)
    return write_atomically(
        folder / f"{step}.parquet", lambda path: pq.write_table(table, path, compression="zstd"), size=table.nbytes
    )


class Trace:
    """Any recorded quantity at any recorded step of one model's training.

    checksums: of the files by name. A file with another checksum is refused, and one that is not listed is ignored;
    without checksums every file of the folder counts.
    """

    def __init__(self, folder: Path, checksums: Mapping[str, str] | None = None) -> None:
        self.folder, self._checksums = folder, dict(checksums or {})
        names = map(Path, checksums) if checksums else listed(folder, "*.parquet")
        self.steps: tuple[int, ...] = tuple(sorted(int(p.stem) for p in names if p.stem.isdecimal()))
        if not self.steps:
            raise RunError(f"{folder}: no recorded steps yet; wait for the run to record one")

    def quantity(self, name: str, step: int) -> Ragged:
        """`alpha`, `beta_logit`, `beta`, `delta` or `beta_wrong_logit` at a step, one row per output word."""
        stored = "beta_logit" if name == "beta" else name
        if stored not in (*QUANTITIES, WRONG):
            raise RunError(f"{name!r} is not recorded; a trace has alpha, beta, beta_logit, delta and {WRONG}")
        rows = Ragged.from_arrow(self._column(stored, step))
        return Ragged(expit(rows.values), rows.offsets) if name == "beta" else rows

    def example(self, step: int | None = None) -> NDArray[np.int32]:
        """The text that each row belongs to."""
        return self._numbers("example", self.steps[0] if step is None else step)

    def output(self, step: int | None = None) -> NDArray[np.int32]:
        """The output position of each row; 0 in classification."""
        return self._numbers("output", self.steps[0] if step is None else step)

    def label(self, step: int | None = None) -> NDArray[np.int32]:
        """The correct label or word of each row."""
        return self._numbers("label", self.steps[0] if step is None else step)

    def prediction(self, step: int) -> NDArray[np.int32]:
        """The label or word predicted, for each row."""
        return self._numbers("prediction", step)

    def correct(self, step: int) -> NDArray[np.bool_]:
        """Whether the model's prediction was right, for each row."""
        right: NDArray[np.bool_] = self._numbers("prediction", step) == self._numbers("label", step)
        return right

    def log_odds(self, step: int) -> NDArray[np.float32]:
        """Log-odds that the model gave the correct label or word, for each row."""
        odds: NDArray[np.float32] = self._column("log_odds", step).to_numpy()
        return odds

    def _numbers(self, name: str, step: int) -> NDArray[np.int32]:
        numbers: NDArray[np.int32] = self._column(name, step).to_numpy()
        return numbers

    def _column(self, name: str, step: int) -> pa.Array:
        if step not in self.steps:
            raise RunError(f"{self.folder}: step {step} was not recorded; recorded are {list(self.steps)}")
        path = self.folder / f"{step}.parquet"
        if path.name in self._checksums:
            verify_checksum(path, self._checksums[path.name])
            del self._checksums[path.name]
        try:
            file = pq.ParquetFile(regular_parquet(path))
            if name not in file.schema_arrow.names:
                raise RunError(f"{path}: this model has no {name}")
            column = file.read(columns=[name]).column(name)
        except (pa.ArrowException, OSError) as error:
            raise DamagedError(path, str(error)) from None
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def regular_parquet(path: Path) -> Path:
    """The path of a Parquet file, if it is a regular file of numbers that fit into memory; else an `OSError`."""
    number_bytes(path)
    return path


def _float32(rows: Ragged) -> Ragged:
    return Ragged(rows.values.astype(np.float32), rows.offsets)
