"""Tables 2 to 11 of snell2021: agreement, Kendall's τ, both splits, accuracy and BLEU, and the data.

Every table but that of the data has each corpus twice, under the two conventions of `studies.analysis`: *own* and
*cross*.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from heedful.config import StudyConfig
from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.data.subwords import encode_pairs, fit_tokeniser
from heedful.data.vocabulary import encode
from heedful.data.word_vectors import vector_words
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.experiment import Answer, Needs, Unit, Workspace, study_folder
from heedful.papers.findings import Cell, CellUnit, Finding, ResultTable, Row, Value, exactly, shifted
from heedful.papers.published import published_table
from heedful.papers.snell2021.config import SUBWORDS, SnellCorpus, corpora, studies, study_of
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import from_mapping
from heedful.studies.analysis import MeasureName, Recordings, final_performance, measure_agreements
from heedful.studies.result import AgreementResult, Convention
from heedful.studies.run_directory import ModelSpec, Recorded, RunDirectory

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
IN_RESULT = ("validation", "agreement")  # what a study's own result has
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


_PAIRS = ("A(alpha,beta_uf)", "A(beta_uf,beta_px)", "A(delta,beta_uf)", "A(alpha,beta)")
_XI = tuple(name.replace("A(", "xi(") for name in _PAIRS)
_FULL = (*_PAIRS, "A_random", "shuffle", *_XI, "xi_final")
_NO_BETA = (*_PAIRS[:3], "A_random", *_XI[:3], "xi_final")
FORMS = {
    form.number: form
    for form in (
        Form("2", "agreement", (*_PAIRS, "A_random", "shuffle", _XI[0], _XI[3], "xi_final"), digits=0),
        Form("3", "Kendall's τ in place of agreement", (*_PAIRS, *_NO_BETA[3:]), measure="kendall"),
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
    """One of Tables 2 to 8; and how far its columns lie above chance, corpus by corpus and in the worst corpus."""
    form = FORMS[number]
    data = [corpus.data for corpus in corpora(workspace.budget, form.task) if corpus.data]
    seen = {name: measured(workspace, name, form.split, form.measure) for name in data}
    table = _table(form, corpora(workspace.budget, form.task), seen)
    values = _excesses(workspace, form, seen) if form.measure == "agreement" else []
    return Finding((table,), values=tuple(values), notes=nearer_convention(table))


def _table(form: Form, lines: Iterable[SnellCorpus], seen: Mapping[str, "Measured"]) -> ResultTable:
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


def _cell(form: Form, corpus: SnellCorpus, seen: Mapping[str, "Measured"], convention: Convention, column: str) -> Cell:
    published, star = published_table("snell2021", form.number).get((corpus.row or "", column), (None, False))
    unit: CellUnit = "" if form.bleu and column.startswith("xi") else "%"
    if corpus.data is None:
        return Cell(None, published, unit, form.digits, published_starred=star)
    study = seen[corpus.data]
    shown = published if convention == "cross" else None
    if column == "A_random":
        return Cell(exactly(study.random), shown, "%", form.digits)
    if column == "xi_final":
        return Cell(study.final_bleu if form.bleu else study.final, shown, unit, form.digits)
    if column == "shuffle":
        return Cell(study.agreement("A(alpha,beta)", convention).shuffle, None, "%", form.digits)
    row = study.agreement(column.replace("xi(", "A("), convention)
    if not column.startswith("xi("):
        return Cell(row.estimate, shown, unit, form.digits)
    xi = Estimate(row.xi_bleu, np.nan, np.nan, len(row.per_seed)) if form.bleu and row.xi_bleu is not None else row.xi
    return Cell(xi, shown, unit, form.digits, starred=not row.xi_reached, published_starred=star and shown is not None)


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


def _excesses(workspace: Workspace, form: Form, seen: Mapping[str, "Measured"]) -> list[Value]:
    values = []
    untrained = {data: _untrained_accuracy(workspace, data, form.split) for data in seen}
    for convention in CONVENTIONS:
        for name in _PAIRS:
            each = {data: above_chance(study.agreement(name, convention)) for data, study in seen.items()}
            values += [Value(f"{name} above chance, {convention}, {data}", e) for data, e in each.items()]
            values.append(Value(f"{name} above chance, {convention}, lowest", _lowest(each.values())))
        lifts = [_xi_above(study, convention, untrained[data]) for data, study in seen.items()]
        values.append(Value(f"xi above untrained, {convention}, lowest", _lowest(lifts)))
    return values


def above_chance(row: AgreementResult) -> Estimate:
    """A − max(Â, matched shuffle), its interval over seeds."""
    chance = max(row.random, row.shuffle.value) if row.shuffle.n else row.random
    return mean_over_seeds([value - chance for value in row.per_seed])


def _xi_above(study: "Measured", convention: Convention, untrained: float) -> Estimate:
    """The lower of ξ(α, β) and ξ(α, β^uf) less the accuracy of the untrained models, interval over texts."""
    xi = _lowest(study.agreement(name, convention).xi for name in ("A(alpha,beta)", "A(alpha,beta_uf)"))
    return shifted(xi, -untrained)


def _untrained_accuracy(workspace: Workspace, data: str, split: Recorded) -> float:
    """The accuracy of a study's standard models before their first step, in the mean over seeds."""
    recordings = Recordings(workspace.study(study_of(data, workspace.budget)), split)
    first = [recordings.correct("standard", s, recordings.steps("standard", s)[0]).mean() for s in recordings.seeds]
    return float(np.mean(first))


def _lowest(estimates: Iterable[Estimate]) -> Estimate:
    return min(estimates, key=lambda estimate: estimate.value)


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


def measured(
    workspace: Workspace, data: str, split: Recorded = "validation", measure: MeasureName = "agreement"
) -> Measured:
    """All agreements of a corpus's study; those of its validation texts are part of the study's own result."""
    study = study_of(data, workspace.budget)
    run = workspace.study(study)
    if (split, measure) == IN_RESULT:
        result = run.result()
        bleu = _final_bleu(Recordings(run, split))
        return Measured(result.agreements, result.random_agreement, result.xi_final, bleu)
    unit = agreement_unit(study, split, measure)
    return from_mapping(Measured, workspace.answers([unit])[0], where=unit.name)


def agreement_needs(
    budget: str, task: str | None = None, split: Recorded = "validation", measure: MeasureName = "agreement"
) -> Needs:
    """What `measured` reads for all corpora of a task: studies, and then agreements that are not in their results."""
    configs = tuple(studies(budget, task).values())
    units = () if (split, measure) == IN_RESULT else tuple(agreement_unit(c, split, measure) for c in configs)
    return Needs(configs, then=lambda workspace: Needs(units=units))


def agreement_unit(study: StudyConfig, split: Recorded, measure: MeasureName) -> Unit:
    """The agreements of one study, whose models are trained."""
    arguments = {"run": study_folder(study), "split": split, "measure": measure}
    return Unit(f"{study.data}-{split}-{measure}", f"{__name__}:measure_study", arguments, paths=("run",))


def measure_study(
    *, run: str, split: Recorded, measure: MeasureName, device: torch.device, report: OnEvent
) -> dict[str, Any]:
    """A unit: all agreements of a trained study."""
    recordings = Recordings(RunDirectory(Path(run)), split)
    agreements = measure_agreements(recordings, measure)
    answer = Measured(agreements, agreements[0].random, final_performance(recordings), _final_bleu(recordings))
    plain: dict[str, Any] = without_nan(asdict(answer))
    return plain


def _final_bleu(recordings: Recordings) -> Estimate | None:
    if not recordings.translating:
        return None
    key = "bleu" if recordings.split == "validation" else "train_bleu"
    last = [recordings.run.model(ModelSpec("standard", seed)).metrics()[-1][key] for seed in recordings.seeds]
    return mean_over_seeds(last)


PAIRED = {  # title, both columns, and the factor that turns what the table prints into percent
    "10": ("Table 10: attention learned while β is frozen", "A(alpha,alpha_fr)", "A(alpha,beta_uf)", 1.0),
    "11": ("Table 11: the proxy against logistic regression", "A(beta_uf,beta_px)", "A(beta_uf,beta_log)", 100.0),
}


def find_pair(workspace: Workspace, number: str) -> Finding:
    """Two agreements side by side, and their difference.

    Table 10: attention trained with everything else at its random start agrees less than β^uf does (A.6). Table 11: the
    proxy's probe and the weights of logistic regression agree with β^uf alike (A.10).
    """
    title, left, right, scale = PAIRED[number]
    rows, values = [], []
    gaps: dict[Convention, list[Estimate]] = {convention: [] for convention in CONVENTIONS}
    table = published_table("snell2021", number)
    for corpus in corpora(workspace.budget, "classification"):
        keys = [(corpus.name, column) for column in (left, right)]
        printed = [table[key][0] * scale if key in table else None for key in keys]
        if corpus.data is None:
            cells = [Cell(None, value, "%") for value in printed]
            rows.append(Row(_name(corpus, "cross"), (*cells, Cell()), corpus.name))
            continue
        study = measured(workspace, corpus.data)
        for convention in CONVENTIONS:
            a, b = (study.agreement(column, convention) for column in (left, right))
            gap = mean_over_seeds(np.subtract(b.per_seed, a.per_seed).tolist())
            shown = printed if convention == "cross" else [None, None]
            cells = [Cell(row.estimate, value, "%") for row, value in zip((a, b), shown, strict=True)]
            rows.append(Row(_name(corpus, convention), (*cells, Cell(gap, None, "%")), corpus.name))
            gaps[convention].append(gap)
            values.append(Value(f"{right} - {left}, {convention}, {corpus.data}", gap))
    for convention, each in gaps.items():
        values.append(Value(f"{right} - {left}, {convention}, lowest", _lowest(each)))
        values.append(Value(f"{right} - {left}, {convention}, mean", mean_over_seeds([gap.value for gap in each])))
    columns = (heading(left), heading(right), "difference, over seeds")
    return Finding((ResultTable(title, columns, tuple(rows), CAPTION),), values=tuple(values))


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
