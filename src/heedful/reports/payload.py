"""What a study's page carries inside it: everything its charts and its slider need, and nothing else."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.measure.uncertainty import Estimate
from heedful.papers.published import published_agreements
from heedful.reports.examples import add_examples, choose_examples
from heedful.reports.packing import Arrays
from heedful.reports.pairs import add_attention, add_pairs, alignment_errors, choose_pairs, gold_cells
from heedful.reports.pieces import special, spelling
from heedful.reports.tokens import token_table
from heedful.reports.translations import Ranking, translation_table
from heedful.reports.words import MODEL_TITLES, symbol
from heedful.studies.result import AgreementResult, AlignmentResult, Curve, ModelSummary, StudyResult, agreement_row
from heedful.studies.run import ModelKind, ModelSpec, Run

FORMAT = 1
_RECORDED: tuple[ModelKind, ...] = ("standard", "uniform", "attention-only")
_BYTES_PER_POSITION = {"standard": 3, "uniform": 2, "attention-only": 3}
_BYTES_PER_OUTPUT = {"standard": 20, "uniform": 16}


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
    if result.task == "translation":
        content |= {"bleu": _bleu(result), "alignment": _alignment(result.alignment)}
        content |= _pairs(run, shown, steps, arrays) | _translations(run, result, steps, arrays)
    else:
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
    written = run.words()
    used: dict[tuple[str, str], int] = {}
    places = [
        used.setdefault(spelt, len(used))
        for i in chosen
        for spelt in _spelt(split.text(int(i)).tolist(), written[int(i)])
    ]
    arrays.add("places", np.array(places, dtype=np.uint32))
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
        "words": [word for word, _ in used],
        "special": [kind for _, kind in used],
    }


def _spelt(ids: list[int], words: list[str]) -> list[tuple[str, str]]:
    """Each position as it was written, and what it is to the model if it is no word to it."""
    return [(word, special(i)) for i, word in zip(ids, ["", *words, ""], strict=True)]


def _tokens(run: Run, result: StudyResult, steps: list[int], arrays: Arrays) -> dict[str, Any]:
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    table = token_table(run.split("validation"), traces, steps)
    arrays.add("tokens/attention", table.attention)
    arrays.add("tokens/beta", table.beta)
    vocabulary = run.vocabulary().words
    return {
        "tokens": {
            "words": [vocabulary[i] for i in table.ids],
            "special": [special(int(i)) for i in table.ids],
            "counts": table.counts.tolist(),
            "least": table.least,
            "seeds": len(traces),
        }
    }


def _pairs(run: Run, shown: list[ModelSpec], steps: list[int], arrays: Arrays) -> dict[str, Any]:
    pairs = run.pairs("validation")
    traces = {spec: run.model(spec).trace() for spec in shown}
    lexicon = run.model(ModelSpec("lexicon", 0)).trace()
    per_cell = len(steps) * sum(_BYTES_PER_POSITION[spec.kind] for spec in shown)
    per_row = len(steps) * sum(_BYTES_PER_OUTPUT[spec.kind] for spec in shown)
    chosen = choose_pairs(traces[shown[0]], pairs, per_cell, per_row)
    predicted = {spec: np.stack([t.prediction(step)[chosen.rows] for step in steps]) for spec, t in traces.items()}
    used = np.unique(np.concatenate([chosen.source.values, chosen.outputs.values, *map(np.ravel, predicted.values())]))
    for side, ids in (("source", chosen.source), ("target", chosen.outputs)):
        arrays.add(side, np.searchsorted(used, ids.values).astype(np.uint16 if len(used) < 1 << 16 else np.uint32))
    for spec, trace in traces.items():
        add_pairs(arrays, spec.name, trace, steps, chosen, attends=spec.kind != "uniform")
        places = np.searchsorted(used, predicted[spec])
        arrays.add(f"{spec.name}/prediction", places.astype(np.uint16 if len(used) < 1 << 16 else np.uint32))
        if pairs.alignments is not None and spec.kind != "uniform":
            alphas = (trace.quantity("alpha", step).rows(chosen.rows) for step in steps)
            arrays.add(f"{spec.name}/aer", np.stack([alignment_errors(alpha, pairs, chosen) for alpha in alphas]))
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


def _translations(run: Run, result: StudyResult, steps: list[int], arrays: Arrays) -> dict[str, Any]:
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    lexicon = run.model(ModelSpec("lexicon", 0)).trace()
    table = translation_table(run.pairs("validation"), traces, lexicon, steps)
    rankings: dict[str, Ranking] = {
        name: getattr(table, name) for name in ("counting", "model_1", "knowledge", "attention")
    }
    used = np.unique(np.concatenate([table.ids, *(ranking.tokens.ravel() for ranking in rankings.values())]))
    used = used[used >= 0]
    for name, ranking in rankings.items():
        places = np.where(ranking.tokens < 0, len(used), np.searchsorted(used, ranking.tokens))
        arrays.add(f"translations/{name}", places.astype(np.uint16))
        arrays.add(f"translations/{name}_score", ranking.scores)
    return {
        "translations": {
            "source": np.searchsorted(used, table.ids).tolist(),
            "counts": table.counts.tolist(),
            "least": table.least,
            "meetings": table.meetings,
            "seeds": len(traces),
            "best": rankings["counting"].tokens.shape[-1],
            **spelling(run.tokeniser(), used),
        }
    }


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
        "curve": _curve(alignment.attention),
        "ends": [_ends(alignment.untrained), _ends(alignment.trained)],
        "references": [{"title": title, "value": e.value, **_ends(e)} for title, e in levels]
        + [{"title": "chance", "value": alignment.chance}],
    }


def _ends(estimate: Estimate) -> dict[str, float | None]:
    return {"low": _number(estimate.low), "high": _number(estimate.high)}


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


def _accuracy(result: StudyResult) -> list[dict[str, Any]]:
    return [
        {"kind": model.kind, "title": MODEL_TITLES[model.kind], "seed": model.seed}
        | {"steps": model.steps, "values": model.accuracy}
        for model in result.models
        if model.kind in _RECORDED
    ]


def _bleu(result: StudyResult) -> list[dict[str, Any]]:
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


def _curve(curve: Curve) -> dict[str, Any]:
    return {"steps": curve.steps, "values": [_number(value) for value in curve.values]}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
