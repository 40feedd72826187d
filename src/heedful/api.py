"""The verbs as Python functions: each does what the command of the same name does."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from heedful.config import StudyConfig, TaskName, first_seeds, study_preset, with_overrides
from heedful.data.corpus import Corpus
from heedful.data.loading import open_data, task_of
from heedful.data.parallel import ParallelCorpus
from heedful.errors import ConfigError

if TYPE_CHECKING:
    from heedful.attribution.interface import Query
    from heedful.audits.request import SplitName
    from heedful.audits.result import AuditResult
    from heedful.execution.parallel_map import Place
    from heedful.execution.worker import Event, OnEvent
    from heedful.papers.claims import LedgerEntry
    from heedful.papers.results import Result
    from heedful.preflights.preflight import Preflight
    from heedful.records.index import RunList
    from heedful.records.query import Answer
    from heedful.studies.result import StudyResult
    from heedful.sweeps.result import SweepResult


def study_config(
    data: str,
    *,
    budget: str = "quick",
    seeds: int | tuple[int, ...] | None = None,
    task: TaskName | None = None,
    **settings: Any,
) -> StudyConfig:
    """The preset of a budget with the given settings changed; a mapping changes only what it names.

    >>> study_config("sst", seeds=3).seeds, study_config("sst", train={"steps": 60}).train.evaluate_at
    ((0, 1, 2), (0, 10, 50, 60))
    """
    chosen = first_seeds(seeds) if isinstance(seeds, int) else seeds
    preset = study_preset(data, budget, task or task_of(data, settings.get("target")))
    return with_overrides(preset, seeds=chosen, **settings)


def merged(file: Mapping[str, Any] | None, **given: Any) -> dict[str, Any]:
    """The settings of a file, overridden by those given that are not `None`, tables within it likewise.

    >>> merged({"train": {"steps": 9, "batch_size": 2}}, train={"steps": 5}, text=None)
    {'train': {'steps': 5, 'batch_size': 2}}
    """
    both = dict(file or {})
    for key, value in given.items():
        if isinstance(value, Mapping):
            value = merged(both.get(key), **value) or None
        if value is not None:
            both[key] = value
    return both


def task_named(name: str | None) -> TaskName | None:
    """A task by its name; an error that lists them where there is no such task.

    >>> task_named("translation")
    'translation'
    """
    for task in get_args(TaskName):
        if name == task:
            return task  # type: ignore[no-any-return]
    if name is not None:
        raise ConfigError(f"task {name!r} is not one of {', '.join(get_args(TaskName))}")
    return None


def place_named(name: str) -> "Place":
    """Where work is done, by its name.

    >>> place_named("ray")
    'ray'
    """
    if name == "local":
        return "local"
    if name == "ray":
        return "ray"
    raise ConfigError(f"--on {name!r} is not one of local, ray")


def run_name(data: str) -> str:
    """A folder name for a corpus or file: its name without folder and endings, and never a way out of the folder.

    >>> run_name("some/where/reviews.csv.gz"), run_name("sst"), run_name("../.."), run_name("a\\0b:c")
    ('reviews', 'sst', 'study', 'a-b-c')
    """
    return re.sub(r"[^\w+&()\[\] -]", "-", Path(data).name.split(".")[0])[:100].strip() or "study"


def column_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """What of these settings says how data are read; taken out of them.

    >>> asked = {"text": "review", "words": 5}
    >>> column_settings(asked), asked
    ({'text': 'review'}, {'words': 5})
    """
    return {
        key: settings.pop(key) for key in ("task", "text", "label", "validation", "test", "lower") if key in settings
    }


def label_of(thing: Any) -> str:
    """What a model or data are called: their own name, or of what kind they are.

    >>> label_of("reviews.csv"), label_of([])
    ('reviews.csv', 'list')
    """
    if isinstance(thing, str | Path):
        return str(thing)
    named = getattr(getattr(thing, "config", None), "_name_or_path", "") or getattr(thing, "name", "")
    return str(named) or type(thing).__name__


RUNS = Path("runs")
LARGE = 1 << 28  # bytes of files that preflight counts piece by piece


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
    """Study how attention is learned on a corpus, and write the run, its result and its report.

    data: a name (`heedful data list`), a CSV, TSV, JSONL or Parquet file, a `datasets.Dataset` or a `Corpus`.
    out: the run's folder, `runs/<name>` where it is left out. seeds: how many, or which. track: `tensorboard`, `mlflow`
    or `mlflow:URI`, where metrics go as they come. settings: any other setting of `StudyConfig`, such as
    `text="review"` or `train={"steps": 200}`.

    >>> result = study("reviews.csv", budget="smoke")          # doctest: +SKIP
    >>> result.agreement("A(alpha,beta)").estimate             # doctest: +SKIP
    """
    from heedful.execution.progress import show_progress
    from heedful.reports.pages import write_report
    from heedful.studies.study import run_study
    from heedful.studies.tracking import tracking

    named = isinstance(data, str | Path)
    target = settings.pop("target", None)
    corpus = None if named else open_data(data, **column_settings(settings))
    task = settings.pop("task", None) or task_of(data, target)
    name = data.name if isinstance(data, Corpus | ParallelCorpus) else str(data) if named else "dataset"
    config = study_config(name, budget=budget, seeds=seeds, task=task, target=target and str(target), **settings)
    folder = Path(out) if out is not None else RUNS / run_name(config.data)
    with show_progress(enabled=progress) as (shown, on_stage), tracking(track, folder, config) as tracked:

        def on_progress(line: "Event") -> None:
            shown(line)
            tracked.line(line)

        result = run_study(
            config,
            folder,
            corpus=corpus,
            jobs=jobs,
            device=device,
            on_progress=on_progress,
            on_stage=on_stage,
        )
        tracked.result(result)
        on_stage("writing the report")
        write_report(folder)
    return result


def load(data: Any, target: Path | str | None = None, **settings: Any) -> Corpus | ParallelCorpus:
    """The corpus of that name, in that file or pair of files, or in that `datasets.Dataset`.

    settings: `task`, `text`, `label`, `validation`, `test`, `lower`, `seed`, as for `study`.

    >>> len(load("rotten-tomatoes").train)
    6824
    """
    return open_data(data, target, **settings)


def preflight(
    data: Any,
    *,
    stream: bool | None = None,
    max_types: int | None = None,
    jobs: int | None = None,
    on: "Place" = "local",
    address: str | None = None,
    progress: bool = False,
    **settings: Any,
) -> "Preflight":
    """Say, without training, what co-occurrence alone can teach a model of this corpus.

    data: as for `study`. settings: `text`, `label`, `lower`, and the permutations and seed of the null distribution.
    stream: count files piece by piece, in memory bounded by `max_types` words on each side; done unasked where they are
    large. jobs: chunks counted at a time. on: `local` or `ray`, a cluster at `address`.

    >>> preflight("sms-spam").verdict                          # doctest: +SKIP
    'learnable'
    """
    from heedful.preflights.preflight import run_preflight

    target = settings.pop("target", None)
    if _streams(data, target, stream, max_types is not None or jobs is not None or on != "local" or bool(address)):
        from heedful.data.files.chunks import open_stream
        from heedful.execution.progress import show_progress
        from heedful.preflights.streaming import MAX_TYPES, Settings, run_streamed

        task = settings.pop("task", None) or task_of(data, target)
        columns = {name: settings.pop(name, None) for name in ("text", "label")}
        lower = settings.pop("lower", None)
        chosen = Settings(
            max_types=MAX_TYPES if max_types is None else max_types,
            min_count=settings.pop("min_count", 3),
            lower=lower is not False,
            seed=settings.pop("seed", 0),
            jobs=jobs,
            on=on,
            address=address,
        )
        with show_progress(enabled=progress) as (on_progress, _):
            return run_streamed(
                open_stream(data, target, task=task, **columns), chosen, on_progress=on_progress, **settings
            )
    return run_preflight(open_data(data, target, **column_settings(settings)), **settings)


def report(*runs: Path | str, out: Path | str | None = None, results: Path | str = "results") -> Path:
    """Write the page of a run: a study, an audit, a followed training, a sweep or a paper's results; say where it is.

    Several studies, audits or followed trainings come side by side on one page, `comparison.html` where `out` is left
    out. results: where the results of papers are stored.

    >>> report("runs/demo")                                    # doctest: +SKIP
    PosixPath('runs/demo/report.html')
    >>> report("runs/demo", "runs/longer", out="both.html")    # doctest: +SKIP
    PosixPath('both.html')
    """
    from heedful.reports.pages import write_page

    target = None if out is None else Path(out)
    return write_page([Path(run) for run in runs], out=target, results=Path(results))


def audit(
    model: Any,
    data: Any = None,
    *,
    out: Path | str | None = None,
    sample: int | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
    command: str = "",
    tokenizer: Any = None,
    split: "SplitName | None" = None,
    labels: dict[str, str] | None = None,
    query: "Query | None" = None,
    trust_remote_code: bool = False,
    columns: dict[str, Any] | None = None,
    **settings: Any,
) -> "AuditResult":
    """Ask whether a model's attention can be trusted as an explanation, and write the result and its page.

    model: a Hugging Face folder, Hub id or model (with its `tokenizer`), the folder of a study, or a `Subject`. data:
    as for `study`, or a folder laid out as in ERASER; of a study's model its own validation texts where left out. out:
    the audit's folder, from which one that was broken off goes on. sample: how many texts, drawn under `seed`. split,
    labels, query, trust_remote_code, columns: see `audits.request.open_request`. settings: any other of
    `AuditSettings`.

    >>> audit("distilbert-base-uncased-finetuned-sst-2-english", "reviews.csv", sample=200)    # doctest: +SKIP
    >>> audit("runs/demo").verdict.sentence                                                  # doctest: +SKIP
    """
    from heedful.audits.audit import AuditSettings, free_folder, run_audit
    from heedful.audits.request import open_request
    from heedful.execution.progress import show_progress
    from heedful.models.training import choose_device
    from heedful.reports.audit_page import write_audit_page

    chosen = AuditSettings(sample=sample, seed=seed, **settings)
    of, on = label_of(model), "its validation texts" if data is None else label_of(data)
    folder = free_folder(out if out is not None else RUNS / f"audit-{run_name(of)}")
    with (
        open_request(
            model,
            data,
            tokenizer=tokenizer,
            split=split,
            labels=labels,
            query=query,
            sample=sample,
            seed=seed,
            device=str(choose_device(device)),
            trust_remote_code=trust_remote_code,
            **(columns or {}),
        ) as request,
        show_progress(enabled=progress) as (on_progress, on_stage),
    ):
        on_stage(f"auditing {of} on {on}")
        result = run_audit(
            request.subject,
            request.passages,
            out=folder,
            settings=chosen,
            rationales=request.rationales,
            links=request.links,
            model=of,
            data=on,
            command=command,
            on_progress=on_progress,
        )
    write_audit_page(result, folder / "report.html", command)
    return result


def reproduce(
    paper: str,
    *tables: str,
    budget: str = "quick",
    results: Path | str = "results",
    work: Path | str = RUNS / "reproduce",
    docs: Path | str | None = None,
    jobs: int | None = None,
    device: str = "auto",
    again: bool = False,
    progress: bool = True,
) -> "list[Result]":
    """Measure tables and figures of a paper (all of them where none is named), and write the page of its results.

    What is finished is only read. results: the folder of stored results. work: where trained models are kept, and the
    page. docs: where the paper's page in Markdown and its figures are written, if given. again: measure anew from the
    models that are there.

    >>> reproduce("snell2021", "figure4", budget="smoke")      # doctest: +SKIP
    """
    from heedful.execution.progress import show_progress
    from heedful.papers.reproduction import reproduce as run
    from heedful.reports.pages import write_paper, write_paper_docs

    with show_progress(enabled=progress) as (on_progress, on_stage):
        made = run(
            paper,
            tables or ("all",),
            budget=budget,
            results=Path(results),
            work=Path(work),
            jobs=jobs,
            device=device,
            again=again,
            on_progress=on_progress,
            on_stage=on_stage,
        )
        on_stage("writing the report")
        write_paper(paper, budget, Path(results), Path(work) / paper / budget / "report.html")
        if docs is not None:
            write_paper_docs(paper, budget, Path(results), Path(docs))
    return made


def sweep(
    grid: Any,
    *,
    on: str = "local",
    address: str | None = None,
    out: Path | str | None = None,
    jobs: int | None = None,
    retries: int = 1,
    cpus: int | float = 1,
    gpus: int | float = 0,
    shared: bool | None = None,
    device: str = "auto",
    progress: bool = True,
) -> "SweepResult":
    """Carry out every study of a grid that is not finished yet, and write the sweep's table and page.

    grid: a TOML file with the tables `[base]` and `[grid]`, or the same as a dictionary. on: `local`, single-threaded
    processes, `jobs` at a time (one per core); or `ray`, a cluster at `address`. out: the sweep's folder. retries: how
    often a study that failed is tried again. cpus, gpus: what a study needs. shared: whether the nodes see `out`.

    >>> sweep({"base": {"data": "sst"}, "grid": {"model.scale": [1, 10, 100]}})        # doctest: +SKIP
    """
    from heedful.reports.sweep_page import write_sweep_page
    from heedful.sweeps.sweep import start_sweep

    folder = Path(out) if out is not None else RUNS / (run_name(str(grid)) if isinstance(grid, str | Path) else "sweep")
    result = start_sweep(
        grid,
        folder,
        on=on,
        address=address,
        jobs=jobs,
        retries=retries,
        cpus=cpus,
        gpus=gpus,
        shared=shared,
        device=device,
        study_function="heedful.api:study_of_sweep",
        progress=progress,
    )
    write_sweep_page(result, folder)
    return result


def study_of_sweep(*, folder: str, report: "OnEvent" = lambda event: None, **arguments: Any) -> None:
    """Run one study of a sweep and write its page: the job that `sweep` gives to workers."""
    from heedful.reports.pages import write_report
    from heedful.sweeps.study_job import run_one_study

    run_one_study(folder=folder, report=report, **arguments)
    report({"stage": "writing the report"})
    write_report(Path(folder))


def runs(folder: Path | str = RUNS) -> "RunList":
    """Every run below a folder, sorted by time: what, when, in what state, and its main figures.

    >>> runs("runs").to_pandas()                               # doctest: +SKIP
    """
    from heedful.records.index import list_runs

    return list_runs(folder)


def query(sql: str, folder: Path | str = RUNS) -> "Answer":
    """One SELECT across all results and traces below a folder; `heedful query --schema` lists tables and columns.

    >>> query("SELECT run, accuracy FROM runs").to_polars()    # doctest: +SKIP
    """
    from heedful.records.query import ask

    return ask(sql, folder)


def claims(budget: str | None = None, *, results: Path | str = "results") -> "list[LedgerEntry]":
    """The ledger: every claim of the papers, judged by the stored results.

    >>> [entry.claim.id for entry in claims(results="nowhere")][:2]
    ['S1', 'S2']
    """
    from heedful.papers.reproduction import claims as ledger

    return ledger(budget, Path(results))


def _streams(data: Any, target: Any, asked: bool | None, implied: bool) -> bool:
    """Whether files are counted piece by piece: if asked for, or if they are large."""
    from heedful.data.files.chunks import is_large
    from heedful.data.files.tables import format_of

    wanted = asked or implied
    files = isinstance(data, str | Path) and (
        target is not None or format_of(Path(data)) is not None or (wanted and os.path.isfile(data))
    )
    if not files and wanted:
        raise ConfigError(f"only files are counted piece by piece, not {label_of(data)!r}; leave out --stream")
    return files and (asked if asked is not None else implied or is_large(data, target, LARGE))
