"""What a study's page carries inside it: everything its charts and its slider need, and nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.data.ragged import Ids, Ragged
from heedful.data.vocabulary import EncodedSplit
from heedful.metrics.statistics import Estimate
from heedful.models.lexicon import count_table
from heedful.papers.published import published_agreements
from heedful.reports.examples import (
    add_attention,
    add_examples,
    add_pairs,
    alignment_errors,
    choose_examples,
    choose_pairs,
    gold_cells,
)
from heedful.reports.formatting import MODEL_TITLES, symbol
from heedful.reports.html import Arrays
from heedful.reports.word_tables import attended_words, special, spelling, told, translated, translated_words
from heedful.studies.result import AgreementResult, AlignmentResult, Curve, ModelSummary, StudyResult, agreement_row
from heedful.studies.run_directory import ModelKind, ModelSpec, RunDirectory
from heedful.tracing.store import Trace

RECORDED: tuple[ModelKind, ...] = ("standard", "uniform", "attention-only")
_BYTES_PER_POSITION = {"standard": 3, "uniform": 2, "attention-only": 3}
_BYTES_PER_OUTPUT = {"standard": 20, "uniform": 16}


@dataclass(frozen=True)
class Shown:
    """One model on a page: what it is called there, and the steps at which it is shown."""

    run: RunDirectory
    spec: ModelSpec
    name: str
    title: str
    steps: tuple[int, ...]

    @property
    def attends(self) -> bool:
        """Whether its attention is its own; a uniform twin's is not."""
        return self.spec.kind != "uniform"

    def trace(self) -> Trace:
        """What was recorded of it."""
        return self.run.model(self.spec).trace()


def shown_models(run: RunDirectory, result: StudyResult) -> list[Shown]:
    """The standard model of two seeds, and the first seed's twins as far as the study has them."""
    first, second = result.seeds[:2]
    wanted = [ModelSpec("standard", first), ModelSpec("standard", second)]
    return choose_models(run, result, wanted + [ModelSpec(kind, first) for kind in RECORDED[1:]])


def choose_models(run: RunDirectory, result: StudyResult, wanted: Sequence[ModelSpec], of: str = "") -> list[Shown]:
    """Those of the wanted models that were trained, at the steps all have; of: the run's name on a page of several."""
    trained = {model.name: set(model.steps) for model in result.models}
    there = [spec for spec in wanted if spec.name in trained]
    steps = tuple(sorted(set.intersection(*(trained[spec.name] for spec in there))))
    before = f"{of}: " if of else ""
    return [
        Shown(run, spec, f"{of}/{spec.name}" if of else spec.name, f"{before}{_title(spec)}", steps) for spec in there
    ]


def _title(spec: ModelSpec) -> str:
    return f"{MODEL_TITLES[spec.kind]}, seed {spec.seed}"


def shown_texts(shown: Sequence[Shown], arrays: Arrays) -> dict[str, Any]:
    """Some validation texts of the first model's run, as every model saw them through its training."""
    run = shown[0].run
    split = run.split("validation")
    per_position = sum(len(model.steps) * _BYTES_PER_POSITION[model.spec.kind] for model in shown)
    chosen = choose_examples(shown[0].trace(), split.lengths, per_position)
    written = run.words()
    used: dict[tuple[str, str], int] = {}
    places = [
        used.setdefault(spelt, len(used))
        for i in chosen
        for spelt in _spelt(split.text(int(i)).tolist(), written[int(i)])
    ]
    arrays.add("places", np.array(places, dtype=np.uint32))
    add_attention(arrays, "lexicon/counting", [counted_attention(run).rows(chosen)])
    for model in shown:
        add_examples(arrays, model.name, model.trace(), model.steps, chosen, attends=model.attends)
    return {
        "texts": {
            "index": chosen.tolist(),
            "label": split.labels[chosen].tolist(),
            "length": split.lengths[chosen].tolist(),
            "of": len(split),
        },
        "words": [word for word, _ in used],
        "special": [kind for _, kind in used],
    }


def counted_attention(run: RunDirectory) -> Ragged:
    """α^IBM of every validation text: what counting words with labels alone would attend to (snell2021, Eqs 16–19)."""
    train, validation = run.split("train"), run.split("validation")
    size, labels = len(run.vocabulary().words), len(run.data_summary()["labels"])
    counts = count_table(_texts(train), _labels(train), source_size=size, target_size=labels)
    return counts.lexicon().alpha(_texts(validation), _labels(validation))


def _texts(split: EncodedSplit) -> Ids:
    return Ids(split.ids, split.offsets)


def _labels(split: EncodedSplit) -> Ids:
    """Each label as an output of one word."""
    return Ids(split.labels.astype(np.int32), np.arange(len(split) + 1))


def _spelt(ids: list[int], words: list[str]) -> list[tuple[str, str]]:
    """Each position as it was written, and what it is to the model if it is no word to it."""
    return [(word, special(i)) for i, word in zip(ids, ["", *words, ""], strict=True)]


def shown_pairs(shown: Sequence[Shown], arrays: Arrays) -> dict[str, Any]:
    """Some validation pairs of the first model's run, as every model saw them; α^IBM is of that run too."""
    run = shown[0].run
    pairs, lexicon = run.pairs("validation"), run.model(ModelSpec("lexicon", 0)).trace()
    per_cell = sum(len(model.steps) * _BYTES_PER_POSITION[model.spec.kind] for model in shown)
    per_row = sum(len(model.steps) * _BYTES_PER_OUTPUT[model.spec.kind] for model in shown)
    chosen = choose_pairs(shown[0].trace(), pairs, per_cell, per_row)
    predicted = [np.stack([model.trace().prediction(step)[chosen.rows] for step in model.steps]) for model in shown]
    used = np.unique(np.concatenate([chosen.source.values, chosen.outputs.values, *map(np.ravel, predicted)]))
    kind = np.uint16 if len(used) < 1 << 16 else np.uint32
    for side, ids in (("source", chosen.source), ("target", chosen.outputs)):
        arrays.add(side, np.searchsorted(used, ids.values).astype(kind))
    for model, said in zip(shown, predicted, strict=True):
        trace = model.trace()
        add_pairs(arrays, model.name, trace, model.steps, chosen, attends=model.attends)
        arrays.add(f"{model.name}/prediction", np.searchsorted(used, said).astype(kind))
        if pairs.alignments is not None and model.attends:
            alphas = (trace.quantity("alpha", step).rows(chosen.rows) for step in model.steps)
            arrays.add(f"{model.name}/aer", np.stack([alignment_errors(alpha, pairs, chosen) for alpha in alphas]))
    for name, step in (("counting", lexicon.steps[0]), ("model_1", lexicon.steps[-1])):
        add_attention(arrays, f"lexicon/{name}", [lexicon.quantity("alpha", step).rows(chosen.rows)])
    if pairs.alignments is not None:
        arrays.add("gold", gold_cells(pairs, chosen.index))
    return {
        "pairs": {
            "index": chosen.index.tolist(),
            "length": chosen.source.lengths.tolist(),
            "outputs": chosen.outputs.lengths.tolist(),
            "of": len(pairs),
            "gold": pairs.alignments is not None,
        },
        "languages": run.data_summary()["languages"],
        **spelling(run.tokeniser(), used),
    }


FORMAT = 1


@dataclass(frozen=True)
class Payload:
    """`content` becomes JSON; `arrays` become typed arrays."""

    content: dict[str, Any]
    arrays: Arrays


def study_payload(run: RunDirectory, result: StudyResult) -> Payload:
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
