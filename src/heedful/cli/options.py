"""Shared parts of the commands: kinds of options, tab completion, `--config FILE`, plain help, JSON output.

Options that a command only passes on to the API stand once, in a `TypedDict` that types its `**settings`:
`with_config` makes them options of the command and passes on those that were given. Their defaults are the API's.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from heedful.config import BUDGETS, TASKS
from heedful.errors import ConfigError
from heedful.execution.terminal import echo

PLACES = ("local", "ray")
CONFIG_HELP = "TOML file with any of these arguments and options. The command line overrides it."
FILE = "heedful.config"  # key of the file's content in a context
UNSET: tuple[Any, ...] = (None, [], ())


def number(least: int | None = None, *, help: str) -> Any:
    """An option that takes a number, `least` or more."""

    def check(ctx: Any, param: Any, value: Any) -> Any:
        if least is not None and value is not None and value < least and not ctx.resilient_parsing:
            raise ConfigError(f"{param.opts[0]} is {value}; it must be {least} or more")
        return value

    return typer.Option(metavar="N", callback=check, help=help)


def share(*, help: str) -> Any:
    """An option that takes a number between 0 and 1."""

    def check(ctx: Any, param: Any, value: Any) -> Any:
        if value is not None and not 0 < value < 1 and not ctx.resilient_parsing:
            raise ConfigError(f"{param.opts[0]} is {value:g}; it must be between 0 and 1")
        return value

    return typer.Option(metavar="X", callback=check, help=help)


def choice(names: Sequence[str], *, help: str, metavar: str = "NAME", flag: str | None = None) -> Any:
    """An option that takes one of these names, with tab completion."""

    def check(ctx: Any, param: Any, value: Any) -> Any:
        if value is not None and value not in names and not ctx.resilient_parsing:
            raise ConfigError(f"{param.opts[0]} {value!r} is not one of {', '.join(names)}")
        return value

    flags = () if flag is None else (flag,)
    return typer.Option(*flags, metavar=metavar, callback=check, help=help, autocompletion=completing(names))


def label_pairs(ctx: Any, labels: str | None) -> Any:
    """`data=model,…` as a dictionary."""
    if not labels or ctx.resilient_parsing:
        return labels
    pairs = [pair.partition("=") for pair in labels.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ConfigError(f"--labels {labels!r} is not of the form data=model,data=model")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}


def completing(names: Sequence[str]) -> Callable[[str], list[str]]:
    """Tab completion with these names.

    >>> completing(("local", "ray"))("r")
    ['ray']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def corpora(incomplete: str) -> list[str]:
    """Tab completion with the named corpora.

    >>> corpora("rotten")
    ['rotten-tomatoes']
    """
    from heedful.data.catalog import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A corpus (see 'heedful data list') or your own file.", autocompletion=corpora),
]
Target = Annotated[str, typer.Argument(metavar="TARGET", help="Second file of a parallel corpus of two text files.")]
Task = Annotated[
    str, choice(TASKS, metavar="TASK", help="classification or translation; only if the data do not show it.")
]
Text = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the text.")]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the label.")]
Lower = Annotated[bool, typer.Option("--lower/--no-lower", help="Convert the text to lower case.")]
Budget = Annotated[
    str,
    typer.Option(
        metavar="BUDGET",
        show_default=False,
        help="smoke (seconds), quick (minutes; the default) or paper (as published).",
        autocompletion=completing(BUDGETS),
    ),
]
Results = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of stored results.")]
Place = Annotated[str, choice(PLACES, metavar="PLACE", help="local (the default) or ray.")]
Address = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Ray cluster, or auto; without it, one on this machine is started.")
]
Device = Annotated[str, typer.Option(metavar="DEVICE", show_default=False, help="auto (the default), cpu, cuda, …")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]


def print_json(content: Any) -> None:
    """Print a result as JSON and nothing else; it has no NaN.

    >>> print_json({"τ": 0.5})
    {
     "τ": 0.5
    }
    """
    echo(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False))


def print_result(result: Any, show: Callable[..., None], *more: Any, as_json: bool) -> None:
    """Print a result as JSON, or by a function of `reports.terminal`; more: what that takes besides the result."""
    if as_json:
        print_json(result.to_dict())
    else:
        show(result, *more)


class _PlainHelp:
    """Help without the types that Typer shows, such as `<bool>` or `{DATA}`: an option's metavar says enough."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with nothing or the metavar where their type would be shown."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            shown = (param.metavar or "") if param.param_type_name == "option" else ""
            param.display_type_rich = lambda ctx, shown=shown: shown
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, required arguments without braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]  # type: ignore[misc]


class PlainCommand(_PlainHelp, TyperCommand):
    """A command with plain help."""


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands with plain help."""


def with_config(command: Callable[..., None], config: type | None = None) -> Callable[..., None]:
    """The same command with the option `--config`, and with an option for each key of the type of its `**settings`.

    config: a dataclass whose fields the file may set although there is no option for them, such as `[model]`.
    """
    parameters, settings = _parameters(command)

    # Typer has contexts that are no `typer.Context`; hence Any.
    def read(ctx: Any, path: Path | None) -> Path | None:
        if not ctx.resilient_parsing:
            ctx.meta[FILE] = _read(ctx, path, [field.name for field in fields(config)] if config else [])
        return path

    @wraps(command)
    def configured(**given: Any) -> None:
        ctx = given.pop("ctx")
        defaults, file = ctx.default_map or {}, ctx.meta[FILE]
        del given["config"]
        # A repeatable option that is not given is an empty list, which must not hide the file's.
        values = {name: defaults.get(name, value) if value in UNSET else value for name, value in given.items()}
        kept = {name: value for name, value in values.items() if name not in settings or value not in UNSET}
        command(**{name: value for name, value in file.items() if name not in defaults} | kept)

    option = Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help=CONFIG_HELP, is_eager=True, callback=read)
    ]
    parameters += [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, annotation=option, default=None),
    ]
    configured.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    configured.__annotations__ = {p.name: p.annotation for p in parameters}
    return configured


def _parameters(command: Callable[..., None]) -> tuple[list[inspect.Parameter], set[str]]:
    """A command's parameters, arguments first, then those of its `**settings`; and the names of the latter."""
    own, settings = [], []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            own.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(get_args(parameter.annotation)[0], include_extras=True)
        settings = [inspect.Parameter(n, parameter.KEYWORD_ONLY, annotation=h, default=None) for n, h in hints.items()]
    arguments = [p for p in own if any(isinstance(extra, ArgumentInfo) for extra in get_args(p.annotation))]
    options = [p for p in own if p not in arguments]
    return [*arguments, *settings, *options], {p.name for p in settings}


def _read(ctx: Any, path: Path | None, more: list[str]) -> dict[str, Any]:
    """A file's content by the names of the command's parameters, which take their defaults from it."""
    if path is None:
        return {}
    from heedful.storage.serialization import known, read_toml

    parameters = _file_names(ctx)
    names = {name: name for name in more} | parameters
    content: dict[str, Any] = {}
    for key, value in read_toml(path).items():
        name = key.replace("-", "_")
        known(name, [*parameters, *(n for n in more if n not in parameters)], str(path))
        content[names[name]] = value
    options = {parameter.name for parameter in ctx.command.params}
    if isinstance(seeds := content.get("seeds"), list):  # the option takes only their number
        content["seeds"] = tuple(seeds)
        options.discard("seeds")
    # A table such as [model] holds settings; the option of that name takes a word.
    options -= {name for name, value in content.items() if isinstance(value, dict)}
    ctx.default_map = {name: value for name, value in content.items() if name in options}
    return content


def _file_names(ctx: Any) -> dict[str, str]:
    """Each name that a file may use, and the parameter it stands for."""
    names = {}
    for parameter in ctx.command.params:
        if parameter.name in ("config", "help"):
            continue
        options = [option for option in parameter.opts if option.startswith("--")]
        for name in [option[2:].replace("-", "_") for option in options] or [parameter.name]:
            names[name] = parameter.name
    return names
