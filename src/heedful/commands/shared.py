"""What commands share: tab completion of names that are known beforehand, and JSON alone on standard output."""

import json
from collections.abc import Callable
from typing import Any

import typer

BUDGETS = ("smoke", "quick", "paper")
PLACES = ("local", "ray")
TASKS = ("classification", "translation")


def completing(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Completion among these names.

    >>> completing(("local", "ray"))("r")
    ['ray']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def corpora(incomplete: str) -> list[str]:
    """Completion among the named corpora.

    >>> corpora("rotten")
    ['rotten-tomatoes']
    """
    from heedful.data.catalog import CATALOG
    from heedful.data.synthetic import TASKS as GENERATED

    return [name for name in (*CATALOG, "multi30k", *GENERATED) if name.startswith(incomplete)]


def print_json(content: Any) -> None:
    """Print a result as JSON and nothing else; it has no NaN.

    >>> print_json({"τ": 0.5})
    {
     "τ": 0.5
    }
    """
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False))
