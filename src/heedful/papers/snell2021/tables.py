"""Tables 2 to 11 of snell2021: agreement, Kendall's τ, both splits, accuracy and BLEU, and the data.

Every table but that of the data has each corpus twice, under the two conventions of `studies.analysis`: *own* and
*cross*.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.data.subwords import encode_pairs, fit_tokeniser
from heedful.data.vocabulary import encode
from heedful.data.word_vectors import vector_words
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate
from heedful.papers.experiment import Answer, Needs, Unit, Workspace
from heedful.papers.findings import (
    Cell,
    CellUnit,
    Finding,
    ResultTable,
    Row,
    Sizes,
    Value,
    exactly,
    nested_value,
    seed_value,
)
from heedful.papers.published import published_table
from heedful.papers.snell2021.config import SUBWORDS, SnellCorpus, corpora, studies
from heedful.papers.snell2021.study_numbers import (
    COMPARED,
    CONVENTIONS,
    Measured,
    StudyNumbers,
    numbers_of,
    study_unit,
)
from heedful.studies.analysis import MeasureName
from heedful.studies.result import AgreementResult, Convention, Gate
from heedful.studies.run_directory import Recorded

CLAIMS_TABLE = "5"  # whose numbers the claims of agreement are judged by
CAPTION = (
    "Each line is measured twice: “own” takes α and β of one model, “cross” β of another seed, like the released code."
)


@dataclass(frozen=True)
class Form:
    """How a table reads its numbers."""

    number: str
    title: str
    columns: tuple[str, ...]
    task: str | None = None
    split: Recorded = "validation"
    measure: MeasureName = "agreement"
    bleu: bool = False
    digits: int = 1


PAIRS = ("A(alpha,beta_uf)", "A(beta_uf,beta_px)", "A(delta,beta_uf)", "A(alpha,beta)")
_XI = tuple(name.replace("A(", "xi(") for name in PAIRS)
_FULL = (*PAIRS, "A_random", "shuffle", *_XI, "xi_final")
_NO_BETA = (*PAIRS[:3], "A_random", *_XI[:3], "xi_final")
FORMS = {
    form.number: form
    for form in (
        Form("2", "agreement", (*PAIRS, "A_random", "shuffle", _XI[0], _XI[3], "xi_final"), digits=0),
        Form("3", "Kendall's τ in place of agreement", (*PAIRS, *_NO_BETA[3:]), measure="kendall"),
        Form("4", "Kendall's τ, performance by BLEU", _NO_BETA, "translation", measure="kendall", bleu=True),
        Form("5", "agreement, all columns", _FULL),
        Form("6", "agreement, performance by BLEU", _FULL, "translation", bleu=True),
        Form("7", "agreement on training texts", _FULL, split="train"),
        Form("8", "agreement on training texts, performance by BLEU", _FULL, "translation", split="train", bleu=True),
    )
}
HEADINGS = {
    "A(alpha,beta_uf)": "A(α, β^uf)",
    "A(beta_uf,beta_px)": "A(β^uf, β^px)",
    "A(delta,beta_uf)": "A(Δ, β^uf)",
    "A(alpha,beta)": "A(α, β)",
    "A(alpha,alpha_fr)": "A(α, α^fr)",
    "A(beta_uf,beta_log)": "A(β^uf, β^log)",
    "A_random": "Â",
    "shuffle": "shuffle of A(α, β)",
    "xi_final": "ξ*",
}


def heading(column: str, measure: MeasureName = "agreement") -> str:
    """A column's heading in the paper's notation.

    >>> heading("xi(alpha,beta)"), heading("A(alpha,beta)", "kendall")
    ('ξ(α, β)', 'τ(α, β)')
    """
    if column.startswith("xi("):
        return HEADINGS[f"A{column[2:]}"].replace("A(", "ξ(")
    text = HEADINGS[column]
    return text.replace("A(", "τ(") if measure == "kendall" else text


def find_table(workspace: Workspace, number: str) -> Finding:
    """One of Tables 2 to 8; of Table 5 also how far its agreements exceed their controls, corpus by corpus."""
    form = FORMS[number]
    data = [corpus.data for corpus in corpora(workspace.budget, form.task) if corpus.data]
    studied = {name: numbers_of(workspace, name) for name in data}
    seen = {name: study.measured(form.split, form.measure) for name, study in studied.items()}
    table = _table(form, corpora(workspace.budget, form.task), seen)
    notes = nearer_convention(table)
    if number != CLAIMS_TABLE:
        return Finding((table,), notes=notes)
    values, untrained = _excesses(studied)
    return Finding((table,), values=tuple(values), notes=(*notes, *untrained))


def _table(form: Form, lines: Iterable[SnellCorpus], seen: Mapping[str, Measured]) -> ResultTable:
    rows = []
    for corpus in lines:
        for convention in CONVENTIONS:
            cells = tuple(_cell(form, corpus, seen, convention, column) for column in form.columns)
            printed = any(cell.published is not None for cell in cells)
            if corpus.data is not None or (convention == "cross" and printed):
                rows.append(Row(_name(corpus, convention), cells, corpus.name))
    columns = tuple(heading(column, form.measure) for column in form.columns)
    return ResultTable(f"Table {form.number}: {form.title}", columns, tuple(rows), CAPTION)


def _name(corpus: SnellCorpus, convention: Convention) -> str:
    return f"{corpus.name}, {convention}" if corpus.data else f"{corpus.name} (not measured: we have no copy)"


def _cell(form: Form, corpus: SnellCorpus, seen: Mapping[str, Measured], convention: Convention, column: str) -> Cell:
    published, star = published_table("snell2021", form.number).get((corpus.row or "", column), (None, False))
    unit: CellUnit = "" if form.bleu and column.startswith("xi") else "%"
    if corpus.data is None:
        return Cell(None, published, unit, form.digits, published_starred=star)
    study = seen[corpus.data]
    shown = published if convention == "cross" else None
    if column == "A_random":
        return Cell(exactly(study.random), shown, "%", form.digits, texts=study.texts)
    if column == "xi_final":
        final = study.final_bleu if form.bleu else study.final
        return Cell(final, shown, unit, form.digits, seeds=study.seeds, texts=study.texts)
    if column == "shuffle":
        shuffle = study.agreement("A(alpha,beta)", convention).shuffle
        return Cell(shuffle, None, "%", form.digits, seeds=study.seeds, texts=study.texts)
    row = study.agreement(column.replace("xi(", "A("), convention)
    if not column.startswith("xi("):
        return Cell(row.estimate, shown, unit, form.digits, seeds=study.seeds, texts=study.texts)
    xi = Estimate(row.xi_bleu, np.nan, np.nan, len(row.per_seed)) if form.bleu and row.xi_bleu is not None else row.xi
    printed_star = star and shown is not None
    cell = Cell(xi, shown, unit, form.digits, starred=not row.xi_reached, published_starred=printed_star)
    return replace(cell, seeds=study.seeds, texts=study.texts)


def nearer_convention(table: ResultTable) -> tuple[str, ...]:
    """Which convention the published A and τ lie nearer to, counted over a table's entries; empty without any.

    >>> def row(name, measured, published=None):
    ...     return Row(name, (Cell(exactly(measured), published, "%"),), group="SST")
    >>> nearer_convention(ResultTable("t", ("A(α, β)",), (row("SST, own", 0.47), row("SST, cross", 0.32, 25.0))))
    ('The published A lie nearer to “cross” in 1 of 1 entries (SST 1 of 1).',)
    """
    letter = table.columns[0][0]
    compared = [i for i, column in enumerate(table.columns) if column.startswith(f"{letter}(")]
    lines = {row.name: row for row in table.rows}
    counts = {}
    for group in dict.fromkeys(row.group for row in table.rows):
        own, cross = (lines.get(f"{group}, {convention}") for convention in CONVENTIONS)
        if own is None or cross is None:
            continue
        nearer = []
        for ours, theirs in ((own.cells[i], cross.cells[i]) for i in compared):
            if ours.measured is not None and theirs.measured is not None and theirs.published is not None:
                published = theirs.published / 100
                nearer.append(abs(theirs.measured.value - published) < abs(ours.measured.value - published))
        if nearer:
            counts[group] = (sum(nearer), len(nearer))
    if not counts:
        return ()
    each = ", ".join(f"{group} {count} of {n}" for group, (count, n) in counts.items())
    count, n = (sum(column) for column in zip(*counts.values(), strict=True))
    return (f"The published {letter} lie nearer to “cross” in {count} of {n} entries ({each}).",)


def _excesses(studied: Mapping[str, StudyNumbers]) -> tuple[list[Value], list[str]]:
    """What claims of agreement are judged by, and notes on corpora whose models learned nothing.

    An agreement counts by its excess over the largest of Â, the matched shuffle and the wrong label, maxima over steps
    chosen on the other half of the texts; it has no value where the models do not beat the majority by an interval.
    """
    values, notes = [], []
    for data, study in studied.items():
        gate = study.gate
        if not gate.passed:
            notes.append(
                f"{data}: the models do not beat the majority ({gate.baseline:.1%}); nothing is judged by them."
            )
        for convention in CONVENTIONS:
            for name in PAIRS:
                row = study.validation.agreement(name, convention)
                values.append(excess_value(f"{name} above controls, {convention}, {data}", row, gate))
            above = study.under(convention).xi_above
            chosen = above if gate.passed else [np.nan] * len(above)
            values.append(seed_value(f"xi above untrained and majority, {convention}, {data}", chosen, gate.texts))
    return values, notes


def excess_value(name: str, row: AgreementResult, gate: Gate) -> Value:
    """How far an agreement exceeds its largest control; no number where the models learned nothing."""
    evidence = row.evidence
    assert evidence is not None
    if not gate.passed:
        return Value(name, Estimate(np.nan, np.nan, np.nan, 0), texts=gate.texts, seeds=evidence.seeds)
    over_texts = evidence.excess
    error = (over_texts.high - over_texts.low) / (2 * 1.96)
    return Value(name, evidence.excess_seeds, (), gate.texts, evidence.seeds, float(error))


def agreement_needs(budget: str, task: str | None = None) -> Needs:
    """The numbers of the studies of all corpora of a task."""
    return Needs(tuple(study_unit(study) for study in studies(budget, task).values()))


PAIRED = {  # title, and the factor that turns what the table prints into percent
    "10": ("Table 10: attention learned while β is frozen", 1.0),
    "11": ("Table 11: the proxy against logistic regression", 100.0),
}


def find_pair(workspace: Workspace, number: str) -> Finding:
    """Two agreements side by side, and their difference.

    Table 10: attention trained with everything else at its random start agrees less than β^uf does (A.6). Table 11: the
    proxy's probe and the weights of logistic regression agree with β^uf alike (A.10).
    """
    (title, scale), (left, right) = PAIRED[number], COMPARED[number]
    rows, values = [], []
    table = published_table("snell2021", number)
    for corpus in corpora(workspace.budget, "classification"):
        keys = [(corpus.name, column) for column in (left, right)]
        printed = [table[key][0] * scale if key in table else None for key in keys]
        if corpus.data is None:
            cells = [Cell(None, value, "%") for value in printed]
            rows.append(Row(_name(corpus, "cross"), (*cells, Cell()), corpus.name))
            continue
        study = numbers_of(workspace, corpus.data)
        for convention in CONVENTIONS:
            a, b = (study.validation.agreement(column, convention) for column in (left, right))
            held_out = study.under(convention)
            margins = held_out.table10 if number == "10" else held_out.table11
            assert margins is not None
            gap = nested_value(f"{right} - {left}, {convention}, {corpus.data}", margins)
            shown = printed if convention == "cross" else [None, None]
            sizes: Sizes = {"seeds": gap.seeds, "texts": gap.texts}
            cells = [Cell(row.estimate, value, "%", **sizes) for row, value in zip((a, b), shown, strict=True)]
            rows.append(Row(_name(corpus, convention), (*cells, Cell(gap.estimate, None, "%", **sizes)), corpus.name))
            values.append(gap)
    columns = (heading(left), heading(right), "difference, on held-out texts")
    note = (
        "Differences are read at steps chosen on the other half of the texts; their intervals are over seeds and texts."
    )
    return Finding((ResultTable(title, columns, tuple(rows), CAPTION),), values=tuple(values), notes=(note,))


COLUMNS = ("train median length", "train size", "validation median length", "validation size", "vocabulary")
NOTE = (
    "The paper prints 31,065 words for 20 NG as for AG News; its own parameter count (5,021,282 with embeddings of "
    "width 300 beside 1,274,882 others) implies 12,488."
)


def find_statistics(budget: str, answers: Mapping[str, Sequence[Answer]]) -> Finding:
    """Table 9: sizes, median lengths and vocabulary of every corpus."""
    printed = published_table("snell2021", "9")
    rows = []
    for corpus in corpora(budget):
        ours = answers[corpus.data][0] if corpus.data else None
        sizes = [(column, exactly(ours[column]) if ours else None) for column in COLUMNS]
        cells = [Cell(size, printed.get((corpus.name, column), (None,))[0], digits=0) for column, size in sizes]
        rows.append(Row(f"{corpus.name} (a sample)" if corpus.sample else corpus.name, tuple(cells)))
    samples = tuple(f"{corpus.name} is a sample here: {corpus.sample}." for corpus in corpora(budget) if corpus.sample)
    return Finding((ResultTable("Table 9: the data", COLUMNS, tuple(rows)),), notes=(NOTE, *samples))


def statistics_units(budget: str) -> dict[str, list[Unit]]:
    """The numbers of Table 9, by corpus."""
    function, subwords = f"{__name__}:statistics", SUBWORDS[budget]
    return {
        data: [
            Unit(
                f"statistics-{data.replace(':', '-')}",
                function,
                {"data": data, "subwords": subwords}
                | ({"known_words": study.known_words} if study.known_words else {}),
            )
        ]
        for data, study in studies(budget).items()
    }


def statistics(
    data: str,
    subwords: int = 8000,
    known_words: str | None = None,
    *,
    device: Any = None,
    report: OnEvent | None = None,
) -> dict[str, float]:
    """The five numbers of Table 9 for one corpus, whole and uncut.

    known_words: a file of word vectors, whose words are in the vocabulary however rare they are.

    >>> statistics("polarity")["train median length"]
    12.0
    """
    corpus = open_data(data)
    if isinstance(corpus, ParallelCorpus):
        tokeniser, _ = fit_tokeniser(corpus, subwords)
        lengths = {
            name: encode_pairs(getattr(corpus, name), tokeniser).source.lengths for name in ("train", "validation")
        }
        vocabulary = len(tokeniser)
    else:
        known = vector_words(known_words) if known_words else frozenset[str]()
        encoded = encode(corpus, max_length=1_000_000, known=known)
        lengths = {"train": encoded.train.lengths, "validation": encoded.validation.lengths}
        vocabulary = len(encoded.vocabulary)
    sizes = {"vocabulary": float(vocabulary)}
    for name, each in lengths.items():
        sizes[f"{name} size"] = float(len(each))
        sizes[f"{name} median length"] = float(np.median(each) - 2)
    return sizes
