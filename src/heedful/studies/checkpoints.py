"""Checkpoints: weights, optimiser, random state and position in the data, so that training can resume.

    checkpoints/<step>/training.safetensors     weights, moments of the optimiser, state of the generators, best weights
                       state.json               step, losses, metrics, next batch, checksums of all files so far

The last two are kept while a model trains, none once it is trained. Training never resumes from a damaged one.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.errors import ConfigError
from heedful.models.training import TrainingState
from heedful.storage.atomic_files import write_atomically
from heedful.storage.step_cache import Damage, Notify, StepRecord
from heedful.studies.run_directory import STATE, TENSORS, ModelDirectory

SECONDS = 30.0  # between checkpoints: about as much training as a kill may cost
SETTING = "HEEDFUL_CHECKPOINT_SECONDS"
_COST = 20  # saving takes at most a twentieth of the time
_KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: the state of the training loop, the metrics, the weights, and the best weights where kept."""

    standing: TrainingState
    metrics: list[dict[str, Any]]
    weights: dict[str, Tensor]
    best: dict[str, Any] = field(default_factory=dict)
    best_weights: dict[str, Tensor] = field(default_factory=dict)


class Checkpoints:
    """The checkpoints of one model.

    identity: which study, data and kind of device; checkpoints of another are removed. next_batch: the examples of a
    step's batch; a checkpoint contains those of the next step, to prove that the order of the data is the same.
    """

    def __init__(
        self, folder: ModelDirectory, identity: Mapping[str, str], next_batch: Callable[[int], list[int]]
    ) -> None:
        self.folder, self.root = folder, folder.root / "checkpoints"
        self.identity, self.next_batch = dict(identity) | {"torch": torch.__version__}, next_batch
        self._seconds = _seconds()
        self._last = time.monotonic()
        self._cost = 0.0

    def is_due(self) -> bool:
        """Whether the last checkpoint is old enough for a new one."""
        return time.monotonic() - self._last >= max(self._seconds, _COST * self._cost if self._seconds else 0)

    def save(self, saved: Checkpoint) -> None:
        """Write a checkpoint, and remove all but the last two."""
        began = time.monotonic()
        standing = saved.standing
        tensors = {
            **_prefixed("weights", saved.weights),
            **_prefixed("optimiser", standing.optimiser),
            **_prefixed("random", standing.randomness),
            **_prefixed("best", saved.best_weights),
        }
        path = self.root / str(standing.step) / TENSORS
        size = sum(tensor.nbytes for tensor in tensors.values())
        checksum = write_atomically(path, lambda place: save_file(tensors, place), size=size)
        state = {
            "identity": self.identity,
            "step": standing.step,
            "losses": list(standing.losses),
            "next_batch": self.next_batch(standing.step),
            "metrics": saved.metrics,
            "best": saved.best,
        }
        files = {**self.folder.trace_checksums(), self._tensors(standing.step): checksum}
        self._record(standing.step).save(state, files)
        for step in self.folder.checkpoint_steps()[:-_KEPT]:
            self.folder.remove_checkpoint(step)
        self._last = time.monotonic()
        self._cost = self._last - began

    def latest(self, notify: Notify = lambda notice: None) -> Checkpoint | None:
        """The last checkpoint that is undamaged, as are all files that it lists; None where there is none.

        Damaged files are set aside, and the checkpoints that list them removed.
        """
        for step in reversed(self.folder.checkpoint_steps()):
            record, name = self._record(step), self._tensors(step)
            tensors = _load(record, name, notify) if record.repair(notify) else None
            if tensors is not None and self._fits(state := record.load()):
                self.folder.written = {file: sum for file, sum in record.files().items() if file != name}
                return Checkpoint(
                    TrainingState(
                        step,
                        tuple(state["losses"]),
                        _group("optimiser", tensors),
                        _group("random", tensors),
                    ),
                    state["metrics"],
                    _group("weights", tensors),
                    state["best"],
                    _group("best", tensors),
                )
            self.folder.remove_checkpoint(step)  # else it would count as one of those that are kept
        return None

    def _fits(self, state: Mapping[str, Any]) -> bool:
        return bool(state["identity"] == self.identity and state["next_batch"] == self.next_batch(state["step"]))

    def _record(self, step: int) -> StepRecord:
        return StepRecord(self.root / str(step) / STATE, self.folder.root)

    def _tensors(self, step: int) -> str:
        return f"{self.root.name}/{step}/{TENSORS}"


def _seconds() -> float:
    setting = os.environ.get(SETTING, str(SECONDS))
    try:
        seconds = float(setting)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ConfigError(f"{SETTING} is {setting!r}; it must be a number of seconds, 0 or more")
    return seconds


def _load(record: StepRecord, name: str, notify: Notify) -> dict[str, Tensor] | None:
    path = record.verified(name)
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        record.set_aside(Damage(path, str(error)), notify)
        return None
    return tensors


def _prefixed(group: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{group}/{name}": tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _group(group: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{group}/"): t.clone() for name, t in tensors.items() if name.startswith(f"{group}/")}
