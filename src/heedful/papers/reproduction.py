"""Reproduce a paper: compute what its experiments need, then read their findings; stored results are kept."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from heedful.config import BUDGETS, StudyConfig
from heedful.errors import ConfigError
from heedful.execution.pool import Event, Job, OnEvent, call, run_jobs
from heedful.papers.claims import LedgerEntry, judge_paper, settle, thresholds
from heedful.papers.experiment import (
    Experiment,
    Needs,
    Result,
    Unit,
    Workspace,
    new_result,
    result_path,
    study_folder,
)
from heedful.papers.published import csv_rows
from heedful.storage.atomic_files import valid_path
from heedful.storage.manifest import MANIFEST, Manifest, utc_now
from heedful.storage.run_files import listed, refuse_irregular
from heedful.storage.step_cache import StepRecord
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory, is_intact, model_specs
from heedful.studies.study import OpenStudy, analyse, open_study

KEYS = ("snell2021", "meister2021", "sunlu2020", "heedful2026")
RESULTS = Path("results")
WORK = Path("runs") / "reproduce"


@dataclass(frozen=True)
class Paper:
    """A paper's experiments; `preface` opens its page."""

    key: str
    title: str
    experiments: tuple[Experiment, ...]
    preface: str

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name; an error that lists them where there is none."""
        for experiment in self.experiments:
            if experiment.name == name:
                return experiment
        known = ", ".join(experiment.name for experiment in self.experiments)
        raise ConfigError(f"{self.key} has no {name!r}; it has {known}, or all")


def paper(key: str) -> Paper:
    """The paper of that key.

    >>> paper("snell2021").experiment("table2").title
    'Table 2: agreement and contextualised agreement'
    """
    if key not in KEYS:
        raise ConfigError(f"there is no paper {key!r}; there are {', '.join(KEYS)}")
    contents = import_module(f"heedful.papers.{key}.contents")
    preface = (files("heedful.papers") / key / "preface.md").read_text(encoding="utf-8")
    fixed = tuple(replace(each, thresholds=thresholds(key, each.name)) for each in contents.EXPERIMENTS)
    return Paper(key, contents.TITLE, fixed, preface)


def reproduce(
    key: str,
    names: Sequence[str] = ("all",),
    *,
    budget: str = "quick",
    results: Path = RESULTS,
    work: Path = WORK,
    jobs: int | None = None,
    device: str = "auto",
    again: bool = False,
    data: Sequence[str] = (),
    on_progress: OnEvent = lambda event: None,
) -> list[Result]:
    """The results of these experiments: read from `results` where they are stored and not stale, else made now.

    First `prepare` computes whatever is missing, for all experiments together; then each experiment reads its finding.
    work: the folder of trained models and computed answers, which is kept. again: read the findings once more from it.
    data: only train the studies of these corpora, and read no finding; a large budget can be computed in such parts.
    """
    source = paper(key)
    chosen = source.experiments if list(names) == ["all"] else tuple(source.experiment(name) for name in names)
    stored = {experiment.name: _stored(source, experiment, budget, results, on_progress) for experiment in chosen}
    made = {name: result for name, result in stored.items() if result is not None and not again}
    wanted = [experiment for experiment in chosen if experiment.name not in made]
    workspace = Workspace(budget, work / key / budget)
    for folder in (results / key / budget, workspace.root) if wanted else ():
        write_folder_manifest(folder, key, budget)
    spent = prepare(wanted, workspace, jobs=jobs, device=device, data=data, on_progress=on_progress)
    for experiment in wanted if not data else ():
        on_progress({"stage": experiment.title})
        started, before = time.perf_counter(), stored[experiment.name]
        finding = experiment.find(workspace)
        seconds = spent[experiment.name] + time.perf_counter() - started
        if before is not None:
            seconds += before.manifest.seconds or 0.0  # what was computed then is still there
        made[experiment.name] = new_result(key, experiment, budget, finding, seconds)
        made[experiment.name].save(result_path(results, key, budget, experiment.name))
    return [made[experiment.name] for experiment in chosen if experiment.name in made]


def write_folder_manifest(folder: Path, paper: str, budget: str) -> None:
    """Mark a folder as one of a paper's results or of its long work; each result has its own manifest inside."""
    if not valid_path(folder / MANIFEST).exists():
        Manifest("paper", started=utc_now(), details={"paper": paper, "budget": budget}).write(folder)


def _stored(source: Paper, experiment: Experiment, budget: str, results: Path, on_progress: OnEvent) -> Result | None:
    """The stored result of an experiment; None where there is none, or a stale one, or it was damaged and set aside."""
    experiment.digest(budget)  # an unknown budget is an error before anything is done
    path = result_path(results, source.key, budget, experiment.name)
    is_whole = StepRecord(path).repair(lambda notice: on_progress({"model": experiment.name, "notice": notice}))
    stored = Result.load(path) if is_whole else None
    return None if stored is None or experiment.why_stale(stored) else stored


def prepare(
    experiments: Sequence[Experiment],
    workspace: Workspace,
    *,
    jobs: int | None = None,
    device: str = "auto",
    data: Sequence[str] = (),
    on_progress: OnEvent = lambda event: None,
) -> dict[str, float]:
    """Compute what some experiments need and the workspace does not have; what is there and undamaged is kept.

    data: of all this only the studies of these corpora.

    The models of all studies and the units of all experiments go through one pool of workers. So do, after that, the
    analyses of the studies and the units that depend on the first. Run directories stay locked until all is done.

    Returns the seconds of computing by experiment; what several experiments need is counted for the first of them.
    """
    refuse_irregular(workspace.root)
    spent = {experiment.name: 0.0 for experiment in experiments}
    needs = {experiment.name: experiment.needs(workspace.budget) for experiment in experiments}
    if data:
        needs = _only_studies(needs, data)
    trained: list[tuple[str, OpenStudy]] = []  # each with the experiment that it was opened for
    with ExitStack() as locks:
        while needs or trained:
            opened = [
                (name, locks.enter_context(_open(config, workspace, device, on_progress)))
                for name, config in _missing_studies(needs, workspace)
            ]
            parts = {
                "studies to analyse": [(name, _analysis_job(study)) for name, study in trained],
                "models to train": [(name, job) for name, study in opened for job in _training_jobs(study)],
                "units to compute": [
                    (name, unit.job(workspace.root, device))
                    for name, unit in _missing_units(needs, workspace, on_progress)
                ],
            }
            if any(parts.values()):
                on_progress({"stage": ", ".join(f"{len(part)} {what}" for what, part in parts.items() if part)})
            owned = [pair for part in parts.values() for pair in part]
            done = run_jobs(
                [_timed(job) for _, job in owned],
                workers=jobs,
                on_event=on_progress,
                inherit=[study.lock for _, study in (*trained, *opened)],
            )
            for name, job in owned:
                spent[name] += done[job.name][1]
            for _, study in trained:
                study.finish(done[_analysis_job(study).name][0])
            trained = opened
            needs = {name: each.then(workspace) for name, each in needs.items() if each.then}
    return spent


def _only_studies(needs: Mapping[str, Needs], data: Sequence[str]) -> dict[str, Needs]:
    """Of all needs only the studies of some corpora."""
    known = dict.fromkeys(config.data for each in needs.values() for config in each.studies)
    for name in data:
        if needs and name not in known:
            raise ConfigError(f"these experiments have no study of {name!r}; they have {', '.join(known) or 'none'}")
    return {key: Needs(tuple(c for c in each.studies if c.data in data)) for key, each in needs.items()}


def _missing_studies(needs: Mapping[str, Needs], workspace: Workspace) -> Iterator[tuple[str, StudyConfig]]:
    """The studies that are unfinished or damaged, each with the first experiment that needs it."""
    wanted: dict[str, tuple[str, StudyConfig]] = {}
    for name, each in needs.items():
        for config in each.studies:
            wanted.setdefault(study_folder(config), (name, config))
    for folder, pair in wanted.items():
        if not is_intact(RunDirectory(workspace.root / folder)):
            yield pair


def _missing_units(
    needs: Mapping[str, Needs], workspace: Workspace, on_progress: OnEvent
) -> Iterator[tuple[str, Unit]]:
    """The units that are not done, each with the first experiment that needs it and all files that any needs of it."""
    wanted: dict[str, tuple[str, Unit]] = {}
    for name, each in needs.items():
        for unit in each.units:
            first, known = wanted.get(unit.file, (name, unit))
            wanted[unit.file] = first, replace(known, makes=tuple(dict.fromkeys((*known.makes, *unit.makes))))
    for name, unit in wanted.values():

        def notify(notice: str, model: str = unit.name) -> None:
            on_progress({"model": model, "notice": notice})

        if not unit.is_done(workspace.root, notify):
            yield name, unit


def _open(
    config: StudyConfig, workspace: Workspace, device: str, on_progress: OnEvent
) -> AbstractContextManager[OpenStudy]:
    def on_event(event: Event) -> None:
        on_progress({**event, "stage": f"{config.data}: {event['stage']}"} if "stage" in event else event)

    return open_study(config, workspace.root / study_folder(config), device=device, on_progress=on_event)


def _training_jobs(study: OpenStudy) -> list[Job]:
    """A job for each model that is not trained yet; named after its data too, since other studies have such models."""
    from heedful.studies.training import training_job  # needs torch, which reading results does without

    missing = [spec for spec in model_specs(study.config) if not study.run.model(spec).is_done()]
    jobs = [training_job(study.run, spec, study.device) for spec in missing]
    return [replace(job, name=f"{study.config.data} {job.name}") for job in jobs]


def _analysis_job(study: OpenStudy) -> Job:
    return Job(study.run.root.name, f"{__name__}:analyse_study", {"run": study.run.root})


def analyse_study(*, run: Path, report: OnEvent) -> StudyResult:
    """A job: the result of a study whose models are all trained."""
    return analyse(RunDirectory(run))


def _timed(job: Job) -> Job:
    """The same job, which returns how many seconds it took too."""
    arguments = {"name": job.name, "function": job.function, "arguments": job.arguments}
    return Job(job.name, f"{__name__}:run_timed", arguments)


def run_timed(*, name: str, function: str, arguments: Mapping[str, Any], report: OnEvent) -> tuple[Any, float]:
    """Run a job's function; its events carry the job's name."""
    started = time.perf_counter()
    result = call(function, arguments, report=lambda event: report({**event, "model": name}))
    return result, time.perf_counter() - started


def stale_results(results: Path = RESULTS) -> dict[Path, str]:
    """Why stored results are no longer valid: settings or version of the experiment changed, or it is gone.

    A result whose earlier settings are known (`earlier_settings`) is not among them: it counts until it is made again.
    """
    return {path: reason for path, (reason, known) in _outdated(results).items() if not known}


def results_to_renew(results: Path = RESULTS) -> list[Path]:
    """Stored results made with earlier settings that still count; `reproduce` makes them again."""
    return [path for path, (_, known) in _outdated(results).items() if known]


def _outdated(results: Path) -> dict[Path, tuple[str, bool]]:
    """Results that do not have the settings of today: why, and whether theirs are known earlier ones."""
    earlier, outdated = earlier_settings(), {}
    for key in KEYS:
        experiments = {experiment.name: experiment for experiment in paper(key).experiments}
        for path in _result_files(results, key, "*"):
            result = Result.load(path)
            known = experiments.get(result.experiment)
            reason = "there is no such experiment any more" if known is None else known.why_stale(result)
            if reason:
                outdated[path] = reason, known is not None and result.config_digest in earlier
    return outdated


def earlier_settings() -> frozenset[str]:
    """Digests of settings that were in force before, whose results are kept until there are newer ones."""
    return frozenset(line["settings"] for line in csv_rows("earlier_settings"))


def claims(budget: str | None = None, results: Path = RESULTS) -> list[LedgerEntry]:
    """Every claim of every paper, judged by the stored results of a budget; by default the largest with any."""
    if budget is not None and budget not in BUDGETS:
        raise ConfigError(f"budget {budget!r} is not one of {', '.join(BUDGETS)}")
    entries, old = [], {path: Result.load(path).experiment for path in results_to_renew(results)}
    for key in KEYS:
        have = [each for each in BUDGETS if _result_files(results, key, each)]
        chosen = budget or (have[-1] if have else "quick")
        files = _result_files(results, key, chosen)
        earlier = [old[path] for path in files if path in old]
        entries += judge_paper(key, map(Result.load, files), chosen, earlier)
    return settle(entries)


def _result_files(results: Path, key: str, budget: str) -> list[Path]:
    """The files of a paper's results within a budget; "*": within any."""
    folders = listed(valid_path(results / key), budget)
    return [path for folder in folders for path in listed(folder, "*.json") if path.name != MANIFEST]
