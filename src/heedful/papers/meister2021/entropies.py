"""Tables 1 and 2, Figure 2 and the lengths of texts: is importance spread out, and does sparsity change that?"""

from collections.abc import Sequence

import numpy as np

from heedful.measure.uncertainty import Estimate, mean_over_seeds
from heedful.papers.experiment import Lab
from heedful.papers.finding import Cell, Figure, Finding, Panel, Row, Table, Value
from heedful.papers.meister2021.budgets import ARCHITECTURES, BUDGETS, NAMES, SOFTMAX
from heedful.papers.meister2021.reading import (
    AXIS,
    AXIS_SAID,
    SPREAD,
    Answer,
    PerText,
    all_along,
    along_grid,
    by_name,
    cell,
    columns,
    main_models,
    mean,
    numbers,
    of,
    on_axis,
    over_seeds,
    rank_correlation,
    trend,
    undefined,
)
from heedful.papers.meister2021.training import Trained, answers
from heedful.papers.published import published_means
from heedful.papers.tables import curve, exactly, extremes

G_Y_X, D_Y_X, G_H_X, ALPHA = (of(f"entropy {name}") for name in ("g_y_x", "d_y_x", "g_h_x", "alpha"))
SHOWN = {"g_y(x)": G_Y_X, "D_y(x)": D_Y_X}
BINS = 5


def find_table1(lab: Lab) -> Finding:
    """Table 1: H̃(g_h(x)), how spread out the influence of the inputs on one hidden state is."""
    corpora = BUDGETS[lab.budget].corpora
    models = main_models(corpora)
    seen = answers(lab, models)
    printed = published_means("1")
    rows, own, values = [], [], []
    for name, line in by_name(models).items():
        keys = [(str(model.corpus.published_as), name, "entropy(g_h(x))") for model in line]
        rows.append(Row(name, tuple(cell(seen[m], G_H_X, printed.get(k)) for m, k in zip(line, keys, strict=True))))
        own.append(Row(name, tuple(cell(seen[m], of("own g_h_x")) for m in line)))
        values += [Value(f"entropy of g_h(x), {m.corpus.data}, {name}", over_seeds(seen[m], G_H_X)) for m in line]
    heads = columns(corpora)
    return Finding(
        (
            Table("Table 1: H̃(g_h(x))", heads, tuple(rows), SPREAD),
            Table("How much of g_h(x) belongs to the input of the same position", heads, tuple(own), SPREAD),
        ),
        values=(*values, *extremes("entropy of g_h(x)", values)),
        notes=("A text's number is the mean over its hidden states.",),
    )


def find_table2(lab: Lab) -> Finding:
    """Table 2: does H̃(g_ŷ(x)) rise or fall with λ? The seed is the unit, and the sign is what was measured."""
    corpora = BUDGETS[lab.budget].corpora
    seen = answers(lab, all_along(corpora))
    rows, values = [], []
    for architecture in ARCHITECTURES:
        lines: dict[str, list[Cell]] = {"mean entropy": [], "each text's entropy": [], "mean entropy of D_y(x)": []}
        for corpus in corpora:
            along = [seen[model] for model in along_grid(corpus, architecture)]
            model = f"{NAMES[architecture]} {'tanh' if architecture == 'bilstm' else 'dot'}"
            key = (str(corpus.published_as), model, "correlation(lambda,entropy(g_y(x)))")
            tau = trend(corpus.grid, along, G_Y_X)
            lines["mean entropy"].append(Cell(tau, published_means("2").get(key, (None,))[0], digits=2))
            lines["each text's entropy"].append(Cell(_text_by_text(corpus.grid, along), digits=2))
            lines["mean entropy of D_y(x)"].append(Cell(trend(corpus.grid, along, D_Y_X), digits=2))
            values.append(Value(f"tau(lambda, entropy of g_y(x)), {corpus.data}, {NAMES[architecture]}", tau))
        rows += [Row(how, tuple(cells), NAMES[architecture]) for how, cells in lines.items()]
    heads = zip(columns(corpora), corpora, strict=True)
    return Finding(
        (
            Table(
                "Table 2: τ(λ, H̃(g_y(x)))",
                tuple(f"{head}: {len(corpus.grid)} λ, {corpus.seeds} seeds" for head, corpus in heads),
                tuple(rows),
                "Kendall's τ-b between λ and entropy along the grid of each seed; intervals are over seeds.",
            ),
        ),
        values=(*values, *extremes("tau(lambda, entropy of g_y(x))", values)),
        notes=(
            "Negative means that entropy falls as λ rises and attention becomes sparser. The paper prints negative "
            "numbers and reads them as entropy rising.",
            "The paper does not say whether it orders mean entropies or those of each text; its numbers stand beside "
            "the former.",
        ),
    )


def _text_by_text(grid: Sequence[float], along: Sequence[Sequence[Answer]]) -> Estimate:
    """τ between λ and the entropy of one text, in the mean over texts."""
    each = []
    for seed in range(len(along[0])):
        table = np.stack([G_Y_X(at[seed]) for at in along])  # (grid, texts)
        each.append(mean(np.array([rank_correlation(grid, text) for text in table.T])))
    return mean_over_seeds(each)


def find_figure2(lab: Lab) -> Finding:
    """Figure 2: H̃ of gradient and of leave-one-out importance of the inputs, over the projections."""
    corpora = BUDGETS[lab.budget].corpora
    lines = {(c, a): [Trained(c, a, SOFTMAX), *along_grid(c, a)] for a in ARCHITECTURES for c in corpora}
    seen = answers(lab, [model for line in lines.values() for model in line])
    panels, rows, values = [], [], []
    for architecture in ARCHITECTURES:
        for name, entropy in SHOWN.items():
            curves = []
            for corpus, head in zip(corpora, columns(corpora), strict=True):
                along = [over_seeds(seen[model], entropy) for model in lines[corpus, architecture][1:]]
                curves.append(curve(head, [on_axis(lam) for lam in corpus.grid], along))
            title = f"{NAMES[architecture]}: H̃({name})"
            panels.append(Panel(title, tuple(curves), x_label=AXIS, y_label="normalised entropy"))
    for (corpus, architecture), line in lines.items():
        for model in line:
            cells = tuple(cell(seen[model], entropy) for entropy in (*SHOWN.values(), ALPHA))
            rows.append(Row(str(model.projection), cells, f"{columns([corpus])[0]}, {NAMES[architecture]}"))
            values += [
                Value(f"entropy of {name}, {corpus.data}, {model.name}", over_seeds(seen[model], entropy))
                for name, entropy in SHOWN.items()
            ]
    heads = (*(f"H̃({name})" for name in SHOWN), "H̃(α)")
    lost = sum(undefined(found, entropy) for found in seen.values() for entropy in SHOWN.values())
    return Finding(
        (Table("Figure 2 in numbers", heads, tuple(rows), SPREAD),),
        (Figure("figure2", "Figure 2: entropy of the importance of inputs", tuple(panels), AXIS_SAID),),
        (*values, *extremes("entropy of input importance", values)),
        (f"{lost} texts, over all models, had an importance that is 0 everywhere; they have no entropy.",),
    )


def find_length(lab: Lab) -> Finding:
    """H̃ is divided by ln n so that lengths compare: does it still change with length?"""
    corpora = BUDGETS[lab.budget].corpora
    models = main_models(corpora)
    seen = answers(lab, models)
    measures: dict[str, PerText] = {"H̃(g_y(x))": G_Y_X, "H̃(D_y(x))": D_Y_X, "H̃(g_h(x))": G_H_X, "H̃(α)": ALPHA}
    panels, rows, values = [], [], []
    for corpus, head in zip(corpora, columns(corpora), strict=True):
        lines = []
        for model in (m for m in models if m.corpus == corpus):
            taus = [_against_length(seen[model], measure) for measure in measures.values()]
            rows.append(Row(model.name, tuple(Cell(tau, digits=2) for tau in taus), head))
            values += [
                Value(f"tau(length, {name}), {corpus.data}, {model.name}", tau)
                for name, tau in zip(measures, taus, strict=True)
            ]
            x, y = _binned(seen[model], G_Y_X)
            lines.append(curve(model.name, x, [exactly(value) for value in y]))
        panels.append(Panel(head, tuple(lines), x_label="words in a text", y_label="H̃(g_y(x))"))
    caption = f"Texts in {BINS} groups of about equal size, shortest first; means over texts and seeds."
    return Finding(
        (
            Table(
                "Kendall's τ-b between length and entropy",
                tuple(measures),
                tuple(rows),
                "Over the texts of each seed; intervals are over seeds.",
            ),
        ),
        (Figure("length", "Entropy against length", tuple(panels), caption),),
        tuple(values),
    )


def _against_length(seeds: Sequence[Answer], measure: PerText) -> Estimate:
    """τ-b between length and a measure over the texts that have it (g_h(x): the first of them), seed by seed."""
    each = []
    for answer in seeds:
        values = measure(answer)
        each.append(rank_correlation(numbers(answer["length"])[: len(values)], values))
    return mean_over_seeds(each)


def _binned(seeds: Sequence[Answer], measure: PerText) -> tuple[list[float], list[float]]:
    """Mean length and mean measure of texts in groups of equal size."""
    lengths = np.concatenate([numbers(answer["length"]) for answer in seeds])
    values = np.concatenate([measure(answer) for answer in seeds])
    groups = np.array_split(np.argsort(lengths, kind="stable"), BINS)
    return [mean(lengths[group]) for group in groups], [mean(values[group]) for group in groups]
