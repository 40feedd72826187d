"""Reproduce a paper: compute what its experiments need, then read their findings; stored results are kept."""

import time
from collections.abc import Mapping, Sequence
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
    units_path,
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
    results: also holds the answers of units, so that what was computed is kept with the results. work: the folder of
    trained models, needed only until what they were trained for is computed. again: read the findings once more. data:
    only train and measure the studies of these corpora, and read no finding; a large budget can be computed in parts.
    """
    source = paper(key)
    chosen = source.experiments if list(names) == ["all"] else tuple(source.experiment(name) for name in names)
    stored = {experiment.name: _stored(source, experiment, budget, results, on_progress) for experiment in chosen}
    made = {name: result for name, result in stored.items() if result is not None and not again}
    wanted = [experiment for experiment in chosen if experiment.name not in made]
    workspace = Workspace(budget, work / key / budget, units_path(results, key, budget))
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
    """Compute the units that some experiments need and the workspace does not have; what is there is kept.

    data: of all units only those that read the studies of these corpora.

    Units of all experiments go through one pool of workers. Those that read a study wait for it: one study after
    another is trained, analysed and read, so that little is lost if this is interrupted. A study that no missing unit
    reads is not trained. Run directories stay locked until their units are done.

    Returns the seconds of computing by experiment; what several experiments need is counted for the first of them.
    """
    refuse_irregular(workspace.root)
    refuse_irregular(workspace.units)
    spent = {experiment.name: 0.0 for experiment in experiments}
    needs = {experiment.name: experiment.needs(workspace.budget) for experiment in experiments}
    if data:
        needs = _only_of_studies(needs, data)

    def run(owned: Sequence[tuple[str, Job]], what: str, inherit: Sequence[int] = ()) -> dict[str, Any]:
        """The answers of some jobs, each with the experiment that it is for."""
        if owned:
            on_progress({"stage": f"{len(owned)} {what}"})
        timed = [_timed(job) for _, job in owned]
        done = run_jobs(timed, workers=jobs, on_event=on_progress, inherit=inherit)
        for name, job in owned:
            spent[name] += done[job.name][1]
        return {name: answer for name, (answer, _) in done.items()}

    while needs:
        missing = _missing_units(needs, workspace, on_progress)
        while missing:
            ready = {
                file: pair for file, pair in missing.items() if not missing.keys() & {u.file for u in pair[1].after}
            }
            free = {file: pair for file, pair in ready.items() if pair[1].study is None}
            if free:
                run([(name, unit.job(workspace, device)) for name, unit in free.values()], "units to compute")
                missing = {file: pair for file, pair in missing.items() if file not in free}
                continue
            owner, first = next(iter(ready.values()))
            assert first.study is not None
            of_study = {file: pair for file, pair in ready.items() if pair[1].study == first.study}
            with ExitStack() as locks:
                held = []
                if not is_intact(RunDirectory(workspace.root / study_folder(first.study))):
                    study = locks.enter_context(_open(first.study, workspace, device, on_progress))
                    held.append(study.lock)
                    if any(unit.part == "models" for _, unit in of_study.values()):
                        run([(owner, job) for job in _training_jobs(study)], "models to train", held)
                        analysis = _analysis_job(study)
                        study.finish(run([(owner, analysis)], "study to analyse", held)[analysis.name])
                own = [(name, unit.job(workspace, device)) for name, unit in of_study.values()]
                run(own, "units to compute", held)
            missing = {file: pair for file, pair in missing.items() if file not in of_study}
        needs = {name: each.then(workspace) for name, each in needs.items() if each.then}
    return spent


def _only_of_studies(needs: Mapping[str, Needs], data: Sequence[str]) -> dict[str, Needs]:
    """Of all needs only the units that read the studies of some corpora."""
    known = dict.fromkeys(unit.study.data for each in needs.values() for unit in each.units if unit.study)
    for name in data:
        if needs and name not in known:
            raise ConfigError(f"these experiments have no study of {name!r}; they have {', '.join(known) or 'none'}")
    return {
        key: Needs(tuple(unit for unit in each.units if unit.study and unit.study.data in data))
        for key, each in needs.items()
    }


def _missing_units(
    needs: Mapping[str, Needs], workspace: Workspace, on_progress: OnEvent
) -> dict[str, tuple[str, Unit]]:
    """The units that are not done, each with the first experiment that needs it and all files that any needs of it.

    What only units that are done have read is not needed.
    """
    wanted: dict[str, tuple[str, Unit]] = {}

    def add(name: str, unit: Unit) -> None:
        def notify(notice: str) -> None:
            on_progress({"model": unit.name, "notice": notice})

        if unit.is_done(workspace, notify):
            return
        first, known = wanted.get(unit.file, (name, unit))
        wanted[unit.file] = first, replace(known, makes=tuple(dict.fromkeys((*known.makes, *unit.makes))))
        for before in unit.after:
            add(name, before)

    for name, each in needs.items():
        for unit in each.units:
            add(name, unit)
    return wanted


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
