"""Copying (snell2021 §3.3, §5.2, §6.2): how long it takes to learn, and on what that depends.

The model and its training are those of the released code: one-layer LSTMs of width 256, bilinear attention, a tanh
layer, embeddings N(0, 1), fresh sequences at every step, Adam 1e-3. A run ends when 99 % of held-out words are right,
or at the budget, fixed beforehand; a run that does not get there is *censored*, not failed for ever.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import stats

from heedful.config import TrainConfig, TranslatorConfig
from heedful.data.batch import PairBatch, copying_batches
from heedful.data.synthetic import LENGTH, TYPES
from heedful.data.tokens import EOS
from heedful.measure.uncertainty import Estimate
from heedful.model.train import build_optimiser
from heedful.model.translator import Translator
from heedful.papers.units import Unit
from heedful.studies.answers import Report
from heedful.typed import content, from_mapping

# The words of each task, and no others: with 20 types that never occur, copying 40 of 60 words takes about 110 steps
# in place of 50.
WORDS = {"copy-permutation": LENGTH, "copy-mixture": 2 * LENGTH, "copy-vocab": TYPES, "permute": TYPES}
HELD_OUT = 1_000_003  # seed of the sequences that accuracy is measured on
LEARNED = 0.99
COPYING = TranslatorConfig(layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0)


@dataclass(frozen=True)
class CopyingBudget:
    """Sizes of the copying experiments."""

    seeds: int
    steps: int
    mixture_seeds: int
    permute_seeds: int
    head_candidates: int
    head_runs: int
    head_steps: int
    heads: int = 8
    batch_size: int = 64
    evaluate_every: int = 10
    held_out: int = 64
    translator: TranslatorConfig = COPYING


_TINY = TranslatorConfig(
    embedding=16, hidden=16, layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0
)
BUDGETS = {
    "smoke": CopyingBudget(2, 4, 2, 2, 3, 2, 4, heads=2, batch_size=4, evaluate_every=2, held_out=4, translator=_TINY),
    "quick": CopyingBudget(20, 200, 8, 4, 10, 4, 120),
    "paper": CopyingBudget(20, 1500, 20, 20, 40, 20, 400, batch_size=128),
}


def curve_unit(task: str, seed: int, sizes: CopyingBudget) -> Unit:
    """One seed's training on one task."""
    return Unit(f"{task}-{seed}", f"{__name__}:learning_curve", _arguments(task, sizes, sizes.steps) | {"seed": seed})


def head_unit(name: str, heads: Sequence[int], order: int, sizes: CopyingBudget) -> Unit:
    """Training on permutations with heads of these initialisations; the rest of the model is the same for all.

    order: seed of the order of the data.
    """
    arguments = _arguments("copy-permutation", sizes, sizes.head_steps)
    return Unit(name, f"{__name__}:learning_curve", arguments | {"seed": 0, "heads": list(heads), "order": order})


def _arguments(task: str, sizes: CopyingBudget, steps: int) -> dict[str, Any]:
    return {
        "task": task,
        "steps": steps,
        "batch_size": sizes.batch_size,
        "every": sizes.evaluate_every,
        "held_out": sizes.held_out,
        "translator": content(sizes.translator),
    }


def learning_curve(
    *,
    task: str,
    seed: int,
    steps: int,
    batch_size: int,
    every: int,
    held_out: int,
    translator: Mapping[str, Any],
    heads: Sequence[int] | None = None,
    order: int | None = None,
    device: torch.device,
    report: Report,
) -> dict[str, Any]:
    """Token accuracy on held-out sequences every `every` steps until it is learned or `steps` are over.

    Returns `steps`, `accuracy` and `learned`, the step at which 99 % was reached (None: not by the last).
    """
    vocabulary = EOS + 1 + WORDS[task]
    model = build_model(from_mapping(TranslatorConfig, translator), vocabulary, seed, heads).to(device)
    batches = copying_batches(task, batch_size, seed=seed if order is None else order, device=device)
    test = next(copying_batches(task, held_out, seed=HELD_OUT, device=device))
    optimiser = build_optimiser(model, TrainConfig(steps=steps, evaluate_at=(steps,)))
    seen: dict[str, Any] = {"steps": [], "accuracy": [], "learned": None}
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            seen["steps"].append(step)
            seen["accuracy"].append(_accuracy(model, test))
            report({"step": step, "steps": steps, "accuracy": seen["accuracy"][-1]})
            if seen["accuracy"][-1] >= LEARNED:
                return seen | {"learned": step}
        if step < steps:
            optimiser.zero_grad(set_to_none=True)
            model.loss(next(batches)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return seen


def build_model(config: TranslatorConfig, vocabulary: int, seed: int, heads: Sequence[int] | None) -> Translator:
    """A copying model; with `heads`, one head for each of these seeds, everything else as `seed` alone makes it."""
    torch.manual_seed(seed)
    base = Translator(config, vocabulary)
    if heads is None:
        return base
    model = Translator(replace(config, heads=len(heads)), vocabulary)
    shared = {name: tensor for name, tensor in base.state_dict().items() if not name.startswith("scorer.")}
    model.load_state_dict(shared, strict=False)
    for weight, head in zip(model.scorer.weights, heads, strict=True):
        torch.manual_seed(head)
        weight.reset_parameters()  # type: ignore[operator]
    return model


@torch.no_grad()
def _accuracy(model: Translator, batch: PairBatch) -> float:
    output = model(batch)
    guess = model.read(output.context, output.states).argmax(-1)
    return float((guess == batch.target_out).float().mean())


def learning_times(curves: Sequence[Mapping[str, Any]], steps: int) -> stats.CensoredData:
    """Steps to 99 % of each run, right-censored at the budget."""
    times = [curve["learned"] if curve["learned"] is not None else steps for curve in curves]
    return stats.CensoredData.right_censored(times, [curve["learned"] is None for curve in curves])


def median_time(curves: Sequence[Mapping[str, Any]]) -> float:
    """The median step to 99 %; NaN where fewer than half of the runs got there."""
    times = sorted(curve["learned"] for curve in curves if curve["learned"] is not None)
    half = (len(curves) + 1) // 2
    return float(times[half - 1]) if len(times) >= half else float("nan")


def share_learned(curves: Sequence[Mapping[str, Any]]) -> Estimate:
    """How many of the runs got to 99 %, with Wilson's 95 % interval.

    >>> share_learned([{"learned": 40}, {"learned": None}]).value
    0.5
    """
    reached = sum(curve["learned"] is not None for curve in curves)
    interval = stats.binomtest(reached, len(curves)).proportion_ci(method="wilson")
    return Estimate(reached / len(curves), float(interval.low), float(interval.high), len(curves))


def slower(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], steps: int) -> tuple[float, float]:
    """Log-rank test that the first runs take longer to learn than the second: z, above 0 if so, and one-sided p.

    Both are NaN where no run of either learned: nothing happened that could be compared.
    """
    if not any(curve["learned"] is not None for curve in (*first, *second)):
        return float("nan"), float("nan")
    with np.errstate(invalid="ignore", divide="ignore"):
        test = stats.logrank(learning_times(first, steps), learning_times(second, steps), alternative="less")
    return -float(test.statistic), float(test.pvalue)  # scipy counts what was learned, not what took long
