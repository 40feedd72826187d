"""`heedful sweep`: a grid of studies, on this machine or on a Ray cluster."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.commands.shared import PLACES, completing, print_json


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
    from heedful import api, asked

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
        from heedful.reports.sweep_terminal import print_sweep

        print_sweep(result, folder / "report.html")
    if result.failed:
        raise typer.Exit(1)
