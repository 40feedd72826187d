"""What a study's page carries inside it: everything its charts and its slider need, and nothing else."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.measure.uncertainty import Estimate
from heedful.papers.published import published_agreements
from heedful.reports.packing import Arrays
from heedful.reports.shown import RECORDED, shown_models, shown_pairs, shown_texts
from heedful.reports.vocabularies import attended_words, told, translated, translated_words
from heedful.reports.words import MODEL_TITLES, symbol
from heedful.studies.result import AgreementResult, AlignmentResult, Curve, ModelSummary, StudyResult, agreement_row
from heedful.studies.run import Run

FORMAT = 1


@dataclass(frozen=True)
class Payload:
    """`content` becomes JSON; `arrays` become typed arrays."""

    content: dict[str, Any]
    arrays: Arrays


def study_payload(run: Run, result: StudyResult) -> Payload:
    """The page's numbers: agreements and curves from the result, examples and words from the traces."""
    arrays = Arrays()
    shown = shown_models(run, result)
    steps = list(shown[0].steps)
    content = {
        "format": FORMAT,
        "task": result.task,
        "name": result.data["name"],
        "labels": result.data["labels"],
        "steps": steps,
        "agreements": [drawn_agreement(row) for row in result.agreements],
        "rows": [saved_row(row) for row in result.agreements],
        "paper": _paper(result),
        "random": result.random_agreement,
        "accuracy": accuracy_curves(result),
        "references": _references(result),
        "entropy": curve_content(result.entropy),
        "models": [{"name": model.name, "kind": model.spec.kind, "title": model.title} for model in shown],
    }
    if result.task == "translation":
        content |= {"bleu": bleu_curves(result), "alignment": _alignment(result.alignment)}
        content |= shown_pairs(shown, arrays)
        content |= translated_words([translated(run, result, steps)], run, len(result.seeds), arrays)
    else:
        content |= shown_texts(shown, arrays) | attended_words([told(run, result, steps)], arrays)
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


def _alignment(alignment: AlignmentResult | None) -> dict[str, Any] | None:
    """Alignment error of attention over training, and the levels it is to be held against."""
    if alignment is None:
        return None
    levels: list[tuple[str, Estimate]] = [
        ("counting α^IBM", alignment.counting),
        ("IBM Model 1", alignment.model_1),
        ("diagonal", alignment.diagonal),
    ]
    return {
        "curve": curve_content(alignment.attention),
        "ends": [_ends(alignment.untrained), _ends(alignment.trained)],
        "references": [{"title": title, "value": e.value, **_ends(e)} for title, e in levels]
        + [{"title": "chance", "value": alignment.chance}],
    }


def _ends(estimate: Estimate) -> dict[str, float | None]:
    return {"low": _number(estimate.low), "high": _number(estimate.high)}


def drawn_agreement(row: AgreementResult) -> dict[str, Any]:
    """What the charts know of an agreement."""
    return {
        "key": agreement_key(row.name),
        "symbol": symbol(row.name),
        "convention": row.convention,
        "value": row.estimate.value,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "shuffle": _number(row.shuffle.value),
        "maximised": row.chosen_steps is not None,
        "curve": curve_content(row.curve),
    }


def saved_row(row: AgreementResult) -> dict[str, Any]:
    """One line of the CSV file that the page offers; several seeds share a cell, separated by spaces."""
    several = {
        "per_seed": row.per_seed,
        "over_seeds_low": row.over_seeds.low,
        "over_seeds_high": row.over_seeds.high,
        "chosen_steps": row.chosen_steps,
        "accuracy_there": row.accuracy_there,
        **({} if row.xi_bleu is None else {"xi_bleu": row.xi_bleu}),
    }
    return {name: _plain(value) for name, value in (agreement_row(row) | several).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return _number(value) if isinstance(value, float) else value


def _paper(result: StudyResult) -> dict[str, float]:
    published = published_agreements(result.data["name"])
    return {name: value / 100 for name, value in published.items() if name.startswith("A(")}


def accuracy_curves(result: StudyResult) -> list[dict[str, Any]]:
    """Validation accuracy over training, one curve for each recorded model."""
    return [
        {"kind": model.kind, "title": MODEL_TITLES[model.kind], "seed": model.seed}
        | {"steps": model.steps, "values": model.accuracy}
        for model in result.models
        if model.kind in RECORDED
    ]


def bleu_curves(result: StudyResult) -> list[dict[str, Any]]:
    """BLEU over training as a share of 100, like all that is drawn."""
    return [
        {"kind": model.kind, "title": MODEL_TITLES[model.kind], "seed": model.seed}
        | {"steps": model.steps, "values": [score / 100 for score in model.bleu]}
        for model in result.models
        if model.bleu
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


def curve_content(curve: Curve) -> dict[str, Any]:
    """A curve as JSON, with null for what has no value."""
    return {"steps": curve.steps, "values": [_number(value) for value in curve.values]}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
