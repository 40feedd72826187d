"""`heedful tokens`: the words of a trained model, from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import completing, print_json

if TYPE_CHECKING:
    import polars as pl

SHOWN = 30  # words in a terminal unless asked otherwise
SORTS = ("frequency", "occurrences", "association", "polarity", "score", "weight")
CLASSES = ("positive", "negative", "neutral", "none")


def tokens(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    sort: Annotated[
        str, typer.Option(help=f"{', '.join(SORTS)}: the largest first.", autocompletion=completing(SORTS))
    ] = "weight",
    kind: Annotated[
        str | None,
        typer.Option(
            "--class", help="positive, negative, neutral, none, or a label.", autocompletion=completing(CLASSES)
        ),
    ] = None,
    min_count: Annotated[int, typer.Option(min=0, help="Times a word must occur in training texts.")] = 5,
    top: Annotated[int | None, typer.Option(min=1, help=f"How many; {SHOWN} in a terminal, all otherwise.")] = None,
    suspicious: Annotated[bool, typer.Option("--suspicious", help="Only the words that are marked.")] = False,
    seed: Annotated[int | None, typer.Option(help="Which model; the first seed's if left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write a .csv or .parquet file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """List a trained model's words: frequency, association, polarity, attention, and which are suspicious."""
    from heedful.studies.token_table import RULES, select, token_table

    _check(out)
    chosen = select(token_table(run, seed), sort=sort, kind=kind, min_count=min_count, suspicious=suspicious)
    wanted = chosen.head(top) if top else chosen
    if out is not None:
        _write(wanted, out)
        typer.echo(out, err=as_json)
    if as_json:
        print_json({"run": str(run), "rules": RULES, "tokens": wanted.to_dicts()})
    elif out is None:
        _print(chosen.head(top or SHOWN), len(chosen), RULES)


def _check(out: Path | None) -> None:
    from heedful.errors import ConfigError

    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise ConfigError(f"{out}: a table of tokens is written to a file that ends in .csv or .parquet")


def _write(table: "pl.DataFrame", out: Path) -> None:
    """Parquet as it is; in CSV a word that a spreadsheet would take for a formula gets an apostrophe."""
    import polars as pl

    from heedful.storage.atomic_files import write_atomically

    if out.suffix == ".parquet":
        write_atomically(out, table.write_parquet)
        return
    word = pl.col("token")
    formula = word.str.contains(r"^[=+\-@\t]")
    safe = table.with_columns(pl.when(formula).then("'" + word).otherwise(word).alias("token"))
    write_atomically(out, lambda path: safe.write_csv(path, float_precision=6))


def _print(table: "pl.DataFrame", of: int, rules: dict[str, str]) -> None:
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
    console.print(f"{len(table):,} of {of:,} words", highlight=False)
    for name, rule in rules.items():
        if name in table["suspicious"]:
            console.print(f"{name}: {rule}", highlight=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
