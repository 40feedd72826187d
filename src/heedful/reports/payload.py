"""What a study's page carries inside it: everything its charts and its slider need, and nothing else."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.data.tokens import EOS, PAD, UNK
from heedful.papers.published import published_agreements
from heedful.reports.examples import add_examples, choose_examples
from heedful.reports.packing import Arrays
from heedful.reports.tokens import token_table
from heedful.reports.words import symbol
from heedful.studies.result import AgreementResult, Curve, ModelSummary, StudyResult, agreement_row
from heedful.studies.run import ModelKind, ModelSpec, Run

FORMAT = 1
MODEL_TITLES = {
    "standard": "standard model",
    "uniform": "uniform twin",
    "attention-only": "frozen twin",
    "proxy": "bag-of-words proxy",
    "logistic": "logistic regression",
    "lexicon": "IBM Model 1",
}
_RECORDED: tuple[ModelKind, ...] = ("standard", "uniform", "attention-only")
_BYTES_PER_POSITION = {"standard": 3, "uniform": 2, "attention-only": 3}


@dataclass(frozen=True)
class Payload:
    """`content` becomes JSON; `arrays` become typed arrays."""

    content: dict[str, Any]
    arrays: Arrays


def study_payload(run: Run, result: StudyResult) -> Payload:
    """The page's numbers: agreements and curves from the result, examples and words from the traces."""
    arrays = Arrays()
    shown = _shown_models(result)
    names = {spec.name for spec in shown}
    steps = sorted(set.intersection(*(set(model.steps) for model in result.models if model.name in names)))
    content = {
        "format": FORMAT,
        "task": result.task,
        "name": result.data["name"],
        "labels": result.data["labels"],
        "steps": steps,
        "agreements": [_agreement(row) for row in result.agreements],
        "rows": [_row(row) for row in result.agreements],
        "paper": _paper(result),
        "random": result.random_agreement,
        "accuracy": _accuracy(result),
        "references": _references(result),
        "entropy": _curve(result.entropy),
        "models": [{"name": spec.name, "kind": spec.kind, "title": _title(spec)} for spec in shown],
    }
    if result.task == "classification":
        content |= _examples(run, shown, steps, arrays) | _tokens(run, result, steps, arrays)
    return Payload(content | {"arrays": arrays.directory}, arrays)


def agreement_key(name: str) -> str:
    """One key for A(u, v) and A(v, u): own and cross compare the same pair in either order.

    >>> agreement_key("A(beta_px,beta_uf)")
    'A(beta_uf,beta_px)'
    """
    u, v = name[2:-1].split(",")
    return f"A({v},{u})" if u in ("beta_px", "beta_log") else name


def best_accuracy(model: ModelSummary) -> float | None:
    """Validation accuracy at the step whose quantities count as the model's."""
    return model.accuracy[model.steps.index(model.best_step)]


def _shown_models(result: StudyResult) -> list[ModelSpec]:
    """The standard model of two seeds, and the first seed's twins as far as the study has them."""
    first, second = result.seeds[:2]
    trained = {model.name for model in result.models}
    wanted = [ModelSpec("standard", first), ModelSpec("standard", second)]
    wanted += [ModelSpec(kind, first) for kind in _RECORDED[1:]]
    return [spec for spec in wanted if spec.name in trained]


def _title(spec: ModelSpec) -> str:
    return f"{MODEL_TITLES[spec.kind]}, seed {spec.seed}"


def _examples(run: Run, shown: list[ModelSpec], steps: list[int], arrays: Arrays) -> dict[str, Any]:
    split = run.split("validation")
    per_position = len(steps) * sum(_BYTES_PER_POSITION[spec.kind] for spec in shown)
    chosen = choose_examples(run.model(shown[0]).trace(), split.lengths, per_position)
    ids = np.concatenate([split.text(int(i)) for i in chosen])
    used, places = np.unique(ids, return_inverse=True)
    vocabulary = run.vocabulary().words
    arrays.add("places", places.astype(np.uint32))
    for spec in shown:
        trace = run.model(spec).trace()
        add_examples(arrays, spec.name, trace, steps, chosen, attends=spec.kind != "uniform")
    return {
        "texts": {
            "index": chosen.tolist(),
            "label": split.labels[chosen].tolist(),
            "length": split.lengths[chosen].tolist(),
            "of": len(split),
        },
        "words": [vocabulary[i] for i in used],
        "special": [_special(int(i)) for i in used],
    }


def _special(word: int) -> str:
    """How a word that is no word is to be shown; empty for all others."""
    return {PAD: "pad", UNK: "unknown", EOS: "end"}.get(word, "start") if word <= EOS else ""


def _tokens(run: Run, result: StudyResult, steps: list[int], arrays: Arrays) -> dict[str, Any]:
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    table = token_table(run.split("validation"), traces, steps)
    arrays.add("tokens/attention", table.attention)
    arrays.add("tokens/beta", table.beta)
    vocabulary = run.vocabulary().words
    return {
        "tokens": {
            "words": [vocabulary[i] for i in table.ids],
            "special": [_special(int(i)) for i in table.ids],
            "counts": table.counts.tolist(),
            "least": table.least,
            "seeds": len(traces),
        }
    }


def _agreement(row: AgreementResult) -> dict[str, Any]:
    return {
        "key": agreement_key(row.name),
        "symbol": symbol(row.name),
        "convention": row.convention,
        "value": row.estimate.value,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "shuffle": _number(row.shuffle.value),
        "maximised": row.chosen_steps is not None,
        "curve": _curve(row.curve),
    }


def _row(row: AgreementResult) -> dict[str, Any]:
    """One line of the CSV file that the page offers; several seeds share a cell, separated by spaces."""
    several = {
        "per_seed": row.per_seed,
        "over_seeds_low": row.over_seeds.low,
        "over_seeds_high": row.over_seeds.high,
        "chosen_steps": row.chosen_steps,
        "accuracy_there": row.accuracy_there,
    }
    return {name: _plain(value) for name, value in (agreement_row(row) | several).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return _number(value) if isinstance(value, float) else value


def _paper(result: StudyResult) -> dict[str, float]:
    published = published_agreements(result.data["name"])
    return {name: value / 100 for name, value in published.items() if name.startswith("A(")}


def _accuracy(result: StudyResult) -> list[dict[str, Any]]:
    return [
        {"kind": model.kind, "title": MODEL_TITLES[model.kind], "seed": model.seed}
        | {"steps": model.steps, "values": model.accuracy}
        for model in result.models
        if model.kind in _RECORDED
    ]


def _references(result: StudyResult) -> list[dict[str, Any]]:
    """Levels that the curves of accuracy are to be held against."""
    levels = []
    for kind in ("proxy", "logistic"):
        best = [accuracy for m in result.models if m.kind == kind and (accuracy := best_accuracy(m)) is not None]
        if best:
            levels.append({"title": MODEL_TITLES[kind], "value": float(np.mean(best))})
    if (majority := result.data.get("majority")) is not None:
        levels.append({"title": "most frequent label", "value": majority})
    return levels


def _curve(curve: Curve) -> dict[str, Any]:
    return {"steps": curve.steps, "values": [_number(value) for value in curve.values]}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
