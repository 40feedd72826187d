"""`heedful sweep`, `heedful runs` and `heedful query`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from heedful.cli.options import Address, AsJson, Device, Place, choice, number, print_json
from heedful.errors import ConfigError

if TYPE_CHECKING:
    from heedful.records.query import Answer

FORMATS = ("table", "csv", "json", "parquet")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to search.")]


class SweepOptions(TypedDict, total=False):
    """Options of `heedful sweep` for the API."""

    on: Place
    address: Address
    jobs: Annotated[int, number(1, help="Studies run at the same time; by default one per core or all that fit.")]
    retries: Annotated[int, number(0, help="Times a failed study is tried again; 1 by default.")]
    cpus: Annotated[float, number(0, help="Cores for each study; 1 by default.")]
    gpus: Annotated[float, number(0, help="GPUs for each study, with --on ray; none by default.")]
    shared: Annotated[
        bool,
        typer.Option("--shared/--not-shared", help="Whether nodes can see the sweep's folder; tested by default."),
    ]
    device: Device


def sweep(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help=r"TOML file with the tables \[base] and \[grid].")],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the sweep; runs/<grid> by default.")
    ] = None,
    as_json: AsJson = False,
    **settings: Unpack[SweepOptions],
) -> None:
    """Run every study of a grid that is not finished yet; exit code 1 if one failed."""
    from heedful import api

    folder = out or api.RUNS / api.run_name(str(grid))
    result = api.sweep(grid, out=folder, **settings)
    if as_json:
        print_json(result.to_dict())
    else:
        from heedful.reports.terminal import print_sweep

        print_sweep(result, folder / "report.html")
    if result.failed:
        raise typer.Exit(1)


def runs(folder: Folder = Path("runs"), as_json: AsJson = False) -> None:
    """List every run below a folder with its kind, time, state and main figures."""
    from heedful import api

    listed = api.runs(folder)
    if as_json:
        print_json(listed.to_dict())
        return
    from heedful.reports.terminal import print_runs

    print_runs(listed)


def query(
    sql: Annotated[
        str | None, typer.Argument(metavar="SQL", help='Such as "SELECT run, accuracy FROM runs"; see --schema.')
    ] = None,
    folder: Folder = Path("runs"),
    output_format: Annotated[
        str, choice(FORMATS, flag="--format", metavar="FORMAT", help="table, csv, json or parquet.")
    ] = "table",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this .csv, .json or .parquet file.")
    ] = None,
    columns: Annotated[bool, typer.Option("--schema", help="List the tables and columns.")] = False,
) -> None:
    """Run an SQL query over all results and traces below a folder; read-only."""
    from heedful import api
    from heedful.records.query import schema

    if output_format == "parquet" and out is None:
        raise ConfigError("--format parquet needs a file, such as --out answer.parquet")
    if columns:
        _print_answer(schema(), output_format, out)
        return
    if sql is None:
        raise ConfigError('no query given; example: heedful query "SELECT run, accuracy FROM runs"; see --schema')
    _print_answer(api.query(sql, folder), output_format, out)


def _print_answer(answer: "Answer", output_format: str, out: Path | None) -> None:
    from heedful.reports.terminal import print_answer
    from heedful.storage.tables import csv_text, json_text

    if out is not None:
        answer.save(out)
        typer.echo(out)
    elif output_format == "csv":
        typer.echo(csv_text(answer.to_arrow()), nl=False)
    elif output_format == "json":
        typer.echo(json_text(answer.to_arrow()), nl=False)
    else:
        print_answer(answer)
