"""Beyond the paper: entmax as a second way to sparsity, and the self-attention layers of the Transformer."""

from heedful.papers.experiment import Lab
from heedful.papers.finding import Cell, Figure, Finding, Panel, Row, Table, Value
from heedful.papers.meister2021.budgets import BUDGETS, entmax
from heedful.papers.meister2021.reading import (
    PROJECTIONS,
    SPREAD,
    PerText,
    cell,
    columns,
    numbers,
    of,
    over_ceiling,
    over_seeds,
    trend,
)
from heedful.papers.meister2021.training import Trained, answers
from heedful.papers.tables import curve

ENTMAX: dict[str, PerText] = {
    "H̃(g_y(x))": of("entropy g_y_x"),
    "H̃(D_y(x))": of("entropy d_y_x"),
    "H̃(g_h(x))": of("entropy g_h_x"),
    "H̃(α)": of("entropy alpha"),
    "τ(α, g_y(x))": of("tau g_y_x"),
    "τ(α, g_y(x)) / ceiling": over_ceiling("tau g_y_x"),
    "τ(α, g_y(x)) on the support": of("tau g_y_x support"),
    "τ(α, g_y(I))": of("tau g_y_h"),
}
LAYERS = ("entropy received", "entropy of a query", "tau g_y_x", "tau d_y_x")
LAYER_HEADS = ("H̃(received)", "H̃ of one query", "τ(received, g_y(x))", "τ(received, D_y(x))")


def find_entmax(lab: Lab) -> Finding:
    """The same measures along α of entmax, from softmax at 1 to sparsemax at 2."""
    corpora = [corpus for corpus in BUDGETS[lab.budget].corpora if corpus.alphas]
    along = {c: [Trained(c, "bilstm", entmax(alpha)) for alpha in c.alphas] for c in corpora}
    seen = answers(lab, [model for models in along.values() for model in models])
    rows, panels, values = [], [], []
    for corpus, name in zip(corpora, columns(corpora), strict=True):
        found = [seen[model] for model in along[corpus]]
        for alpha, answer in zip(corpus.alphas, found, strict=True):
            rows.append(Row(f"α = {alpha:g}", tuple(cell(answer, measure) for measure in ENTMAX.values()), name))
        trends = {head: trend(corpus.alphas, found, measure) for head, measure in ENTMAX.items()}
        rows.append(Row("τ with α", tuple(Cell(tau, digits=2) for tau in trends.values()), name))
        values += [Value(f"trend along entmax of {head}, {corpus.data}", tau) for head, tau in trends.items()]
        for kind in ("H̃", "τ"):
            lines = tuple(
                curve(head, corpus.alphas, [over_seeds(answer, measure) for answer in found])
                for head, measure in ENTMAX.items()
                if head.startswith(kind)
            )
            panels.append(Panel(f"{name}, BiLSTM", lines, x_label="α of entmax", y_label=kind))
    caption = f"{SPREAD} The last line is Kendall's τ-b between α and the mean above it, along the grid of each seed."
    return Finding(
        (Table("Along α of entmax, BiLSTM", tuple(ENTMAX), tuple(rows), caption),),
        (Figure("entmax", "Entmax: softmax at α = 1, sparsemax at 2", tuple(panels)),),
        tuple(values),
    )


def find_layers(lab: Lab) -> Finding:
    """What each token receives in a self-attention layer, averaged over queries, taken as if it were α."""
    corpora = BUDGETS[lab.budget].corpora
    models = [Trained(corpus, "transformer", projection) for corpus in corpora for projection in PROJECTIONS]
    seen = answers(lab, models)
    rows, values = [], []
    for model in models:
        group = f"{columns([model.corpus])[0]}, {model.name}"
        for layer in range(len(seen[model][0]["layers"])):
            measures = [_of_layer(layer, key) for key in LAYERS]
            rows.append(Row(f"layer {layer + 1}", tuple(cell(seen[model], m) for m in measures), group))
            values += [
                Value(f"{head}, layer {layer + 1}, {model.corpus.data}, {model.name}", over_seeds(seen[model], m))
                for head, m in zip(LAYER_HEADS, measures, strict=True)
            ]
        pooled = [of("entropy alpha"), None, of("tau g_y_x"), of("tau d_y_x")]
        rows.append(Row("pooling α", tuple(cell(seen[model], m) if m else Cell(text="") for m in pooled), group))
    note = (
        "Self-attention is softmax in every model: the projection named is that of the pooling attention, whose own "
        "numbers stand last."
    )
    return Finding(
        (Table("Self-attention of the Transformer", LAYER_HEADS, tuple(rows), SPREAD),),
        values=tuple(values),
        notes=(note,),
    )


def _of_layer(layer: int, key: str) -> PerText:
    return lambda answer: numbers(answer["layers"][layer][key])
