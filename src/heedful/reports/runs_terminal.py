"""Runs and answers in a terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.records.found import RunList
from heedful.records.query import Answer
from heedful.reports.numbers import duration, percent
from heedful.studies.tabular import cell

MOST = 200  # rows of an answer that a terminal shows
_WIDE = 110  # letters in a line of a terminal that has room for what a run is of
_STYLES = {"running": "bold", "finished": "green", "damaged": "red", "failed": "red", "broken off": "yellow"}


def print_runs(found: RunList) -> None:
    """One line a run: when, where, what, its state and its main figures."""
    console = Console(markup=False, emoji=False, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    wide = console.width >= _WIDE
    for name in ("when (UTC)", "kind", "state", "run", *(["what"] if wide else []), "accuracy", "A(α, β)", "took"):
        number = name in ("accuracy", "A(α, β)", "took")
        whole = name not in ("run", "what")
        table.add_column(name, justify="right" if number else "left", no_wrap=whole, overflow="fold")
    for run in found.runs:
        table.add_row(
            run.when[:16].replace("T", " "),
            run.kind,
            Text(run.state, style=_STYLES[run.state]),
            Text(run.run),
            *([Text(run.what)] if wide else []),
            percent(run.accuracy) if run.accuracy is not None else "",
            percent(run.agreement) if run.agreement is not None else "",
            duration(run.seconds) if run.seconds is not None else "",
        )
    console.print(table)
    for run in found.runs:
        if run.state in ("damaged", "broken off", "running", "failed") and run.said:
            console.print(Text(f"{run.state}: {run.run}: {run.said}"), soft_wrap=True)
    count = f"{len(found.runs):,} run{'' if len(found.runs) == 1 else 's'}"
    console.print(f"{count} below {found.folder}", soft_wrap=True)


def print_answer(answer: Answer) -> None:
    """The rows of an answer, as many as a terminal bears."""
    console, table = Console(), Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    shown = answer.table.slice(0, MOST)
    for name, column in zip(shown.column_names, shown.columns, strict=True):
        values = [value for value in column.to_pylist() if value is not None]
        numeric = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in zip(*(column.to_pylist() for column in shown.columns), strict=True):
        table.add_row(*(Text(_short(cell(value))) for value in row))
    console.print(table)
    rest = f", of which {MOST} are shown; --format csv has all" if answer.table.num_rows > MOST else ""
    count = f"{answer.table.num_rows:,} row{'' if answer.table.num_rows == 1 else 's'}"
    console.print(f"{count}{rest}", highlight=False)


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
