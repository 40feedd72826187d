"""The numbers that a study's page carries for its charts and its slider."""

from collections.abc import Sequence
from typing import Any

from heedful.html import symbol
from heedful.metrics.statistics import Estimate
from heedful.papers.published import published_agreements
from heedful.reports.examples import embed_pairs, embed_texts, embed_translations, embed_words, run_words
from heedful.reports.html import MODEL_TITLES, Arrays, Payload
from heedful.storage.atomic_files import without_nan
from heedful.studies.page_data import RECORDED, AttendedWords, PageModel, PairExamples, StudyPageData, TranslatedWords
from heedful.studies.result import AgreementResult, AlignmentResult, Curve, StudyResult, agreement_row
from heedful.studies.run_directory import RunDirectory

FORMAT = 1


def study_payload(run: RunDirectory, result: StudyResult, data: StudyPageData) -> Payload:
    """Agreements and curves from the result, examples and words from the page data."""
    arrays = Arrays()
    (models,) = data.models
    content = {
        "format": FORMAT,
        "task": result.task,
        "name": result.data["name"],
        "labels": result.data["labels"],
        "steps": list(models[0].steps),
        "agreements": drawn_agreements(result),
        "rows": [saved_row(row) for row in result.agreements],
        "paper": _paper(result),
        "random": result.random_agreement,
        "accuracy": accuracy_curves(result),
        "references": _references(result),
        "entropy": curve_content(result.entropy),
        "models": [{"name": model.name, "kind": model.kind, "title": model_title(model)} for model in models],
    }
    if result.task == "translation":
        content |= {"bleu": bleu_curves(result), "alignment": _alignment(result.alignment)}
    content |= embedded(data, [run], arrays)
    return Payload(without_nan(content) | {"arrays": arrays.directory}, arrays)


def embedded(
    data: StudyPageData,
    runs: Sequence[RunDirectory],
    arrays: Arrays,
    names: Sequence[str] = ("",),
    places: Sequence[Sequence[int]] = ((),),
) -> dict[str, Any]:
    """The examples and the words of all runs; names, places: of each run, as in `RunWords`."""
    if isinstance(data.examples, PairExamples):
        content = embed_pairs(runs[0], data.examples, arrays)
    elif data.examples is not None:
        content = embed_texts(runs[0], data.examples, arrays)
    else:
        return {}
    attended = [table for table in data.words if isinstance(table, AttendedWords)]
    translated = [table for table in data.words if isinstance(table, TranslatedWords)]
    if translated:
        return content | embed_translations(translated, runs[0].tokeniser(), arrays, names, places)
    rows = zip(runs, attended, names, places, strict=True)
    return content | embed_words([run_words(*row) for row in rows], arrays)


def model_title(model: PageModel) -> str:
    """What a model is called on a page."""
    prefix = f"{model.run_name}: " if model.run_name else ""
    return f"{prefix}{MODEL_TITLES[model.kind]}, seed {model.seed}"


def agreement_key(name: str) -> str:
    """One key for A(u, v) and A(v, u): own and cross compare the same pair in either order.

    >>> agreement_key("A(beta_px,beta_uf)")
    'A(beta_uf,beta_px)'
    """
    u, v = name[2:-1].split(",")
    return f"A({v},{u})" if u in ("beta_px", "beta_log") else name


def drawn_agreements(result: StudyResult) -> list[dict[str, Any]]:
    """What the charts know of the agreements of a study."""
    return [
        drawn_agreement(
            row.name, row.estimate, row.shuffle, row.curve, row.convention, maximised=row.chosen_steps is not None
        )
        for row in result.agreements
    ]


def drawn_agreement(
    name: str, estimate: Estimate, shuffle: Estimate, curve: Curve, convention: str = "own", *, maximised: bool = False
) -> dict[str, Any]:
    """What the charts know of an agreement."""
    return {
        "key": agreement_key(name),
        "symbol": symbol(name),
        "convention": convention,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "shuffle": shuffle.value,
        "maximised": maximised,
        "curve": curve_content(curve),
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
    cells = agreement_row(row) | several
    return {name: " ".join(map(str, cell)) if isinstance(cell, tuple) else cell for name, cell in cells.items()}


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


def curve_content(curve: Curve) -> dict[str, Any]:
    """A curve as JSON."""
    return {"steps": curve.steps, "values": curve.values}


def _paper(result: StudyResult) -> dict[str, float]:
    published = published_agreements(result.data["name"])
    return {name: value / 100 for name, value in published.items() if name.startswith("A(")}


def _references(result: StudyResult) -> list[dict[str, Any]]:
    """Levels to compare the curves of accuracy with."""
    levels = [(MODEL_TITLES[kind], result.mean_best_accuracy(kind)) for kind in ("proxy", "logistic")]
    levels.append(("most frequent label", result.data.get("majority")))
    return [{"title": title, "value": value} for title, value in levels if value is not None]


def _alignment(alignment: AlignmentResult | None) -> dict[str, Any] | None:
    """Alignment error of attention over training, and the levels to compare it with."""
    if alignment is None:
        return None
    levels = [
        ("counting α^IBM", alignment.counting),
        ("IBM Model 1", alignment.model_1),
        ("diagonal", alignment.diagonal),
    ]
    return {
        "curve": curve_content(alignment.attention),
        "ends": [{"low": end.low, "high": end.high} for end in (alignment.untrained, alignment.trained)],
        "references": [{"title": title, "value": e.value, "low": e.low, "high": e.high} for title, e in levels]
        + [{"title": "chance", "value": alignment.chance}],
    }
