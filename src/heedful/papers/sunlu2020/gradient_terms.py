"""The terms A to F along a real training run of DP: which of them moves polarity and which attention, and when.

The paper discusses the terms near a minimum. Here they are measured along a training run by Adagrad with dropout, each
time for the parameters of that step: under plain gradient flow without dropout, over all training texts, as means over
the tokens of a class. Which class term D helps depends on the sign of VᵀW, which may differ between runs.
Classes are therefore told apart by it: the class *with* VᵀW (positive tokens where VᵀW > 0 at the end, negative ones
where it is below 0) and the class *against* it. Turning y and W around changes the sign of A, B and C and of nothing
else, so these three are taken towards the class's own label; of neutral tokens, towards the label with VᵀW.

Eq. 17, and with it the argument for C, rests on the products e_iᵀe_j: above 0 within a class, below 0 between positive
and negative tokens. They are measured too, as means over all pairs of different tokens.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.data.batching import evaluation_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.models.attention import DotScorer
from heedful.models.classifier import AttentionClassifier, nll
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, exactly, seed_value
from heedful.papers.sunlu2020.data import NEUTRAL_CLASS, Sample, read_texts
from heedful.papers.sunlu2020.models import Recipe, TrainingJob, build_model, train_epochs
from heedful.storage.serialization import content, from_mapping
from heedful.theory.polarity import DotModel, gradients, terms

TERMS = ("A", "B", "C", "D", "E", "F")
DIGITS = {"A": 2, "B": 2, "C": 1, "D": 4, "E": 4, "F": 4}
CLASSES = ("negative", "positive", "neutral")
SIDES = ("with VᵀW", "against VᵀW", "neutral")
# Pairs of classes whose tokens' products are measured, and the sign that Eq. 17 wants of them (0: none).
PRODUCTS = {
    "positive, positive": 1,
    "negative, negative": 1,
    "positive, negative": -1,
    "neutral, neutral": 0,
    "neutral, positive": 0,
    "neutral, negative": 0,
}


@dataclass(frozen=True)
class FlowBudget:
    """Sizes of the measurement; at `steps` the terms are measured."""

    data: str
    seeds: int
    steps: tuple[int, ...]
    scales: tuple[float, ...] = (10.0, 100.0)
    sample: Sample = field(default_factory=Sample)
    recipe: Recipe = field(default_factory=Recipe)


_STEPS = (0, 10, 25, 50, 100, 200, 350, 500, 700, 1000, 1400)
BUDGETS = {
    "smoke": FlowBudget(
        "polarity", 2, (0, 4, 12), (10.0,), Sample(120, 20, 20), Recipe(epochs=2, batch_size=20, width=8)
    ),
    "quick": FlowBudget("sst", 10, _STEPS, recipe=Recipe(epochs=20)),
    "paper": FlowBudget("sst", 5, (*_STEPS, 2000, 2800), (1.0, 10.0, 100.0, 10_000.0)),
}


def flow_unit(scale: float, seed: int, sizes: FlowBudget) -> Unit:
    """One training run, whose terms are measured on the way."""
    job = TrainingJob(sizes.data, "DP", scale, seed, sample=sizes.sample, recipe=sizes.recipe)
    arguments = content(job) | {"steps": list(sizes.steps), "products": list(PRODUCTS)}
    return Unit(f"terms-{sizes.data}-{scale:g}-{seed}", f"{__name__}:follow_terms", arguments)


def follow_terms(
    *, steps: list[int], products: list[str], device: torch.device, report: OnEvent, **settings: Any
) -> dict[str, Any]:
    """A unit: train one DP; at each of `steps`: mean terms and scores by class, VᵀW, and e_iᵀe_j of `products`.

    `off` is the difference from autograd at the first and the last of them.

    `foretold` is, for each step but the last, the correlation over tokens between how flow would move their scores then
    and how Adagrad has moved them by the next of the steps: polarity, attention.
    """
    job = from_mapping(TrainingJob, settings)
    texts = read_texts(job.data, job.sample)
    model = build_model(job, texts).to(device)
    ids = texts.train.ids
    groups = {name: texts.token_class == label for name, label in zip(CLASSES, (0, 1, NEUTRAL_CLASS), strict=True)}
    classified = np.any(list(groups.values()), axis=0)
    seen: dict[str, Any] = {"steps": [], "dot": [], "off": [], "foretold": [], "texts": len(ids)}
    seen |= {name: {group: [] for group in groups} for name in (*TERMS, "polarity", "score")}
    seen["products"] = {pair: [] for pair in products}
    before: list[NDArray[np.float64]] = []

    def at_step(step: int) -> None:
        now = parameters(model)
        current = terms(ids, texts.train.labels, now)
        if before:
            moved = now.polarity - before[0], now.score - before[1]
            seen["foretold"].append(
                [_correlation(p[classified], m[classified]) for p, m in zip(before[2:], moved, strict=True)]
            )
        before[:] = [now.polarity, now.score, current.polarity, current.score]
        seen["steps"].append(step)
        seen["dot"].append(float(now.context @ now.output))
        if step in (steps[0], steps[-1]):
            seen["off"].append(autograd_difference(model, texts.train))
        numbers = {name: getattr(current, name) for name in TERMS} | {"polarity": now.polarity, "score": now.score}
        for name, values in numbers.items():
            for group, which in groups.items():
                seen[name][group].append(float(values[which].mean()) if which.any() else 0.0)
        for pair in products:
            one, other = pair.split(", ")
            seen["products"][pair].append(mean_product(now.embedding, groups[one], groups[other]))
        report({"step": step, "steps": steps[-1]})

    train_epochs(model, texts, job, lambda epoch, loss: False, tuple(steps), at_step)
    return seen


def parameters(model: AttentionClassifier) -> DotModel:
    """The parameters of a trained DP for the closed form, in float64."""
    assert isinstance(model.scorer, DotScorer)
    e, W, V = (
        p.detach().cpu().double().numpy()
        for p in (model.embedding.weight, model.output.weight[0], model.scorer.context.weight[0])
    )
    return DotModel(e, W, V, model.scorer.scale)


def mean_product(embedding: NDArray[np.float64], one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """The mean of e_iᵀe_j over tokens i of one class and j ≠ i of the other; 0 where there is no pair.

    >>> e = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    >>> mean_product(e, np.array([True, True, False]), np.array([True, True, False]))
    3.0
    """
    same = one & other
    pairs = int(one.sum()) * int(other.sum()) - int(same.sum())
    total = embedding[one].sum(0) @ embedding[other].sum(0) - (embedding[same] ** 2).sum()
    return float(total / pairs) if pairs else 0.0


def autograd_difference(model: AttentionClassifier, split: EncodedSplit) -> float:
    """The largest difference between the closed form and autograd of the model itself, in float64.

    Each gradient, and the sums A + B + C and D + E + F, as a share of its largest entry.
    """
    exact = copy.deepcopy(model).double().eval()
    assert isinstance(exact.scorer, DotScorer)
    trained = exact.embedding.weight, exact.output.weight, exact.scorer.context.weight
    total = [torch.zeros_like(p) for p in trained]
    for batch in evaluation_batches(split, max_tokens=16384, device=trained[0].device):
        loss = nll(exact(batch.tokens, batch.mask).logits, batch.labels).sum() / len(split)
        for summed, part in zip(total, torch.autograd.grad(loss, trained), strict=True):
            summed += part
    of_e, of_W, of_V = total[0].cpu().numpy(), total[1][0].cpu().numpy(), total[2][0].cpu().numpy()
    now, ids = parameters(exact), split.ids
    ours, moved = gradients(ids, split.labels, now), terms(ids, split.labels, now)
    e = now.embedding
    pairs = (
        (ours.embedding, of_e),
        (ours.output, of_W),
        (ours.context, of_V),
        (moved.polarity, -(of_e @ now.output) - e @ of_W),
        (moved.score, (-(of_e @ now.context) - e @ of_V) / now.scale),
    )
    return max(float(np.abs(one - other).max() / np.abs(other).max()) for one, other in pairs)


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) > 0 and np.ptp(b) > 0 else 0.0


def flow_units(budget: str) -> dict[float, list[Unit]]:
    """The training runs at each λ."""
    sizes = BUDGETS[budget]
    return {scale: [flow_unit(scale, seed, sizes) for seed in range(sizes.seeds)] for scale in sizes.scales}


def find_terms(budget: str, runs: Mapping[float, Sequence[Answer]]) -> Finding:
    """The terms through training, class by class, at each λ; and that they are exact."""
    off = max(value for each in runs.values() for run in each for value in run["off"])
    values = [Value("largest difference from autograd", exactly(off))]
    rows, figures = [], []
    for scale, each in runs.items():
        seen = {name: {side: _over(each, name, side) for side in SIDES} for name in (*TERMS, "polarity", "score")}
        figures.append(_figure(scale, each[0]["steps"], seen))
        for at, step in ((1, each[0]["steps"][1]), (-1, each[0]["steps"][-1])):
            for side in SIDES:
                cells = tuple(Cell(seen[name][side][at], digits=DIGITS[name], seeds=len(each)) for name in TERMS)
                rows.append(Row(f"step {step}, {side}", cells, f"λ = {scale:g}"))
        for name in TERMS:
            for side in SIDES:
                values.append(Value(f"{name}, {side}, λ = {scale:g}, last", seen[name][side][-1]))
        for name in ("E", "F"):
            for side in SIDES[:2]:
                lowest = [float(curve[1:].min()) for curve in _curves(each, name, side)]  # after the first step
                values.append(seed_value(f"{name} along training, {side}, λ = {scale:g}", lowest))
        products = {
            pair: [mean_over_seeds(c) for c in np.transpose([r["products"][pair] for r in each])] for pair in PRODUCTS
        }
        figures.append(_products_figure(scale, each[0]["steps"], products))
        values += [Value(f"e_i·e_j, {pair}, λ = {scale:g}, last", curve[-1]) for pair, curve in products.items()]
        for k, name in enumerate(("polarity", "attention")):
            foretold = mean_over_seeds([np.mean([pair[k] for pair in run["foretold"]]) for run in each])
            values.append(Value(f"foretold, {name}, λ = {scale:g}", foretold))
    table = ResultTable(
        "Terms, times the number of texts", TERMS, tuple(rows), "Means over tokens of a class, then over seeds."
    )
    ends = {scale: ", ".join(f"{run['dot'][-1]:.1f}" for run in each) for scale, each in runs.items()}
    note = (
        f"VᵀW at the end, by seed: {'; '.join(f'λ = {scale:g}: {each}' for scale, each in ends.items())}. The closed "
        f"form differs from autograd of the model in float64 by at most {off:.1g} of the largest entry."
    )
    return Finding((table,), tuple(figures), tuple(values), (note,))


def _over(runs: Sequence[Answer], name: str, side: str) -> list[Estimate]:
    """One term, or score, of one side at every step, over seeds."""
    return [mean_over_seeds(column) for column in np.transpose(_curves(runs, name, side))]


def _curves(runs: Sequence[Answer], name: str, side: str) -> list[NDArray[np.float64]]:
    """One term, or score, of one side at every step of each run, times the number of texts where it is a term."""
    curves = []
    for run in runs:
        up = run["dot"][-1] > 0
        group, own = {
            "with VᵀW": ("positive", 1) if up else ("negative", -1),
            "against VᵀW": ("negative", -1) if up else ("positive", 1),
            "neutral": ("neutral", 1 if up else -1),
        }[side]
        sign = own if name in ("A", "B", "C", "polarity") else 1
        curves.append(np.array(run[name][group]) * sign * (run["texts"] if name in TERMS else 1))
    return curves


def _products_figure(scale: float, steps: Sequence[int], products: Mapping[str, Sequence[Estimate]]) -> Figure:
    x = [float(step) for step in steps]
    panel = Panel(
        "mean e_iᵀe_j between classes",
        tuple(curve(pair, x, each) for pair, each in products.items()),
        x_label="training step",
        y_label="e_iᵀe_j",
        x_log=True,
        reference=0.0,
    )
    caption = "Eq. 17 wants products above 0 within the positive and the negative tokens, and below 0 between them."
    return Figure(f"products-{scale:g}", f"Products of embeddings, λ = {scale:g}", (panel,), caption)


def _figure(scale: float, steps: Sequence[int], seen: Mapping[str, Mapping[str, Sequence[Estimate]]]) -> Figure:
    x = [float(step) for step in steps]
    panels = [
        Panel(
            f"{moved} of tokens {side}" if side != "neutral" else f"{moved} of neutral tokens",
            tuple(curve(name, x, seen[name][side]) for name in names),
            x_label="training step",
            y_label="term × texts",
            x_log=True,
            reference=0.0,
        )
        for moved, names in (("polarity", TERMS[:3]), ("attention", TERMS[3:]))
        for side in SIDES
    ]
    title = f"What moves the scores, λ = {scale:g}"
    return Figure(f"terms-{scale:g}", title, tuple(panels), "Means over tokens and seeds, 95 % intervals over seeds.")
