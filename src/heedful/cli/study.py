"""`heedful preflight`, `study`, `audit` and `sweep`: the commands that measure."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, TypedDict, Unpack

import typer

from heedful.cli.options import (
    Address,
    AsJson,
    Budget,
    Data,
    Device,
    Label,
    Lower,
    Place,
    Target,
    Task,
    Text,
    choice,
    completing,
    corpora,
    label_pairs,
    number,
    print_result,
    share,
)
from heedful.config import ARCHITECTURES, MAPS, MEASURES, MODEL_TASKS, AuditSettings

SPLITS = ("train", "validation", "test")
QUERIES = ("first", "last", "mean")


class PreflightOptions(TypedDict, total=False):
    """Options of `heedful preflight` for the API."""

    target: Target
    task: Task
    text: Text
    label: Label
    lower: Lower
    permutations: Annotated[int, number(19, help="Permutations that show what chance gives; 200 by default.")]
    words: Annotated[int, number(1, help="Words to show for each output; 10 by default.")]
    stream: Annotated[
        bool, typer.Option("--stream/--no-stream", help="Count files chunk by chunk; by default only large ones.")
    ]
    max_types: Annotated[int, number(1, help="Different words kept on each side when streaming.")]
    jobs: Annotated[int, number(1, help="Chunks counted at the same time; one per core by default.")]
    on: Place
    address: Address


def preflight(data: Data, as_json: AsJson = False, **settings: Unpack[PreflightOptions]) -> None:
    """Estimate, without training, whether attention can be learned from the data."""
    from heedful import api
    from heedful.reports.terminal import print_preflight

    print_result(api.preflight(data, progress=True, **settings), print_preflight, as_json=as_json)


class StudyOptions(TypedDict, total=False):
    """Options of `heedful study` for the API."""

    target: Target
    task: Task
    text: Text
    label: Label
    validation: Annotated[str, typer.Option(metavar="FILE", help="Your own validation file.")]
    test: Annotated[str, typer.Option(metavar="FILE", help="Your own test file.")]
    lower: Lower
    budget: Budget
    seeds: Annotated[int, number(2, help="Number of random seeds.")]
    steps: Annotated[int, number(1, help="Training steps, instead of the budget's.")]
    learning_rate: Annotated[float, typer.Option(metavar="RATE", help="Learning rate, instead of the budget's.")]
    max_length: Annotated[int, number(1, help="Longer texts are cut to this many words.")]
    model: Annotated[str, choice(ARCHITECTURES, metavar="MODEL", help="lstm or transformer; lstm by default.")]
    guide: Annotated[
        str,
        choice(("ibm",), metavar="GUIDE", help="ibm: pull attention towards word counts at first; translation only."),
    ]
    guide_steps: Annotated[int, number(1, help="Steps until the guide has faded out; a quarter of all by default.")]
    uniform_steps: Annotated[int, number(0, help="Keep attention uniform for this many steps at first.")]


def study(
    data: Data,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the run; runs/<name> by default.")
    ] = None,
    jobs: Annotated[int | None, number(1, help="Models trained at the same time; one per core by default.")] = None,
    device: Device = "auto",
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACKER",
            help="tensorboard, mlflow, mlflow:URI, wandb, wandb:PROJECT, trackio or trackio:PROJECT; can be repeated.",
            autocompletion=completing(("tensorboard", "mlflow", "wandb", "trackio")),
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print settings, models, expected time and disk space; run nothing.")
    ] = False,
    as_json: AsJson = False,
    **settings: Unpack[StudyOptions],
) -> None:
    """Train models, record their attention during training, measure it, and write a report."""
    from heedful import api
    from heedful.reports.terminal import print_plan, print_study

    if dry_run:
        from heedful.studies.dry_run import rehearse

        plan = rehearse(api.study_config(data, **settings), jobs=jobs, device=device)
        return print_result(plan, print_plan, as_json=as_json)
    folder = out or api.RUNS / api.run_name(data)
    result = api.study(data, out=folder, jobs=jobs, device=device, track=track or (), **settings)
    return print_result(result, print_study, folder / "report.html", as_json=as_json)


class AuditOptions(TypedDict, total=False):
    """Options of `heedful audit` for the API."""

    target: Target
    task: Annotated[
        str, choice(MODEL_TASKS, metavar="TASK", help=f"{', '.join(MODEL_TASKS)}; by default the model's own.")
    ]
    text: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the text; two, as A,B, for pairs of texts.")]
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the label, or of the output to explain; optional.")
    ]
    output: Annotated[
        str, typer.Option(metavar="LABEL", help="Label or value to explain, if the model predicts several.")
    ]
    max_new_tokens: Annotated[
        int, number(1, help="Tokens a causal language model writes for each prompt; 8 by default.")
    ]
    split: Annotated[str, choice(SPLITS, metavar="SPLIT", help="train, validation or test; test by default.")]
    labels: Annotated[
        str,
        typer.Option(metavar="PAIRS", callback=label_pairs, help="The model's name for each label: data=model,…"),
    ]
    sample: Annotated[int, number(1, help="Number of texts, drawn at random; all by default.")]
    seed: Annotated[int, number(0, help="Random seed, of the sample too; 0 by default.")]
    query: Annotated[
        str, choice(QUERIES, metavar="QUERY", help="Position whose attention is read: first, last, or the mean of all.")
    ]
    headline: Annotated[
        str, typer.Option(metavar="MAP", help='Attention map shown to readers, such as "layer 2 head 1".')
    ]
    maps: Annotated[
        str,
        typer.Option(
            metavar="MAPS", help=f"Maps to rank: {', '.join(MAPS)}; {','.join(AuditSettings.maps)} by default."
        ),
    ]
    explanations: Annotated[
        str,
        typer.Option(metavar="FILE", help="JSON Lines file of other explanations (SHAP, …) to rank beside the maps."),
    ]
    include_special: Annotated[
        bool,
        typer.Option("--include-special/--no-include-special", help="Count tokens such as [CLS] as words too."),
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
    only: Annotated[
        list[str],
        typer.Option(
            metavar="MEASURE",
            help=f"Measure only this; repeatable: {', '.join(MEASURES)}.",
            autocompletion=completing(tuple(MEASURES)),
        ),
    ]
    skip: Annotated[
        list[str],
        typer.Option(
            metavar="MEASURE", help="Leave out this measure; repeatable.", autocompletion=completing(tuple(MEASURES))
        ),
    ]
    baseline: Annotated[
        str,
        choice(
            ("zero", "pad", "mask"), help="Start of integrated gradients: zero (the default), or the pad or mask token."
        ),
    ]
    erase: Annotated[
        str, choice(("delete", "mask"), help="Erase words by deleting them (the default) or by the mask token.")
    ]
    spans: Annotated[int, number(2, help="Leave out up to N spans of words per text instead of single words.")]
    smallest_movement: Annotated[
        float,
        share(help=f"Smallest change of the prediction that counts; {AuditSettings.smallest_movement} by default."),
    ]
    smallest_tau: Annotated[
        float, share(help=f"Smallest τ with importance that counts; {AuditSettings.smallest_tau} by default.")
    ]
    smallest_excess: Annotated[
        float,
        share(
            help="Smallest share of texts, beyond chance, in which the top word matters; "
            f"{AuditSettings.smallest_excess} by default."
        ),
    ]
    smallest_drop: Annotated[
        float,
        share(
            help=f"Smallest drop in probability without words that counts; {AuditSettings.smallest_drop} by default."
        ),
    ]
    smallest_divergence: Annotated[
        float,
        share(
            help="Divergence, in nats, above which another map counts as different; "
            f"{AuditSettings.smallest_divergence} by default."
        ),
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the forward passes and the expected time; measure nothing.")
    ] = False,
    as_json: AsJson = False,
    **settings: Unpack[AuditOptions],
) -> None:
    """Measure whether a model's attention can be trusted as an explanation."""
    from heedful import api
    from heedful.reports.terminal import print_audit, print_audit_plan

    if dry_run:
        settings.pop("explanations", None)
        return print_result(api.audit_plan(model, data, **settings), print_audit_plan, as_json=as_json)

    folder = out or api.RUNS / f"audit-{api.run_name(model)}"
    command = shlex.join(["heedful", *sys.argv[1:]])
    result = api.audit(model, data, out=folder, command=command, **settings)
    return print_result(result, print_audit, folder / "report.html", as_json=as_json)


class SweepOptions(TypedDict, total=False):
    """Options of `heedful sweep` for the API."""

    on: Place
    address: Address
    jobs: Annotated[
        int, number(1, help="Studies to run at the same time; by default one per core, or all that fit on Ray.")
    ]
    retries: Annotated[int, number(0, help="How often a failed study is tried again; once by default.")]
    cpus: Annotated[float, number(0, help="Cores for each study; 1 by default.")]
    gpus: Annotated[float, number(0, help="GPUs for each study, with --on ray; none by default.")]
    shared: Annotated[
        bool,
        typer.Option("--shared/--not-shared", help="Whether nodes can see the sweep's folder; tested by default."),
    ]
    device: Device


def sweep(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help=r"TOML file with the tables \[base] and \[grid].")],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the sweep; runs/<grid> by default.")
    ] = None,
    as_json: AsJson = False,
    **settings: Unpack[SweepOptions],
) -> None:
    """Run all studies of a grid that are not finished yet; exit code 1 if one failed."""
    from heedful import api
    from heedful.reports.terminal import print_sweep

    folder = out or api.RUNS / api.run_name(str(grid))
    result = api.sweep(grid, out=folder, **settings)
    print_result(result, print_sweep, folder / "report.html", as_json=as_json)
    if result.failed:
        raise typer.Exit(1)
