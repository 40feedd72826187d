"""`heedful runs` and `heedful query`: finding things again, from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import PLACES, completing, print_json

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
    from heedful.reports.terminal import print_runs

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
    from heedful.reports.terminal import print_answer
    from heedful.storage.tables import csv_text, json_text

    if out is not None:
        answer.save(out)
        typer.echo(out)
    elif form == "csv":
        typer.echo(csv_text(answer.to_arrow()), nl=False)
    elif form == "json":
        typer.echo(json_text(answer.to_arrow()), nl=False)
    else:
        print_answer(answer)


def sweep(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="A TOML file with the tables [base] and [grid].")],
    on: Annotated[str, typer.Option(help="local or ray.", autocompletion=completing(PLACES))] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="The Ray cluster: HOST:PORT, or auto; one of this machine if left out."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The sweep's folder; runs/<grid> if left out.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Studies at a time; one per core, or what the cluster has room for.")
    ] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often a study that failed is tried again.")] = 1,
    cpus: Annotated[float, typer.Option(min=0, help="Cores that a study needs.")] = 1,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs that a study needs (on ray).")] = 0,
    shared: Annotated[
        bool | None,
        typer.Option("--shared/--not-shared", help="Whether nodes see the sweep's folder; found out if left out."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Carry out every study of a grid that is not finished yet; exit code 1 where one failed."""
    from heedful import api
    from heedful import api as asked

    folder = out or api.RUNS / asked.run_name(str(grid))
    result = api.sweep(
        grid,
        on=on,
        address=address,
        out=folder,
        jobs=jobs,
        retries=retries,
        cpus=cpus,
        gpus=gpus,
        shared=shared,
        device=device,
    )
    if as_json:
        print_json(result.to_dict())
    else:
        from heedful.reports.terminal import print_sweep

        print_sweep(result, folder / "report.html")
    if result.failed:
        raise typer.Exit(1)
