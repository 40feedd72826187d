"""Open questions of meister2021: which reading gives its leave-one-out numbers, and does a norm stand for a Jacobian?

The paper prints τ(α, D_ŷ(I)) of 0.05 to 0.25 for its Transformer, where τ(α, g_ŷ(I)) is 0.6 to 0.8. It does not say
which attention it means, how a hidden state is left out, or how far attention was trained; each reading is tried here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.attribution.attention_maps import normalised
from heedful.attribution.importance import g_h_x, jacobian_h_x
from heedful.data.batching import collate
from heedful.data.ragged import Ragged
from heedful.data.vocabulary import EncodedSplit
from heedful.execution.pool import OnEvent
from heedful.metrics.entropy import normalised_entropy
from heedful.metrics.rank import kendall_tau_b
from heedful.models.attention import project
from heedful.models.classifier import AttentionClassifier
from heedful.models.encoders import TransformerEncoder
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Finding, ResultTable, Row, Value, nested_value, seed_value
from heedful.papers.meister2021.config import ARCHITECTURES, BUDGETS, NAMES, SOFTMAX, SPARSEMAX, MeisterCorpus
from heedful.papers.meister2021.models import (
    WEIGHTS,
    MeisterModel,
    MeisterRun,
    attention,
    attribution_subject,
    chosen_texts,
    importances,
    listed,
    load_base,
    text_passages,
)
from heedful.papers.meister2021.tables import PerText, cell, numbers, over_seeds, per_text
from heedful.papers.published import published_means
from heedful.storage.serialization import content, from_mapping

PROJECTIONS = (SOFTMAX, SPARSEMAX)


@dataclass(frozen=True)
class ReadingBudget:
    """Sizes of the experiments. speeds: learning rates with their epochs, the budget's own first. texts: of App. A."""

    data: str
    seeds: int
    speeds: tuple[tuple[float, int], ...]
    texts: int


READING_BUDGETS = {
    "smoke": ReadingBudget("polarity", 2, ((1e-2, 1), (1e-3, 1)), 3),
    "quick": ReadingBudget("sst", 5, ((5e-4, 3), (5e-5, 10), (1e-5, 20)), 30),
    "paper": ReadingBudget("sst", 5, ((5e-4, 20), (1e-4, 60), (1e-5, 60)), 100),
}


def corpus_of(budget: str) -> MeisterCorpus:
    """The corpus of both experiments, with their seeds."""
    sizes = READING_BUDGETS[budget]
    corpus = next(corpus for corpus in BUDGETS[budget].corpora if corpus.data == sizes.data)
    return replace(corpus, seeds=sizes.seeds)


Key = tuple[MeisterModel, float, int]  # a model, its learning rate and its epochs


def reading_models(budget: str) -> dict[Key, list[Unit]]:
    """Transformers trained at each speed; at the budget's own they are those of the other experiments."""
    corpus = corpus_of(budget)
    own = BUDGETS[budget].rates[1], corpus.epochs[1]
    found: dict[Key, list[Unit]] = {}
    for projection in PROJECTIONS:
        for rate, epochs in READING_BUDGETS[budget].speeds:
            speed = (None, None) if (rate, epochs) == own else (rate, epochs)
            model = MeisterModel(corpus, "transformer", projection, *speed)
            found[model, rate, epochs] = model.units(budget)
    return found


def _of_layer(layer: int, key: str) -> PerText:
    return lambda answer: numbers(answer["layers"][layer][key])


def _readings(layers: int) -> dict[str, tuple[PerText, PerText]]:
    """τ with g_ŷ(I) and with D_ŷ(I) under every reading, by name."""
    g = per_text("tau g_y_h")
    found = {
        "pooling α, D re-projected": (g, per_text("tau d_y_h")),
        "pooling α, D without re-projection": (g, per_text("tau d_y_h zeroed")),
        "pooling α, D unseen by the last layer": (g, per_text("tau d_y_h below")),
    }
    for layer in range(layers):
        for label, prefix in (("mean over queries", ""), ("first query", "first "), ("last query", "last ")):
            pair = (_of_layer(layer, f"{prefix}tau g_y_h"), _of_layer(layer, f"{prefix}tau d_y_h"))
            found[f"layer {layer + 1}, {label}"] = pair
    return found


def find_readings(budget: str, seen: Mapping[Key, Sequence[Answer]]) -> Finding:
    """Every reading of α and D_ŷ(I) at every speed of training, beside the published pair."""
    printed = published_means("6")
    rows: list[Row] = []
    values: list[Value] = []
    away: dict[tuple[str, float], list[float]] = {}
    for (model, rate, epochs), seeds in seen.items():
        group = f"{model.projection}, learning rate {rate:g}, {epochs} epochs"
        goals = [printed.get((model.corpus.name, model.name, f"tau(alpha,{what}(I))")) for what in ("g_y", "D_y")]
        spread, reached = over_seeds(seeds, per_text("entropy alpha")), seed_value("", [a["accuracy"] for a in seeds])
        for name, measures in _readings(len(seeds[0]["layers"])).items():
            cells = [cell(seeds, measure) for measure in measures]
            cells.append(Cell(text=" and ".join(f"{goal[0]:.2f}" for goal in goals if goal)))
            pooled = name == "pooling α, D re-projected"
            about = (Cell(spread, digits=2), Cell(reached.estimate, unit="%")) if pooled else (Cell(text=""),) * 2
            rows.append(Row(name, (*cells, *about), group))
            found = [over_seeds(seeds, measure) for measure in measures]
            values += [
                Value(f"tau {what}, {name}, {model.projection}, {rate:g}", estimate)
                for what, estimate in zip(("g_y(I)", "D_y(I)"), found, strict=True)
            ]
            if all(goals):
                gaps = [abs(e.value - goal[0]) for e, goal in zip(found, goals, strict=True) if goal]
                away.setdefault((name, rate), []).append(max(gaps))
    columns = ("τ(α, g_ŷ(I))", "τ(α, D_ŷ(I))", "published", "H̃(α)", "accuracy")
    table = ResultTable("Readings of α and of leaving a hidden state out", columns, tuple(rows))
    return Finding((table,), values=tuple(values), notes=(_nearest(away),))


def _nearest(away: Mapping[tuple[str, float], Sequence[float]]) -> str:
    """Which reading lies nearest to the published pairs, by its largest difference."""
    if not away:
        return "No published number belongs to these data."
    (name, rate), gaps = min(away.items(), key=lambda item: max(item[1]))
    largest = max(gaps)
    verdict = (
        "fits within 0.1" if largest <= 0.1 else "is not within 0.1 of them, so that the difference is unexplained"
    )
    return (
        f"Of {len(away)} readings “{name}” at learning rate {rate:g} lies nearest to the published pairs: its largest "
        f"difference over both projections and both importances is {largest:.2f}, which {verdict}."
    )


WHOLE, BEFORE_SCORER = "the pooling", "the state set to 0 before it is scored"
BELOW = (
    "the last layer's keys",
    "every layer's keys",
    "every layer and the pooling",
    "the state below the last layer set to 0",
    "the word's vector set to 0",
)


def below_units(budget: str) -> dict[str, list[Unit]]:
    """Leaving a position out below the pooling, on Transformers trained as in the other experiments."""
    corpus = corpus_of(budget)
    models = {str(each): MeisterModel(corpus, "transformer", each) for each in PROJECTIONS}
    return {name: [_below_unit(model, seed, budget) for seed in range(corpus.seeds)] for name, model in models.items()}


def _below_unit(model: MeisterModel, seed: int, budget: str) -> Unit:
    base = model.unit(seed, budget)
    arguments = {"base": content(model.run(seed, budget)), WEIGHTS: base.arguments[WEIGHTS]}
    after = (replace(base, makes=(WEIGHTS,)),)
    return Unit(f"below-{base.name}", f"{__name__}:leave_out_below", arguments, paths=(WEIGHTS,), after=after)


def leave_out_below(*, base: Mapping[str, Any], weights: str, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """A unit: τ-b of α with ∣ŷ − ŷ_{−i}∣ of some texts, by what does not see position i; and with g_ŷ(I)."""
    run = from_mapping(MeisterRun, base)
    encoded = run.encoded()
    model = load_base(run.model, encoded.vocabulary, weights).to(device)
    texts = chosen_texts(encoded.test, run.examples)
    alpha = attention(model, collate(texts, np.arange(len(texts)), device))
    report({"step": 0, "steps": 1})
    importance = importances(model, texts)
    rows: dict[str, Ragged] = {"g_y_h": importance["g_y_h"], WHOLE: importance["d_y_h"]} | left_out_below(model, texts)
    return {name: listed(kendall_tau_b(alpha, row)) for name, row in rows.items()}


@torch.no_grad()
def left_out_below(model: AttentionClassifier, texts: EncodedSplit) -> dict[str, Ragged]:
    """∣ŷ − ŷ_{−i}∣ of a Transformer with position i hidden from keys, or set to 0, at different depths."""
    encoder, config = model.encoder, model.config
    assert isinstance(encoder, TransformerEncoder)
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in (BEFORE_SCORER, *BELOW)}
    for i in range(len(texts)):
        batch = collate(texts, np.array([i]), model.output.weight.device)
        n = batch.tokens.shape[1]
        if n == 1:  # nothing would be left
            for each in found.values():
                each.append(np.zeros(1))
            continue
        all_seen = batch.mask.expand(n + 1, -1)
        unseen = torch.cat([batch.mask, ~torch.eye(n, dtype=torch.bool, device=batch.mask.device)])
        states = encoder.states(model.embedding(batch.tokens), batch.mask)
        first, below, last = (states[at].expand(n + 1, -1, -1) for at in (0, -2, -1))

        def encode(h: Tensor, masks: Sequence[Tensor]) -> Tensor:
            """The states above as many last layers as there are masks."""
            for layer, mask in zip(encoder.layers[-len(masks) :], masks, strict=True):
                h, _ = layer(h, mask)
            return h

        def changed(h: Tensor, mask: Tensor) -> NDArray[np.float64]:
            alpha = project(config.projection, model.scorer(h), mask, config.projection_parameter)
            y = model.from_attention(alpha, h)[:, 0].sigmoid()
            difference: NDArray[np.float64] = (y[1:] - y[0]).abs().double().cpu().numpy()
            return difference

        depth, hidden = len(encoder.layers), ~unseen[:, :, None]
        every = encode(first, [unseen] * depth)
        rows = (
            changed(last.masked_fill(hidden, 0.0), all_seen),
            changed(encode(below, [unseen]), all_seen),
            changed(every, all_seen),
            changed(every, unseen),
            changed(encode(below.masked_fill(hidden, 0.0), [all_seen]), all_seen),
            changed(encode(first.masked_fill(hidden, 0.0), [all_seen] * depth), all_seen),
        )
        for each, row in zip(found.values(), rows, strict=True):
            each.append(row)
    return {name: Ragged.of(each) for name, each in found.items()}


def find_below(budget: str, seen: Mapping[str, Sequence[Answer]]) -> Finding:
    """τ(α, D_ŷ(I)) by the depth at which a position is left out, beside the published pair."""
    corpus, printed = corpus_of(budget), published_means("6")
    rows: list[Row] = []
    values: list[Value] = []
    away: dict[str, list[float]] = {}
    for projection, answers in seen.items():
        goals = [
            printed.get((corpus.name, f"{NAMES['transformer']} {projection}", f"tau(alpha,{what}(I))"))
            for what in ("g_y", "D_y")
        ]
        for name in ("g_y_h", WHOLE, BEFORE_SCORER, *BELOW):
            value = nested_value(
                f"tau, {name}, {projection}", np.array([numbers(answer[name]) for answer in answers]), (-1.0, 1.0)
            )
            values.append(value)
            goal = goals[0 if name == "g_y_h" else 1]
            label = "τ(α, g_ŷ(I))" if name == "g_y_h" else f"τ(α, D_ŷ(I)): {name}"
            found = Cell(value.estimate, digits=2, seeds=value.seeds, texts=value.texts)
            rows.append(Row(label, (found, Cell(text=f"{goal[0]:.2f}" if goal else "")), projection))
            if goal and name != "g_y_h":
                away.setdefault(name, []).append(abs(value.estimate.value - goal[0]))
    caption = "What position i is hidden from, or where it is set to 0; the first of D_ŷ(I) is Table 6's."
    table = ResultTable("Leaving a hidden state out at different depths", ("τ-b", "published"), tuple(rows), caption)
    notes: tuple[str, ...] = ()
    if away:
        name, gaps = min(away.items(), key=lambda item: max(item[1]))
        verdict = "fits within 0.1" if max(gaps) <= 0.1 else "is not within 0.1 of them"
        notes = (
            f"Of {len(away)} ways to leave a hidden state out, “{name}” lies nearest to the published τ(α, D_ŷ(I)) of "
            f"both projections: its larger difference is {max(gaps):.2f}, which {verdict}. Under sparsemax no way "
            "that acts on the pooling alone can come near: a state without weight then has no effect.",
        )
    return Finding((table,), values=tuple(values), notes=notes)


def jacobian_units(budget: str) -> dict[str, list[Unit]]:
    """The comparison on softmax models of both architectures."""
    corpus = corpus_of(budget)
    return {
        NAMES[architecture]: [
            _jacobian_unit(MeisterModel(corpus, architecture, SOFTMAX), seed, budget) for seed in range(corpus.seeds)
        ]
        for architecture in ARCHITECTURES
    }


def _jacobian_unit(model: MeisterModel, seed: int, budget: str) -> Unit:
    base = model.unit(seed, budget)
    arguments = {
        "base": content(model.run(seed, budget)),
        WEIGHTS: base.arguments[WEIGHTS],
        "texts": READING_BUDGETS[budget].texts,
    }
    after = (replace(base, makes=(WEIGHTS,)),)
    return Unit(f"jacobian-{base.name}", f"{__name__}:compare_jacobian", arguments, paths=(WEIGHTS,), after=after)


def compare_jacobian(
    *, base: Mapping[str, Any], weights: str, texts: int, device: torch.device, report: OnEvent
) -> dict[str, Any]:
    """A unit: ∥∂∥h_p∥/∂x_i∥ and ∥∂h_p/∂x_i∥_F of some texts: τ-b row by row, and the entropy of each, means over p."""
    run = from_mapping(MeisterRun, base)
    encoded = run.encoded()
    model = load_base(run.model, encoded.vocabulary, weights).to(device)
    chosen = chosen_texts(encoded.test, texts)
    subject, passages = attribution_subject(model), text_passages(chosen)
    report({"step": 0, "steps": 1})
    seen: dict[str, list[float]] = {"tau": [], "entropy norm": [], "entropy jacobian": []}
    for norm, whole in zip(g_h_x(subject, passages), jacobian_h_x(subject, passages), strict=True):
        lengths = np.full(len(norm), norm.shape[1])
        both = [normalised(matrix.ravel(), lengths) for matrix in (norm, whole)]
        rows = [Ragged(each.values, each.offsets) for each in both]
        seen["tau"].append(_mean(kendall_tau_b(rows[0], rows[1])))
        for name, row in zip(("entropy norm", "entropy jacobian"), rows, strict=True):
            seen[name].append(_mean(normalised_entropy(row)))
    return {name: listed(each) for name, each in seen.items()}


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def find_jacobian(budget: str, seen: Mapping[str, Sequence[Answer]]) -> Finding:
    """App. A: how much the norm of a hidden state, which the paper differentiates, says of its whole Jacobian."""
    rows, values = [], []
    keys = {"τ-b of the two": "tau", "H̃ of the norm's": "entropy norm", "H̃ of the Jacobian's": "entropy jacobian"}
    for model, seeds in seen.items():
        cells = []
        for head, key in keys.items():
            value = nested_value(f"{head}, {model}", np.array([numbers(answer[key]) for answer in seeds]))
            values.append(value)
            cells.append(Cell(value.estimate, digits=2, seeds=value.seeds, texts=value.texts))
        rows.append(Row(model, tuple(cells)))
    caption = "Means over the hidden states of a text, then over texts and seeds; models with softmax."
    table = ResultTable("App. A: the gradient of ∥h_p∥ against the Jacobian of h_p", tuple(keys), tuple(rows), caption)
    return Finding((table,), values=tuple(values))
