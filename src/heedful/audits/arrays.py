"""Audit of arrays: attention and importances that were computed elsewhere, without a model."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heedful.attribution.attention_maps import NORM, Importance, attention_maps, layer_name, shares
from heedful.attribution.interface import Numbers, Passage
from heedful.audits.result import AuditExample, AuditResult, LabelCount, Weights
from heedful.audits.scores import ScoreTable, chance, contrasts, orders, scores
from heedful.audits.verdict import judge
from heedful.config import AuditSettings
from heedful.errors import DataError


def audit_arrays(
    attention: Sequence[ArrayLike],
    importances: Mapping[str, Sequence[ArrayLike]],
    *,
    predictions: ArrayLike | None = None,
    hidden: Sequence[ArrayLike] | None = None,
    words: Sequence[Sequence[str]] | None = None,
    settings: AuditSettings | None = None,
) -> AuditResult:
    """Entropy of attention and its agreement with importances; questions that need a model stay unclear.

    attention: one array per text, (words,), (heads, words) or (layers, heads, words). importances: by name, one value
    per word of each text, of any scale; below 0 for words that speak against the output. predictions: probabilities
    (texts, labels). hidden: the states that attention reads, (words, width) per text, or (layers, words, width); each
    layer then has a second map, α ‖h‖, which accounts for the size of the states.

    >>> attention, deletion = [[0.1, 0.7, 0.2], [0.6, 0.4]], [[0.0, 0.5, 0.1], [0.3, 0.1]]
    >>> result = audit_arrays(attention, {"leave one out": deletion})
    >>> result.score("tau", "layer 1", "leave one out").value, result.verdict.questions[0].answer
    (1.0, 'unclear')
    """
    settings = settings or AuditSettings()
    alphas = [_layers("attention", i, alpha) for i, alpha in enumerate(attention)]
    shapes = {alpha.shape[:2] for alpha in alphas}
    if len(shapes) != 1:
        raise DataError(
            f"attention has (layers, heads) of {sorted(shapes)}; give at least one text, and the same for all texts"
        )
    passages = [_passage(i, alpha.shape[2], words) for i, alpha in enumerate(alphas)]
    maps = attention_maps(passages, alphas, [None] * len(alphas))
    if hidden is not None:
        maps |= _weighted(passages, alphas, hidden)
    inputs = {name: _shared(name, passages, rows) for name, rows in importances.items()}
    ((layers, heads),) = shapes
    headline = settings.headline or layer_name(layers - 1)
    if headline not in maps:
        raise DataError(f"there is no map {headline!r}; there are {', '.join(maps)}")
    compared = orders(maps, inputs, shown=(headline,))
    lengths = np.array([len(passage.words) for passage in passages])
    table = ScoreTable(
        text=np.arange(len(passages)),
        words=lengths,
        position=np.zeros_like(lengths),
        numbers=compared.numbers,
        important=compared.important,
        seed=settings.seed,
        resamples=settings.resamples,
    )
    outputs, counts = _predicted(predictions, len(passages))
    measured, differ, guessed = scores(table), contrasts(table, headline), chance(table)
    return AuditResult(
        settings=asdict(settings),
        fingerprint="",
        layers=layers,
        heads=heads,
        query="",
        headline=headline,
        texts=len(passages),
        passages=len(passages),
        cut=0,
        cut_pieces=0,
        labels=counts,
        accuracy=None,
        random_agreement=guessed,
        rationale_percent=None,
        scores=measured,
        contrasts=differ,
        verdict=judge(measured, differ, headline=headline, layers=layers, random_agreement=guessed, settings=settings),
        examples=tuple(
            AuditExample(
                i,
                passages[i].words,
                *outputs[i],
                map=tuple(maps[headline][i].tolist()),
                importances=tuple(Weights(name, tuple(rows[i].tolist())) for name, rows in inputs.items()),
            )
            for i in range(min(settings.examples, len(passages)))
        ),
    )


def _array(values: Any) -> Numbers:
    """Anything array-like as doubles; a tensor may be on any device and require gradients."""
    plain = values.detach().cpu().double() if hasattr(values, "detach") else values
    return np.asarray(plain, dtype=np.float64)


def _layers(name: str, i: int, values: ArrayLike) -> Numbers:
    array = _array(values)
    if not 1 <= array.ndim <= 3 or array.size == 0:
        raise DataError(
            f"text {i}: {name} has shape {array.shape}; it must be (words,), (heads, words) or (layers, heads, words)"
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise DataError(f"text {i}: {name} has values that are negative or not numbers")
    return array.reshape((1,) * (3 - array.ndim) + array.shape)


def _passage(i: int, length: int, words: Sequence[Sequence[str]] | None) -> Passage:
    shown = tuple(words[i]) if words is not None and i < len(words) else tuple(str(j + 1) for j in range(length))
    if len(shown) != length:
        raise DataError(f"text {i} has {len(shown)} words, but attention for {length}")
    return Passage(i, shown, (False,) * length, tuple(range(length)), tuple(range(length)))


def _shared(name: str, passages: Sequence[Passage], rows: Sequence[ArrayLike]) -> Importance:
    arrays = [_array(row).ravel() for row in rows]
    if len(arrays) != len(passages):
        raise DataError(f"{name!r} has {len(arrays)} texts, attention {len(passages)}")
    for passage, row in zip(passages, arrays, strict=True):
        if len(row) != len(passage.words):
            raise DataError(f"text {passage.text}: {name!r} has {len(row)} values for {len(passage.words)} words")
    return shares(passages, arrays, signed=True)


def _weighted(
    passages: Sequence[Passage], alphas: Sequence[Numbers], hidden: Sequence[ArrayLike]
) -> dict[str, Importance]:
    states = [_array(state) for state in hidden]
    norms = [np.linalg.norm(state if state.ndim == 3 else state[None], axis=-1) for state in states]
    if [norm.shape[-1] for norm in norms] != [alpha.shape[2] for alpha in alphas]:
        raise DataError("hidden states and attention differ in the lengths of texts")
    products = [alpha.mean(1) * norm for alpha, norm in zip(alphas, norms, strict=True)]
    return {
        layer_name(layer) + NORM: shares(passages, [product[layer] for product in products])
        for layer in range(len(products[0]))
    }


def _predicted(
    predictions: ArrayLike | None, texts: int
) -> tuple[list[tuple[str, None, float]], tuple[LabelCount, ...]]:
    """The prediction for each text, and the count of each label; labels are named by their numbers."""
    if predictions is None:
        return [("", None, float("nan"))] * texts, ()
    table = _array(predictions)
    if table.ndim != 2 or len(table) != texts:
        raise DataError(f"predictions have shape {table.shape}; they must be ({texts}, labels)")
    best = table.argmax(1)
    counts = np.bincount(best, minlength=table.shape[1])
    labels = tuple(LabelCount(str(k), 0, int(count)) for k, count in enumerate(counts))
    return [(str(k), None, float(row[k])) for k, row in zip(best, table, strict=True)], labels
