"""Tables 2 to 8, 10 and 11 of snell2021: agreement, Kendall's τ, both splits, accuracy and BLEU, one reader for all.

Every table has each corpus twice, under the two conventions of `studies.analysis`: *own* and *cross*.
"""

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.data.subwords import encode_pairs, fit_tokeniser
from heedful.data.vocabulary import encode
from heedful.errors import DamagedError
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.experiment import Workspace
from heedful.papers.findings import Cell, Finding, ResultTable, Row, Unit, Value, exactly
from heedful.papers.published import published_table
from heedful.papers.snell2021.config import SnellCorpus, corpora, study_of
from heedful.papers.units import is_there, read, save
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import from_mapping
from heedful.studies.analysis import MeasureName, Recordings, final_performance, measure_agreements
from heedful.studies.result import AgreementResult, Convention
from heedful.studies.run_directory import ModelSpec, Recorded

FORM = (
    "Each line is measured twice: “own” takes α and β of one model, “cross” β of another seed, like the released code."
)


@dataclass(frozen=True)
class Measured:
    """All agreements of one study, by one measure, on one split."""

    agreements: tuple[AgreementResult, ...]
    random: float
    final: Estimate
    final_bleu: Estimate | None

    def agreement(self, name: str, convention: Convention) -> AgreementResult:
        """The row of that name; under *cross* a bag-of-words probe stands first."""
        swapped = f"A({','.join(name[2:-1].split(',')[::-1])})"
        for row in self.agreements:
            if row.convention == convention and row.name in (name, swapped):
                return row
        raise KeyError(f"{name!r} ({convention}) was not measured")


def measured(lab: Workspace, data: str, split: Recorded = "validation", measure: MeasureName = "agreement") -> Measured:
    """All agreements of a corpus's study; measured once, then read from beside the run."""
    run = lab.study(study_of(data, lab.budget))
    path = run.root / f"agreements-{split}-{measure}.json"
    if path.exists():
        try:
            return _stored(path, path.stat().st_mtime_ns)
        except DamagedError:
            is_there(path, lambda notice: lab.on_progress({"model": data, "notice": notice}))
    lab.on_stage(f"measuring {data} ({split}, {measure})")
    recordings = Recordings(run, split)
    agreements = measure_agreements(recordings, measure)
    answer = Measured(agreements, agreements[0].random, final_performance(recordings), _final_bleu(recordings))
    save(path, without_nan(asdict(answer)))
    return answer


@lru_cache(maxsize=64)
def _stored(path: Path, written: int) -> Measured:
    """What was measured before; every cell of every table asks for it."""
    return from_mapping(Measured, read(path), where=str(path))


def _final_bleu(recordings: Recordings) -> Estimate | None:
    if not recordings.translating:
        return None
    key = "bleu" if recordings.split == "validation" else "train_bleu"
    last = [recordings.run.model(ModelSpec("standard", seed)).metrics()[-1][key] for seed in recordings.seeds]
    return mean_over_seeds(last)


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


_PAIRS = ("A(alpha,beta_uf)", "A(beta_uf,beta_px)", "A(delta,beta_uf)", "A(alpha,beta)")
_XI = tuple(name.replace("A(", "xi(") for name in _PAIRS)
_FULL = (*_PAIRS, "A_random", "shuffle", *_XI, "xi_final")
_NO_BETA = (*_PAIRS[:3], "A_random", *_XI[:3], "xi_final")
FORMS = {
    form.number: form
    for form in (
        Form("2", "agreement", (*_PAIRS, "A_random", "shuffle", _XI[0], _XI[3], "xi_final"), digits=0),
        Form(
            "3", "Kendall's τ in place of agreement", (*_NO_BETA[:3], "A(alpha,beta)", *_NO_BETA[3:]), measure="kendall"
        ),
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
    said = HEADINGS[column]
    return said.replace("A(", "τ(") if measure == "kendall" else said


def table(lab: Workspace, number: str) -> ResultTable:
    """One of Tables 2 to 8, measured beside published."""
    form = FORMS[number]
    rows = []
    for corpus in corpora(lab.budget, form.task):
        for convention in get_args(Convention):
            cells = tuple(_cell(lab, form, corpus, convention, column) for column in form.columns)
            printed = any(cell.published is not None for cell in cells)
            if corpus.data is not None or (convention == "cross" and printed):
                rows.append(Row(_name(corpus, convention), cells, group=corpus.row or corpus.data or ""))
    columns = tuple(heading(column, form.measure) for column in form.columns)
    return ResultTable(f"Table {number}: {form.title}", columns, tuple(rows), FORM)


def _name(corpus: SnellCorpus, convention: Convention) -> str:
    if corpus.data is None:
        return f"{corpus.row} (not measured: we have no copy)"
    return f"{corpus.row or corpus.data}, {convention}"


def _cell(lab: Workspace, form: Form, corpus: SnellCorpus, convention: Convention, column: str) -> Cell:
    published, star = published_table("snell2021", form.number).get((corpus.row or "", column), (None, False))
    unit: Unit = "" if form.bleu and column.startswith("xi") else "%"
    if corpus.data is None:
        return Cell(None, published, unit, form.digits, published_starred=star)
    seen = measured(lab, corpus.data, form.split, form.measure)
    shown = published if convention == "cross" else None
    if column == "A_random":
        return Cell(exactly(seen.random), shown, "%", form.digits)
    if column == "xi_final":
        return Cell(seen.final_bleu if form.bleu else seen.final, shown, unit, form.digits)
    if column == "shuffle":
        return Cell(seen.agreement("A(alpha,beta)", convention).shuffle, None, "%", form.digits)
    row = seen.agreement(column.replace("xi(", "A("), convention)
    if not column.startswith("xi("):
        return Cell(row.estimate, shown, unit, form.digits)
    xi = Estimate(row.xi_bleu, np.nan, np.nan, len(row.per_seed)) if form.bleu and row.xi_bleu is not None else row.xi
    return Cell(xi, shown, unit, form.digits, starred=not row.xi_reached, published_starred=star and shown is not None)


def find_table(lab: Workspace, number: str) -> Finding:
    """A table, and how far each of its columns lies above chance, corpus by corpus and in the worst corpus."""
    form = FORMS[number]
    found = table(lab, number)
    values = tuple(_excesses(lab, form)) if form.measure == "agreement" else ()
    return Finding((found,), values=values, notes=nearer_convention(found))


def nearer_convention(of: ResultTable) -> tuple[str, ...]:
    """Which convention the published A and τ lie nearer to, counted over a table's entries; nothing without any.

    >>> def row(name, measured, published=None):
    ...     return Row(name, (Cell(exactly(measured), published, "%"),), group="SST")
    >>> nearer_convention(ResultTable("t", ("A(α, β)",), (row("SST, own", 0.47), row("SST, cross", 0.32, 25.0))))
    ('The published A lie nearer to “cross” in 1 of 1 entries (SST 1 of 1).',)
    """
    letter = of.columns[0][0]
    asked = [i for i, column in enumerate(of.columns) if column.startswith(f"{letter}(")]
    lines = {row.name: row for row in of.rows}
    counts = {}
    for group in dict.fromkeys(row.group for row in of.rows):
        own, cross = (lines.get(f"{group}, {convention}") for convention in get_args(Convention))
        if own is None or cross is None:
            continue
        nearer = [_nearer_to_cross(own.cells[i], cross.cells[i]) for i in asked]
        if known := [yes for yes in nearer if yes is not None]:
            counts[group] = (sum(known), len(known))
    if not counts:
        return ()
    each = ", ".join(f"{group} {yes} of {n}" for group, (yes, n) in counts.items())
    yes, n = (sum(column) for column in zip(*counts.values(), strict=True))
    return (f"The published {letter} lie nearer to “cross” in {yes} of {n} entries ({each}).",)


def _nearer_to_cross(own: Cell, cross: Cell) -> bool | None:
    if own.measured is None or cross.measured is None or cross.published is None:
        return None
    published = cross.published / 100
    return abs(cross.measured.value - published) < abs(own.measured.value - published)


def _excesses(lab: Workspace, form: Form) -> list[Value]:
    values = []
    lines = [corpus.data for corpus in corpora(lab.budget, form.task) if corpus.data]
    for convention in get_args(Convention):
        for name in _PAIRS:
            each = {data: above_chance(measured(lab, data, form.split).agreement(name, convention)) for data in lines}
            values += [Value(f"{name} above chance, {convention}, {data}", e) for data, e in each.items()]
            values.append(
                Value(f"{name} above chance, {convention}, lowest", min(each.values(), key=lambda e: e.value))
            )
        lifts = {data: xi_above_untrained(lab, data, convention, form.split) for data in lines}
        values.append(Value(f"xi above untrained, {convention}, lowest", min(lifts.values(), key=lambda e: e.value)))
    return values


def above_chance(row: AgreementResult) -> Estimate:
    """A − max(Â, matched shuffle), its interval over seeds."""
    chance = max(row.random, row.shuffle.value) if row.shuffle.n else row.random
    return mean_over_seeds([value - chance for value in row.per_seed])


def xi_above_untrained(lab: Workspace, data: str, convention: Convention, split: Recorded) -> Estimate:
    """The lower of ξ(α, β) and ξ(α, β^uf) less the accuracy of the untrained models, interval over texts."""
    seen = measured(lab, data, split)
    run = lab.study(study_of(data, lab.budget))
    recordings = Recordings(run, split)
    start = float(
        np.mean(
            [
                recordings.correct("standard", seed, recordings.steps("standard", seed)[0]).mean()
                for seed in recordings.seeds
            ]
        )
    )
    xi = min(
        (seen.agreement(name, convention).xi for name in ("A(alpha,beta)", "A(alpha,beta_uf)")), key=lambda e: e.value
    )
    return Estimate(xi.value - start, xi.low - start, xi.high - start, xi.n)


def find_frozen(lab: Workspace) -> Finding:
    """Table 10: attention trained with everything else at its random start agrees less than β^uf does (A.6)."""
    return _two_columns(
        lab, "10", "A(alpha,alpha_fr)", "A(alpha,beta_uf)", "attention learned while β is frozen", scale=1.0
    )


def find_logistic(lab: Workspace) -> Finding:
    """Table 11: the proxy's probe and the weights of logistic regression tell the same story (A.10)."""
    return _two_columns(
        lab, "11", "A(beta_uf,beta_px)", "A(beta_uf,beta_log)", "the proxy against logistic regression", scale=100.0
    )


def _two_columns(lab: Workspace, number: str, left: str, right: str, title: str, scale: float) -> Finding:
    rows, values = [], []
    worst: dict[str, list[Estimate]] = {}
    for corpus in corpora(lab.budget, "classification"):
        for convention in get_args(Convention):
            cells: list[Cell] = []
            for column in (left, right):
                printed, _ = published_table("snell2021", number).get((corpus.row or "", column), (None, False))
                shown = None if printed is None or (corpus.data and convention == "own") else printed * scale
                seen = measured(lab, corpus.data).agreement(column, convention).estimate if corpus.data else None
                cells.append(Cell(seen, shown, "%", 1))
            if corpus.data:
                a, b = (measured(lab, corpus.data).agreement(c, convention).per_seed for c in (left, right))
                gap = mean_over_seeds(np.subtract(b, a).tolist())
                cells.append(Cell(gap, None, "%", 1))
                worst.setdefault(convention, []).append(gap)
                values.append(Value(f"{right} - {left}, {convention}, {corpus.data}", gap))
            if corpus.data is not None or convention == "cross":
                cells += [Cell()] * (3 - len(cells))
                rows.append(Row(_name(corpus, convention), tuple(cells), group=corpus.row or corpus.data or ""))
    for convention, gaps in worst.items():
        values.append(Value(f"{right} - {left}, {convention}, lowest", min(gaps, key=lambda e: e.value)))
        values.append(Value(f"{right} - {left}, {convention}, mean", mean_over_seeds([gap.value for gap in gaps])))
    columns = (heading(left), heading(right), "difference, over seeds")
    return Finding((ResultTable(f"Table {number}: {title}", columns, tuple(rows), FORM),), values=tuple(values))


def settings(budget: str, task: str | None = None) -> dict[str, Any]:
    """What decides the tables: the settings of the studies behind them."""
    return {c.data: study_of(c.data, budget) for c in corpora(budget, task) if c.data}


COLUMNS = ("train median length", "train size", "validation median length", "validation size", "vocabulary")
SUBWORDS = {"smoke": 500, "quick": 8000, "paper": 8000}
NOTE = (
    "The paper prints 31,065 words for 20 NG as for AG News; its own parameter count (5,021,282 with embeddings of "
    "width 300 beside 1,274,882 others) implies 12,488."
)


def find_statistics(lab: Workspace) -> Finding:
    """Sizes, median lengths and vocabulary of every corpus."""
    printed = published_table("snell2021", "9")
    rows = []
    for corpus in corpora(lab.budget):
        ours = statistics(corpus.data, SUBWORDS[lab.budget]) if corpus.data else {}
        cells = []
        for column in COLUMNS:
            value = ours.get(column)
            measured = None if value is None else exactly(value)
            cells.append(Cell(measured, printed.get((corpus.row or "", column), (None,))[0], digits=0))
        rows.append(Row(corpus.row or str(corpus.data), tuple(cells)))
    return Finding((ResultTable("Table 9: the data", COLUMNS, tuple(rows)),), notes=(NOTE,))


def statistics(data: str, subwords: int = 8000) -> dict[str, float]:
    """The five numbers of Table 9 for one corpus, whole and uncut.

    >>> statistics("polarity")["train median length"]
    12.0
    """
    corpus = open_data(data)
    if isinstance(corpus, ParallelCorpus):
        tokeniser, _ = fit_tokeniser(corpus, subwords)
        splits: dict[str, Any] = {
            name: encode_pairs(getattr(corpus, name), tokeniser).source for name in ("train", "validation")
        }
        vocabulary = len(tokeniser)
    else:
        encoded = encode(corpus, max_length=1_000_000)
        splits, vocabulary = {"train": encoded.train, "validation": encoded.validation}, len(encoded.vocabulary)
    found = {"vocabulary": float(vocabulary)}
    for name, split in splits.items():
        found[f"{name} size"] = float(len(split))
        found[f"{name} median length"] = float(np.median(split.lengths) - 2)
    return found
