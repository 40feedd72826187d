"""`heedful follow`: the course of attention over saved checkpoints."""

from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

import typer

from heedful.cli.options import AsJson, Device, choice, corpora, label_pairs, number, print_result
from heedful.config import MODEL_TASKS
from heedful.errors import ConfigError

SPLITS = ("train", "validation", "test")


def _several(ctx: Any, names: str | None) -> Any:
    """Names joined by commas as a list."""
    return names if not names or ctx.resilient_parsing else [name.strip() for name in names.split(",")]


def _numbers(ctx: Any, steps: str | None) -> Any:
    """Numbers joined by commas as a list."""
    if not steps or ctx.resilient_parsing:
        return steps
    try:
        return [int(step) for step in steps.split(",")]
    except ValueError:
        raise ConfigError(f"--steps {steps!r} is not of the form 0,100,200") from None


class FollowOptions(TypedDict, total=False):
    """Options of `heedful follow` for the API."""

    revisions: Annotated[
        str,
        typer.Option(metavar="NAMES", callback=_several, help="Revisions of one model on the Hub: step0,step1000,…"),
    ]
    steps: Annotated[
        str,
        typer.Option(
            metavar="STEPS", callback=_numbers, help="Step of each checkpoint; by default the number in its name."
        ),
    ]
    task: Annotated[
        str, choice(MODEL_TASKS, metavar="TASK", help=f"{', '.join(MODEL_TASKS)}; by default the model's own.")
    ]
    text: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the text; two, as A,B, for pairs of texts.")]
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the label, or of the output to follow.")]
    output: Annotated[
        str, typer.Option(metavar="NAME", help="Label or value to follow, if the model predicts several.")
    ]
    split: Annotated[str, choice(SPLITS, metavar="SPLIT", help="train, validation or test; test by default.")]
    labels: Annotated[
        str,
        typer.Option(metavar="PAIRS", callback=label_pairs, help="The model's name for each label: data=model,…"),
    ]
    tokenizer: Annotated[str, typer.Option(metavar="FOLDER", help="Tokeniser, if the checkpoints have none.")]
    max_texts: Annotated[int, number(1, help="Number of texts to record, drawn at random; 200 by default.")]
    device: Device
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")]


def follow(
    checkpoints: Annotated[
        list[str], typer.Argument(metavar="CHECKPOINT…", help="Folders of checkpoints, or one Hub id with --revisions.")
    ],
    data: Annotated[
        str,
        typer.Option(metavar="DATA", help="Texts to record: a corpus or your own file.", autocompletion=corpora),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the run; under runs/ by default.")
    ] = None,
    as_json: AsJson = False,
    **settings: Unpack[FollowOptions],
) -> None:
    """Measure how attention changed across the saved checkpoints of a training run."""
    from heedful import api
    from heedful.reports.terminal import print_followed

    folder = out or api.RUNS / f"follow-{api.run_name(checkpoints[0])}"
    options: dict[str, Any] = {**settings}  # read by their callbacks
    result = api.follow(checkpoints, data, out=folder, **options)
    print_result(result, print_followed, folder / "report.html", as_json=as_json)
