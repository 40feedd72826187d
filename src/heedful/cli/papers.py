"""`heedful reproduce` and `heedful claims`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

import typer

from heedful.cli.options import AsJson, Budget, Device, Results, completing, number, print_json
from heedful.config import BUDGETS
from heedful.execution.terminal import echo


def _papers(incomplete: str) -> list[str]:
    from heedful.papers.reproduction import KEYS

    return [key for key in KEYS if key.startswith(incomplete)]


def _experiments(ctx: Any, incomplete: str) -> list[str]:  # Typer has contexts that are no `typer.Context`; hence Any
    from heedful.papers.reproduction import KEYS, paper

    keys = [ctx.params["paper"]] if ctx.params.get("paper") in KEYS else KEYS
    names = [experiment.name for key in keys for experiment in paper(key).experiments]
    return [name for name in (*names, "all") if name.startswith(incomplete)]


class ReproduceOptions(TypedDict, total=False):
    """Options of `heedful reproduce` for the API."""

    jobs: Annotated[int, number(1, help="Models trained at the same time; one per core by default.")]
    device: Device
    again: Annotated[bool, typer.Option("--again", help="Measure again, using the models that are already trained.")]
    data: Annotated[
        list[str], typer.Option(metavar="NAME", help="Only train the study of this corpus; can be repeated.")
    ]


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER", help="snell2021, meister2021, sunlu2020 or heedful2026.", autocompletion=_papers
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE", help="table2, figure3, … or all.", autocompletion=_experiments),
    ] = None,
    budget: Budget = "quick",
    results: Results = Path("results"),
    work: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of trained models and other intermediate results.")
    ] = Path("runs/reproduce"),
    docs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the paper's page and figures for the docs here.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="List stored results that are out of date; exit code 1 if there are any.")
    ] = False,
    as_json: AsJson = False,
    **settings: Unpack[ReproduceOptions],
) -> None:
    """Reproduce tables and figures of a paper beside the published ones; without a table, list them."""
    if check:
        return _check(results)
    if paper is None or not names:
        return _list(paper, budget, results)
    from heedful import api
    from heedful.reports.terminal import print_paper_result
    from heedful.storage.atomic_files import without_nan

    made = api.reproduce(paper, *names, budget=budget, results=results, work=work, docs=docs, **settings)
    if as_json:
        return print_json([without_nan(asdict(result)) for result in made])
    for result in made:
        print_paper_result(result)
    echo(work / paper / budget / "report.html")
    if docs is not None:
        echo(docs / "papers" / f"{paper}.md")
    return None


def claims(
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET",
            help="Use results of this budget; the largest available by default.",
            autocompletion=completing(BUDGETS),
        ),
    ] = None,
    results: Results = Path("results"),
    as_json: AsJson = False,
) -> None:
    """List every claim of the papers: its verdict, what was measured, on how much data, and what would settle it."""
    from heedful import api
    from heedful.reports.terminal import print_claims

    entries = api.claims(budget, results=results)
    if as_json:
        return print_json([entry.to_dict() for entry in entries])
    return print_claims(entries)


def _list(paper: str | None, budget: str, results: Path) -> None:
    from heedful.papers.experiment import result_path
    from heedful.papers.reproduction import KEYS
    from heedful.papers.reproduction import paper as load_paper

    for key in [paper] if paper else KEYS:
        title, experiments = load_paper(key).title, load_paper(key).experiments
        echo(f"{key}: {title}")
        for experiment in experiments:
            state = "done" if result_path(results, key, budget, experiment.name).exists() else ""
            echo(f"  {experiment.name:<12} {experiment.title:<60} {state}".rstrip())
        echo(f"run one with: heedful reproduce {key} {experiments[0].name} --budget {budget}")


def _check(results: Path) -> None:
    from heedful.papers.reproduction import results_to_renew, stale_results

    stale, renew = stale_results(results), results_to_renew(results)
    for path, reason in stale.items():
        echo(f"{path}: {reason}")
    if stale:
        raise typer.Exit(1)
    if not renew:
        echo("every stored result is up to date")
        return
    for path in renew:
        echo(f"{path}: made with earlier settings; it counts until `heedful reproduce` makes it again")
    echo(f"no stored result is out of date; {len(renew)} were made with earlier settings")
