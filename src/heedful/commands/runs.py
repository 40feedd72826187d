"""`heedful runs` and `heedful query`: finding things again, from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.commands.shared import completing, print_json

if TYPE_CHECKING:
    from heedful.records.query import Answer

FORMATS = ("table", "csv", "json", "parquet")

Folder = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Below which to look.")]


def runs(
    folder: Folder = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """List every run below a folder: what, when, in what state, and its main figures."""
    from heedful import api

    found = api.runs(folder)
    if as_json:
        print_json(found.to_dict())
        return
    from heedful.reports.runs_terminal import print_runs

    print_runs(found)


def query(
    sql: Annotated[
        str | None, typer.Argument(metavar="SQL", help='Such as "SELECT run, accuracy FROM runs"; see --schema.')
    ] = None,
    folder: Folder = Path("runs"),
    form: Annotated[
        str, typer.Option("--format", help="table, csv, json or parquet.", autocompletion=completing(FORMATS))
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this .csv, .json or .parquet file.")] = None,
    columns: Annotated[
        bool, typer.Option("--schema", help="List the tables and columns that can be asked about.")
    ] = False,
) -> None:
    """Ask a question in SQL across all results and traces below a folder; nothing is written."""
    from heedful import api
    from heedful.errors import ConfigError
    from heedful.records.query import schema

    if form not in FORMATS:
        raise ConfigError(f"--format {form!r} is not one of {', '.join(FORMATS)}")
    if form == "parquet" and out is None:
        raise ConfigError("--format parquet needs a file; say --out answer.parquet")
    if columns:
        _put_out(schema(), form, out)
        return
    if sql is None:
        raise ConfigError('no question; ask such as: heedful query "SELECT run, accuracy FROM runs"; see --schema')
    _put_out(api.query(sql, folder), form, out)


def _put_out(answer: "Answer", form: str, out: Path | None) -> None:
    from heedful.reports.runs_terminal import print_answer
    from heedful.studies.tabular import csv_text, json_text

    if out is not None:
        answer.save(out)
        typer.echo(out)
    elif form == "csv":
        typer.echo(csv_text(answer.to_arrow()), nl=False)
    elif form == "json":
        typer.echo(json_text(answer.to_arrow()), nl=False)
    else:
        print_answer(answer)
