"""The command line: arguments in, one function called, words or JSON out."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli import audit, data, doctor, papers, runs, tokens
from heedful.cli import runs as sweep
from heedful.cli.options import BUDGETS, PLACES, TASKS, completing, configurable, corpora, print_json

app = typer.Typer(
    name="heedful",
    help="How was this attention learned, and can it be trusted as an explanation?",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(data.app, name="data", help="List, describe, check and fetch corpora.")
app.command()(audit.audit)
app.command()(papers.reproduce)
app.command()(papers.claims)
app.command()(tokens.tokens)
app.command()(doctor.doctor)
app.command()(sweep.sweep)
app.command()(runs.runs)
app.command()(runs.query)

_INTERRUPTED = 130  # the exit code that typer gives a command which Ctrl-C stopped

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A corpus (see 'heedful data list') or a file of your own.", autocompletion=corpora
    ),
]
Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="The other side of a parallel corpus of two text files.")
]
Task = Annotated[
    str | None,
    typer.Option(help="classification or translation, where the data do not say.", autocompletion=completing(TASKS)),
]
Text = Annotated[str | None, typer.Option(help="The column that holds the text.")]
Label = Annotated[str | None, typer.Option(help="The column that holds the label.")]
Lower = Annotated[bool | None, typer.Option("--lower/--no-lower", help="Lower-case the text.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on standard output.")]


def _print_version(asked: bool) -> bool:
    if asked:
        from heedful import __version__

        typer.echo(f"heedful {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """How was this attention learned, and can it be trusted as an explanation?"""


@app.command()
def study(
    data: Data,
    target: Target = None,
    task: Task = None,
    text: Text = None,
    label: Label = None,
    validation: Annotated[str | None, typer.Option(help="Your own validation file.")] = None,
    test: Annotated[str | None, typer.Option(help="Your own test file.")] = None,
    lower: Lower = None,
    budget: Annotated[
        str,
        typer.Option(
            help="smoke (seconds), quick (minutes) or paper (as published).", autocompletion=completing(BUDGETS)
        ),
    ] = "quick",
    seeds: Annotated[int | None, typer.Option(min=2, help="How many random seeds.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps, instead of the budget's.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's step size, instead of the budget's.")] = None,
    max_length: Annotated[int | None, typer.Option(min=1, help="Longer texts are cut, and counted.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/<name> if left out.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Models trained at a time; one per core if left out.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    track: Annotated[
        list[str] | None,
        typer.Option(
            help="tensorboard, mlflow or mlflow:URI; may be repeated.",
            autocompletion=completing(("tensorboard", "mlflow")),
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the settings, the models, the expected time and disk; run nothing.")
    ] = False,
    as_json: AsJson = False,
    beyond: dict[str, Any] | None = None,
) -> None:
    """Train the models of a study, record attention through training, measure, and write a report."""
    # beyond: what a file may say for which there is no option, such as [model].
    from heedful import api
    from heedful import api as asked

    settings = asked.merged(
        beyond,
        seeds=seeds,
        target=target,
        task=asked.task_named(task),
        train={"steps": steps, "learning_rate": learning_rate},
        max_length=max_length,
        text=text,
        label=label,
        validation=validation,
        test=test,
        lower=lower,
    )
    if dry_run:
        _plan(data, settings | {"budget": budget}, jobs, device, as_json)
        return
    result = api.study(
        data,
        out=(folder := out or api.RUNS / asked.run_name(data)),
        budget=budget,
        jobs=jobs,
        device=device,
        track=track or (),
        **settings,
    )
    if as_json:
        print_json(result.to_dict())
        return
    from heedful.reports.terminal import print_study
    from heedful.studies.run_directory import RunDirectory

    print_study(result, RunDirectory(folder).report_path)


def _plan(data: str, settings: dict[str, Any], jobs: int | None, device: str, as_json: bool) -> None:
    from heedful.api import study_config
    from heedful.studies.dry_run import rehearse

    plan = rehearse(study_config(data, **settings), jobs=jobs, device=device)
    if as_json:
        print_json(plan.to_dict())
        return
    from heedful.reports.terminal import print_plan

    print_plan(plan)


@app.command()
def preflight(
    data: Data,
    target: Target = None,
    task: Task = None,
    text: Text = None,
    label: Label = None,
    lower: Lower = None,
    permutations: Annotated[int, typer.Option(min=19, help="Size of the null distribution.")] = 200,
    words: Annotated[int, typer.Option(min=1, help="How many words to show for each output.")] = 10,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Count files piece by piece; large ones are, unless told otherwise."),
    ] = None,
    max_types: Annotated[int | None, typer.Option(min=1, help="Words kept on each side of what is streamed.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Chunks counted at a time; one per core if left out.")] = None,
    on: Annotated[
        str, typer.Option(help="Where chunks are counted: local or ray.", autocompletion=completing(PLACES))
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster: HOST:PORT, or auto; one of this machine if left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say, without training, whether the data have anything for attention to learn from."""
    from heedful import api
    from heedful import api as asked

    result = api.preflight(
        data,
        target=target,
        task=asked.task_named(task),
        text=text,
        label=label,
        lower=lower,
        permutations=permutations,
        words=words,
        stream=stream,
        max_types=max_types,
        jobs=jobs,
        on=asked.place_named(on),
        address=address,
        progress=True,
    )
    if as_json:
        print_json(result.to_dict())
        return
    from heedful.reports.terminal import print_preflight

    print_preflight(result)


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN…",
            help="The folder of a run of any kind; several studies, audits or followed trainings come side by side.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where to write; RUN/report.html, or comparison.html for several.")
    ] = None,
    results: Annotated[Path, typer.Option(help="The folder of stored results, for a paper's page.")] = Path("results"),
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the page of a study, an audit, a followed training, a sweep or a paper, or of several side by side."""
    from heedful import api

    path = api.report(*runs, out=out, results=results)
    typer.echo(path)
    if show:
        typer.launch(path.resolve().as_uri())


for _command in (*app.registered_commands, *data.app.registered_commands):
    if _command.callback is not None:
        _command.callback = configurable(_command.callback)


def main() -> None:
    """Run the command line; an error of the user's is one red line and exit code 2, `--debug` shows the rest."""
    from heedful.errors import HeedfulError
    from heedful.storage.atomic_files import is_disk_full

    try:
        app()
    except OSError as error:
        if "--debug" in sys.argv or not is_disk_full(error):
            raise
        where = f" ({error.filename})" if error.filename else ""
        _say(f"error: the disk is full{where}; make room, and the same command goes on from here")
        sys.exit(2)
    except HeedfulError as error:
        if "--debug" in sys.argv:
            raise
        _say(f"error: {' '.join(str(error).split())}")
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            _say("stopped; the same command goes on from here")
        raise


def _say(line: str) -> None:
    typer.secho(line, fg=typer.colors.RED, err=True)
