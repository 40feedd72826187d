"""What a study's page shows besides its result: example texts as each model saw them, and words over training.

Computed from the traces when a page is written, and never stored. `reports` only encodes and formats it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.ragged import Ragged, ranges
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import EncodedSplit
from heedful.metrics.agreement import agreement
from heedful.metrics.statistics import Estimate, SeedsAndTexts, nested_estimate
from heedful.models.lexicon import count_table
from heedful.studies.analysis import word_links
from heedful.studies.page_words import AttendedWords, TranslatedWords, attended_words, translated_words
from heedful.studies.result import StudyResult, decisive
from heedful.studies.run_directory import ModelKind, ModelSpec, RunDirectory, model_of, shown_heads
from heedful.tracing.store import Trace

RECORDED: tuple[ModelKind, ...] = ("standard", "uniform", "attention-only")
MOST_TEXTS, FEWEST_TEXTS = 200, 12
MOST_PAIRS, FEWEST_PAIRS = 150, 8
LARGEST_TEXTS = 3_500_000  # bytes of embedded values, so that a page stays under 5 MB even if nothing compresses
LARGEST_PAIRS = 2_000_000  # likewise 3 MB
LARGEST_HEADS = 1_000_000
POSSIBLE, SURE = 1, 2
EASY_LENGTH = 8, 26  # tokens of a text that can be taken in at a glance


@dataclass(frozen=True, eq=False)
class PageModel:
    """A model on a page and the steps at which it is shown; run_name: its run's, on a page of several runs."""

    name: str
    kind: str
    seed: int
    steps: tuple[int, ...]
    trace: Trace
    run_name: str = ""

    @property
    def attends(self) -> bool:
        """Whether its attention is learned; a uniform twin's is not."""
        return self.kind != "uniform"


@dataclass(frozen=True, eq=False)
class ModelView:
    """What one model saw in some rows of its trace, step by step; a row is a text or an output word.

    alpha is empty where attention is not learned. prediction, log_odds: (steps, rows).
    """

    name: str
    alpha: tuple[Ragged, ...]
    beta_logit: tuple[Ragged, ...]
    delta: tuple[Ragged, ...]
    prediction: NDArray[np.int32]
    log_odds: NDArray[np.float32]

    @classmethod
    def of(cls, model: PageModel, rows: NDArray[np.int64]) -> "ModelView":
        """Read those rows at every step of the model."""
        trace, steps = model.trace, model.steps
        alpha, beta_logit, delta = (
            tuple(trace.quantity(name, step).take(rows) for step in steps) if name != "alpha" or model.attends else ()
            for name in ("alpha", "beta_logit", "delta")
        )
        prediction = np.stack([trace.prediction(step)[rows] for step in steps])
        log_odds = np.stack([trace.log_odds(step)[rows] for step in steps])
        return cls(model.name, alpha, beta_logit, delta, prediction, log_odds)

    def higher(self) -> NDArray[np.int64]:
        """How many positions of each row have a higher β than the one of highest α (snell2021, Eq. 10)."""
        counts = []
        for alpha, beta in zip(self.alpha, self.beta_logit, strict=True):
            chosen = beta.values[alpha.offsets[:-1] + top(alpha)]
            higher = beta.values > np.repeat(chosen, beta.lengths)
            counts.append(np.add.reduceat(higher, beta.offsets[:-1], dtype=np.int64))
        return np.stack(counts)

    def moved(self) -> NDArray[np.float64]:
        """How far the attention of each row moved over the steps: the sum of total variation distances."""
        alpha = np.stack([rows.values for rows in self.alpha]).astype(np.float64)
        moved: NDArray[np.float64] = np.abs(np.diff(alpha, axis=0)).sum(axis=0) / 2
        return np.asarray(np.add.reduceat(moved, self.alpha[0].offsets[:-1]), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TextExamples:
    """The texts that a page shows, by their numbers in a split; counted: α^IBM of each, where there is one.

    featured: the places in `index` of texts that stand for something, by name (see `featured`).
    """

    split: EncodedSplit
    index: NDArray[np.int64]
    views: tuple[ModelView, ...]
    counted: Ragged | None = None
    featured: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PairExamples:
    """The sentence pairs that a page shows: their numbers in a split, their rows in a trace, both sides as ids.

    counted: α^IBM of the count table, then of the last iteration of IBM Model 1. gold: `SURE`, `POSSIBLE` or 0 for
    each cell, where there are gold alignments. errors: the alignment error of each pair, (steps, pairs), by model.
    featured: as for texts.
    """

    split: EncodedPairs
    index: NDArray[np.int64]
    rows: NDArray[np.int64]
    source: Ragged
    outputs: Ragged
    views: tuple[ModelView, ...] = ()
    counted: tuple[Ragged, ...] = ()
    gold: NDArray[np.uint8] | None = None
    errors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    featured: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class HeadExamples:
    """What every head attends to in some of the examples, step by step.

    model: its name. index: the examples' numbers in their split. weights: of each step and example,
    (layers, heads, T, L).
    """

    model: str
    index: NDArray[np.int64]
    weights: tuple[tuple[NDArray[np.float32], ...], ...]

    @property
    def layers(self) -> int:
        """How many layers have maps."""
        return int(self.weights[0][0].shape[0])

    @property
    def heads(self) -> int:
        """How many maps a layer has."""
        return int(self.weights[0][0].shape[1])


@dataclass(frozen=True, eq=False)
class StudyPageData:
    """models and words: of each run. examples: None where the runs were not evaluated on the same texts.

    gain: accuracy of the standard models less that of their uniform twins, of one run. heads: None where a model has
    one head.
    """

    models: tuple[tuple[PageModel, ...], ...]
    examples: TextExamples | PairExamples | None
    words: tuple[AttendedWords | TranslatedWords, ...]
    gain: Estimate | None = None
    heads: HeadExamples | None = None


def study_page_data(run: RunDirectory, result: StudyResult) -> StudyPageData:
    """Data of a study's page: two seeds of the standard model, and the first seed's twins as far as there are any."""
    first, second = result.seeds[:2]
    specs = [ModelSpec("standard", first), ModelSpec("standard", second)]
    models = _page_models(run, result, specs + [_twin(run, kind, first) for kind in RECORDED[1:]])
    words, heads = _words(run, result, models[0].steps), head_examples(run, models[0].steps)
    examples = _examples(run, models, () if heads is None else heads.index.tolist())
    return StudyPageData((models,), examples, (words,), attention_gain(run, result), heads)


def head_examples(run: RunDirectory, steps: Sequence[int]) -> HeadExamples | None:
    """What every head attended to at those steps, in as many examples as fit into `LARGEST_HEADS` bytes, at least one.

    None where the model has one head, or was trained before heads were recorded.
    """
    spec = shown_heads(run.config())
    model = run.model(spec)
    if not model.heads_folder().exists():
        return None
    maps = [model.heads(step) for step in steps]
    size = np.cumsum([len(steps) * weights.size for weights in maps[0].weights])
    fits = max(1, int(np.sum(size <= LARGEST_HEADS)))
    return HeadExamples(spec.name, maps[0].example[:fits].astype(np.int64), tuple(m.weights[:fits] for m in maps))


def attention_gain(run: RunDirectory, result: StudyResult) -> Estimate | None:
    """What learned attention adds to accuracy: standard models less their uniform twins, text by text.

    Each model at its step of lowest validation loss. The interval is over texts, from five seeds on over seeds too.
    None where there are no twins.
    """
    best = {model.name: model.best_step for model in result.models}
    pairs = [(ModelSpec("standard", seed), _twin(run, "uniform", seed)) for seed in result.seeds]
    if any(twin.name not in best for _, twin in pairs):
        return None
    right = [[run.model(spec).trace().correct(best[spec.name]) for spec in specs] for specs in zip(*pairs, strict=True)]
    groups = run.model(pairs[0][0]).trace().example()
    sample = SeedsAndTexts.of(
        [np.stack(rows).astype(np.float64) for rows in right], [(s,) for s in result.seeds], groups
    )
    return decisive(nested_estimate(sample, lambda means: means[0] - means[1]), len(result.seeds))


def comparison_page_data(studies: Sequence[tuple[str, RunDirectory, StudyResult]]) -> StudyPageData:
    """Data of a page of several studies: the first seed's standard model of each and its uniform twin."""
    models = tuple(
        _page_models(run, result, [_twin(run, kind, result.seeds[0]) for kind in RECORDED[:2]], name)
        for name, run, result in studies
    )
    if not _same_texts([run for _, run, _ in studies]):
        return StudyPageData(models, None, ())
    words = (_words(run, result, own[0].steps) for (_, run, result), own in zip(studies, models, strict=True))
    return StudyPageData(models, _examples(studies[0][1], [model for own in models for model in own]), tuple(words))


def _twin(run: RunDirectory, kind: ModelKind, seed: int) -> ModelSpec:
    return model_of(run.config(), ModelSpec(kind, seed))


def text_examples(
    split: EncodedSplit, models: Sequence[PageModel], counted: Ragged | None = None, also: Sequence[int] = ()
) -> TextExamples:
    """Some texts as every model saw them; the first model decides which. also: texts to add to them."""
    first = models[0]
    named = featured(first, split.lengths, np.arange(len(split)))
    chosen = choose_texts(first.trace, split.lengths, _bytes_per_position(models))
    index = np.array(list(dict.fromkeys([*named.values(), *chosen.tolist(), *also])), dtype=np.int64)
    views = tuple(ModelView.of(model, index) for model in models)
    places = {name: index.tolist().index(text) for name, text in named.items()}
    return TextExamples(split, index, views, None if counted is None else counted.take(index), places)


def featured(model: PageModel, lengths: NDArray[np.int64], example: NDArray[np.integer]) -> dict[str, int]:
    """Texts that stand for something, by name; of those of `EASY_LENGTH` tokens, or of all where there are none.

    typical: nearest to the median in the movement of attention, in the probability of the right answer and in length.
    most changed: attention at the last step is furthest from that at the first (total variation distance). disagrees:
    the word of highest attention is lowest by word knowledge. example: the text of each row of the trace; lengths: of
    each text.
    """
    view = ModelView.of(model, np.arange(len(example)))
    sizes = np.bincount(example)
    per_text = [
        np.bincount(example, weights=each) / sizes
        for each in (
            _distance(view.alpha[0], view.alpha[-1]),
            view.log_odds[-1],
            view.higher()[-1] / view.alpha[0].lengths,
        )
    ]
    changed, sure, apart = per_text
    short, long = EASY_LENGTH
    easy = (lengths >= short) & (lengths <= long)
    easy = easy if easy.any() else np.ones_like(easy)
    ranks = [np.argsort(np.argsort(each, kind="stable")) / len(lengths) for each in (changed, sure, lengths)]
    untypical = np.sum([np.abs(rank - 0.5) for rank in ranks], axis=0)
    scores = {"typical": -untypical, "most changed": changed, "disagrees": apart}
    return {name: int(np.argmax(np.where(easy, score, -np.inf))) for name, score in scores.items()}


def _distance(first: Ragged, second: Ragged) -> NDArray[np.float64]:
    """The total variation distance of each row."""
    apart = np.abs(first.values.astype(np.float64) - second.values) / 2
    return np.asarray(np.add.reduceat(apart, first.offsets[:-1]), dtype=np.float64)


def choose_texts(trace: Trace, lengths: NDArray[np.int64], bytes_per_position: int) -> NDArray[np.int64]:
    """A varied set of texts, the same for the same run.

    Texts are grouped into eight (right or wrong at the end; changed its prediction or not; α agrees with β or not) and
    taken from each group in turn, so that rare cases are shown too. As many as fit into `LARGEST_TEXTS` bytes, but at
    least `FEWEST_TEXTS`.
    """
    last = trace.steps[-1]
    predictions = np.stack([trace.prediction(step) for step in trace.steps])
    settled = np.all(predictions == predictions[-1], axis=0)
    agree = agreement(trace.quantity("alpha", last), trace.quantity("beta_logit", last)) > 0
    chosen = in_turn(4 * trace.correct(last) + 2 * settled + agree)[:MOST_TEXTS]
    size = np.cumsum(lengths[chosen]) * bytes_per_position
    return chosen[: max(FEWEST_TEXTS, int(np.sum(size <= LARGEST_TEXTS)))]


def choose_pairs(
    trace: Trace, pairs: EncodedPairs, bytes_per_position: int, bytes_per_output: int
) -> NDArray[np.int64]:
    """A varied set of pairs, the same for the same run.

    As for texts, pairs are grouped into eight (more or fewer words right at the end than in the middle pair; more or
    fewer changed predictions; α agrees with β in more or fewer rows) and taken from each group in turn, as many as fit
    into `LARGEST_PAIRS` bytes, but at least `FEWEST_PAIRS`.
    """
    example, last = trace.example(), trace.steps[-1]
    predictions = np.stack([trace.prediction(step) for step in trace.steps])
    changes = np.sum(predictions[1:] != predictions[:-1], axis=0)
    agree = agreement(trace.quantity("alpha", last), trace.quantity("beta_logit", last))
    right, changing, agreeing = (
        means > np.median(means)
        for means in (
            np.bincount(example, weights=each) / np.bincount(example) for each in (trace.correct(last), changes, agree)
        )
    )
    order = in_turn(4 * right + 2 * ~changing + agreeing)[:MOST_PAIRS]
    rows = pairs.target.lengths[order] - 1
    size = np.cumsum(rows * (pairs.source.lengths[order] * bytes_per_position + bytes_per_output))
    return order[: max(FEWEST_PAIRS, int(np.sum(size <= LARGEST_PAIRS)))]


def take_pairs(pairs: EncodedPairs, index: NDArray[np.int64]) -> PairExamples:
    """The pairs of those numbers, without anything that a model saw in them."""
    outputs = pairs.outputs
    rows = ranges(outputs.offsets[index], outputs.lengths[index])
    return PairExamples(pairs, index, rows, pairs.source.take(index), outputs.take(index))


def in_turn(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers, one from each group at a time, from the last group to the first; at random within each.

    >>> in_turn(np.array([0, 0, 1]))[0]
    np.int64(2)
    """
    order = np.random.default_rng(0).permutation(len(group))
    turn = np.empty(len(group), dtype=np.int64)
    for g in np.unique(group):
        members = order[group[order] == g]
        turn[members] = np.arange(len(members))
    numbers: NDArray[np.int64] = np.lexsort((-group, turn))
    return numbers


def top(rows: Ragged) -> NDArray[np.int64]:
    """The first highest position of each row.

    >>> top(Ragged.of([[0.1, 0.9], [0.5, 0.5]]))
    array([1, 0])
    """
    highest = np.maximum.reduceat(rows.values, rows.offsets[:-1])
    at = np.flatnonzero(rows.values == np.repeat(highest, rows.lengths))
    _, first = np.unique(rows.row_of[at], return_index=True)
    positions: NDArray[np.int64] = at[first] - rows.offsets[:-1]
    return positions


def counted_attention(run: RunDirectory) -> Ragged:
    """α^IBM of every validation text: what counting words with labels alone would attend to (snell2021, Eqs 16–19)."""

    def as_pairs(split: EncodedSplit) -> tuple[Ragged, Ragged]:
        labels = Ragged(split.labels.astype(np.int32), np.arange(len(split) + 1))  # each an output of one word
        return split.ids, labels

    size, labels = len(run.vocabulary().words), len(run.data_summary()["labels"])
    counts = count_table(*as_pairs(run.split("train")), source_size=size, target_size=labels)
    return counts.lexicon().alpha(*as_pairs(run.split("validation")))


def _page_models(
    run: RunDirectory, result: StudyResult, specs: Sequence[ModelSpec], run_name: str = ""
) -> tuple[PageModel, ...]:
    """Those of the models that were trained, at the steps that all of them have."""
    trained = {model.name: set(model.steps) for model in result.models}
    there = [spec for spec in specs if spec.name in trained]
    steps = tuple(sorted(set.intersection(*(trained[spec.name] for spec in there))))
    prefix = f"{run_name}/" if run_name else ""
    return tuple(
        PageModel(f"{prefix}{spec.name}", spec.kind, spec.seed, steps, run.model(spec).trace(), run_name)
        for spec in there
    )


def _examples(run: RunDirectory, models: Sequence[PageModel], also: Sequence[int] = ()) -> TextExamples | PairExamples:
    if run.config().task == "translation":
        return _pair_examples(run, models, also)
    return text_examples(run.split("validation"), models, counted_attention(run), also)


def _pair_examples(run: RunDirectory, models: Sequence[PageModel], also: Sequence[int]) -> PairExamples:
    split, lexicon = run.pairs("validation"), run.model(ModelSpec("lexicon", 0)).trace()
    per_output = sum(len(model.steps) * (20 if model.attends else 16) for model in models)
    named = featured(models[0], split.source.lengths, models[0].trace.example())
    varied = choose_pairs(models[0].trace, split, _bytes_per_position(models), per_output).tolist()
    index = list(dict.fromkeys([*named.values(), *varied, *also]))
    chosen = take_pairs(split, np.array(index, dtype=np.int64))
    views = tuple(ModelView.of(model, chosen.rows) for model in models)
    counted = (lexicon.quantity("alpha", step).take(chosen.rows) for step in (lexicon.steps[0], lexicon.steps[-1]))
    gold, errors = None, {}
    if split.alignments is not None:
        pairs = split.take(chosen.index)
        gold = _gold_cells(pairs)
        errors = {
            view.name: np.stack([_alignment_errors(a, pairs) for a in view.alpha]) for view in views if view.alpha
        }
    places = {name: index.index(pair) for name, pair in named.items()}
    return replace(chosen, views=views, counted=tuple(counted), gold=gold, errors=errors, featured=places)


def _words(run: RunDirectory, result: StudyResult, steps: Sequence[int]) -> AttendedWords | TranslatedWords:
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    if result.task == "translation":
        return translated_words(run.pairs("validation"), traces, run.model(ModelSpec("lexicon", 0)).trace(), steps)
    polar = len(result.data["labels"]) == 2
    return attended_words(run.split("validation"), traces, steps, polar=polar)


def _bytes_per_position(models: Sequence[PageModel]) -> int:
    """What a position takes on a page: α, β and Δ at every step, a byte each."""
    return sum(len(model.steps) * (3 if model.attends else 2) for model in models)


def _same_texts(runs: Sequence[RunDirectory]) -> bool:
    """Whether all models of all runs were evaluated on the same validation texts, position by position."""

    def texts(run: RunDirectory) -> tuple[Any, NDArray[Any], NDArray[Any]]:
        if run.is_translation():
            pairs = run.pairs("validation")
            return run.tokeniser(), pairs.source.values, pairs.target.values
        split = run.split("validation")
        return (run.data_summary()["labels"], run.words()), split.lengths, split.labels

    words, *numbers = texts(runs[0])
    others = map(texts, runs[1:])
    return all(other[0] == words and all(map(np.array_equal, other[1:], numbers)) for other in others)


def _gold_cells(pairs: EncodedPairs) -> NDArray[np.uint8]:
    """`SURE` or `POSSIBLE` for cells whose words gold links, 0 for all others; every part of a word counts."""
    marks = []
    for m, gold in enumerate(pairs.alignments or ()):
        source, target = pairs.source_words[m].tolist(), pairs.target_words[m][1:].tolist()
        marks += [
            SURE if (s, t) in gold.sure else POSSIBLE if (s, t) in gold.possible else 0 for t in target for s in source
        ]
    return np.array(marks, dtype=np.uint8)


def _alignment_errors(alpha: Ragged, pairs: EncodedPairs) -> NDArray[np.float32]:
    """The alignment error rate of each pair, its target words linked to where α is highest (Och & Ney 2003)."""
    errors = []
    for links, gold in zip(word_links(alpha, pairs), pairs.alignments or (), strict=True):
        hits, made = len(links & gold.sure) + len(links & gold.possible), len(links) + len(gold.sure)
        errors.append(1 - hits / made if made else np.nan)
    return np.array(errors, dtype=np.float32)
