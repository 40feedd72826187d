"""Train models of a study and record them: `python -m heedful.studies.worker RUN DEVICE`.

A process of its own, single-threaded: one per core beats two threads, and a script needs no `__main__` guard. Models
to train come in on standard input, progress goes out on standard output, one JSON object a line.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors.torch import save_file

from heedful.config import AttentionMode
from heedful.data.batch import evaluation_batches, training_batches
from heedful.data.tokens import EncodedSplit
from heedful.errors import HeedfulError
from heedful.files import write_atomically
from heedful.model.classifier import AttentionClassifier, nll, predict
from heedful.model.proxy import BagOfWordsProxy, logistic_probe
from heedful.model.train import choose_device, train
from heedful.studies.run import ModelFolder, ModelKind, ModelSpec, Run
from heedful.trace.record import probe_snapshot, record
from heedful.trace.store import write_step

Report = Callable[[dict[str, Any]], None]
_MODES: dict[str, AttentionMode] = {"standard": "learned", "uniform": "uniform", "attention-only": "only"}


def train_model(run: Run, spec: ModelSpec, *, device: str = "auto", report: Report = lambda line: None) -> None:
    """Train, evaluate, record and store one model of a study; nothing happens where that was done before."""
    folder = run.model(spec)
    if folder.is_done():
        return
    started = time.perf_counter()
    summary = {"kind": spec.kind, "seed": spec.seed}
    work = {"proxy": _train_proxy, "logistic": _fit_logistic}.get(spec.kind, _train_classifier)
    summary |= work(run, spec, folder, choose_device(device), report)
    folder.finish(summary | {"seconds": round(time.perf_counter() - started, 1)})


def _train_classifier(
    run: Run, spec: ModelSpec, folder: ModelFolder, device: torch.device, report: Report
) -> dict[str, Any]:
    config, validation = run.config(), run.split("validation")
    torch.manual_seed(spec.seed)
    model = AttentionClassifier(config.model, len(run.vocabulary()), _classes(run), _MODES[spec.kind]).to(device)
    metrics: list[dict[str, Any]] = []

    def at_step(step: int, train_loss: float) -> None:
        seen = record(model, validation)
        write_step(folder.trace_folder, step, seen)
        line = {"step": step, "accuracy": seen.accuracy, "loss": seen.loss, "train_loss": _number(train_loss)}
        metrics.append(line)
        report({"model": spec.name, "steps": config.train.steps, **line})

    batches = training_batches(run.split("train"), config.train.batch_size, spec.seed, device=device)
    train(model, batches, config.train, at_step, _every_step(spec, config.train.steps, report))
    _save_weights(folder, config.train.steps, model)
    folder.save_metrics(metrics)
    best = max(metrics, key=lambda line: (line["accuracy"], -line["step"]))
    trained = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("embedding"))
    return {"best_step": best["step"], "parameters_outside_embedding": trained}


def _train_proxy(
    run: Run, spec: ModelSpec, folder: ModelFolder, device: torch.device, report: Report
) -> dict[str, Any]:
    """β^px of the step with the best validation loss: later steps overfit, and agree much less (SPEC §2)."""
    config, validation = run.config().proxy, run.split("validation")
    torch.manual_seed(spec.seed)
    model = BagOfWordsProxy(len(run.vocabulary()), _classes(run), config.width).to(device)
    metrics: list[dict[str, Any]] = []
    best: dict[str, Any] = {"loss": math.inf}

    def at_step(step: int, train_loss: float) -> bool:
        loss, accuracy = _evaluate_proxy(model, validation, device)
        metrics.append({"step": step, "accuracy": accuracy, "loss": loss, "train_loss": _number(train_loss)})
        report({"model": spec.name, "steps": config.train.steps, **metrics[-1]})
        if loss < best["loss"]:
            best.update(loss=loss, step=step, word_log_odds=model.word_log_odds().cpu().numpy())
        return step - best["step"] >= _PATIENCE * config.train.steps

    batches = training_batches(run.split("train"), config.train.batch_size, spec.seed, device=device)
    train(model, batches, config.train, at_step, _every_step(spec, config.train.steps, report))
    write_step(folder.trace_folder, best["step"], probe_snapshot(best["word_log_odds"], validation))
    folder.save_metrics(metrics)
    return {"best_step": best["step"]}


_PATIENCE = 0.25  # the proxy stops once the best validation loss lies this share of the budget behind


def _evaluate_proxy(model: BagOfWordsProxy, split: EncodedSplit, device: torch.device) -> tuple[float, float]:
    loss = correct = 0.0
    with torch.no_grad():
        for batch in evaluation_batches(split, max_tokens=65536, device=device):
            logits = model(batch)
            loss += nll(logits, batch.labels).sum().item()
            correct += (predict(logits) == batch.labels).sum().item()
    return loss / len(split), correct / len(split)


def _fit_logistic(
    run: Run, spec: ModelSpec, folder: ModelFolder, device: torch.device, report: Report
) -> dict[str, Any]:
    validation = run.split("validation")
    probe = logistic_probe(run.split("train"), validation, len(run.vocabulary()), _classes(run))
    write_step(folder.trace_folder, 0, probe_snapshot(probe.word_log_odds, validation))
    folder.save_metrics([{"step": 0, "accuracy": probe.accuracy}])
    report({"model": spec.name, "step": 1, "steps": 1, "accuracy": probe.accuracy})
    return {"best_step": 0, "inverse_penalty": probe.inverse_penalty}


def _classes(run: Run) -> int:
    return len(run.data_summary()["labels"])


def _every_step(spec: ModelSpec, steps: int, report: Report) -> Callable[[int, float], None]:
    """Report at most about once a second."""
    last = time.monotonic()

    def every_step(step: int, loss: float) -> None:
        nonlocal last
        if time.monotonic() - last > 1:
            last = time.monotonic()
            report({"model": spec.name, "step": step, "steps": steps, "batch_loss": loss})

    return every_step


def _save_weights(folder: ModelFolder, step: int, model: torch.nn.Module) -> None:
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    write_atomically(folder.checkpoint_folder(step) / "model.safetensors", lambda path: save_file(weights, path))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def main(arguments: list[str]) -> int:
    """Train the models named on standard input, `KIND SEED` a line; an error of ours is one JSON line, exit code 2."""
    run, device = Run(Path(arguments[0])), arguments[1]
    torch.set_num_threads(1)

    def report(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)

    for order in sys.stdin:
        kind, seed = order.split()
        assert kind in get_args(ModelKind)
        spec = ModelSpec(kind, int(seed))  # type: ignore[arg-type]
        try:
            train_model(run, spec, device=device, report=report)
        except HeedfulError as error:
            report({"model": spec.name, "error": str(error)})
            return 2
        report({"model": spec.name, "done": True})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
