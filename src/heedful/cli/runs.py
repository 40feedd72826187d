"""`heedful report`, `check`, `tokens`, `runs` and `query`: the commands that read finished runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import AsJson, Results, choice, completing, number, print_json, print_result
from heedful.errors import ConfigError
from heedful.execution.terminal import TerminalConsole, echo, visible

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("table", "csv", "json", "parquet")
SHOWN = 30  # words in a terminal by default
SORTS = ("frequency", "occurrences", "association", "polarity", "score", "weight")
_HEADINGS = {  # short enough for 80 letters in a line
    "frequency": "train",
    "occurrences": "seen",
    "association": "assoc.",
    "polarity_alone": "alone",
    "suspicious": "?",
}
CLASSES = ("positive", "negative", "neutral", "none")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to search.")]


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Folder of a run; name several studies, audits or trainings to compare them."
        ),
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
    echo(path)
    if show:
        typer.launch(path.resolve().as_uri())


def check(
    audit: Annotated[Path, typer.Argument(metavar="AUDIT", help="Folder of a finished audit.")],
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="REQUIREMENT", help="Such as 'grade=show' or 'tau>=0.1'; can be repeated."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    model_card: Annotated[
        bool, typer.Option("--model-card", help="Print a Markdown section for the model card.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check an audit against requirements: exit code 0 if all are met, 1 if one is not, 2 if the audit can't tell."""
    from heedful import api
    from heedful.audits import requirements as checks
    from heedful.storage.atomic_files import write_text

    result, name = api.open_audit(audit)
    if model_card:
        echo(checks.model_card(result, name), nl=False)
        if not require:
            return
    made = checks.check_audit(result, require or (), audit=name)
    if junit is not None:
        write_text(junit, checks.junit(made))
    if as_json:
        print_json(made.to_dict())
    elif not model_card:
        for outcome in made.outcomes:
            echo(checks.line(outcome))
    raise typer.Exit(checks.EXIT_CODES[made.state])


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
    min_count: Annotated[int, number(0, help="Leave out words that are rarer than this in the training texts.")] = 5,
    top: Annotated[
        int | None, number(1, help=f"Number of words to list; by default {SHOWN} in a terminal, all in a file.")
    ] = None,
    suspicious: Annotated[bool, typer.Option("--suspicious", help="Only words marked as suspicious.")] = False,
    seed: Annotated[int | None, number(help="Seed of the model; the first by default.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a .csv or .parquet file.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the words of a trained model with their association, polarity and attention."""
    from heedful.studies.token_table import RULES, select, token_table

    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise ConfigError(f"{out}: a table of tokens is written to a file that ends in .csv or .parquet")
    selected = select(token_table(run, seed), sort=sort, kind=kind, min_count=min_count, suspicious=suspicious)
    table = selected.head(top) if top else selected
    if out is not None:
        _write_tokens(table, out)
        echo(out, err=as_json)
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
    from rich.table import Table
    from rich.text import Text

    console, shown = TerminalConsole(), Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    columns = [name for name in table.columns if table[name].null_count() < len(table) or name == "suspicious"]
    marks = dict(zip(rules, "ab", strict=True))
    for name in columns:
        numeric = table[name].dtype.is_numeric()
        shown.add_column(
            _HEADINGS.get(name, name),
            justify="right" if numeric else "left",
            no_wrap=name != "token",
            overflow="fold" if name == "token" else "ellipsis",
            max_width=None if numeric else 20 if name == "token" else 12,
        )
    for row in table.select(columns).iter_rows():
        shown.add_row(*(Text(visible(_cell(value))) for value in row[:-1]), marks.get(row[-1], ""))
    console.print(shown)
    alone = "alone: polarity without a text; " if "polarity_alone" in columns else ""
    console.print(
        f"{len(table):,} of {total:,} words; train, seen: times in training and in validation texts; assoc.: with "
        f"labels; {alone}weight: attention, 1 where uniform; ?: suspicious",
        highlight=False,
    )
    for name, rule in rules.items():
        if name in table["suspicious"]:
            console.print(f"{marks[name]}  {name}: {rule}", highlight=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def runs(folder: Folder = Path("runs"), as_json: AsJson = False) -> None:
    """List all runs below a folder: kind, time, state and main numbers."""
    from heedful import api
    from heedful.reports.terminal import print_runs

    print_result(api.runs(folder), print_runs, as_json=as_json)


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
    """Query all results and traces below a folder with SQL; read-only."""
    from heedful import api
    from heedful.records.query import schema
    from heedful.reports.terminal import print_answer
    from heedful.storage.tables import csv_text, json_text

    if output_format == "parquet" and out is None:
        raise ConfigError("--format parquet needs a file, such as --out answer.parquet")
    if sql is None and not columns:
        raise ConfigError('no query given; example: heedful query "SELECT run, accuracy FROM runs"; see --schema')
    answer = api.query(sql, folder) if sql is not None and not columns else schema()
    if out is not None:
        answer.save(out)
        echo(out)
    elif output_format in ("csv", "json"):
        text = csv_text if output_format == "csv" else json_text
        echo(text(answer.to_arrow()), nl=False)
    else:
        print_answer(answer)
    for note in answer.notes[:SHOWN]:
        echo(f"note: {note}", err=True)
    if len(answer.notes) > SHOWN:
        echo(f"note: {len(answer.notes) - SHOWN:,} more such notes", err=True)
