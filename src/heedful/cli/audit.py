"""`heedful audit`: whether a model's attention can be trusted as an explanation."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

import typer

from heedful.cli.options import AsJson, Device, Label, Target, Task, Text, choice, corpora, number, print_json
from heedful.config import AuditSettings
from heedful.errors import ConfigError

SPLITS = ("train", "validation", "test")
QUERIES = ("first", "last", "mean")


def _label_pairs(ctx: Any, labels: str | None) -> Any:
    """`data=model,…` as a dictionary."""
    if not labels or ctx.resilient_parsing:
        return labels
    pairs = [pair.partition("=") for pair in labels.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ConfigError(f"--labels {labels!r} is not of the form data=model,data=model")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}


class AuditOptions(TypedDict, total=False):
    """Options of `heedful audit` for the API."""

    target: Target
    task: Task
    text: Text
    label: Label
    split: Annotated[str, choice(SPLITS, metavar="SPLIT", help="train, validation or test; test by default.")]
    labels: Annotated[
        str,
        typer.Option(metavar="PAIRS", callback=_label_pairs, help="The model's name for each label: data=model,…"),
    ]
    sample: Annotated[int, number(1, help="Number of texts, drawn at random; all by default.")]
    seed: Annotated[int, number(0, help="Random seed, of the sample too; 0 by default.")]
    query: Annotated[
        str, choice(QUERIES, metavar="QUERY", help="Position whose attention explains: first, last, or mean of all.")
    ]
    headline: Annotated[
        str, typer.Option(metavar="MAP", help='Attention map shown to readers, such as "layer 2 head 1".')
    ]
    include_special: Annotated[
        bool,
        typer.Option("--include-special/--no-include-special", help="Also explain by tokens such as [CLS]."),
    ]
    adversary_steps: Annotated[
        int,
        number(
            0,
            help="Steps of the search for a different attention with the same prediction; "
            f"{AuditSettings.adversary_steps} by default, 0 for none.",
        ),
    ]
    integrated_steps: Annotated[
        int,
        number(0, help=f"Steps of integrated gradients; {AuditSettings.integrated_steps} by default, 0 for none."),
    ]
    device: Device
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")]


def audit(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A Hugging Face folder or Hub id, or the folder of a study.")
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A corpus, a file or an ERASER folder; a study's own validation texts by default.",
            autocompletion=corpora,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the audit; runs/audit-<model> by default.")
    ] = None,
    as_json: AsJson = False,
    **settings: Unpack[AuditOptions],
) -> None:
    """Measure whether a model's attention can be trusted as an explanation."""
    from heedful import api

    folder = out or api.RUNS / f"audit-{api.run_name(model)}"
    command = shlex.join(["heedful", *sys.argv[1:]])
    result = api.audit(model, data, out=folder, command=command, **settings)
    if as_json:
        print_json(result.to_dict())
        return
    from heedful.reports.terminal import print_audit

    print_audit(result, folder / "report.html")
