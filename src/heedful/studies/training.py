"""Train the models of a study, one worker process each, with checkpoints, metrics and progress."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from heedful.config import TrainConfig
from heedful.execution.pool import Job, run_jobs
from heedful.execution.worker import OnEvent
from heedful.models.classifier import AttentionClassifier, BagOfWordsProxy
from heedful.models.training import TrainingState, choose_device, train
from heedful.models.translator import Translator
from heedful.storage.atomic_files import write_atomically
from heedful.studies.checkpoints import Checkpoint, Checkpoints
from heedful.studies.run_directory import ModelDirectory, ModelSpec, RunDirectory

Model = AttentionClassifier | Translator | BagOfWordsProxy
Batches = Callable[[int], Iterator[Any]]  # from a step on
PATIENCE = 0.25  # a proxy stops once its best validation loss lies this share of the budget behind


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
    of_task = import_module(
        f"heedful.studies.{run.config().task}"
    )  # `classification` and `translation` import this one
    summary = {"kind": spec.kind, "seed": spec.seed, **of_task.train_model(training)}
    seconds = round(time.perf_counter() - started, 1)
    training.folder.finish(summary | {"seconds": seconds, "identity": run.identity()})
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

    def tell(self, notice: str) -> None:
        """Say something that people should know."""
        self.report({"model": self.spec.name, "notice": notice})


def train_recorded(
    job: ModelTraining,
    model: Model,
    batches: Batches,
    config: TrainConfig,
    see: Callable[[int], dict[str, float]],
) -> dict[str, Any]:
    """Train to the end; `see` measures and records at every evaluation; the last weights are kept.

    Returns the step of best accuracy, the first of equals, and the number of parameters outside the embedding.
    """
    metrics = _run(job, model, batches, config, see, lambda metrics: False, _Best())
    _save_weights(job.folder, config.steps, model)
    best = max(metrics, key=lambda line: (line["accuracy"], -line["step"]))
    outside = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("embedding"))
    return {"best_step": best["step"], "parameters_outside_embedding": outside}


def train_proxy(
    job: ModelTraining,
    model: Model,
    batches: Batches,
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

    _run(job, model, batches, config, see, overdue, best)
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
    batches: Batches,
    config: TrainConfig,
    see: Callable[[int], dict[str, float]],
    enough: Callable[[list[dict[str, Any]]], bool],
    best: _Best,
) -> list[dict[str, Any]]:
    """Train, from the last checkpoint on where there is one."""
    checkpoints = Checkpoints(
        job.folder,
        job.run.identity() | {"device": job.device.type},
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
        if checkpoints.is_due():
            checkpoints.save(Checkpoint(standing(), metrics, dict(model.state_dict()), best.facts, best.weights))

    since = saved.standing if saved else None
    first = since.step if since else 0
    train(model, batches(first), config, at_step, every_step, since=since, before_step=before_step)
    return metrics


def _save_weights(folder: ModelDirectory, step: int, model: torch.nn.Module) -> None:
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    path = folder.checkpoint_folder(step) / "model.safetensors"
    size = sum(tensor.nbytes for tensor in weights.values())
    folder.note(path, write_atomically(path, lambda place: save_file(weights, place), size=size))
