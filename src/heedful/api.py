"""The public functions: each does the same as the command of the same name."""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.config import (
    READING,
    AuditSettings,
    ModelTask,
    StudyConfig,
    chosen_measures,
    first_seeds,
    study_preset,
    with_architecture,
    with_overrides,
)
from heedful.data.corpus import Corpus
from heedful.data.loading import open_data, task_of
from heedful.data.parallel import ParallelCorpus
from heedful.errors import ConfigError, RunError
from heedful.storage.serialization import known

if TYPE_CHECKING:
    from heedful.audits.dry_run import AuditPlan
    from heedful.audits.requirements import AuditCheck
    from heedful.audits.result import AuditResult
    from heedful.execution.pool import OnEvent
    from heedful.followed.result import FollowedTraining
    from heedful.papers.claims import LedgerEntry
    from heedful.papers.experiment import Result
    from heedful.preflights.preflight import Preflight
    from heedful.records.index import RunList
    from heedful.records.query import Answer
    from heedful.studies.result import StudyResult
    from heedful.sweeps.result import SweepResult

RUNS = Path("runs")
STREAM_BYTES = 1 << 28  # files at least this large are streamed by preflight


def preflight(
    data: Any,
    *,
    permutations: int = 200,
    stream: bool | None = None,
    max_types: int | None = None,
    jobs: int | None = None,
    on: str = "local",
    address: str | None = None,
    progress: bool = False,
    **settings: Any,
) -> "Preflight":
    """Estimate, without training, what co-occurrence alone can teach a model of this corpus.

    data: as for `study`. permutations: size of the null distribution, drawn with `seed`. stream: count files chunk by
    chunk, in memory bounded by `max_types` words on each side; large files are streamed by default. jobs: chunks
    counted at the same time. on: `local`, or `ray` for a cluster at `address`. settings: `text`, `label`, `target`,
    `task`, `lower`, `words`, `min_count` and `seed`.

    >>> preflight("sms-spam").verdict                          # doctest: +SKIP
    'learnable'
    """
    from heedful.execution.pool import place_named
    from heedful.preflights.preflight import run_preflight

    _check_names("preflight", settings, open_data, run_preflight, names=("target",))
    settings["permutations"] = permutations
    target = settings.pop("target", None)
    place = None if on == "local" else place_named(on)
    options: dict[str, Any] = {"max_types": max_types, "jobs": jobs, "address": address, "on": place}
    given = {name: value for name, value in options.items() if value is not None}
    if not _streams(data, target, stream, implied=bool(given)):
        return run_preflight(open_data(data, target, **_take(settings, READING)), **settings)

    from heedful.data.files.chunks import open_stream
    from heedful.execution.progress import show_progress
    from heedful.preflights.streaming import Settings, run_streamed

    reading = {"task": task_of(data, target), "text": None, "label": None, **_take(settings, ("task", "text", "label"))}
    source = open_stream(data, target, task=reading["task"], text=reading["text"], label=reading["label"])
    chosen = Settings(**given, **_take(settings, ("min_count", "lower", "seed")))
    with show_progress(enabled=progress) as on_progress:
        return run_streamed(source, chosen, on_progress=on_progress, **settings)


def study(
    data: Any,
    *,
    out: Path | str | None = None,
    budget: str = "quick",
    seeds: int | tuple[int, ...] | None = None,
    jobs: int | None = None,
    device: str = "auto",
    progress: bool = True,
    track: Sequence[str] = (),
    **settings: Any,
) -> "StudyResult":
    """Study how attention is learned on a corpus; write the run, its result and its report.

    data: a name (`heedful data list`); a CSV, TSV, JSONL or Parquet file; a pandas or polars frame, `(texts, labels)`,
    rows of both, dictionaries or a `datasets.Dataset`; or a `Corpus`.
    out: the run directory; `runs/<name>` by default. seeds: how many, or which. jobs: models trained at the same time.
    track: `tensorboard`, `mlflow`, `wandb` or `trackio`, to which metrics are sent during training (`mlflow:URI`,
    `wandb:PROJECT`). settings: any other setting of `StudyConfig`, such as `text="review"` or `train={"steps": 200}`;
    `steps=200` and `learning_rate=0.01` are short for the latter.

    >>> result = study("reviews.csv", budget="smoke")          # doctest: +SKIP
    >>> result.agreement("A(alpha,beta)").estimate             # doctest: +SKIP
    """
    from heedful.execution.progress import show_progress
    from heedful.reports.pages import write_report
    from heedful.studies.study import run_study
    from heedful.studies.tracking import tracking

    corpus, name = None, str(data)
    if not isinstance(data, str | Path):
        corpus = open_data(data, **_take(settings, READING))
        name = data.name if isinstance(data, Corpus | ParallelCorpus) else "dataset"
        settings["task"] = task_of(corpus)
    config = study_config(name, budget=budget, seeds=seeds, **settings)
    folder = Path(out) if out is not None else RUNS / run_name(config.data)
    with show_progress(enabled=progress) as show:
        with tracking(track, folder, config, show) if track else nullcontext(show) as on_progress:
            result = run_study(config, folder, corpus=corpus, jobs=jobs, device=device, on_progress=on_progress)
        show({"stage": "writing the report"})
        write_report(folder)
    return result


def study_config(
    data: str,
    *,
    budget: str = "quick",
    seeds: int | tuple[int, ...] | None = None,
    task: str | None = None,
    steps: int | None = None,
    learning_rate: float | None = None,
    model: Any = None,
    **settings: Any,
) -> StudyConfig:
    """The preset of a budget with some settings changed; a mapping changes only the keys it has.

    model: `lstm` or `transformer`, or settings of the classifier.

    >>> study_config("sst", seeds=3).seeds, study_config("sst", train={"steps": 60}).train.evaluate_at
    ((0, 1, 2), (0, 10, 50, 60))
    >>> study_config("sst", steps=60) == study_config("sst", train={"steps": 60})
    True
    """
    config = study_preset(data, budget, task or task_of(data, settings.get("target")))
    if isinstance(model, str):
        config = with_architecture(config, model)
    else:
        settings["model"] = model
    train = settings.pop("train", None) or {}
    if is_dataclass(train):
        config, train = with_overrides(config, train=train), {}
    changes = {"steps": steps, "learning_rate": learning_rate}
    settings["train"] = {**train, **{name: value for name, value in changes.items() if value is not None}}
    settings["seeds"] = first_seeds(seeds) if isinstance(seeds, int) else seeds
    return with_overrides(config, **settings)


def audit(
    model: Any,
    data: Any = None,
    *,
    out: Path | str | None = None,
    explanations: Any = None,
    device: str = "auto",
    progress: bool = True,
    command: str = "",
    **settings: Any,
) -> "AuditResult":
    """Measure whether a model's attention can be trusted as an explanation; write the result and its page.

    The page of an audited study is written anew, with the grade on its first screen.

    model: a Hugging Face folder, Hub id or model (with its `tokenizer`), the folder of a study, or a `Subject`. data:
    as for `study`, without labels too, as a list of texts; or a folder in the ERASER format; a study is audited on its
    own validation texts by default. out: the audit's folder; an interrupted audit continues there. explanations:
    computed elsewhere, and ranked beside the model's own maps: by name, the scores of every text, or a function of
    texts (see `audits.given`); or a file of JSON lines. settings: any of `AuditSettings`, such as `sample=200` or
    `maps="raw,norm"`; `only` and `skip`, names of measures (see `config.MEASURES`); and how model and data are read:
    `tokenizer`, `task`, `split`, `labels`, `output`, `max_new_tokens`, `query`, `trust_remote_code` (see
    `audits.request.open_request`), `text`, `label` and `target` as for `study`.

    >>> audit("distilbert-base-uncased-finetuned-sst-2-english", "reviews.csv", sample=200)    # doctest: +SKIP
    >>> audit("runs/demo").verdict.sentence                                                  # doctest: +SKIP
    """
    from heedful.audits.audit import free_folder, run_audit
    from heedful.audits.request import open_request
    from heedful.audits.result import OWN_TEXTS
    from heedful.execution.progress import show_progress
    from heedful.reports.audit_page import write_audit_page
    from heedful.reports.pages import renew_audited_study

    model_name, data_name = display_name(model), OWN_TEXTS if data is None else display_name(data)
    chosen, reading = _audit_settings(device, settings)
    folder = free_folder(out if out is not None else RUNS / f"audit-{run_name(model_name)}")
    with open_request(model, data, **reading) as request, show_progress(enabled=progress) as on_progress:
        on_progress({"stage": f"auditing {model_name} on {data_name}"})
        result = run_audit(
            request.subject,
            request.passages,
            out=folder,
            settings=chosen,
            rationales=request.rationales,
            links=request.links,
            explanations=explanations,
            model=model_name,
            data=data_name,
            command=command,
            on_progress=on_progress,
        )
    write_audit_page(result, folder / "report.html", command)
    renew_audited_study(model_name)
    return result


def audit_plan(model: Any, data: Any = None, *, device: str = "auto", **settings: Any) -> "AuditPlan":
    """Estimate the time of an audit; nothing is written. Arguments: as for `audit`.

    >>> audit_plan("distilbert-base-uncased-finetuned-sst-2-english", "reviews.csv").seconds    # doctest: +SKIP
    """
    from heedful.audits.dry_run import rehearse_audit
    from heedful.audits.request import open_request

    chosen, reading = _audit_settings(device, settings)
    with open_request(model, data, **reading) as request:
        return rehearse_audit(request.subject, request.passages, chosen)


def _audit_settings(device: str, settings: dict[str, Any]) -> tuple[AuditSettings, dict[str, Any]]:
    """The settings of an audit, and how its model and data are read."""
    from heedful.audits.request import open_request
    from heedful.models.training import choose_device

    measuring = [field.name for field in fields(AuditSettings)]
    _check_names("audit", settings, open_request, open_data, names=("target", "only", "skip", *measuring))
    only, skip = (_names(settings.pop(name, None)) for name in ("only", "skip"))
    if only or skip:
        settings["measures"] = chosen_measures(only, skip)
    if isinstance(settings.get("maps"), str):
        settings["maps"] = tuple(name.strip() for name in settings["maps"].split(","))
    chosen = with_overrides(AuditSettings(), where="audit", **_take(settings, measuring))
    return chosen, {"sample": chosen.sample, "seed": chosen.seed, "device": str(choose_device(device)), **settings}


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def follow(
    checkpoints: Sequence[Path | str] | Path | str,
    data: Any,
    *,
    revisions: Sequence[str] | str = (),
    steps: Sequence[int] = (),
    out: Path | str | None = None,
    split: Literal["train", "validation", "test"] | None = None,
    labels: Mapping[str, str] | None = None,
    task: ModelTask | None = None,
    output: str | None = None,
    tokenizer: Any = None,
    max_texts: int = 200,
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: bool = True,
    **columns: Any,
) -> "FollowedTraining":
    """Record the course of attention over saved checkpoints of a training; write the result and its page.

    checkpoints: folders, or one model of the Hub with `revisions`. data: texts, with or without labels; where a model
    writes, fills masks or answers, with the outputs to follow. steps: of each checkpoint, by default the number in its
    name. out: the run's folder. split, labels, task, output, tokenizer, trust_remote_code and columns: as for `audit`.
    max_texts: of more, so many are drawn. Checkpoints with the same weights are named in the result (`same_weights`).

    >>> follow(["out/checkpoint-100", "out/checkpoint-200"], "reviews.csv").curve("A(alpha,beta)")    # doctest: +SKIP
    """
    from heedful.attribution.tasks import task_of_model
    from heedful.audits.request import read_texts
    from heedful.execution.progress import show_progress
    from heedful.followed.checkpoints import checkpoints_of, follow_checkpoints
    from heedful.models.training import choose_device
    from heedful.reports.pages import write_page

    places = [checkpoints] if isinstance(checkpoints, str | Path) else list(checkpoints)
    chosen = checkpoints_of(places, _names(revisions), steps)
    own_task = task or task_of_model(chosen[0].place())
    texts, right = read_texts(data, own_task, split, **columns)
    folder = Path(out) if out is not None else RUNS / f"follow-{run_name(display_name(places[0]))}"
    with show_progress(enabled=progress) as on_progress:
        on_progress({"stage": f"following {len(chosen)} checkpoints on {display_name(data)}"})
        result = follow_checkpoints(
            chosen,
            texts,
            out=folder,
            task=own_task,
            output=output,
            labels=right,
            names=labels,
            tokenizer=tokenizer,
            device=str(choose_device(device)),
            trust_remote_code=trust_remote_code,
            max_texts=max_texts,
            on_progress=on_progress,
        )
    write_page([folder])
    return result


def check(audit: "AuditResult | Path | str", require: str | Sequence[str]) -> "AuditCheck":
    """Compare an audit, or the folder of one, with requirements such as `grade=show` or `tau>=0.1`.

    `check(…).assert_met()` is the form for tests.

    >>> check("runs/model-reviews", ["grade=show", "tau>=0.1"]).state              # doctest: +SKIP
    'met'
    """
    from heedful.audits.requirements import check_audit

    result, name = open_audit(audit)
    return check_audit(result, _names(require), audit=name)


def open_audit(audit: "AuditResult | Path | str") -> "tuple[AuditResult, str]":
    """The result of an audit that is given as such or by its folder, and its name.

    >>> open_audit("nowhere")
    Traceback (most recent call last):
      ...
    heedful.errors.RunError: nowhere: there is no such folder
    """
    from heedful.audits.result import AuditResult
    from heedful.storage.manifest import KIND_NAMES, run_kind, verified_result

    if isinstance(audit, AuditResult):
        return audit, audit.model or "audit"
    folder = Path(audit)
    if (kind := run_kind(folder)) != "audit":
        raise RunError(f"{folder} is {KIND_NAMES[kind]}, not an audit; make one with: heedful audit {folder}")
    return AuditResult.load(verified_result(folder)), str(folder)


def report(*runs: Path | str, out: Path | str | None = None, results: Path | str = "results") -> Path:
    """Write the page of a study, an audit, a followed training, a sweep or a paper's results; return its path.

    Several studies, audits or followed trainings are compared on one page, `comparison.html` by default. results: the
    folder of stored results of papers.

    >>> report("runs/demo")                                    # doctest: +SKIP
    PosixPath('runs/demo/report.html')
    >>> report("runs/demo", "runs/longer", out="both.html")    # doctest: +SKIP
    PosixPath('both.html')
    """
    from heedful.reports.pages import write_page

    target = None if out is None else Path(out)
    return write_page([Path(run) for run in runs], out=target, results=Path(results))


def reproduce(
    paper: str,
    *tables: str,
    budget: str = "quick",
    results: Path | str = "results",
    work: Path | str = RUNS / "reproduce",
    docs: Path | str | None = None,
    progress: bool = True,
    **settings: Any,
) -> "list[Result]":
    """Measure tables and figures of a paper, all of them by default, and write the page of its results.

    Finished ones are only read. results: the folder of stored results. work: the folder of trained models and of the
    page. docs: a folder for the paper's Markdown page and its figures. settings: `jobs`, models trained at the same
    time; `device`; `again=True`, measure again with the models that are already trained; `data`, names of corpora whose
    studies alone are trained, without any result.

    >>> reproduce("snell2021", "figure4", budget="smoke")      # doctest: +SKIP
    """
    from heedful.execution.progress import show_progress
    from heedful.papers.reproduction import reproduce as run
    from heedful.reports.pages import write_paper, write_paper_docs

    _check_names("reproduce", settings, run)
    results, work = Path(results), Path(work)
    with show_progress(enabled=progress) as on_progress:
        made = run(
            paper, tables or ("all",), budget=budget, results=results, work=work, on_progress=on_progress, **settings
        )
        on_progress({"stage": "writing the report"})
        write_paper(paper, budget, results, work / paper / budget / "report.html")
        if docs is not None:
            write_paper_docs(paper, budget, results, Path(docs))
    return made


def claims(budget: str | None = None, *, results: Path | str = "results") -> "list[LedgerEntry]":
    """List every claim of the papers with its verdict from the stored results.

    >>> [entry.claim.id for entry in claims(results="nowhere")][:2]
    ['S1', 'S2']
    """
    from heedful.papers.reproduction import claims as ledger

    return ledger(budget, Path(results))


def sweep(grid: Any, *, out: Path | str | None = None, progress: bool = True, **settings: Any) -> "SweepResult":
    """Run every study of a grid that is not finished yet; write the sweep's table and page.

    grid: a TOML file with the tables `[base]` and `[grid]`, or the same as a dictionary. out: the sweep's folder.
    settings: any of `SweepSettings`: `on`, `local` for processes of one thread, `jobs` at a time (one per core), or
    `ray` for a cluster at `address`; `retries`, how often a failed study is tried again; `cpus` and `gpus`, what one
    study needs; `shared`, whether the nodes can see `out`; and `device`.

    >>> sweep({"base": {"data": "sst"}, "grid": {"model.scale": [1, 10, 100]}})        # doctest: +SKIP
    """
    from heedful.reports.sweep_page import write_sweep_page
    from heedful.sweeps.sweep import SweepSettings, start_sweep

    _check_names("sweep", settings, SweepSettings)
    folder = Path(out) if out is not None else RUNS / (run_name(str(grid)) if isinstance(grid, str | Path) else "sweep")
    result = start_sweep(
        grid, folder, SweepSettings(**settings), study_function="heedful.api:study_of_sweep", progress=progress
    )
    write_sweep_page(result, folder)
    return result


def study_of_sweep(*, folder: str, report: "OnEvent" = lambda event: None, **arguments: Any) -> None:
    """Run one study of a sweep and write its page: the job that `sweep` gives to workers."""
    from heedful.reports.pages import write_report
    from heedful.sweeps.sweep import run_one_study

    run_one_study(folder=folder, report=report, **arguments)
    report({"stage": "writing the report"})
    write_report(Path(folder))


def runs(folder: Path | str = RUNS) -> "RunList":
    """List every run below a folder by time, with its kind, state and main figures.

    >>> runs("runs").to_pandas()                               # doctest: +SKIP
    """
    from heedful.records.index import list_runs

    return list_runs(folder)


def query(sql: str, folder: Path | str = RUNS) -> "Answer":
    """Run one SELECT over all results and traces below a folder; `heedful query --schema` lists tables and columns.

    >>> query("SELECT run, accuracy FROM runs").to_polars()    # doctest: +SKIP
    """
    from heedful.records.query import ask

    return ask(sql, folder)


def load(data: Any, target: Path | str | None = None, **settings: Any) -> Corpus | ParallelCorpus:
    """Load a corpus by name, from a file or a pair of files, or from data in memory (see `study`).

    settings: `task`, `text`, `label`, `validation`, `test`, `lower`, `seed`, as for `study`.

    >>> len(load("rotten-tomatoes").train)
    6824
    """
    return open_data(data, target, **settings)


def run_name(data: str) -> str:
    """A folder name for a corpus or file: its name without folder and endings, and never a path out of the folder.

    >>> run_name("some/where/reviews.csv.gz"), run_name("sst"), run_name("../.."), run_name("a\\0b:c")
    ('reviews', 'sst', 'study', 'a-b-c')
    """
    return re.sub(r"[^\w+&()\[\] -]", "-", Path(data).name.split(".")[0])[:100].strip() or "study"


def display_name(thing: Any) -> str:
    """The name of a model or of data, or else its type.

    >>> display_name("reviews.csv"), display_name([])
    ('reviews.csv', 'list')
    """
    if isinstance(thing, str | Path):
        return str(thing)
    name = getattr(getattr(thing, "config", None), "_name_or_path", "") or getattr(thing, "name", "")
    return str(name) or type(thing).__name__


def _take(settings: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Remove these settings from a dictionary and return those that are not `None`."""
    taken = {name: settings.pop(name) for name in names if name in settings}
    return {name: value for name, value in taken.items() if value is not None}


def _check_names(
    verb: str, settings: dict[str, Any], *functions: Callable[..., Any], names: Iterable[str] = ()
) -> None:
    """Refuse a setting that is neither among `names` nor a keyword argument of one of the functions."""
    parameters = [p for function in functions for p in inspect.signature(function).parameters.values()]
    allowed = [*names, *(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)]
    for name in settings:
        known(name, dict.fromkeys(allowed), verb)


def _streams(data: Any, target: Any, stream: bool | None, *, implied: bool) -> bool:
    """Whether files are streamed: if requested, implied by another option, or large."""
    from heedful.data.files.chunks import is_large
    from heedful.data.files.tables import format_of

    wanted = stream or implied
    is_file = isinstance(data, str | Path) and (
        target is not None or format_of(Path(data)) is not None or (wanted and os.path.isfile(data))
    )
    if not is_file and wanted:
        raise ConfigError(f"only files can be streamed, not {display_name(data)!r}; leave out --stream")
    return is_file and (stream if stream is not None else implied or is_large(data, target, STREAM_BYTES))
