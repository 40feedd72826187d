"""Table 3 of meister2021: the data after pre-processing, and what softmax attention reaches on them."""

from heedful.measure.uncertainty import Estimate, mean_over_seeds
from heedful.papers.experiment import Lab
from heedful.papers.finding import Cell, Finding, Row, Table, Value
from heedful.papers.meister2021.budgets import ARCHITECTURES, BUDGETS, NAMES, SOFTMAX
from heedful.papers.meister2021.training import Trained, answers
from heedful.papers.published import published_means
from heedful.papers.tables import exactly, extremes

MODELS = {"transformer": "Transformer dot softmax", "bilstm": "BiLSTM additive softmax"}
COLUMNS = ("train", "validation", "test", "vocabulary", "accuracy (T)", "accuracy (B)")


def find_table3(lab: Lab) -> Finding:
    """Table 3: sizes and baseline accuracies on the test texts."""
    corpora = BUDGETS[lab.budget].corpora
    seen = answers(lab, [Trained(corpus, a, SOFTMAX) for corpus in corpora for a in ARCHITECTURES])
    printed = published_means("3")
    rows, notes = [], []
    gaps: dict[bool, list[Value]] = {True: [], False: []}
    for corpus in corpora:
        shown = str(corpus.published_as)
        first = seen[Trained(corpus, "bilstm", SOFTMAX)][0]
        cells = [
            Cell(exactly(float(size)), printed.get((shown, "", f"{name} size"), (None,))[0], digits=0)
            for name, size in first["sizes"].items()
        ]
        cells.append(Cell(exactly(float(first["vocabulary"])), digits=0))
        for architecture in ("transformer", "bilstm"):
            found = mean_over_seeds([a["accuracy"] for a in seen[Trained(corpus, architecture, SOFTMAX)]])
            cells.append(Cell(found, printed.get((shown, MODELS[architecture], "accuracy"), (None,))[0], digits=3))
            goal = printed[corpus.row, MODELS[architecture], "accuracy"][0]
            gap = Estimate(found.value - goal, found.low - goal, found.high - goal, found.n)
            gaps[corpus.whole].append(Value(f"accuracy less the paper's, {corpus.data}, {NAMES[architecture]}", gap))
        rows.append(Row(corpus.published_as or corpus.data, tuple(cells)))
        notes.append(f"{corpus.data}: {'; '.join(first['decisions']) or 'as it is'}.")
    judged = gaps[True] or gaps[False]
    return Finding(
        (
            Table(
                "Table 3: data and baselines",
                COLUMNS,
                tuple(rows),
                "The paper counts as training texts also those held out for validation (20News, IMDb) and, of IMDb, "
                "those that are too long.",
            ),
        ),
        values=(*gaps[True], *gaps[False], *extremes("accuracy less the paper's, corpora in full", judged)),
        notes=tuple(notes),
    )
