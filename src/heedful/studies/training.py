"""What training any model of a study has in common: a job, its progress, its metrics and its weights."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import save_file

from heedful.config import TrainConfig
from heedful.files import write_atomically
from heedful.model.classifier import AttentionClassifier
from heedful.model.proxy import BagOfWordsProxy
from heedful.model.train import train
from heedful.model.translator import Translator
from heedful.studies.run import ModelFolder, ModelSpec, Run

Model = AttentionClassifier | Translator | BagOfWordsProxy
Report = Callable[[dict[str, Any]], None]
PATIENCE = 0.25  # a proxy stops once its best validation loss lies this share of the budget behind


@dataclass(frozen=True)
class Job:
    """One model to train, where, on what, and who hears of it."""

    run: Run
    spec: ModelSpec
    device: torch.device
    report: Report

    @property
    def folder(self) -> ModelFolder:
        """Where the model's files lie."""
        return self.run.model(self.spec)


def train_recorded(
    job: Job,
    model: Model,
    batches: Iterator[Any],
    config: TrainConfig,
    see: Callable[[int], dict[str, float]],
) -> dict[str, Any]:
    """Train to the end; `see` measures and records at every evaluation; the last weights are kept.

    Returns the step of best accuracy, the first of equals, and the number of parameters outside the embedding.
    """
    metrics = _run(job, model, batches, config, see, lambda metrics: False)
    _save_weights(job.folder, config.steps, model)
    best = max(metrics, key=lambda line: (line["accuracy"], -line["step"]))
    outside = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("embedding"))
    return {"best_step": best["step"], "parameters_outside_embedding": outside}


def train_proxy(
    job: Job,
    model: Model,
    batches: Iterator[Any],
    config: TrainConfig,
    evaluate: Callable[[], dict[str, float]],
    keep: Callable[[], Any],
) -> tuple[int, Any]:
    """Train until validation loss has long stopped falling; returns the best step and what `keep` gave there.

    Later steps overfit, and their probe agrees much less (SPEC §2).
    """
    best: dict[str, Any] = {"loss": math.inf}

    def see(step: int) -> dict[str, float]:
        measured = evaluate()
        if measured["loss"] < best["loss"]:
            best.update(loss=measured["loss"], step=step, kept=keep())
        return measured

    def overdue(metrics: list[dict[str, Any]]) -> bool:
        return bool(metrics[-1]["step"] - best["step"] >= PATIENCE * config.steps)

    _run(job, model, batches, config, see, overdue)
    return best["step"], best["kept"]


def _run(
    job: Job,
    model: Model,
    batches: Iterator[Any],
    config: TrainConfig,
    see: Callable[[int], dict[str, float]],
    enough: Callable[[list[dict[str, Any]]], bool],
) -> list[dict[str, Any]]:
    metrics: list[dict[str, Any]] = []
    last = time.monotonic()

    def at_step(step: int, train_loss: float) -> bool:
        line = {"step": step, **see(step), "train_loss": None if math.isnan(train_loss) else train_loss}
        metrics.append(line)
        job.report({"model": job.spec.name, "steps": config.steps, **line})
        return enough(metrics)

    def every_step(step: int, loss: float) -> None:
        nonlocal last
        if time.monotonic() - last > 1:
            last = time.monotonic()
            job.report({"model": job.spec.name, "step": step, "steps": config.steps, "batch_loss": loss})

    train(model, batches, config, at_step, every_step)
    job.folder.save_metrics(metrics)
    return metrics


def _save_weights(folder: ModelFolder, step: int, model: torch.nn.Module) -> None:
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    write_atomically(folder.checkpoint_folder(step) / "model.safetensors", lambda path: save_file(weights, path))
