"""Train the models of a study, one worker process each, with checkpoints, metrics and progress.

    checkpoints/<step>/training.safetensors     weights, moments of the optimiser, state of the generators, best weights
                       state.json               step, losses, metrics, next batch, checksums of all files so far

The last two checkpoints are kept while a model trains, none once it is trained. Training never resumes from a damaged
one.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.config import StudyConfig, TrainConfig
from heedful.data.batching import training_batches
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import ConfigError
from heedful.execution.pool import Job, OnEvent, run_jobs
from heedful.models.classifier import AttentionClassifier, BagOfWordsProxy
from heedful.models.frozen import AttentionTraining
from heedful.models.guidance import HelpedModel
from heedful.models.training import TrainingState, choose_device, train
from heedful.models.translator import PairModel
from heedful.storage.atomic_files import write_atomically
from heedful.storage.locks import within_lock
from heedful.storage.step_cache import Damage, Notify, StepRecord
from heedful.studies.run_directory import (
    STATE,
    TENSORS,
    ModelDirectory,
    ModelSpec,
    Recorded,
    RunDirectory,
    model_of,
    shown_heads,
)
from heedful.tracing.recorder import has_heads, record_heads

Model = AttentionClassifier | PairModel | BagOfWordsProxy
PATIENCE = 0.25  # a proxy stops once its best validation loss lies this share of the budget behind
SECONDS = 30.0  # between checkpoints: about as much training as a kill may cost
SETTING = "HEEDFUL_CHECKPOINT_SECONDS"
_COST = 20  # saving takes at most a twentieth of the time
_KEPT = 2


def train_all(
    run: RunDirectory,
    specs: Sequence[ModelSpec],
    *,
    jobs: int | None = None,
    device: str = "auto",
    on_progress: OnEvent,
    lock: int | None = None,
) -> None:
    """Train every model that is not done, `jobs` at a time; the first failure stops the rest and is raised.

    lock: the descriptor that holds the run's lock, which the workers hold too.
    """
    waiting = [training_job(run, spec, device) for spec in specs if not run.model(spec).is_done()]
    run_jobs(waiting, workers=jobs, on_event=on_progress, inherit=() if lock is None else (lock,))


def training_job(run: RunDirectory, spec: ModelSpec, device: str = "auto") -> Job:
    """The job that trains one model of a study."""
    return Job(spec.name, "heedful.studies.training:train_model", {"run": run.root, "spec": spec, "device": device})


def train_model(
    run: RunDirectory | Path, spec: ModelSpec, *, device: str = "auto", report: OnEvent = lambda event: None
) -> None:
    """Train, evaluate, record and store one model of a study; a model that is done is left alone.

    A training that was broken off goes on from its last checkpoint.
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    training = ModelTraining(run, spec, choose_device(device), report)
    if training.folder.is_done():
        return
    started = time.perf_counter()
    of_task = import_module(f"heedful.studies.{run.config().task}")  # which imports this module
    with within_lock(run.root):
        summary = {"kind": spec.kind, "seed": spec.seed, **of_task.train_model(training)}
        seconds = round(time.perf_counter() - started, 1)
        training.folder.done.save(summary | {"seconds": seconds, "identity": run.identity()}, training.folder.written)
        training.folder.remove_checkpoints()


@dataclass(frozen=True)
class ModelTraining:
    """The training of one model: where it writes, on which device, and who hears of its progress."""

    run: RunDirectory
    spec: ModelSpec
    device: torch.device
    report: OnEvent

    @cached_property
    def folder(self) -> ModelDirectory:
        """Where the model's files lie."""
        return self.run.model(self.spec)

    def record_heads(
        self, step: int, model: AttentionClassifier | PairModel, examples: EncodedSplit | EncodedPairs
    ) -> None:
        """Store what every head attends to, of the one model whose heads the page shows, if it has several."""
        if self.spec == shown_heads(self.run.config()) and has_heads(model):
            self.folder.record_heads(step, record_heads(model, examples))

    def tell(self, notice: str) -> None:
        """Say something that people should know."""
        self.report({"model": self.spec.name, "notice": notice})


def records_saliency(config: StudyConfig, spec: ModelSpec, split: Recorded) -> bool:
    """Whether Δ of a model is recorded: where tables or pages read it, since it takes most of the time of recording.

    Tables read that of the standard models; the page also shows that of the first seed's twins on validation texts.

    >>> config = StudyConfig("sst", seeds=(0, 1))
    >>> [records_saliency(config, ModelSpec("uniform", seed), "validation") for seed in (0, 1)]
    [True, False]
    """
    shown = model_of(config, ModelSpec(spec.kind, config.seeds[0]))
    return spec.kind == "standard" or (split == "validation" and spec == shown)


def train_recorded(
    job: ModelTraining,
    model: Model,
    examples: EncodedSplit | EncodedPairs,
    config: TrainConfig,
    see: Callable[[int], dict[str, float]],
    wrapped: HelpedModel | AttentionTraining | None = None,
) -> dict[str, Any]:
    """Train to the end; `see` measures and records at every evaluation; the last weights are kept.

    wrapped: the model with help for its attention in the first steps, or on states that are computed once.

    Returns the step of lowest validation loss, the first of equals, and the number of parameters outside the embedding.
    """
    metrics = _run(job, model, examples, config, see, lambda metrics: False, _Best(), wrapped)
    path = job.folder.checkpoint_folder(config.steps) / "model.safetensors"
    job.folder.note(path, _save_tensors(path, _on_cpu(model.state_dict())))
    best = min(metrics, key=lambda line: (line["loss"], line["step"]))
    outside = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("embedding"))
    return {"best_step": best["step"], "parameters_outside_embedding": outside}


def train_proxy(
    job: ModelTraining,
    model: Model,
    examples: EncodedSplit | EncodedPairs,
    config: TrainConfig,
    evaluate: Callable[[], dict[str, float]],
) -> int:
    """Train until validation loss has long stopped falling; returns the best step, whose weights the model then has.

    Later steps overfit, and their probe agrees much less (SPEC §2).
    """
    best = _Best()

    def see(step: int) -> dict[str, float]:
        measured = evaluate()
        if measured["loss"] < best.facts.get("loss", math.inf):
            best.facts = {"loss": measured["loss"], "step": step}
            best.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        return measured

    def overdue(metrics: list[dict[str, Any]]) -> bool:
        return bool(metrics[-1]["step"] - best.facts["step"] >= PATIENCE * config.steps)

    _run(job, model, examples, config, see, overdue, best)
    model.load_state_dict(best.weights)
    model.train(False)
    return int(best.facts["step"])


@dataclass
class _Best:
    """The best of a training so far: what is known of it, and the weights."""

    facts: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)


def _run(
    job: ModelTraining,
    model: Model,
    examples: EncodedSplit | EncodedPairs,
    config: TrainConfig,
    see: Callable[[int], dict[str, float]],
    enough: Callable[[list[dict[str, Any]]], bool],
    best: _Best,
    wrapped: HelpedModel | AttentionTraining | None = None,
) -> list[dict[str, Any]]:
    """Train, from the last checkpoint on where there is one."""

    def batches(start: int) -> Iterator[Any]:
        return training_batches(
            examples, config.batch_size, job.spec.seed, start=start, device=job.device, bucketed=config.bucketed
        )

    checkpoints = Checkpoints(
        job.folder,
        job.run.identity() | {"model": job.spec.name, "device": job.device.type},
        lambda step: [int(i) for i in next(batches(step)).index],
    )
    saved = checkpoints.latest(job.tell)
    metrics: list[dict[str, Any]] = []
    job.folder.remove_unlisted_traces()
    if saved:
        metrics += saved.metrics
        job.folder.save_metrics(metrics)
        model.load_state_dict(saved.weights)
        best.facts, best.weights = saved.best, saved.best_weights
        job.report({"model": job.spec.name, "steps": config.steps, "step": saved.standing.step, "resumed": True})
    last = time.monotonic()

    def at_step(step: int, train_loss: float) -> bool:
        if wrapped:
            wrapped.at(step)
        line = {"step": step, **see(step), "train_loss": None if math.isnan(train_loss) else train_loss}
        metrics.append(line)
        job.folder.save_metrics(metrics)
        job.report({"model": job.spec.name, "steps": config.steps, **line})  # type: ignore[typeddict-item]
        return enough(metrics)

    def every_step(step: int, loss: float) -> None:
        nonlocal last
        if time.monotonic() - last > 1:
            last = time.monotonic()
            job.report({"model": job.spec.name, "step": step, "steps": config.steps, "batch_loss": loss})

    def before_step(step: int, standing: Callable[[], TrainingState]) -> None:
        if wrapped:
            wrapped.at(step)
        if checkpoints.is_due():
            checkpoints.save(Checkpoint(standing(), metrics, dict(model.state_dict()), best.facts, best.weights))

    since = saved.standing if saved else None
    first = since.step if since else 0
    train(wrapped or model, batches(first), config, at_step, every_step, since=since, before_step=before_step)
    return metrics


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

    identity: which study, data, model and kind of device; checkpoints of another are removed. next_batch: the examples
    of a step's batch; a checkpoint contains those of the next step, to prove that the order of the data is the same.
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
        groups = {
            "weights": saved.weights,
            "optimiser": standing.optimiser,
            "random": standing.randomness,
            "best": saved.best_weights,
        }
        tensors = {
            f"{group}/{name}": tensor for group, inner in groups.items() for name, tensor in _on_cpu(inner).items()
        }
        checksum = _save_tensors(self.root / str(standing.step) / TENSORS, tensors)
        state = {
            "identity": self.identity,
            "step": standing.step,
            "losses": list(standing.losses),
            "next_batch": self.next_batch(standing.step),
            "metrics": saved.metrics,
            "best": saved.best,
        }
        traces = {name: sum for name, sum in self.folder.written.items() if name.startswith("trace")}
        self._record(standing.step).save(state, {**traces, self._tensors(standing.step): checksum})
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
                groups = ("weights", "optimiser", "random", "best")
                weights, optimiser, random, best = (_group(group, tensors) for group in groups)
                standing = TrainingState(step, tuple(state["losses"]), optimiser, random)
                return Checkpoint(standing, state["metrics"], weights, state["best"], best)
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


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _group(group: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{group}/"): t.clone() for name, t in tensors.items() if name.startswith(f"{group}/")}


def _save_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    size = sum(tensor.nbytes for tensor in tensors.values())
    return write_atomically(path, lambda place: save_file(tensors, place), size=size)
