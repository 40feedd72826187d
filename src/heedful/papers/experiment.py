"""An experiment of a paper: what it needs computed first, the function that reads its finding, its result on disk.

A unit is a function of plain arguments. Its answer is computed once and stored, small, in a file of its own beside the
results, so that it can be kept with them; trained models stay in a work folder and may be deleted. A result is one JSON
file per experiment and budget, with its manifest; it is stale once settings or version of its experiment change.
"""

import json
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

from heedful.config import BUDGETS, StudyConfig
from heedful.errors import ConfigError, RunError
from heedful.execution.pool import Job, OnEvent, call
from heedful.papers.findings import Finding
from heedful.storage.atomic_files import valid_path
from heedful.storage.manifest import Manifest, source_commit, utc_now, versions
from heedful.storage.serialization import Stored, content, digest, from_mapping
from heedful.storage.step_cache import Notify, StepRecord, read_answer, record_beside, write_answer

UNITS = "units"  # the folder of answers beside the results
Answer = Mapping[str, Any]  # what a unit returns
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Unit:
    """One computation of a paper: `module:function(**arguments, device=…, report=…)`, whose answer JSON can hold.

    The arguments decide the answer and name its file. paths: those arguments that are paths below the work folder.
    makes: those paths that the function writes with `write_with_record` and that other units read; without them it is
    not done. study: the study whose folder is one of its paths, and `part`, what it reads of it: the data alone, or
    trained models and the result too. after: units whose files it reads. Neither is needed once its answer is stored.
    version: raised by hand when the function comes to mean something else.
    """

    name: str
    function: str
    arguments: Mapping[str, Any]
    paths: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    study: StudyConfig | None = None
    part: Literal["data", "models"] = "models"
    after: tuple["Unit", ...] = ()
    version: int = 1

    @property
    def file(self) -> str:
        """The name of the answer's file.

        >>> Unit("a", "m:f", {"x": 1}).file == Unit("a", "m:f", {"x": 2}).file
        False
        """
        version = [] if self.version == 1 else [self.version]
        content = json.dumps([self.function, self.arguments, *version], sort_keys=True)
        return f"{self.name}-{sha256(content.encode()).hexdigest()[:8]}.json"

    def job(self, workspace: "Workspace", device: str) -> Job:
        """The job that computes it and saves its answer."""
        paths = {name: str(workspace.root / self.arguments[name]) for name in self.paths}
        arguments = {"function": self.function, "arguments": {**self.arguments, **paths}, "device": device}
        return Job(self.name, f"{__name__}:compute", arguments | {"out": str(workspace.units / self.file)})

    def is_done(self, workspace: "Workspace", notify: Notify) -> bool:
        """Whether its answer and the files that it makes are there and undamaged; `notify` hears of damage."""
        files = [record_beside(workspace.root / self.arguments[name]).repair(notify) for name in self.makes]
        return StepRecord(workspace.units / self.file).repair(notify) and all(files)


def compute(
    *, function: str, arguments: Mapping[str, Any], out: str, device: str, report: OnEvent = lambda event: None
) -> None:
    """A job: compute one unit and save its answer, with the seconds that it took and the commit that made it."""
    from heedful.models.training import choose_device  # needs torch, which reading results does without

    started = time.perf_counter()
    answer = call(function, {**arguments, "device": choose_device(device)}, report=report)
    seconds = round(time.perf_counter() - started, 1)
    write_answer(Path(out), rounded(answer), seconds=seconds, finished=utc_now(), commit=source_commit())


def rounded(value: Any) -> Any:
    """The same nested value with every number to seven digits, which is what single precision has.

    >>> rounded({"a": [1 / 3, 1, None]})
    {'a': [0.3333333, 1, None]}
    """
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def study_folder(config: StudyConfig) -> str:
    """The folder of a study below a work folder; its name carries the digest of the settings.

    >>> study_folder(StudyConfig("multi30k:de-en"))[:15]
    'multi30k-de-en-'
    """
    return f"{config.data.replace(':', '-')}-{digest(config)[:8]}"


@dataclass(frozen=True)
class Workspace:
    """The answers of one paper within one budget, for reading; nothing is computed here.

    root: the work folder, with trained models. units: the folder of the answers.
    """

    budget: str
    root: Path
    units: Path

    def answers(self, units: Iterable[Unit]) -> list[Answer]:
        """The stored answers of some units."""
        return [read_answer(_computed(self.units / unit.file)) for unit in units]


def _computed(path: Path) -> Path:
    if path.exists():
        return path
    raise RunError(f"{path}: no such file; run the experiment with `heedful reproduce`, which computes what it reads")


@dataclass(frozen=True)
class Needs:
    """The units that have to be computed before an experiment can be read.

    then: what is needed after that, which may depend on what was computed.
    """

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
) -> Experiment:
    """An experiment that reads the answers of units: `find(budget, answers)` gets them under their units' keys."""

    def find_in(workspace: Workspace) -> Finding:
        chosen = units(workspace.budget)
        return find(workspace.budget, {key: workspace.answers(each) for key, each in chosen.items()})

    def needs(budget: str) -> Needs:
        return Needs(tuple(unit for each in units(budget).values() for unit in each))

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


def units_path(folder: Path, paper: str, budget: str) -> Path:
    """The folder of the answers of a paper's units within a budget.

    >>> units_path(Path("results"), "snell2021", "quick").as_posix()
    'results/snell2021/quick/units'
    """
    return folder / paper / budget / UNITS


def stored_results(folder: Path, paper: str, budget: str, experiments: tuple[Experiment, ...]) -> Iterator[Result]:
    """The stored results of a paper within a budget, in the paper's order."""
    for experiment in experiments:
        path = result_path(folder, paper, budget, experiment.name)
        if valid_path(path).exists():
            yield Result.load(path)
