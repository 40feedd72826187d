"""What commands share: tab completion of names that are known beforehand, and JSON alone on standard output."""

import inspect
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

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
    from heedful.data.catalog import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def print_json(content: Any) -> None:
    """Print a result as JSON and nothing else; it has no NaN.

    >>> print_json({"τ": 0.5})
    {
     "τ": 0.5
    }
    """
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False))


HELP = "A TOML file with any of these arguments and options; what is given here overrides it."
FILE = "heedful.config"  # where a context keeps what the file says
BEYOND = "beyond"  # the parameter of a command that takes settings for which there is no option
UNSET: tuple[Any, ...] = (None, [], ())


def configurable(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with the option `--config`."""
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(command).parameters.values() if p.name != BEYOND]
    takes_more = BEYOND in inspect.signature(command).parameters

    # Typer has contexts that are no `typer.Context`; hence Any.
    def read(ctx: Any, path: Path | None) -> Path | None:
        if not ctx.resilient_parsing:
            ctx.meta[FILE] = _read(ctx, path, _study_settings() if takes_more else [])
        return path

    @wraps(command)
    def configured(**given: Any) -> None:
        ctx = given.pop("ctx")
        defaults, file = ctx.default_map or {}, ctx.meta[FILE]
        del given["config"]
        # What is repeatable comes as an empty list rather than not at all, and would hide the file's.
        chosen = {name: defaults.get(name, value) if value in UNSET else value for name, value in given.items()}
        beyond = {BEYOND: {name: value for name, value in file.items() if name not in defaults}} if takes_more else {}
        command(**chosen, **beyond)

    option = Annotated[Path | None, typer.Option("--config", metavar="FILE", help=HELP, is_eager=True, callback=read)]
    added = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, annotation=option, default=None),
    ]
    configured.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    configured.__annotations__ = {**command.__annotations__, **{p.name: p.annotation for p in added}}
    configured.__annotations__.pop(BEYOND, None)
    return configured


def _study_settings() -> list[str]:
    from dataclasses import fields

    from heedful.config import StudyConfig

    return [field.name for field in fields(StudyConfig)]


def _read(ctx: Any, path: Path | None, more: list[str]) -> dict[str, Any]:
    """A file's content by the names of the command's parameters, which take their defaults from it."""
    if path is None:
        return {}
    from heedful.storage.serialization import known, read_toml

    names = _names(ctx) | {name: name for name in more if name not in _names(ctx)}
    found: dict[str, Any] = {}
    for key, value in read_toml(path).items():
        plain = key.replace("-", "_")
        known(plain, names, str(path))
        found[names[plain]] = value
    options = {parameter.name for parameter in ctx.command.params}
    if isinstance(seeds := found.get("seeds"), list):  # which the option, a number, cannot say
        found["seeds"] = tuple(seeds)
        options.discard("seeds")
    ctx.default_map = {name: value for name, value in found.items() if name in options}
    return found


def _names(ctx: Any) -> dict[str, str]:
    """Each name a file may use, and the parameter it stands for."""
    names = {}
    for parameter in ctx.command.params:
        if parameter.name in ("config", "help"):
            continue
        options = [option for option in parameter.opts if option.startswith("--")]
        for name in [option[2:].replace("-", "_") for option in options] or [parameter.name]:
            names[name] = parameter.name
    return names
