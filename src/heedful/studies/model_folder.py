"""One model of a run: its metrics, its trace, its weights, and the checksums that vouch for them."""

import json
from pathlib import Path
from typing import Any, Literal

from heedful.errors import DamagedError, RunError
from heedful.files import read_json, write_text
from heedful.seals import check, read_sealed, write_sealed
from heedful.trace.snapshot import Snapshot
from heedful.trace.store import Trace, write_step

STATE, TENSORS = "state.json", "training.safetensors"  # of a checkpoint to go on from
Recorded = Literal["validation", "train"]  # the split whose texts are recorded through training


class ModelFolder:
    """One model of a run: its metrics, its trace, its weights.

    sealed: whether everything that was finished here has a checksum. `written` gathers those of the files as they are
    written; they are sealed at the end.
    """

    def __init__(self, root: Path, *, sealed: bool = False) -> None:
        self.root, self.sealed = root, sealed
        self.written: dict[str, str] = {}

    @property
    def done_path(self) -> Path:
        """What the training came to, written last of all."""
        return self.root / "done.json"

    def trace_folder(self, split: Recorded = "validation") -> Path:
        """One Parquet file per recorded step; the sample of training texts has its own folder."""
        return self.root / ("trace" if split == "validation" else "trace-train")

    def trace(self, split: Recorded = "validation") -> Trace:
        """The recorded quantities."""
        folder = self.trace_folder(split)
        ours = {Path(name): checksum for name, checksum in self.checksums().items()}
        return Trace(folder, {name.name: sum for name, sum in ours.items() if name.parent.name == folder.name})

    def checkpoint_folder(self, step: int) -> Path:
        """Weights at a step."""
        return self.root / "checkpoints" / str(step)

    def state_steps(self) -> list[int]:
        """Steps with a checkpoint to go on from, whole or not."""
        found = {path.parent.name for name in (STATE, TENSORS) for path in self.root.glob(f"checkpoints/*/{name}")}
        return sorted(int(name) for name in found if name.isdecimal())

    def drop_state(self, step: int) -> None:
        """Remove the checkpoint of a step; the weights that training ended with stay."""
        place = self.checkpoint_folder(step)
        for name in (STATE, TENSORS):
            (place / name).unlink(missing_ok=True)
        if not any(place.iterdir()):
            place.rmdir()

    def drop_states(self) -> None:
        """Remove all checkpoints of a model that is done: nothing goes on from them."""
        for step in self.state_steps():
            self.drop_state(step)

    def record(self, step: int, snapshot: Snapshot, split: Recorded = "validation") -> None:
        """Store one step of the trace."""
        folder = self.trace_folder(split)
        self.note(folder / f"{step}.parquet", write_step(folder, step, snapshot))

    def note(self, path: Path, checksum: str) -> None:
        """Remember the checksum of a file of this model that was just written."""
        self.written[path.relative_to(self.root).as_posix()] = checksum

    def traces_written(self) -> dict[str, str]:
        """The checksums of the trace so far."""
        return {name: checksum for name, checksum in self.written.items() if name.startswith("trace")}

    def forget_the_rest(self) -> None:
        """Remove what a training that was broken off recorded and will record again."""
        for path in self.root.glob("trace*/*.parquet"):
            if path.relative_to(self.root).as_posix() not in self.written:
                path.unlink()

    def is_done(self) -> bool:
        """Whether training ended and everything was written."""
        return self.done_path.exists()

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the model as whole, with what its training came to and the checksums of its files."""
        write_sealed(self.done_path, summary | {"files": dict(sorted(self.written.items()))})

    def summary(self) -> dict[str, Any]:
        """What the training came to."""
        return read_sealed(self.done_path) if self.sealed else read_json(self.done_path)

    def checksums(self) -> dict[str, str]:
        """The checksums of a finished model's files; none of one that is not finished, or that has none."""
        files: dict[str, str] = self.summary().get("files", {}) if self.is_done() else {}
        return files

    def checked(self, path: Path) -> Path:
        """The path of a file, once its checksum is known to be right."""
        expected = self.checksums().get(path.relative_to(self.root).as_posix())
        if expected:
            check(path, expected)
        return path

    def save_metrics(self, metrics: list[dict[str, Any]]) -> None:
        """One line per evaluation."""
        path = self.root / "metrics.jsonl"
        self.note(path, write_text(path, "".join(json.dumps(line) + "\n" for line in metrics)))

    def metrics(self) -> list[dict[str, Any]]:
        """One dictionary per evaluation."""
        path = self.checked(self.root / "metrics.jsonl")
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:
            raise RunError(f"{path}: no such file; the model was not trained") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DamagedError(path, str(error), f"delete {self.root} and run again") from None
