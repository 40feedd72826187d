"""A sweep in a terminal: one row a study, what failed, where the page is."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.reports.numbers import NONE, percent
from heedful.reports.words import symbol
from heedful.studies.swept import SweepResult, SweptStudy

SHOWN = ("accuracy", "entropy", "A(alpha,beta) own", "A(alpha,beta_uf) own", "A(delta,beta_uf) own")


def print_sweep(result: SweepResult, report: Path) -> None:
    """Main figures of every study, the failures, and the path of the page."""
    console = Console(markup=False, emoji=False, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for axis in result.axes:
        table.add_column(Text(axis.name), overflow="fold")
    keys = [key for key in SHOWN if key in result.figure_keys()]
    for key in keys:
        table.add_column(symbol(key.removesuffix(" own")), justify="right", no_wrap=True)
    for study in result.studies:
        cells = [_cell(study, key) for key in keys] if study.state == "finished" else ["failed", *[""] * len(keys)]
        table.add_row(*(Text(word) for word in study.place), *cells[: len(keys)])
    console.print(table)
    for study in result.failed:
        said = f"failed: {study.folder} ({', '.join(study.place)}): {study.error}"
        console.print(Text(said, style="red"), soft_wrap=True)
    done = len(result.studies) - len(result.failed)
    console.print(f"{done} of {len(result.studies)} studies finished")
    console.print(f"report: {report}", soft_wrap=True)


def _cell(study: SweptStudy, key: str) -> str:
    figure = study.figure(key)
    return NONE if figure is None else percent(figure.estimate.value)
