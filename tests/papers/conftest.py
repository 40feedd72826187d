"""A whole paper at `smoke`, made once; tests of one paper run in one process (tests/conftest.py)."""

from pathlib import Path

import pytest

from heedful.config import StudyConfig
from heedful.execution.pool import call
from heedful.papers import reproduction
from heedful.papers.experiment import Workspace, study_folder, units_path
from heedful.papers.reproduction import reproduce
from heedful.studies.run_directory import RunDirectory


class Reproduced:
    """A paper's results and its workspace."""

    def __init__(self, paper: str, folder: Path) -> None:
        self.results, self.work = folder / "results", folder / "work"
        self.workspace = Workspace("smoke", self.work / paper / "smoke", units_path(self.results, paper, "smoke"))

    def study(self, config: StudyConfig) -> RunDirectory:
        """The run directory of a study."""
        return RunDirectory(self.workspace.root / study_folder(config))


def run_here(jobs, *, workers=None, on_event=lambda event: None, inherit=(), backend=None):
    """What `run_jobs` does, in this process; workers are tested with studies and with the other papers."""
    results = {}
    for job in jobs:
        results[job.name] = call(job.function, job.arguments, report=on_event)
        on_event({"model": job.name, "done": True})
    return results


def _smoke(paper: str, folder: Path, *, workers: bool = False) -> Reproduced:
    """workers: whether each of the many short studies and experiments has a process, which imports everything anew."""
    made = Reproduced(paper, folder)
    with pytest.MonkeyPatch.context() as patch:
        if not workers:
            patch.setattr(reproduction, "run_jobs", run_here)
        reproduce(paper, budget="smoke", results=made.results, work=made.work, jobs=1, device="cpu")
    return made


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of snell2021 at `smoke`; copy it before changing anything in it."""
    return _smoke("snell2021", tmp_path_factory.mktemp("snell2021"))


@pytest.fixture(scope="session")
def reproduced_meister(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of meister2021 at `smoke`; copy it before changing anything in it."""
    return _smoke("meister2021", tmp_path_factory.mktemp("meister2021"), workers=True)


@pytest.fixture(scope="session")
def reproduced_sunlu(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of sunlu2020 at `smoke`; copy it before changing anything in it."""
    return _smoke("sunlu2020", tmp_path_factory.mktemp("sunlu2020"), workers=True)


@pytest.fixture(scope="session")
def reproduced_own(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of heedful2026 at `smoke`; copy it before changing anything in it."""
    return _smoke("heedful2026", tmp_path_factory.mktemp("heedful2026"))
