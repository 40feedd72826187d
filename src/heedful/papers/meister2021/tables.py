"""Tables 1 to 3, Figure 2 and the lengths of texts: is importance spread out, and does sparsity change that?

Above the tables: lists of models, and summaries of what was measured on them, which the figures use too.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heedful.metrics.rank import kendall_tau_b
from heedful.metrics.statistics import Estimate, mean_over_seeds, nested_normal
from heedful.papers.experiment import Answer
from heedful.papers.findings import (
    Cell,
    Figure,
    Finding,
    Panel,
    ResultTable,
    Row,
    Sizes,
    Value,
    curve,
    exactly,
    nested_value,
    seed_value,
)
from heedful.papers.meister2021.config import (
    ARCHITECTURES,
    NAMES,
    SOFTMAX,
    SPARSEMAX,
    Architecture,
    MeisterBudget,
    MeisterCorpus,
    sparsegen,
)
from heedful.papers.meister2021.models import MeisterModel
from heedful.papers.published import published_means

MODELS = {"transformer": "Transformer dot softmax", "bilstm": "BiLSTM additive softmax"}  # their names in Table 3
COLUMNS = ("train", "validation", "test", "vocabulary", "accuracy (T)", "accuracy (B)")
PROJECTIONS = (SOFTMAX, SPARSEMAX)
SPREAD = "After ±, the standard deviation over texts, the paper's in parentheses; intervals are over seeds."
AXIS = "−log₁₀(1 − λ)"
AXIS_CAPTION = "The axis is log-scaled towards both ends: λ = −99, −9, 0, 0.9 and 0.99 stand at −2, −1, 0, 1 and 2."
BINS = 5
LEAST_ALONG = 3  # values of a parameter below which there is no trend along it
UNIT, SIGNED = (0.0, 1.0), (-1.0, 1.0)  # ranges of entropies, and of τ

Seen = Mapping[MeisterModel, Sequence[Answer]]  # what was measured on each kind of model, seed by seed
PerText = Callable[[Answer], NDArray[np.float64]]


def softmax_models(corpora: Sequence[MeisterCorpus]) -> list[MeisterModel]:
    """The models of Table 3."""
    return [MeisterModel(corpus, architecture, SOFTMAX) for corpus in corpora for architecture in ARCHITECTURES]


def main_models(corpora: Sequence[MeisterCorpus]) -> list[MeisterModel]:
    """The models of Tables 1 and 6: both architectures with softmax and with sparsemax."""
    return [MeisterModel(c, a, p) for a in ARCHITECTURES for p in PROJECTIONS for c in corpora]


def softmax_and_grid(corpora: Sequence[MeisterCorpus]) -> list[MeisterModel]:
    """The models of Figure 2."""
    return [*softmax_models(corpora), *all_along(corpora)]


def by_name(models: Iterable[MeisterModel]) -> dict[str, list[MeisterModel]]:
    """The lines of a table: models of one name, one for each corpus."""
    lines: dict[str, list[MeisterModel]] = {}
    for model in models:
        lines.setdefault(model.name, []).append(model)
    return lines


def along_grid(corpus: MeisterCorpus, architecture: Architecture) -> list[MeisterModel]:
    """The models of one corpus at every λ it is trained with."""
    return [MeisterModel(corpus, architecture, sparsegen(lam)) for lam in corpus.grid]


def all_along(corpora: Sequence[MeisterCorpus]) -> list[MeisterModel]:
    """The models of all corpora at every λ."""
    return [model for corpus in corpora for architecture in ARCHITECTURES for model in along_grid(corpus, architecture)]


def numbers(values: Sequence[float | int | None]) -> NDArray[np.float64]:
    """Numbers as JSON has them, NaN for None.

    >>> numbers([0.5, None])
    array([0.5, nan])
    """
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def per_text(key: str) -> PerText:
    """The measure of that name, one number for each text."""
    return lambda answer: numbers(answer[key])


def less(first: PerText, second: PerText) -> PerText:
    """The difference, text by text."""
    return lambda answer: first(answer) - second(answer)


def mean(values: NDArray[np.float64]) -> float:
    """The mean of the values that are defined; NaN where none is.

    >>> mean(np.array([1.0, math.nan]))
    1.0
    """
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan


def per_seed(seeds: Sequence[Answer], measure: PerText) -> list[float]:
    """The mean over the texts that have a value, seed by seed; NaN where none has."""
    return [mean(measure(answer)) for answer in seeds]


def over_seeds(seeds: Sequence[Answer], measure: PerText) -> Estimate:
    """The mean over texts and seeds, with its interval over seeds."""
    return mean_over_seeds(per_seed(seeds, measure))


def spread(seeds: Sequence[Answer], measure: PerText) -> float:
    """The standard deviation over texts, in the mean over seeds."""
    each = [values[~np.isnan(values)].std() for values in map(measure, seeds) if not np.isnan(values).all()]
    return float(np.mean(each)) if each else math.nan


def undefined(seeds: Sequence[Answer], measure: PerText) -> int:
    """How many texts have no value, over all seeds."""
    return int(sum(np.isnan(measure(answer)).sum() for answer in seeds))


def cell(seeds: Sequence[Answer], measure: PerText, published: tuple[float, float | None] | None = None) -> Cell:
    """A mean with its spread over texts, beside what the paper prints."""
    mean, std = published or (None, None)
    deviation = spread(seeds, measure)
    text = None if math.isnan(deviation) else f"± {deviation:.2f}" + ("" if std is None else f" (± {std:.2f})")
    return Cell(over_seeds(seeds, measure), mean, digits=2, text=text, **sizes_of(seeds, measure))


def sizes_of(seeds: Sequence[Answer], measure: PerText) -> Sizes:
    """How many seeds and texts a number was measured on, for its cell; texts without a value are not counted."""
    return {"seeds": len(seeds), "texts": defined_texts(seeds, measure)}


def defined_texts(seeds: Sequence[Answer], measure: PerText) -> int:
    """The texts that have a value, in the seed with the fewest."""
    return min(int((~np.isnan(measure(answer))).sum()) for answer in seeds)


def text_value(name: str, seeds: Sequence[Answer], measure: PerText, within: tuple[float, float]) -> Value:
    """A measure of texts as a number that claims are judged by; its interval is over seeds and texts."""
    value = nested_value(name, np.array([measure(answer) for answer in seeds]), within)
    return replace(value, texts=defined_texts(seeds, measure))


def trend(name: str, grid: Sequence[float], seeds: Sequence[Sequence[Answer]], measure: PerText) -> Value:
    """Kendall's τ-b between a parameter and the mean of a measure, seed by seed; `seeds[i]` are those of `grid[i]`."""
    table = np.array([per_seed(answers, measure) for answers in seeds]).T  # (seeds, grid)
    texts = min(defined_texts(answers, measure) for answers in seeds)
    return seed_value(name, [rank_correlation(grid, row) for row in table], texts, SIGNED)


def trend_cell(value: Value, published: float | None = None) -> Cell:
    """A trend in a table."""
    return Cell(value.estimate, published, digits=2, seeds=value.seeds, texts=value.texts)


def with_trends(corpora: Sequence[MeisterCorpus]) -> list[MeisterCorpus]:
    """The corpora whose models were trained at enough λ to speak of a trend."""
    return [corpus for corpus in corpora if len(corpus.grid) >= LEAST_ALONG]


def rank_correlation(x: Sequence[float] | NDArray[np.float64], y: Sequence[float] | NDArray[np.float64]) -> float:
    """Kendall's τ-b over the pairs that have both values; NaN where nothing can be ordered.

    >>> rank_correlation([1.0, 2.0, 3.0], [5.0, 4.0, math.nan])
    -1.0
    """
    u, v = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    both = ~(np.isnan(u) | np.isnan(v))
    return float(kendall_tau_b([u[both]], [v[both]])[0]) if both.any() else math.nan


def on_axis(lam: float) -> float:
    """The place of λ on the axis of Figure 3, log-scaled towards −∞ and towards 1: −log₁₀(1 − λ).

    >>> on_axis(-99.0), on_axis(0.0), round(on_axis(0.99), 6)
    (-2.0, 0.0, 2.0)
    """
    return -math.log10(1 - lam) + 0.0


G_Y_X, D_Y_X, G_H_X, ALPHA = (per_text(f"entropy {name}") for name in ("g_y_x", "d_y_x", "g_h_x", "alpha"))
SHOWN = {"g_y(x)": G_Y_X, "D_y(x)": D_Y_X}


def find_table1(budget: MeisterBudget, seen: Seen) -> Finding:
    """Table 1: H̃(g_h(x)), how spread out the influence of the inputs on one hidden state is."""
    printed = published_means("1")
    rows, own, values = [], [], []
    for name, line in by_name(seen).items():
        keys = [(model.corpus.name, name, "entropy(g_h(x))") for model in line]
        rows.append(Row(name, tuple(cell(seen[m], G_H_X, printed.get(k)) for m, k in zip(line, keys, strict=True))))
        own.append(Row(name, tuple(cell(seen[m], per_text("own g_h_x")) for m in line)))
        values += [text_value(f"entropy of g_h(x), {m.corpus.data}, {name}", seen[m], G_H_X, UNIT) for m in line]
    heads = tuple(corpus.name for corpus in budget.corpora)
    return Finding(
        (
            ResultTable("Table 1: H̃(g_h(x))", heads, tuple(rows), SPREAD),
            ResultTable("How much of g_h(x) belongs to the input of the same position", heads, tuple(own), SPREAD),
        ),
        values=tuple(values),
        notes=("A text's number is the mean over its hidden states.",),
    )


def find_table2(budget: MeisterBudget, seen: Seen) -> Finding:
    """Table 2: does H̃(g_ŷ(x)) rise or fall with λ? The seed is the unit, and the sign is what was measured."""
    rows, values = [], []
    for architecture in ARCHITECTURES:
        lines: dict[str, list[Cell]] = {"mean entropy": [], "each text's entropy": [], "mean entropy of D_y(x)": []}
        for corpus in budget.corpora:
            model = f"{NAMES[architecture]} {'tanh' if architecture == 'bilstm' else 'dot'}"
            key = (corpus.name, model, "correlation(lambda,entropy(g_y(x)))")
            published = published_means("2").get(key, (None,))[0]
            if len(corpus.grid) < LEAST_ALONG:
                for how, cells in lines.items():
                    cells.append(Cell(None, published if how == "mean entropy" else None, digits=2))
                continue
            along = [seen[model] for model in along_grid(corpus, architecture)]
            where = f"{corpus.data}, {NAMES[architecture]}"
            tau = trend(f"tau(lambda, entropy of g_y(x)), {where}", corpus.grid, along, G_Y_X)
            erased = trend(f"tau(lambda, entropy of D_y(x)), {where}", corpus.grid, along, D_Y_X)
            lines["mean entropy"].append(trend_cell(tau, published))
            by_text = _text_by_text(corpus.grid, along)
            lines["each text's entropy"].append(Cell(by_text, digits=2, seeds=tau.seeds, texts=tau.texts))
            lines["mean entropy of D_y(x)"].append(trend_cell(erased))
            values += [tau, erased]
        rows += [Row(how, tuple(cells), NAMES[architecture]) for how, cells in lines.items()]
    heads = tuple(f"{corpus.name}: {len(corpus.grid)} λ, {corpus.seeds} seeds" for corpus in budget.corpora)
    caption = "Kendall's τ-b between λ and entropy along the grid of each seed; intervals are over seeds."
    return Finding(
        (ResultTable("Table 2: τ(λ, H̃(g_y(x)))", heads, tuple(rows), caption),),
        values=tuple(values),
        notes=(
            "Negative means that entropy falls as λ rises and attention becomes sparser. The paper prints negative "
            "numbers and reads them as entropy rising.",
            "The paper does not say whether it orders mean entropies or those of each text; its numbers stand beside "
            "the former.",
        ),
    )


def _text_by_text(grid: Sequence[float], along: Sequence[Sequence[Answer]]) -> Estimate:
    """τ between λ and the entropy of one text, in the mean over texts."""
    tables = [np.stack([G_Y_X(answer) for answer in seed]) for seed in zip(*along, strict=True)]  # (grid, texts) each
    per_seed = [mean(np.array([rank_correlation(grid, text) for text in table.T])) for table in tables]
    return mean_over_seeds(per_seed, SIGNED)


def find_table3(budget: MeisterBudget, seen: Seen) -> Finding:
    """Table 3: sizes and baseline accuracies on the test texts."""
    printed = published_means("3")
    rows, notes, values = [], [], []
    for corpus in budget.in_full:
        first = seen[MeisterModel(corpus, "bilstm", SOFTMAX)][0]
        cells = [
            Cell(exactly(float(size)), printed.get((corpus.name, "", f"{name} size"), (None,))[0], digits=0)
            for name, size in first["sizes"].items()
        ]
        cells.append(Cell(exactly(float(first["vocabulary"])), digits=0))
        for architecture in ("transformer", "bilstm"):
            reached = [a["accuracy"] for a in seen[MeisterModel(corpus, architecture, SOFTMAX)]]
            goal, texts = printed[corpus.row, MODELS[architecture], "accuracy"][0], first["sizes"]["test"]
            published = goal if corpus.name == corpus.row else None
            estimate = mean_over_seeds(reached, UNIT)
            cells.append(Cell(estimate, published, digits=3, seeds=len(reached), texts=texts))
            kind = "in full" if corpus.is_complete else "of a sample"
            name = f"accuracy less the paper's, {kind}, {corpus.data}, {NAMES[architecture]}"
            values.append(_less_published(name, reached, goal, texts))
        rows.append(Row(corpus.name, tuple(cells)))
        notes.append(f"{corpus.data}: {'; '.join(first['decisions']) or 'as it is'}.")
    caption = (
        "The paper counts as training texts also those held out for validation (20News, IMDb) and, of IMDb, those that "
        "are too long."
    )
    return Finding(
        (ResultTable("Table 3: data and baselines", COLUMNS, tuple(rows), caption),),
        values=tuple(values),
        notes=tuple(notes),
    )


def _less_published(name: str, reached: Sequence[float], goal: float, texts: int) -> Value:
    """Accuracies less the paper's; over seeds, and over texts as a share has it."""
    p = float(np.mean(reached))
    error = math.sqrt(max(p * (1 - p), 1 / texts) / texts)
    estimate = nested_normal(list(reached), [error], texts).seeds
    moved = Estimate(p - goal, max(0.0, estimate.low) - goal, min(1.0, estimate.high) - goal, len(reached))
    return Value(name, moved, tuple(x - goal for x in reached), texts, len(reached), error)


def find_figure2(budget: MeisterBudget, seen: Seen) -> Finding:
    """Figure 2: H̃ of gradient and of leave-one-out importance of the inputs, over the projections."""
    corpora = budget.corpora
    lines = {(c, a): [MeisterModel(c, a, SOFTMAX), *along_grid(c, a)] for a in ARCHITECTURES for c in corpora}
    panels, rows, values = [], [], []
    for architecture in ARCHITECTURES:
        for name, entropy in SHOWN.items():
            curves = []
            for corpus in corpora:
                along = [over_seeds(seen[model], entropy) for model in lines[corpus, architecture][1:]]
                curves.append(curve(corpus.name, [on_axis(lam) for lam in corpus.grid], along))
            title = f"{NAMES[architecture]}: H̃({name})"
            panels.append(Panel(title, tuple(curves), x_label=AXIS, y_label="normalised entropy"))
    for (corpus, architecture), line in lines.items():
        for model in line:
            cells = tuple(cell(seen[model], entropy) for entropy in (*SHOWN.values(), ALPHA))
            rows.append(Row(str(model.projection), cells, f"{corpus.name}, {NAMES[architecture]}"))
            values += [
                text_value(f"entropy of {name}, {corpus.data}, {model.name}", seen[model], entropy, UNIT)
                for name, entropy in SHOWN.items()
            ]
    heads = (*(f"H̃({name})" for name in SHOWN), "H̃(α)")
    lost = sum(undefined(seeds, entropy) for seeds in seen.values() for entropy in SHOWN.values())
    return Finding(
        (ResultTable("Figure 2 in numbers", heads, tuple(rows), SPREAD),),
        (Figure("figure2", "Figure 2: entropy of the importance of inputs", tuple(panels), AXIS_CAPTION),),
        tuple(values),
        (f"{lost} texts, over all models, had an importance that is 0 everywhere; they have no entropy.",),
    )


def find_length(budget: MeisterBudget, seen: Seen) -> Finding:
    """H̃ is divided by ln n so that lengths compare: does it still change with length?"""
    measures: dict[str, PerText] = {"H̃(g_y(x))": G_Y_X, "H̃(D_y(x))": D_Y_X, "H̃(g_h(x))": G_H_X, "H̃(α)": ALPHA}
    panels, rows, values = [], [], []
    for corpus in budget.corpora:
        lines = []
        for model in (m for m in seen if m.corpus == corpus):
            taus = [_against_length(seen[model], measure) for measure in measures.values()]
            rows.append(Row(model.name, tuple(Cell(tau, digits=2) for tau in taus), corpus.name))
            values += [
                Value(f"tau(length, {name}), {corpus.data}, {model.name}", tau)
                for name, tau in zip(measures, taus, strict=True)
            ]
            x, y = _binned(seen[model], G_Y_X)
            lines.append(curve(model.name, x, [exactly(value) for value in y]))
        panels.append(Panel(corpus.name, tuple(lines), x_label="words in a text", y_label="H̃(g_y(x))"))
    caption = f"Texts in {BINS} groups of about equal size, shortest first; means over texts and seeds."
    note = "Over the texts of each seed; intervals are over seeds."
    table = ResultTable("Kendall's τ-b between length and entropy", tuple(measures), tuple(rows), note)
    figure = Figure("length", "Entropy against length", tuple(panels), caption)
    return Finding((table,), (figure,), tuple(values))


def _against_length(seeds: Sequence[Answer], measure: PerText) -> Estimate:
    """τ-b between length and a measure over the texts that have it (g_h(x): the first of them), seed by seed."""
    pairs = [(numbers(answer["length"]), measure(answer)) for answer in seeds]
    return mean_over_seeds([rank_correlation(lengths[: len(values)], values) for lengths, values in pairs])


def _binned(seeds: Sequence[Answer], measure: PerText) -> tuple[list[float], list[float]]:
    """Mean length and mean measure of texts in groups of equal size."""
    lengths = np.concatenate([numbers(answer["length"]) for answer in seeds])
    values = np.concatenate([measure(answer) for answer in seeds])
    groups = np.array_split(np.argsort(lengths, kind="stable"), BINS)
    return [mean(lengths[group]) for group in groups], [mean(values[group]) for group in groups]
