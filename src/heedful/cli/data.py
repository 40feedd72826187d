"""`heedful data`: list, show, check and fetch named corpora."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from heedful.cli.options import AsJson, PlainCommand, PlainGroup, corpora, print_json, with_config
from heedful.execution.terminal import TerminalConsole, echo

app = typer.Typer(cls=PlainGroup, help="List, show, check and fetch the named corpora.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a corpus, see 'heedful data list'.", autocompletion=corpora)
]


def list_corpora(as_json: AsJson = False) -> None:
    """List the named corpora and whether they are installed."""
    from heedful.data.catalog import NAMES, describe
    from heedful.data.synthetic.doses import FAMILIES

    keys = ("name", "title", "task", "labels", "licence", "source", "here")
    rows = [{key: facts[key] for key in keys} for facts in map(describe, NAMES)]
    for family in FAMILIES.values():
        known = describe(f"{family.name}:{family.example}")
        rows.append(
            {key: known[key] for key in keys} | {"name": family.form, "title": f"generated: {family.description}"}
        )
    if as_json:
        return print_json(rows)
    columns = ("name", "title", "task", "here")
    _print_table(columns, [[_cell(row[column]) for column in columns] for row in rows])


def show(name: Name, as_json: AsJson = False) -> None:
    """Show a corpus: its source, sizes, and decisions made when reading it."""
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


def check(name: Name, as_json: AsJson = False) -> None:
    """Compare the files of a corpus with their checksums."""
    from heedful.data.catalog import check as check_corpus
    from heedful.data.catalog import open_corpus
    from heedful.data.synthetic.tasks import find_task
    from heedful.errors import DataError

    if find_task(name):
        facts = {"name": name, "ok": True, "digest": open_corpus(name).digest()}
        return print_json(facts) if as_json else _print_facts(name, facts)
    result = check_corpus(name)
    if as_json:
        print_json({**asdict(result), "directory": str(result.directory), "ok": result.ok})
    else:
        rows = [[file.path, file.status, f"{file.bytes:,}"] for file in result.files]
        _print_table(("file", "status", "bytes"), rows)
    if not result.ok:
        raise DataError(result.advice)


def fetch(
    name: Name,
    revision: Annotated[
        str | None, typer.Option(metavar="REVISION", help="Commit or branch on the hub, instead of the pinned one.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the existing folder; it is kept under another name.")
    ] = False,
) -> None:
    """Download a corpus from the Hugging Face Hub into the data directory."""
    from heedful.data.hub import fetch as fetch_corpus

    def print_notice(notice: str) -> None:
        echo(notice, err=True)

    echo(fetch_corpus(name, revision=revision, force=force, notify=print_notice))


COMMANDS: dict[str, Callable[..., None]] = {"list": list_corpora, "show": show, "check": check, "fetch": fetch}
for _name, _command in COMMANDS.items():
    app.command(_name, cls=PlainCommand)(with_config(_command))


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
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    TerminalConsole().print(table)
