"""`heedful audit`: can this model's attention be trusted as an explanation?"""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import TASKS, completing, corpora, print_json

SPLITS = ("train", "validation", "test")
QUERIES = ("first", "last", "mean")


def audit(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A Hugging Face folder or Hub id, or the folder of a study.")
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            help="A corpus, a file, or an ERASER folder; a study has its validation texts.",
            autocompletion=corpora,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Argument(metavar="[TARGET]", help="The other side of a parallel corpus of two text files.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="translation, where one table holds sentence pairs.", autocompletion=completing(TASKS)),
    ] = None,
    text: Annotated[str | None, typer.Option(help="The column that holds the text.")] = None,
    label: Annotated[str | None, typer.Option(help="The column that holds the label.")] = None,
    split: Annotated[
        str | None, typer.Option(help="train, validation or test (if there is one).", autocompletion=completing(SPLITS))
    ] = None,
    labels: Annotated[str | None, typer.Option(help="The model's name for each label: data=model,…")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="How many texts, drawn at random; all if left out.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of everything random.")] = 0,
    query: Annotated[
        str | None,
        typer.Option(help="Whose attention explains: first, last or mean of all.", autocompletion=completing(QUERIES)),
    ] = None,
    headline: Annotated[str | None, typer.Option(help='The map that readers see, such as "layer 2 head 1".')] = None,
    include_special: Annotated[bool, typer.Option(help="Explain by words such as [CLS] too.")] = False,
    adversary_steps: Annotated[int, typer.Option(min=0, help="Of the search for another attention; 0: none.")] = 100,
    integrated_steps: Annotated[int, typer.Option(min=0, help="Of integrated gradients; 0: none.")] = 50,
    out: Annotated[Path | None, typer.Option(help="The audit's folder; runs/audit-<model> if left out.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that the model brings with it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Say, with numbers and a plain verdict, whether a model's attention may be shown as an explanation."""
    from heedful import api
    from heedful import api as asked

    folder = out or api.RUNS / f"audit-{asked.run_name(model)}"
    result = api.audit(
        model,
        data,
        out=folder,
        sample=sample,
        seed=seed,
        device=device,
        command=shlex.join(["heedful", *sys.argv[1:]]),
        split=_one_of("split", split, SPLITS),  # type: ignore[arg-type]
        labels=_pairs(labels),
        query=_one_of("query", query, QUERIES),  # type: ignore[arg-type]
        trust_remote_code=trust_remote_code,
        columns={"target": target, "text": text, "label": label, "task": _one_of("task", task, TASKS)},
        headline=headline,
        include_special=include_special,
        adversary_steps=adversary_steps,
        integrated_steps=integrated_steps,
    )
    if as_json:
        print_json(result.to_dict())
        return
    from heedful.reports.terminal import print_audit

    print_audit(result, folder / "report.html")


def _one_of(option: str, value: str | None, known: tuple[str, ...]) -> str | None:
    from heedful.errors import ConfigError

    if value is not None and value not in known:
        raise ConfigError(f"--{option} {value!r} is not one of {', '.join(known)}")
    return value


def _pairs(labels: str | None) -> dict[str, str] | None:
    from heedful.errors import ConfigError

    if labels is None:
        return None
    pairs = [pair.partition("=") for pair in labels.split(",")]
    if not all(middle for _, middle, _ in pairs):
        raise ConfigError(f"--labels {labels!r} is not of the form data=model,data=model")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
