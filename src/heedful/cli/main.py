"""The command line: assembles the commands, and prints an error as one line."""

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from heedful.cli import data, doctor, follow, papers, runs, study
from heedful.cli.options import PlainCommand, PlainGroup, with_config
from heedful.config import StudyConfig
from heedful.errors import ConfigError
from heedful.execution.terminal import visible

INTERRUPTED = 130  # exit code of a command that Ctrl-C stopped
BROKEN_PIPE = 1  # of one whose output nobody reads any more, as Typer has it
VERBS: dict[str, Callable[..., None] | typer.Typer] = {
    "preflight": study.preflight,
    "study": study.study,
    "audit": study.audit,
    "check": runs.check,
    "follow": follow.follow,
    "tokens": runs.tokens,
    "report": runs.report,
    "reproduce": papers.reproduce,
    "claims": papers.claims,
    "sweep": study.sweep,
    "runs": runs.runs,
    "query": runs.query,
    "data": data.app,
    "doctor": doctor.doctor,
}


class VerbGroup(PlainGroup):
    """The verbs in the order in which people meet them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(VERBS)


app = typer.Typer(
    name="heedful",
    cls=VerbGroup,
    help="How was this attention learned, and can it be trusted as an explanation?",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _name, _verb in VERBS.items():
    if isinstance(_verb, typer.Typer):
        app.add_typer(_verb, name=_name)
    else:
        app.command(_name, cls=PlainCommand)(with_config(_verb, StudyConfig if _name == "study" else None))


def main() -> None:
    """Run the command line. A user's error is one red line and exit code 2; `--debug` shows the traceback."""
    from heedful.errors import HeedfulError
    from heedful.storage.atomic_files import is_disk_full

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may know fewer characters than the data
    try:
        _check_environment()
        try:
            app()
        finally:
            if sys.stdout is not None:  # it is None where whoever started the command closed it
                sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer must not fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        if "--debug" in sys.argv or not is_disk_full(error):
            raise
        where = f" ({error.filename})" if error.filename else ""
        _print_error(f"error: the disk is full{where}; make room and repeat the command to continue from here")
        sys.exit(2)
    except HeedfulError as error:
        if "--debug" in sys.argv:
            raise
        _print_error(f"error: {' '.join(str(error).split())}")
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            _print_error("stopped; repeat the command to continue from here")
        raise
    except BaseException as error:
        if not _interrupted(error):
            raise
        _print_error("stopped; repeat the command to continue from here")
        sys.exit(INTERRUPTED)


def _check_environment() -> None:
    """Refuse what no command could work with: a folder that is gone, and arguments that are not text."""
    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError("the current folder does not exist any more; change to another one") from error
    for argument in sys.argv[1:]:
        try:
            argument.encode("utf-8")
        except UnicodeError as error:
            raise ConfigError(
                f"the argument {argument!r} is not text in this locale, so it could not be written into a result; "
                "rename the file, or use UTF-8 (PYTHONUTF8=1)"
            ) from error


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: compiled libraries that are being imported raise errors of their own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _print_error(line: str) -> None:
    typer.secho(visible(line), fg=typer.colors.RED, err=True)


def _print_version(value: bool) -> bool:
    if value:
        from heedful import __version__

        typer.echo(f"heedful {__version__}")
        raise typer.Exit
    return value


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """How was this attention learned, and can it be trusted as an explanation?"""
