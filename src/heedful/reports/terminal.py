"""Results in a terminal: one table, one verdict, where the page is."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.measure.uncertainty import Estimate
from heedful.papers.results import Result
from heedful.reports.paper_tables import plain_cell
from heedful.reports.words import ANSWERS, MODEL_TITLES, symbol
from heedful.studies.preflight import Preflight
from heedful.studies.result import StudyResult


def print_study(result: StudyResult, report: Path) -> None:
    """The agreements beside chance, the verdict, and the path of the report."""
    console = _console()
    title = f"{result.data['name']}: {result.budget}, seeds {', '.join(map(str, result.seeds))}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    translating = any(row.xi_bleu is not None for row in result.agreements)
    for column in ("agreement", "whose", "%", "95 %", "random", "shuffle", "ξ", *(["ξ BLEU"] if translating else [])):
        table.add_column(column, justify="left" if column in ("agreement", "whose") else "right", no_wrap=True)
    for row in result.agreements:
        table.add_row(
            symbol(row.name),
            row.convention,
            f"{row.estimate.value:.1%}",
            _interval(row.estimate),
            f"{row.random:.1%}",
            f"{row.shuffle.value:.1%}" if row.shuffle.n else "–",
            f"{row.xi.value:.1%}{'' if row.xi_reached else '*'}",
            *([f"{row.xi_bleu:.1f}"] if row.xi_bleu is not None else []),
        )
    console.print(table)
    console.print(f"ξ* (final accuracy) {result.xi_final.value:.1%}; a star marks agreement never exceeded by a seed")
    _print_translation(console, result)
    for question in result.verdict.questions:
        console.print(f"  {ANSWERS[question.answer]} {question.question}")
    console.print(result.verdict.sentence, style="bold")
    console.print(f"report: {report}", soft_wrap=True)


def _print_translation(console: Console, result: StudyResult) -> None:
    """BLEU and alignment error, where there are any."""
    final = [
        f"{MODEL_TITLES[kind]} {' · '.join(f'{m.bleu[-1]:.1f}' for m in models)}"
        for kind in dict.fromkeys(model.kind for model in result.models)
        if (models := [model for model in result.models if model.kind == kind and model.bleu])
    ]
    if final:
        console.print(f"BLEU at the end, by seed: {'; '.join(final)}")
    if (found := result.alignment) is not None:
        console.print(
            f"alignment error of attention: {found.trained.value:.1%} ({_interval(found.trained)}), "
            f"untrained {found.untrained.value:.1%}, chance {found.chance:.1%}; "
            f"α^IBM {found.counting.value:.1%}, IBM Model 1 {found.model_1.value:.1%}, "
            f"position alone {found.diagonal.value:.1%}"
        )


def print_preflight(result: Preflight) -> None:
    """The verdict, the statistic beside its null, and the telling words."""
    console = _console()
    console.print(Text.assemble((result.verdict, "bold"), f": {result.sentence}"))
    told = [each for each in result.outputs if each.most or each.least]
    table = Table(show_header=True)
    for column in ("output", "words that speak for it", "words that speak against it"):
        table.add_column(column)
    for each in told[:12]:
        table.add_row(each.output, " ".join(w.word for w in each.most), " ".join(w.word for w in each.least))
    console.print(table if told else "no word speaks for an output or against it")
    if result.alignment is not None:
        counted = result.alignment
        console.print(
            f"alignment error of counts alone: {counted.counting.value:.1%} (α^IBM), {counted.model_1.value:.1%} "
            f"(five iterations of Model 1), {counted.diagonal.value:.1%} (position alone)"
        )
    for decision in result.decisions:
        console.print(f"  {decision}", style="dim")


def print_result(result: Result) -> None:
    """A paper's tables, measured beside published, and the notes under them."""
    console = _console()
    console.print(Text.assemble((result.title, "bold"), f" ({result.budget}, {result.seconds:.0f} s)"))
    for found in result.finding.tables:
        table = Table(
            title=found.title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False
        )
        table.add_column("")
        for column in found.columns:
            table.add_column(column, justify="right")
        for row in found.rows:
            table.add_row(row.name, *(plain_cell(cell) for cell in row.cells))
        console.print(table)
    for note in result.finding.notes:
        console.print(f"  {note}", style="dim")


def _console() -> Console:
    """Words of the data are words, whatever brackets and colons they have."""
    return Console(markup=False, emoji=False, highlight=False)


def _interval(estimate: Estimate) -> str:
    return f"{100 * estimate.low:.1f} – {100 * estimate.high:.1f}"
