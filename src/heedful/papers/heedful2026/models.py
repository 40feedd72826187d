"""Copying runs: one model trained on one task, followed until it is learned.

Two times are read off a run, both censored at the budget: until 99 % of held-out words are right, and until attention
agrees with what it is at the end of the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config import TrainConfig, TranslatorConfig
from heedful.data.batching import PairBatch, copying_batches
from heedful.data.synthetic.tasks import generated_pairs, types_of
from heedful.data.vocabulary import EOS
from heedful.execution.pool import OnEvent
from heedful.metrics.agreement import agreement
from heedful.models.training import build_optimiser
from heedful.models.translator import Translator
from heedful.papers.experiment import Unit
from heedful.papers.snell2021.config import CopyingBudget
from heedful.papers.snell2021.models import HELD_OUT, LEARNED
from heedful.preflights.preflight import run_preflight
from heedful.storage.serialization import content, from_mapping

AGREED = 0.9  # share of output words whose attention agrees with that at the end, from which on it counts as learned


def copying_unit(task: str, seed: int, sizes: CopyingBudget) -> Unit:
    """One seed's training on one task."""
    arguments = {
        "task": task,
        "seed": seed,
        "steps": sizes.steps,
        "batch_size": sizes.batch_size,
        "every": sizes.evaluate_every,
        "held_out": sizes.held_out,
        "translator": content(sizes.translator),
    }
    return Unit(f"{task.replace(':', '-')}-{seed}", f"{__name__}:follow_copying", arguments)


def follow_copying(
    *,
    task: str,
    seed: int,
    steps: int,
    batch_size: int,
    every: int,
    held_out: int,
    translator: Mapping[str, Any],
    device: torch.device,
    report: OnEvent,
) -> dict[str, Any]:
    """Train one copying model until 99 % of held-out words are right, or `steps` are over.

    Returns `steps`, and at each of them `accuracy` and `agreement`, of attention with that at the end of the run; and
    the steps at which accuracy (`learned`) and attention (`attended`) were there, None where not by the last.
    """
    torch.manual_seed(seed)
    model = Translator(from_mapping(TranslatorConfig, translator), EOS + 1 + types_of(task)).to(device)
    optimiser = build_optimiser(model, TrainConfig(steps=steps, evaluate_at=(steps,)))
    batches = copying_batches(task, batch_size, seed=seed, device=device)
    test = held_out_batch(task, held_out, device)
    curve: dict[str, Any] = {"steps": [], "accuracy": [], "learned": None}
    maps: list[NDArray[np.floating[Any]]] = []
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            accuracy, alpha = evaluate(model, test)
            curve["steps"].append(step)
            curve["accuracy"].append(accuracy)
            maps.append(alpha)
            report({"step": step, "steps": steps, "accuracy": accuracy})
            if accuracy >= LEARNED:
                curve["learned"] = step
                break
        if step < steps:
            train_step(model, optimiser, batches)
    return curve | attention_times(curve["steps"], maps, curve["learned"])


def train_step(model: Translator, optimiser: torch.optim.Optimizer, batches: Iterator[PairBatch]) -> None:
    """One step of training."""
    optimiser.zero_grad(set_to_none=True)
    model.loss(next(batches)).backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def held_out_batch(task: str, size: int, device: torch.device) -> PairBatch:
    """The sequences on which a run is followed; always without noise, since noise cannot be learned."""
    clean = "copy-noise:0" if task.startswith("copy-noise") else task
    return next(copying_batches(clean, size, seed=HELD_OUT, device=device))


@torch.no_grad()
def evaluate(model: Translator, batch: PairBatch) -> tuple[float, NDArray[np.floating[Any]]]:
    """Token accuracy under teacher forcing, and attention, averaged over heads: one row per output word."""
    output = model(batch)
    guess = model.read(output.context, output.states).argmax(-1)
    accuracy = float((guess == batch.target_out).float().mean())
    alpha = output.alpha.mean(1).flatten(0, 1).cpu().numpy()
    return accuracy, alpha


def attention_times(
    steps: Sequence[int], maps: Sequence[NDArray[np.floating[Any]]], learned: int | None
) -> dict[str, list[float] | int | None]:
    """`agreement` of each map with the last, and `attended`, the step from which on it is at least 90 %.

    Agreement is Eq. 10 of snell2021 for the first position alone: of 41 positions the top 5 % are two, and then any
    position agrees with attention to a single one. A run that did not learn has no attention to get to: it is censored,
    as its accuracy is.

    >>> flat, sharp = np.full((1, 40), 0.025), np.eye(40)[[7]]
    >>> attention_times([0, 5, 10], [flat, sharp, sharp], 10)["attended"]
    5
    """
    curve = [float(agreement(alpha, maps[-1], percent=1).mean()) for alpha in maps]
    below = [k for k, share in enumerate(curve) if share < AGREED]
    first = below[-1] + 1 if below else 0
    return {"agreement": curve, "attended": None if learned is None else steps[first]}


def statistic_unit(task: str, pairs: int) -> Unit:
    """Preflight of a task's data."""
    name = f"preflight-{task.replace(':', '-')}"
    return Unit(name, f"{__name__}:count_pairs", {"task": task, "pairs": pairs})


def count_pairs(*, task: str, pairs: int, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """The statistics of preflight, from the data alone."""
    found = run_preflight(generated_pairs(task, size=pairs))
    report({"step": 1, "steps": 1})
    return {"verdict": found.verdict, **{k: v for k, v in found.statistics.to_dict().items() if isinstance(v, dict)}}
