"""The terms A to H along training runs of DP-A, AD and DP with three labels: the models of sunlu2020's supplement.

As in `gradient_terms`, each time under plain gradient flow without dropout, for the parameters of that step, over all
training texts. G and H come from layers that all tokens share; the paper's argument for DP has no such terms.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.batching import evaluation_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import mean_over_seeds
from heedful.models.attention import AdditiveScorer, DotScorer
from heedful.models.classifier import AttentionClassifier, nll
from heedful.models.encoders import PositionwiseEncoder
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, exactly, seed_value
from heedful.papers.sunlu2020.data import NEUTRAL_CLASS, TOPICS, Sample, read_texts
from heedful.papers.sunlu2020.models import Kind, Recipe, TrainingJob, build_model, train_epochs
from heedful.storage.serialization import content, from_mapping
from heedful.theory.score_dynamics import AffineMap, ScoreModel, score_terms

POLARITY_TERMS, SCORE_TERMS = ("A", "B", "C", "G"), ("D", "E", "F", "H")
GROUPS = ("own label", "neutral")


@dataclass(frozen=True)
class SupplementBudget:
    """Sizes of the measurement. models: the kind and the corpus of each, by name. steps: where terms are measured."""

    models: dict[str, tuple[Kind, str]]
    seeds: int
    steps: tuple[int, ...]
    scale: float = 10.0
    sample: Sample = field(default_factory=Sample)
    recipe: Recipe = field(default_factory=Recipe)


def _models(data: str, three: str) -> dict[str, tuple[Kind, str]]:
    return {"DP-A": ("DP-A", data), "AD": ("AD", data), "DP, three labels": ("DP", three)}


_STEPS = (0, 10, 25, 50, 100, 200, 350, 500, 700)
BUDGETS = {
    "smoke": SupplementBudget(
        _models("polarity", TOPICS), 2, (0, 4, 12), 10.0, Sample(120, 20, 20), Recipe(epochs=2, batch_size=20, width=8)
    ),
    "quick": SupplementBudget(
        _models("sst", "20news-three"), 5, _STEPS, sample=Sample(max_length=160), recipe=Recipe(10)
    ),
    "paper": SupplementBudget(_models("sst", "20news-three-sklearn"), 5, (*_STEPS, 1000, 1400)),
}


def supplement_units(budget: str) -> dict[str, list[Unit]]:
    """The training runs of every model."""
    sizes = BUDGETS[budget]
    return {name: [_unit(name, seed, sizes) for seed in range(sizes.seeds)] for name in sizes.models}


def _unit(name: str, seed: int, sizes: SupplementBudget) -> Unit:
    kind, data = sizes.models[name]
    job = TrainingJob(data, kind, sizes.scale, seed, sample=sizes.sample, recipe=sizes.recipe)
    arguments = content(job) | {"steps": list(sizes.steps)}
    return Unit(f"supplement-{data}-{kind}-{seed}", f"{__name__}:follow_score_terms", arguments)


def follow_score_terms(*, steps: list[int], device: torch.device, report: OnEvent, **settings: Any) -> dict[str, Any]:
    """A unit: train one model; at each of `steps` the mean terms of tokens of a label, towards it, and of neutral ones.

    `off`: the largest difference from autograd at the first and last of the steps, as a share of the largest entry.
    """
    job = from_mapping(TrainingJob, settings)
    texts = read_texts(job.data, job.sample)
    model = build_model(job, texts).to(device)
    label = texts.token_class
    seen: dict[str, Any] = {"steps": [], "off": [], "texts": len(texts.train)}
    seen |= {name: {group: [] for group in GROUPS} for name in (*POLARITY_TERMS, *SCORE_TERMS)}

    def at_step(step: int) -> None:
        found = score_terms(texts.train.ids, texts.train.labels, closed_form(model))
        if step in (steps[0], steps[-1]):
            seen["off"].append(_off(model, texts.train, found.polarity, found.score))
        seen["steps"].append(step)
        for name in (*POLARITY_TERMS, *SCORE_TERMS):
            values = getattr(found, name) * len(texts.train)
            for group, which in (("own label", label >= 0), ("neutral", label == NEUTRAL_CLASS)):
                own = values[which] if values.ndim == 1 else _towards(values[which], label[which])
                seen[name][group].append(float(own.mean()) if len(own) else 0.0)
        report({"step": step, "steps": steps[-1]})

    train_epochs(model, texts, job, lambda epoch, loss: False, tuple(steps), at_step)
    return seen


def _towards(values: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
    """The column of each token's own label; one column is towards label 1; of neutral tokens, the last one."""
    if values.shape[1] == 1:
        return np.where(label == 0, -1.0, 1.0) * values[:, 0]
    chosen = np.where(label < 0, values.shape[1] - 1, label)
    return values[np.arange(len(values)), chosen]


def closed_form(model: AttentionClassifier) -> ScoreModel:
    """The parameters of a trained model for the closed form, in float64."""

    def array(weight: Tensor) -> NDArray[np.float64]:
        plain: NDArray[np.float64] = weight.detach().cpu().double().numpy()
        return plain

    def affine(linear: nn.Module) -> AffineMap:
        assert isinstance(linear, nn.Linear)
        return AffineMap(array(linear.weight), array(linear.bias))

    scorer, encoder = model.scorer, model.encoder
    assert isinstance(scorer, AdditiveScorer | DotScorer)
    assert isinstance(encoder, PositionwiseEncoder)
    additive = affine(scorer.hidden) if isinstance(scorer, AdditiveScorer) else None
    V = scorer.out if isinstance(scorer, AdditiveScorer) else scorer.context
    below = affine(encoder.affine) if isinstance(encoder.affine, nn.Linear) else None
    W, e = array(model.output.weight), array(model.embedding.weight)
    return ScoreModel(e, W, array(V.weight)[0], scorer.scale, below, additive)


def _off(
    model: AttentionClassifier, split: EncodedSplit, polarity: NDArray[np.float64], score: NDArray[np.float64]
) -> float:
    """The largest difference of the closed form from what autograd says of gradient flow, in float64."""
    exact = copy.deepcopy(model).double().eval()
    parameters = dict(exact.named_parameters())
    flow = {name: torch.zeros_like(weight) for name, weight in parameters.items()}
    for batch in evaluation_batches(split, max_tokens=16384, device=model.output.weight.device):
        loss = nll(exact(batch.tokens, batch.mask).logits, batch.labels).sum() / len(split)
        slopes = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        for name, slope in zip(parameters, slopes, strict=True):
            flow[name] -= torch.zeros_like(flow[name]) if slope is None else slope
    every = torch.arange(exact.embedding.num_embeddings, device=model.output.weight.device)[:, None]

    def scores(weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Polarity and attention score of every token: the logits and the score of a text of that token alone."""
        output = torch.func.functional_call(exact, weights, (every, torch.ones_like(every, dtype=torch.bool)))
        return output.logits, output.scores[:, 0]

    moved = torch.func.jvp(scores, ({name: w.detach() for name, w in parameters.items()},), (flow,))[1]
    pairs = zip((polarity, score), (each.detach().cpu().numpy() for each in moved), strict=True)
    return max(float(np.abs(one - other)[1:].max() / np.abs(other).max()) for one, other in pairs)


def find_supplement(budget: str, runs: Mapping[str, Sequence[Answer]]) -> Finding:
    """The terms of every model through training, and that they are exact."""
    off = max(value for each in runs.values() for run in each for value in run["off"])
    values, rows, panels = [Value("largest difference from autograd", exactly(off))], [], []
    terms = (*POLARITY_TERMS, *SCORE_TERMS)
    for model, each in runs.items():
        steps = each[0]["steps"]
        for group in GROUPS:
            for at in (1, -1):
                found = [mean_over_seeds([run[name][group][at] for run in each]) for name in terms]
                cells = tuple(Cell(estimate, digits=3, seeds=len(each)) for estimate in found)
                rows.append(Row(f"step {steps[at]}, {group}", cells, model))
            values += [
                seed_value(f"{name}, {group}, {model}, last", [run[name][group][-1] for run in each]) for name in terms
            ]
        for moved, names in (("polarity", POLARITY_TERMS), ("attention", SCORE_TERMS)):
            lines = tuple(
                curve(
                    name,
                    [float(step) for step in steps],
                    [mean_over_seeds([run[name]["own label"][k] for run in each]) for k in range(len(steps))],
                )
                for name in names
            )
            title = f"{model}: {moved} of tokens of a label"
            panels.append(
                Panel(title, lines, x_label="training step", y_label="term × texts", x_log=True, reference=0.0)
            )
    table = ResultTable("Terms A to H, times the number of texts", terms, tuple(rows), "Means over tokens, then seeds.")
    note = f"The closed form differs from autograd in float64 by at most {off:.1g} of the largest entry."
    return Finding((table,), (Figure("supplement", "What moves the scores", tuple(panels)),), tuple(values), (note,))
