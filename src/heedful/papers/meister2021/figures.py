"""Table 6, Figures 1, 3 and 4, entmax and layers: does attention order positions as importance does, sparse or not?

τ-b over all positions is what the paper prints. Beside it stand τ-b on the support of α, where tied zeros cannot help,
and, for the inputs, τ-b as a share of the highest that so many zeros allow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, matrix_panel
from heedful.papers.meister2021.config import ARCHITECTURES, NAMES, MeisterBudget, MeisterCorpus, entmax
from heedful.papers.meister2021.models import MeisterModel
from heedful.papers.meister2021.tables import (
    AXIS,
    AXIS_CAPTION,
    PROJECTIONS,
    SPREAD,
    PerText,
    Seen,
    along_grid,
    by_name,
    cell,
    less,
    numbers,
    on_axis,
    over_seeds,
    per_text,
    text_value,
    trend,
    trend_cell,
    undefined,
    with_trends,
)
from heedful.papers.published import published_means

PAIRS = {"gradient": ("g_y_x", "g_y_h"), "leave-one-out": ("d_y_x", "d_y_h")}
SYMBOLS = {"g_y_x": "g_y(x)", "d_y_x": "D_y(x)", "g_y_h": "g_y(I)", "d_y_h": "D_y(I)"}


def tau(importance: str) -> PerText:
    """τ-b of α with an importance over all positions."""
    return per_text(f"tau {importance}")


def on_support(importance: str) -> PerText:
    """The same over the positions that α does not leave out."""
    return per_text(f"tau {importance} support")


def over_ceiling(importance: str) -> PerText:
    """τ-b as a share of the highest that this α can have with an importance that has no ties (SPEC §6.4)."""
    return lambda answer: numbers(answer[f"tau {importance}"]) / numbers(answer["ceiling"])


def find_table6(budget: MeisterBudget, seen: Seen) -> Finding:
    """Table 6: τ(α, importance) of inputs and of hidden states, and what remains of it without its tied zeros."""
    corpora = budget.corpora
    inputs, hidden = ("g_y_x", "d_y_x"), ("g_y_h", "d_y_h")
    tables = (
        _table("Table 6: τ(α, importance of the inputs x)", corpora, seen, {i: tau(i) for i in inputs}),
        _table("Table 6: τ(α, importance of the hidden states I)", corpora, seen, {i: tau(i) for i in hidden}),
        _table("Inputs, as a share of the ceiling", corpora, seen, {i: over_ceiling(i) for i in inputs}),
        _table("Inputs, on the support of α", corpora, seen, {i: on_support(i) for i in inputs}),
        _table("Hidden states, on the support of α", corpora, seen, {i: on_support(i) for i in hidden}),
        _table("α held fixed in the gradient", corpora, seen, {i: tau(f"{i} detached") for i in ("g_y_x", "g_y_h")}),
    )
    values = []
    for kind, (x, h) in PAIRS.items():
        for how, measure in (("", tau), (" on the support", on_support)):
            values += [
                text_value(
                    f"tau of I less tau of x{how}, {kind}, {model.corpus.data}, {model.name}",
                    seeds,
                    less(measure(h), measure(x)),
                    (-2.0, 2.0),
                )
                for model, seeds in seen.items()
            ]
    lost = {
        i: [sum(undefined(seeds, measure(i)) for seeds in seen.values()) for measure in (tau, on_support)]
        for i in SYMBOLS
    }
    counted = ", ".join(f"{SYMBOLS[i]} {count} ({support} on the support)" for i, (count, support) in lost.items())
    return Finding(
        tables,
        values=tuple(values),
        notes=(
            f"τ is undefined where α or the importance is constant; texts so left out, over all models: {counted}.",
            "The ceiling is for an importance without ties, as that of the inputs is. Under sparse attention that of "
            "the hidden states is 0 wherever α is: these ties agree whatever was learned, so that only the support can "
            "tell.",
            "With α held fixed ∂ŷ/∂h_i is α_i times the same vector for every i: τ(α, g_y(I)) is 1 by construction.",
        ),
    )


def _table(title: str, corpora: Sequence[MeisterCorpus], seen: Seen, measures: Mapping[str, PerText]) -> ResultTable:
    """Rows are models, columns importances within corpora; beside Table 6 where it is about the same."""
    heads = tuple(f"{corpus.name}: {SYMBOLS[i]}" for corpus in corpora for i in measures)
    printed = published_means("6") if title.startswith("Table 6") else {}
    rows = []
    for name, line in by_name(seen).items():
        cells: list[Cell] = []
        for model in line:
            for importance, measure in measures.items():
                key = (model.corpus.name, name, f"tau(alpha,{SYMBOLS[importance]})")
                cells.append(cell(seen[model], measure, printed.get(key)))
        rows.append(Row(name, tuple(cells)))
    return ResultTable(title, heads, tuple(rows), SPREAD)


def find_figure1(budget: MeisterBudget, seen: Seen) -> Finding:
    """Figure 1: τ(α, gradient importance) of inputs and hidden states; and g_h(x) of one text beside its α."""
    corpora = budget.corpora
    panels = []
    for projection in PROJECTIONS:
        example = seen[MeisterModel(corpora[-1], "bilstm", projection)][0]["example"]
        words = example["words"]
        matrix = matrix_panel(f"g_h(x) under {projection}", example["g_h_x"], words, words)
        panels.append(replace(matrix, x_label="input", y_label="hidden state"))
        panels.append(matrix_panel(f"α under {projection}", [[weight] for weight in example["alpha"]], words, "α"))
    text = Figure(
        "figure1_example",
        "What one text's hidden states are made of",
        tuple(panels),
        f"BiLSTM, {corpora[-1].data}, seed 0. A row is one hidden state, and sums to 1.",
    )
    return Finding(figures=(_bars("figure1", "Figure 1: τ(α, gradient importance)", corpora, seen, "gradient"), text))


def find_figure4(budget: MeisterBudget, seen: Seen) -> Finding:
    """Figure 4: the same for leave-one-out importance."""
    corpora = budget.corpora
    return Finding(figures=(_bars("figure4", "Figure 4: τ(α, leave-one-out)", corpora, seen, "leave-one-out"),))


def _bars(name: str, title: str, corpora: Sequence[MeisterCorpus], seen: Seen, kind: str) -> Figure:
    """τ of inputs and of hidden states side by side, a panel for each corpus."""
    lines = by_name(seen)
    panels = []
    for at, corpus in enumerate(corpora):
        matrix = [[over_seeds(seen[line[at]], tau(i)).value for i in PAIRS[kind]] for line in lines.values()]
        panels.append(matrix_panel(corpus.name, matrix, tuple(lines), [SYMBOLS[i] for i in PAIRS[kind]]))
    return Figure(name, title, tuple(panels), "Means over texts and seeds.")


def find_figure3(budget: MeisterBudget, seen: Seen) -> Finding:
    """Figure 3: τ(α, importance of the inputs) against λ, over all positions, under its ceiling and on the support."""
    hows = {
        "figure3": ("all positions", tau),
        "figure3_ceiling": ("share of the ceiling", over_ceiling),
        "figure3_support": ("on the support", on_support),
    }
    figures, values, rows = [], [], []
    for name, (how, measure) in hows.items():
        panels = []
        for architecture in ARCHITECTURES:
            for importance in ("g_y_x", "d_y_x"):
                lines, cells = [], []
                for corpus in with_trends(budget.corpora):
                    along = [seen[model] for model in along_grid(corpus, architecture)]
                    heights = [over_seeds(seeds, measure(importance)) for seeds in along]
                    lines.append(curve(corpus.name, [on_axis(lam) for lam in corpus.grid], heights))
                    where = f"{SYMBOLS[importance]}, {how}, {corpus.data}, {NAMES[architecture]}"
                    values.append(trend(f"trend of tau with {where}", corpus.grid, along, measure(importance)))
                    cells.append(trend_cell(values[-1]))
                title = f"{NAMES[architecture]}: {SYMBOLS[importance]}"
                panels.append(Panel(title, tuple(lines), x_label=AXIS, y_label=f"τ(α, ·), {how}"))
                rows.append(Row(title, tuple(cells), how))
        figures.append(Figure(name, f"Figure 3: τ(α, importance of the inputs), {how}", tuple(panels), AXIS_CAPTION))
    caption = "Kendall's τ-b between λ and mean τ(α, importance) along the grid of each seed; intervals are over seeds."
    heads = tuple(corpus.name for corpus in with_trends(budget.corpora))
    return Finding(
        (ResultTable("Figure 3 in numbers: does τ fall as λ rises?", heads, tuple(rows), caption),),
        tuple(figures),
        tuple(values),
        ("Near one-hot attention has hardly any order left: τ over all positions falls with its ceiling alone.",),
    )


ENTMAX: dict[str, PerText] = {
    "H̃(g_y(x))": per_text("entropy g_y_x"),
    "H̃(D_y(x))": per_text("entropy d_y_x"),
    "H̃(g_h(x))": per_text("entropy g_h_x"),
    "H̃(α)": per_text("entropy alpha"),
    "τ(α, g_y(x))": per_text("tau g_y_x"),
    "τ(α, g_y(x)) / ceiling": over_ceiling("g_y_x"),
    "τ(α, g_y(x)) on the support": per_text("tau g_y_x support"),
    "τ(α, g_y(I))": per_text("tau g_y_h"),
}
LAYERS = ("entropy received", "entropy of a query", "tau g_y_x", "tau d_y_x")
LAYER_HEADS = ("H̃(received)", "H̃ of one query", "τ(received, g_y(x))", "τ(received, D_y(x))")


def entmax_models(corpora: Sequence[MeisterCorpus]) -> list[MeisterModel]:
    """The BiLSTMs of each corpus along α of entmax."""
    return [MeisterModel(corpus, "bilstm", entmax(alpha)) for corpus in corpora for alpha in corpus.alphas]


def find_entmax(budget: MeisterBudget, seen: Seen) -> Finding:
    """The same measures along α of entmax, from softmax at 1 to sparsemax at 2."""
    rows, panels, values = [], [], []
    for corpus in (corpus for corpus in budget.corpora if corpus.alphas):
        along = [seen[model] for model in entmax_models([corpus])]
        for alpha, seeds in zip(corpus.alphas, along, strict=True):
            rows.append(Row(f"α = {alpha:g}", tuple(cell(seeds, measure) for measure in ENTMAX.values()), corpus.name))
        trends = [
            trend(f"trend along entmax of {head}, {corpus.data}", corpus.alphas, along, measure)
            for head, measure in ENTMAX.items()
        ]
        rows.append(Row("τ with α", tuple(trend_cell(each) for each in trends), corpus.name))
        values += trends
        for kind in ("H̃", "τ"):
            lines = tuple(
                curve(head, corpus.alphas, [over_seeds(seeds, measure) for seeds in along])
                for head, measure in ENTMAX.items()
                if head.startswith(kind)
            )
            panels.append(Panel(f"{corpus.name}, BiLSTM", lines, x_label="α of entmax", y_label=kind))
    caption = f"{SPREAD} The last line is Kendall's τ-b between α and the mean above it, along the grid of each seed."
    return Finding(
        (ResultTable("Along α of entmax, BiLSTM", tuple(ENTMAX), tuple(rows), caption),),
        (Figure("entmax", "Entmax: softmax at α = 1, sparsemax at 2", tuple(panels)),),
        tuple(values),
    )


def layer_models(corpora: Sequence[MeisterCorpus]) -> list[MeisterModel]:
    """The Transformers of Tables 1 and 6."""
    return [MeisterModel(corpus, "transformer", projection) for corpus in corpora for projection in PROJECTIONS]


def find_layers(budget: MeisterBudget, seen: Seen) -> Finding:
    """What each token receives in a self-attention layer, averaged over queries, taken as if it were α."""
    rows, values = [], []
    for model, seeds in seen.items():
        group = f"{model.corpus.name}, {model.name}"
        for layer in range(len(seeds[0]["layers"])):
            measures = [_of_layer(layer, key) for key in LAYERS]
            rows.append(Row(f"layer {layer + 1}", tuple(cell(seeds, m) for m in measures), group))
            values += [
                Value(f"{head}, layer {layer + 1}, {model.corpus.data}, {model.name}", over_seeds(seeds, m))
                for head, m in zip(LAYER_HEADS, measures, strict=True)
            ]
        pooled = [per_text("entropy alpha"), None, per_text("tau g_y_x"), per_text("tau d_y_x")]
        rows.append(Row("pooling α", tuple(cell(seeds, m) if m else Cell(text="") for m in pooled), group))
    note = (
        "Self-attention is softmax in every model: the projection named is that of the pooling attention, whose own "
        "numbers stand last."
    )
    return Finding(
        (ResultTable("Self-attention of the Transformer", LAYER_HEADS, tuple(rows), SPREAD),),
        values=tuple(values),
        notes=(note,),
    )


def _of_layer(layer: int, key: str) -> PerText:
    return lambda answer: numbers(answer["layers"][layer][key])
