"""`heedful preflight`, `study`, `tokens` and `report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

import typer

from heedful.cli.options import (
    Address,
    AsJson,
    Budget,
    Data,
    Device,
    Label,
    Lower,
    Place,
    Results,
    Target,
    Task,
    Text,
    choice,
    completing,
    number,
    print_json,
)

if TYPE_CHECKING:
    import polars as pl

SHOWN = 30  # words in a terminal by default
SORTS = ("frequency", "occurrences", "association", "polarity", "score", "weight")
CLASSES = ("positive", "negative", "neutral", "none")


class PreflightOptions(TypedDict, total=False):
    """Options of `heedful preflight` for the API."""

    target: Target
    task: Task
    text: Text
    label: Label
    lower: Lower
    permutations: Annotated[int, number(19, help="Size of the null distribution; 200 by default.")]
    words: Annotated[int, number(1, help="Words to show for each output; 10 by default.")]
    stream: Annotated[
        bool, typer.Option("--stream/--no-stream", help="Count files chunk by chunk; by default only large ones.")
    ]
    max_types: Annotated[int, number(1, help="Words kept on each side when streaming.")]
    jobs: Annotated[int, number(1, help="Chunks counted at the same time; one per core by default.")]
    on: Place
    address: Address


def preflight(data: Data, as_json: AsJson = False, **settings: Unpack[PreflightOptions]) -> None:
    """Estimate, without training, whether attention can be learned from the data."""
    from heedful import api

    result = api.preflight(data, progress=True, **settings)
    if as_json:
        print_json(result.to_dict())
        return
    from heedful.reports.terminal import print_preflight

    print_preflight(result)


class StudyOptions(TypedDict, total=False):
    """Options of `heedful study` for the API."""

    target: Target
    task: Task
    text: Text
    label: Label
    validation: Annotated[str, typer.Option(metavar="FILE", help="Your own validation file.")]
    test: Annotated[str, typer.Option(metavar="FILE", help="Your own test file.")]
    lower: Lower
    budget: Budget
    seeds: Annotated[int, number(2, help="Number of random seeds.")]
    steps: Annotated[int, number(1, help="Training steps, instead of the budget's.")]
    learning_rate: Annotated[float, typer.Option(metavar="RATE", help="Learning rate, instead of the budget's.")]
    max_length: Annotated[int, number(1, help="Longer texts are cut to this many words.")]


def study(
    data: Data,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the run; runs/<name> by default.")
    ] = None,
    jobs: Annotated[int | None, number(1, help="Models trained at the same time; one per core by default.")] = None,
    device: Device = "auto",
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACKER",
            help="tensorboard, mlflow or mlflow:URI; can be repeated.",
            autocompletion=completing(("tensorboard", "mlflow")),
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print settings, models, expected time and disk space; run nothing.")
    ] = False,
    as_json: AsJson = False,
    **settings: Unpack[StudyOptions],
) -> None:
    """Train models, record their attention during training, measure it, and write a report."""
    from heedful import api

    if dry_run:
        from heedful.studies.dry_run import rehearse

        plan = rehearse(api.study_config(data, **settings), jobs=jobs, device=device)
        if as_json:
            print_json(plan.to_dict())
            return
        from heedful.reports.terminal import print_plan

        print_plan(plan)
        return
    folder = out or api.RUNS / api.run_name(data)
    result = api.study(data, out=folder, jobs=jobs, device=device, track=track or (), **settings)
    if as_json:
        print_json(result.to_dict())
        return
    from heedful.reports.terminal import print_study
    from heedful.studies.run_directory import RunDirectory

    print_study(result, RunDirectory(folder).report_path)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Folder of a run; several studies, audits or trainings are compared."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Page to write; RUN/report.html, or comparison.html for several."),
    ] = None,
    results: Results = Path("results"),
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the page of a run (study, audit, followed training, sweep, paper), or compare several."""
    from heedful import api

    path = api.report(*runs, out=out, results=results)
    typer.echo(path)
    if show:
        typer.launch(path.resolve().as_uri())


def tokens(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished study.")],
    sort: Annotated[str, choice(SORTS, help=f"{', '.join(SORTS)}; the largest first.")] = "weight",
    kind: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="positive, negative, neutral, none, or a label.",
            autocompletion=completing(CLASSES),
        ),
    ] = None,
    min_count: Annotated[int, number(0, help="Times a word must occur in the training texts.")] = 5,
    top: Annotated[int | None, number(1, help=f"Number of words; {SHOWN} in a terminal, otherwise all.")] = None,
    suspicious: Annotated[bool, typer.Option("--suspicious", help="Only words marked as suspicious.")] = False,
    seed: Annotated[int | None, number(help="Seed of the model; the first by default.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a .csv or .parquet file.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the words of a trained model with their association, polarity and attention."""
    from heedful.errors import ConfigError
    from heedful.studies.token_table import RULES, select, token_table

    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise ConfigError(f"{out}: a table of tokens is written to a file that ends in .csv or .parquet")
    selected = select(token_table(run, seed), sort=sort, kind=kind, min_count=min_count, suspicious=suspicious)
    table = selected.head(top) if top else selected
    if out is not None:
        _write_tokens(table, out)
        typer.echo(out, err=as_json)
    if as_json:
        print_json({"run": str(run), "rules": RULES, "tokens": table.to_dicts()})
    elif out is None:
        _print_tokens(selected.head(top or SHOWN), len(selected), RULES)


def _write_tokens(table: "pl.DataFrame", out: Path) -> None:
    """Write Parquet or CSV; in CSV a word that a spreadsheet would take for a formula gets an apostrophe."""
    import polars as pl

    from heedful.storage.atomic_files import write_atomically

    if out.suffix == ".parquet":
        write_atomically(out, table.write_parquet)
        return
    word = pl.col("token")
    formula = word.str.contains(r"^[=+\-@\t]")
    safe = table.with_columns(pl.when(formula).then("'" + word).otherwise(word).alias("token"))
    write_atomically(out, lambda path: safe.write_csv(path, float_precision=6))


def _print_tokens(table: "pl.DataFrame", total: int, rules: dict[str, str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, shown = Console(), Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    columns = [name for name in table.columns if table[name].null_count() < len(table) or name == "suspicious"]
    for name in columns:
        numeric = table[name].dtype.is_numeric()
        shown.add_column(name, justify="right" if numeric else "left", no_wrap=True, overflow="ellipsis")
    for row in table.select(columns).iter_rows():
        shown.add_row(*(Text(_cell(value)) for value in row))
    console.print(shown)
    console.print(f"{len(table):,} of {total:,} words", highlight=False)
    for name, rule in rules.items():
        if name in table["suspicious"]:
            console.print(f"{name}: {rule}", highlight=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
