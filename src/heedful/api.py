"""The verbs as Python functions: each does what the command of the same name does."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from heedful.budgets import study_preset
from heedful.config import StudyConfig, TaskName, with_overrides
from heedful.data.corpus import Corpus
from heedful.data.open import open_data, task_of
from heedful.data.parallel import ParallelCorpus
from heedful.errors import ConfigError

if TYPE_CHECKING:
    from heedful.audits.network import Query
    from heedful.audits.request import SplitName
    from heedful.audits.result import AuditResult
    from heedful.papers.ledger import Entry
    from heedful.papers.results import Result
    from heedful.studies.preflight import Preflight
    from heedful.studies.result import StudyResult

RUNS = Path("runs")


def study(
    data: Any,
    *,
    out: Path | str | None = None,
    budget: str = "quick",
    seeds: int | tuple[int, ...] | None = None,
    jobs: int | None = None,
    device: str = "auto",
    progress: bool = True,
    **settings: Any,
) -> "StudyResult":
    """Study how attention is learned on a corpus, and write the run, its result and its report.

    data: a name (`heedful data list`), a CSV, TSV, JSONL or Parquet file, a `datasets.Dataset` or a `Corpus`.
    out: the run's folder, `runs/<name>` where it is left out. seeds: how many, or which. settings: any other setting
    of `StudyConfig`, such as `text="review"` or `train=TrainConfig(steps=200, …)`.

    >>> result = study("reviews.csv", budget="smoke")          # doctest: +SKIP
    >>> result.agreement("A(alpha,beta)").estimate             # doctest: +SKIP
    """
    from heedful.reports.page import write_report
    from heedful.studies.progress import show_progress
    from heedful.studies.study import run_study

    named = isinstance(data, str | Path)
    target = settings.pop("target", None)
    corpus = None if named else open_data(data, **_column_settings(settings))
    task = settings.pop("task", None) or task_of(data, target)
    name = str(data) if named else _name(data)
    config = study_config(name, budget=budget, seeds=seeds, task=task, target=target and str(target), **settings)
    folder = Path(out) if out is not None else RUNS / run_name(config.data)
    with show_progress(enabled=progress) as (on_progress, on_stage):
        result = run_study(
            config, folder, corpus=corpus, jobs=jobs, device=device, on_progress=on_progress, on_stage=on_stage
        )
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


def preflight(data: Any, **settings: Any) -> "Preflight":
    """Say, without training, what co-occurrence alone can teach a model of this corpus.

    data: as for `study`. settings: `text`, `label`, `lower`, and the permutations and seed of the null distribution.

    >>> preflight("sms-spam").verdict                          # doctest: +SKIP
    'learnable'
    """
    from heedful.studies.preflight import run_preflight

    target = settings.pop("target", None)
    return run_preflight(open_data(data, target, **_column_settings(settings)), **settings)


def report(*runs: Path | str, out: Path | str | None = None, results: Path | str = "results") -> Path:
    """Write the page of a run, be it a study, an audit, a followed training or a paper's results, and say where it is.

    Several studies come side by side on one page, `comparison.html` where `out` is left out. results: where the results
    of papers are stored.

    >>> report("runs/demo")                                    # doctest: +SKIP
    PosixPath('runs/demo/report.html')
    >>> report("runs/demo", "runs/longer", out="both.html")    # doctest: +SKIP
    PosixPath('both.html')
    """
    from heedful.reports.kinds import write_page

    return write_page([Path(run) for run in runs], out=None if out is None else Path(out), results=Path(results))


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
    columns: dict[str, Any] | None = None,
    **settings: Any,
) -> "AuditResult":
    """Ask whether a model's attention can be trusted as an explanation, and write the result and its page.

    model: a Hugging Face folder, Hub id or model (with its `tokenizer`), the folder of a study, or a `Subject`. data: as
    for `study`, or a folder laid out as in ERASER; of a study's model its own validation texts where left out. out: the
    audit's folder, from which one that was broken off goes on. sample: how many texts, drawn under `seed`. split,
    labels, query, columns: see `audits.request.open_request`. settings: any other of `AuditSettings`.

    >>> audit("distilbert-base-uncased-finetuned-sst-2-english", "reviews.csv", sample=200)    # doctest: +SKIP
    >>> audit("runs/demo").verdict.sentence                                                  # doctest: +SKIP
    """
    from heedful.audits.audit import AuditSettings, run_audit
    from heedful.audits.request import open_request
    from heedful.model.train import choose_device
    from heedful.reports.audit_page import write_audit_page
    from heedful.studies.progress import show_progress

    chosen = AuditSettings(sample=sample, seed=seed, **settings)
    of, on = _label_of(model), "its validation texts" if data is None else _label_of(data)
    folder = Path(out) if out is not None else RUNS / f"audit-{run_name(of)}"
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
    jobs: int | None = None,
    device: str = "auto",
    again: bool = False,
    progress: bool = True,
) -> "list[Result]":
    """Measure tables and figures of a paper (all of them where none is named); what is finished is only read.

    results: the folder of stored results. work: where trained models and other long work are kept. again: measure anew
    from the models that are there.

    >>> reproduce("snell2021", "figure4", budget="smoke")      # doctest: +SKIP
    """
    from heedful.papers.reproduce import reproduce as run
    from heedful.studies.progress import show_progress

    with show_progress(enabled=progress) as (on_progress, on_stage):
        return run(
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


def claims(budget: str | None = None, *, results: Path | str = "results") -> "list[Entry]":
    """The ledger: every claim of the papers, judged by the stored results.

    >>> [entry.claim.id for entry in claims(results="nowhere")][:2]
    ['S1', 'S2']
    """
    from heedful.papers.reproduce import claims as ledger

    return ledger(budget, Path(results))


def study_config(
    data: str,
    *,
    budget: str = "quick",
    seeds: int | tuple[int, ...] | None = None,
    task: TaskName | None = None,
    **settings: Any,
) -> StudyConfig:
    """The preset of a budget with the given settings changed.

    >>> study_config("sst", seeds=3).seeds
    (0, 1, 2)
    """
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else seeds
    preset = study_preset(data, budget, task or task_of(data, settings.get("target")))
    return with_overrides(preset, seeds=chosen, **settings)


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


def run_name(data: str) -> str:
    """A folder name for a corpus or file: its name without folder and endings.

    >>> run_name("some/where/reviews.csv.gz"), run_name("sst")
    ('reviews', 'sst')
    """
    return Path(data).name.split(".")[0].replace(":", "-") or "study"


def _column_settings(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        key: settings.pop(key) for key in ("task", "text", "label", "validation", "test", "lower") if key in settings
    }


def _name(data: Any) -> str:
    return data.name if isinstance(data, Corpus | ParallelCorpus) else "dataset"


def _label_of(thing: Any) -> str:
    """What a model or data are called in an audit."""
    if isinstance(thing, str | Path):
        return str(thing)
    named = getattr(getattr(thing, "config", None), "_name_or_path", "") or getattr(thing, "name", "")
    return str(named) or type(thing).__name__
