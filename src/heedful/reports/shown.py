"""Which models a page shows, and what each of them saw in the same texts or sentence pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.data.ids import Ids
from heedful.data.tokens import EncodedSplit
from heedful.measure.ragged import Ragged
from heedful.model.lexicon import count_table
from heedful.reports.examples import add_examples, choose_examples
from heedful.reports.packing import Arrays
from heedful.reports.pairs import add_attention, add_pairs, alignment_errors, choose_pairs, gold_cells
from heedful.reports.pieces import special, spelling
from heedful.reports.words import MODEL_TITLES
from heedful.studies.result import StudyResult
from heedful.studies.run import ModelKind, ModelSpec, Run
from heedful.trace.store import Trace

RECORDED: tuple[ModelKind, ...] = ("standard", "uniform", "attention-only")
_BYTES_PER_POSITION = {"standard": 3, "uniform": 2, "attention-only": 3}
_BYTES_PER_OUTPUT = {"standard": 20, "uniform": 16}


@dataclass(frozen=True)
class Shown:
    """One model on a page: what it is called there, and the steps at which it is shown."""

    run: Run
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


def shown_models(run: Run, result: StudyResult) -> list[Shown]:
    """The standard model of two seeds, and the first seed's twins as far as the study has them."""
    first, second = result.seeds[:2]
    wanted = [ModelSpec("standard", first), ModelSpec("standard", second)]
    return choose_models(run, result, wanted + [ModelSpec(kind, first) for kind in RECORDED[1:]])


def choose_models(run: Run, result: StudyResult, wanted: Sequence[ModelSpec], of: str = "") -> list[Shown]:
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


def counted_attention(run: Run) -> Ragged:
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
