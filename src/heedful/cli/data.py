"""`heedful data`: list, show, check and fetch named corpora. Arguments and tables only."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from heedful.cli.options import corpora, print_json

app = typer.Typer(help="List, describe, check and fetch the named corpora.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="a name that `heedful data list` shows", autocompletion=corpora)]
Json = Annotated[bool, typer.Option("--json", help="print JSON alone")]


@app.command("list")
def list_(as_json: Json = False) -> None:
    """The named corpora, and which of them are here."""
    from heedful.data.catalog import NAMES, describe

    keys = ("name", "title", "task", "labels", "licence", "source", "here")
    rows = [{key: facts[key] for key in keys} for facts in map(describe, NAMES)]
    if as_json:
        return print_json(rows)
    columns = ("name", "title", "task", "here")
    _print_table(columns, [[_cell(row[column]) for column in columns] for row in rows])


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """What a corpus is, its sizes, and what was decided when it was read."""
    from heedful.data.catalog import describe, open_corpus
    from heedful.data.corpus import SPLITS, Corpus

    facts = describe(name)
    if facts["here"]:
        corpus = open_corpus(name)
        splits = {split: getattr(corpus, split) for split in SPLITS}
        facts["splits"] = {
            split: {label: part.labels.count(i) for i, label in enumerate(corpus.labels)}
            if isinstance(corpus, Corpus)
            else len(part)
            for split, part in splits.items()
        }
        facts |= {"decisions": list(corpus.decisions), "digest": corpus.digest()}
    if as_json:
        return print_json(facts)
    return _print_facts(name, {key: value for key, value in facts.items() if key not in ("files", "rules")})


@app.command()
def check(name: Name, as_json: Json = False) -> None:
    """Compare a corpus's files with their checksums."""
    from heedful.data.catalog import check as checked
    from heedful.data.catalog import open_corpus
    from heedful.data.synthetic.tasks import TASKS
    from heedful.errors import DataError

    if name in TASKS:
        facts = {"name": name, "ok": True, "digest": open_corpus(name).digest()}
        return print_json(facts) if as_json else _print_facts(name, facts)
    result = checked(name)
    if as_json:
        print_json({**asdict(result), "directory": str(result.directory), "ok": result.ok})
    else:
        rows = [[file.path, file.status, f"{file.bytes:,}"] for file in result.files]
        _print_table(("file", "status", "bytes"), rows)
    if not result.ok:
        raise DataError(result.advice)


@app.command()
def fetch(
    name: Name,
    revision: Annotated[
        str | None, typer.Option(help="a commit or branch of the hub instead of the pinned one")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace the folder that is there")] = False,
) -> None:
    """Bring a corpus from the Hugging Face hub into the data directory, whole or not at all."""
    from heedful.data.hub import fetch as fetched

    def notify(message: str) -> None:
        typer.echo(message, err=True)

    typer.echo(fetched(name, revision=revision, force=force, notify=notify))


def _print_facts(name: str, facts: dict[str, Any]) -> None:
    _print_table(("", name), [[key, _cell(value)] for key, value in facts.items()])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_cell(inner).replace(chr(10), ', ')}" for key, inner in value.items())
    if isinstance(value, list):
        return ("\n" if any(len(item) > 40 for item in value) else ", ").join(value)
    return "–" if value is None else str(value)


def _print_table(columns: tuple[str, ...], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
