"""An experiment of a paper: what it needs computed first, the function that reads its finding, its result on disk.

A unit is a function of plain arguments; its answer is computed once and stored in a file of its own. A result is one
JSON file per experiment and budget, with its manifest; it is stale once settings or version of its experiment change.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from heedful.config import BUDGETS, StudyConfig
from heedful.errors import ConfigError, RunError
from heedful.execution.pool import Job, OnEvent, call
from heedful.papers.findings import Finding
from heedful.storage.atomic_files import valid_path
from heedful.storage.manifest import Manifest, source_commit, utc_now, versions
from heedful.storage.serialization import Stored, content, digest, from_mapping
from heedful.storage.step_cache import Notify, StepRecord, read_answer, record_beside, write_answer
from heedful.studies.run_directory import RunDirectory

UNITS = "units"  # the folder of answers below a workspace
Answer = Mapping[str, Any]  # what a unit returns
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Unit:
    """One computation of a paper: `module:function(**arguments, device=…, report=…)`, whose answer JSON can hold.

    The arguments decide the answer and name its file. paths: those arguments that are paths below the workspace. makes:
    those paths that the function writes with `write_with_record` and that other units read; without them it is not
    done.
    """

    name: str
    function: str
    arguments: Mapping[str, Any]
    paths: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of the answer's file.

        >>> Unit("a", "m:f", {"x": 1}).file == Unit("a", "m:f", {"x": 2}).file
        False
        """
        content = json.dumps([self.function, self.arguments], sort_keys=True)
        return f"{self.name}-{sha256(content.encode()).hexdigest()[:8]}.json"

    def job(self, workspace: Path, device: str) -> Job:
        """The job that computes it and saves its answer."""
        paths = {name: str(workspace / self.arguments[name]) for name in self.paths}
        arguments = {"function": self.function, "arguments": {**self.arguments, **paths}, "device": device}
        return Job(self.name, f"{__name__}:compute", arguments | {"out": str(workspace / UNITS / self.file)})

    def is_done(self, workspace: Path, notify: Notify) -> bool:
        """Whether its answer and the files that it makes are there and undamaged; `notify` hears of damage."""
        files = [record_beside(workspace / self.arguments[name]).repair(notify) for name in self.makes]
        return StepRecord(workspace / UNITS / self.file).repair(notify) and all(files)


def compute(
    *, function: str, arguments: Mapping[str, Any], out: str, device: str, report: OnEvent = lambda event: None
) -> None:
    """A job: compute one unit and save its answer."""
    from heedful.models.training import choose_device  # needs torch, which reading results does without

    write_answer(Path(out), call(function, {**arguments, "device": choose_device(device)}, report=report))


def study_folder(config: StudyConfig) -> str:
    """The folder of a study below a workspace; its name carries the digest of the settings.

    >>> study_folder(StudyConfig("multi30k:de-en"))[:15]
    'multi30k-de-en-'
    """
    return f"{config.data.replace(':', '-')}-{digest(config)[:8]}"


@dataclass(frozen=True)
class Workspace:
    """The finished studies and units of one paper within one budget, for reading; nothing is computed here."""

    budget: str
    root: Path

    def study(self, config: StudyConfig) -> RunDirectory:
        """The run directory of a finished study."""
        run = RunDirectory(self.root / study_folder(config))
        _computed(run.result_path)
        return run

    def answers(self, units: Iterable[Unit]) -> list[Answer]:
        """The stored answers of some units."""
        return [read_answer(_computed(self.root / UNITS / unit.file)) for unit in units]


def _computed(path: Path) -> Path:
    if path.exists():
        return path
    raise RunError(f"{path}: no such file; run the experiment with `heedful reproduce`, which computes what it reads")


@dataclass(frozen=True)
class Needs:
    """What has to be computed before an experiment can be read.

    studies, units: all of them at the same time; a unit may read the data of these studies, but not their models. then:
    what is needed after that, which may depend on what was computed.
    """

    studies: tuple[StudyConfig, ...] = ()
    units: tuple[Unit, ...] = ()
    then: Callable[[Workspace], "Needs"] | None = None


@dataclass(frozen=True)
class Experiment:
    """A table, a figure or a section of a paper.

    settings: everything that decides the result within a budget, dataclasses and plain values. find: reads the finding
    from what `needs` names, and computes nothing that takes long. version: raised by hand when `find` comes to mean
    something else; results of an older version are stale. thresholds: those of the claims that it decides; they count
    among the settings.
    """

    name: str
    title: str
    settings: Callable[[str], Any]
    find: Callable[[Workspace], Finding]
    needs: Callable[[str], Needs] = lambda budget: Needs()
    version: int = 1
    thresholds: tuple[str, ...] = ()

    def digest(self, budget: str) -> str:
        """SHA-256 of the settings within a budget, and of the thresholds."""
        if budget not in BUDGETS:
            raise ConfigError(f"budget {budget!r} is not one of {', '.join(BUDGETS)}")
        settings = content(self.settings(budget))
        fixed = [settings, list(self.thresholds)] if self.thresholds else settings
        plain = json.dumps(fixed, sort_keys=True, ensure_ascii=False)
        return sha256(plain.encode()).hexdigest()

    def why_stale(self, result: "Result") -> str | None:
        """Why a stored result of this experiment is stale; None where it is not."""
        if result.version != self.version:
            return f"made by version {result.version} of the experiment, which is now {self.version}"
        now = self.digest(result.budget)
        if result.config_digest != now:
            return f"its settings have changed (digest {result.config_digest[:12]}, now {now[:12]})"
        return None


def unit_experiment(
    name: str,
    title: str,
    settings: Callable[[str], Any],
    find: Callable[[str, dict[Key, list[Answer]]], Finding],
    units: Callable[[str], Mapping[Key, Sequence[Unit]]],
    before: Callable[[str], Needs] = lambda budget: Needs(),
) -> Experiment:
    """An experiment that reads the answers of units: `find(budget, answers)` gets them under the keys of their units.

    before: what the units themselves read.
    """

    def find_in(workspace: Workspace) -> Finding:
        chosen = units(workspace.budget)
        return find(workspace.budget, {key: workspace.answers(each) for key, each in chosen.items()})

    def needs(budget: str) -> Needs:
        own, first = tuple(unit for each in units(budget).values() for unit in each), before(budget)
        return replace(first, then=lambda workspace: Needs(units=own)) if first.units else replace(first, units=own)

    return Experiment(name, title, settings, find_in, needs)


@dataclass(frozen=True)
class Result(Stored):
    """What an experiment found, its settings (seeds among them), and when and with what it was made.

    thresholds: those of claims that were fixed before it.
    """

    paper: str
    experiment: str
    title: str
    budget: str
    version: int
    config_digest: str
    settings: Any
    manifest: Manifest
    finding: Finding
    thresholds: tuple[str, ...] = ()

    def save(self, path: Path | str) -> None:
        """Write as JSON with its own checksum, atomically."""
        StepRecord(Path(path)).save(self.to_dict())

    @classmethod
    def load(cls, path: Path | str) -> "Result":
        """Read what `save` wrote; a file that has changed since is an error."""
        return from_mapping(cls, StepRecord(Path(path)).load(), where=str(path))


def new_result(paper: str, experiment: Experiment, budget: str, finding: Finding, seconds: float) -> Result:
    """A finding with its settings, and the manifest of this moment."""
    return Result(
        paper=paper,
        experiment=experiment.name,
        title=experiment.title,
        budget=budget,
        version=experiment.version,
        config_digest=experiment.digest(budget),
        settings=content(experiment.settings(budget)),
        manifest=Manifest(
            "paper",
            command=f"heedful reproduce {paper} {experiment.name} --budget {budget}",
            versions=versions(),
            commit=source_commit(),
            finished=utc_now(),
            seconds=round(seconds, 1),
        ),
        finding=finding,
        thresholds=experiment.thresholds,
    )


def result_path(folder: Path, paper: str, budget: str, experiment: str) -> Path:
    """The file of a result.

    >>> result_path(Path("results"), "snell2021", "quick", "table2").as_posix()
    'results/snell2021/quick/table2.json'
    """
    return folder / paper / budget / f"{experiment}.json"


def stored_results(folder: Path, paper: str, budget: str, experiments: tuple[Experiment, ...]) -> Iterator[Result]:
    """The stored results of a paper within a budget, in the paper's order."""
    for experiment in experiments:
        path = result_path(folder, paper, budget, experiment.name)
        if valid_path(path).exists():
            yield Result.load(path)
