"""`heedful reproduce` and `heedful claims`: the papers, from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import BUDGETS, completing, print_json

if TYPE_CHECKING:
    from heedful.papers.results import Result


def _papers(incomplete: str) -> list[str]:
    from heedful.papers.reproduction import KEYS

    return [key for key in KEYS if key.startswith(incomplete)]


def _experiments(ctx: Any, incomplete: str) -> list[str]:  # Typer has contexts that are no `typer.Context`; hence Any
    from heedful.papers.reproduction import KEYS, paper

    keys = [ctx.params["paper"]] if ctx.params.get("paper") in KEYS else KEYS
    names = [experiment.name for key in keys for experiment in paper(key).experiments]
    return [name for name in (*names, "all") if name.startswith(incomplete)]


Results = Annotated[Path, typer.Option(help="The folder of stored results.")]


def reproduce(
    paper: Annotated[str | None, typer.Argument(help="snell2021, …", autocompletion=_papers)] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]…", help="table2, figure3, … or all.", autocompletion=_experiments),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            help="smoke (seconds), quick (minutes) or paper (as published).", autocompletion=completing(BUDGETS)
        ),
    ] = "quick",
    results: Results = Path("results"),
    work: Annotated[Path, typer.Option(help="Where trained models and other long work are kept.")] = Path(
        "runs/reproduce"
    ),
    docs: Annotated[
        Path | None, typer.Option(help="Also write the paper's page and figures into this folder of docs.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Models trained at a time; one per core if left out.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    again: Annotated[bool, typer.Option("--again", help="Measure again from the models that are there.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="List stored results that no longer stand; exit code 1 if any.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")] = False,
) -> None:
    """Measure tables and figures of a paper beside its published numbers; without a table, list them."""
    if check:
        _check(results)
        return
    if paper is None or not names:
        _list(paper, budget, results)
        return
    from heedful import api

    made = api.reproduce(
        paper, *names, budget=budget, results=results, work=work, docs=docs, jobs=jobs, device=device, again=again
    )
    if as_json:
        from dataclasses import asdict

        from heedful.storage.atomic_files import without_nan

        print_json([without_nan(asdict(result)) for result in made])
        return
    _print(made)
    typer.echo(work / paper / budget / "report.html")
    if docs is not None:
        typer.echo(docs / "papers" / f"{paper}.md")


def claims(
    budget: Annotated[
        str | None,
        typer.Option(
            help="The budget whose results count; the largest there is if left out.", autocompletion=completing(BUDGETS)
        ),
    ] = None,
    results: Results = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the ledger as JSON, and nothing else.")] = False,
) -> None:
    """Print the ledger: every claim of the papers, what was measured here, and the verdict that follows."""
    from heedful import api

    entries = api.claims(budget, results=results)
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    from heedful.reports.terminal import print_claims

    print_claims(entries)


def _list(paper: str | None, budget: str, results: Path) -> None:
    from heedful.papers.reproduction import KEYS
    from heedful.papers.reproduction import paper as paper_of
    from heedful.papers.results import result_path

    for key in [paper] if paper else KEYS:
        of = paper_of(key)
        typer.echo(f"{key}: {of.title}")
        for experiment in of.experiments:
            state = "done" if result_path(results, key, budget, experiment.name).exists() else ""
            typer.echo(f"  {experiment.name:<12} {experiment.title:<60} {state}".rstrip())
        typer.echo(f"run one with: heedful reproduce {key} {of.experiments[0].name} --budget {budget}")


def _check(results: Path) -> None:
    from heedful.papers.reproduction import stale_results

    stale = stale_results(results)
    for one in stale:
        typer.echo(f"{one.path}: {one.reason}")
    if stale:
        raise typer.Exit(1)
    typer.echo("every stored result still stands")


def _print(made: "list[Result]") -> None:
    from heedful.reports.terminal import print_result

    for result in made:
        print_result(result)
