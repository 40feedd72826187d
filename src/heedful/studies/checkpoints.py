"""Training that was broken off goes on: weights, optimiser, randomness and place in the data, saved now and then.

    checkpoints/<step>/training.safetensors     weights, moments of the optimiser, state of the generators, best weights
                       state.json               step, losses, metrics, next batch, checksums of all files so far

The two last ones are kept while a model trains, none once it is done. Only what is as it was written is taken up.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.errors import ConfigError, DamagedError
from heedful.models.training import Standing
from heedful.storage.atomic_files import write_atomically
from heedful.storage.checksums import (
    damaged_error,
    quarantine,
    read_checksummed_json,
    verify_checksum,
    write_checksummed_json,
)
from heedful.studies.run_directory import STATE, TENSORS, ModelDirectory

SECONDS = 30.0  # of training that a kill may cost, about
SETTING = "HEEDFUL_CHECKPOINT_SECONDS"
_COST = 20  # saving may take a twentieth of the time
_KEPT = 2


@dataclass(frozen=True)
class Saved:
    """A training as it stood: how far, what was measured, the weights, and the best of them where they are kept."""

    standing: Standing
    metrics: list[dict[str, Any]]
    weights: dict[str, Tensor]
    best: dict[str, Any] = field(default_factory=dict)
    best_weights: dict[str, Tensor] = field(default_factory=dict)


class Checkpoints:
    """The checkpoints of one model.

    identity: which study, which data, which kind of machine; a checkpoint of another is of no use here. next_batch: the
    examples of a step's batch, which a checkpoint remembers, so that the order of the data is known to be the same.
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
        """Whether so much was trained since the last one that it would be a pity to lose it."""
        return time.monotonic() - self._last >= max(self._seconds, _COST * self._cost if self._seconds else 0)

    def save(self, saved: Saved) -> None:
        """Write a checkpoint, and drop those that are older than the last two."""
        began = time.monotonic()
        standing = saved.standing
        tensors = {
            **_named("weights", saved.weights),
            **_named("optimiser", standing.optimiser),
            **_named("random", standing.randomness),
            **_named("best", saved.best_weights),
        }
        place = self.root / str(standing.step)
        size = sum(tensor.nbytes for tensor in tensors.values())
        checksum = write_atomically(place / TENSORS, lambda path: save_file(tensors, path), size=size)
        state = {
            "identity": self.identity,
            "step": standing.step,
            "losses": list(standing.losses),
            "next_batch": self.next_batch(standing.step),
            "metrics": saved.metrics,
            "best": saved.best,
            "files": self.folder.traces_written(),
            TENSORS: checksum,
        }
        write_checksummed_json(place / STATE, state)
        for step in self.folder.state_steps()[:-_KEPT]:
            self.folder.drop_state(step)
        self._last = time.monotonic()
        self._cost = self._last - began

    def latest(self, tell: Callable[[str], None] = lambda notice: None) -> Saved | None:
        """The last checkpoint that is as it was written, and all the files before it; what is damaged is set aside."""
        for step in reversed(self.folder.state_steps()):
            place = self.root / str(step)
            if not (place / STATE).exists():  # killed while it was written
                self.folder.drop_state(step)
                continue
            try:
                state = read_checksummed_json(place / STATE)
                verify_checksum(place / TENSORS, state[TENSORS])
                for name, checksum in state["files"].items():
                    verify_checksum(self.folder.root / name, checksum)
                tensors = _load(place / TENSORS)
            except DamagedError as error:
                aside = quarantine(Path(str(error.path)))
                kept = f"set aside as {aside.name}" if aside else "gone"
                tell(f"{error.path} was damaged ({error.why}): {kept}, and computed again")
                self.folder.drop_state(step)  # what is left of it would count as one of those that are kept
                continue
            if state["identity"] != self.identity or state["next_batch"] != self.next_batch(state["step"]):
                self.folder.drop_state(step)
                continue
            self.folder.written = dict(state["files"])
            return Saved(
                Standing(state["step"], tuple(state["losses"]), _of("optimiser", tensors), _of("random", tensors)),
                state["metrics"],
                _of("weights", tensors),
                state["best"],
                _of("best", tensors),
            )
        return None


def _seconds() -> float:
    told = os.environ.get(SETTING, str(SECONDS))
    try:
        seconds = float(told)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ConfigError(f"{SETTING} is {told!r}; it must be a number of seconds, 0 or more")
    return seconds


def _load(path: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise damaged_error(path, str(error)) from None
    return tensors


def _named(group: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{group}/{name}": tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _of(group: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{group}/"): t.clone() for name, t in tensors.items() if name.startswith(f"{group}/")}
