"""An experiment of a paper: the studies and units it needs computed first, and the function that reads its finding.

A unit is a function of plain arguments; its answer is computed once and stored in a file of its own.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.config import BUDGETS, StudyConfig
from heedful.errors import ConfigError, RunError
from heedful.execution.pool import Job, OnEvent, call
from heedful.papers.findings import Finding
from heedful.storage.serialization import content, digest
from heedful.storage.step_cache import Notify, StepRecord, read_answer, record_beside, write_answer
from heedful.studies.run_directory import RunDirectory

UNITS = "units"  # the folder of answers below a workspace


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
        if not run.result_path.exists():
            raise _missing(run.result_path)
        return run

    def answers(self, units: Iterable[Unit]) -> dict[str, dict[str, Any]]:
        """The stored answers of some units, by the name of the unit."""
        return {unit.name: self._answer(self.root / UNITS / unit.file) for unit in units}

    def _answer(self, path: Path) -> dict[str, Any]:
        if not path.exists():
            raise _missing(path)
        return read_answer(path)


def _missing(path: Path) -> RunError:
    return RunError(f"{path}: no such file; run the experiment with `heedful reproduce`, which computes what it reads")


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
    something else; results of an older version are stale.
    """

    name: str
    title: str
    settings: Callable[[str], Any]
    find: Callable[[Workspace], Finding]
    needs: Callable[[str], Needs] = lambda budget: Needs()
    version: int = 1

    def digest(self, budget: str) -> str:
        """SHA-256 of the settings within a budget."""
        if budget not in BUDGETS:
            raise ConfigError(f"budget {budget!r} is not one of {', '.join(BUDGETS)}")
        plain = json.dumps(content(self.settings(budget)), sort_keys=True, ensure_ascii=False)
        return sha256(plain.encode()).hexdigest()
