"""A whole paper at `smoke`, made once; tests of one paper run in one process (tests/conftest.py)."""

from pathlib import Path

import pytest

from heedful.execution.worker import call
from heedful.papers import units
from heedful.papers.reproduction import reproduce
from heedful.studies import training


class Reproduced:
    """Where a paper's results and long work lie."""

    def __init__(self, folder: Path) -> None:
        self.results, self.work = folder / "results", folder / "work"


def _here(jobs, *, workers=None, on_event=lambda event: None, inherit=(), backend=None):
    """What workers do, in this process; workers themselves are tested with studies and with the other papers."""
    for job in jobs:
        call(job.function, job.arguments, report=lambda event, name=job.name: on_event({"model": name, **event}))


def _smoke(paper: str, folder: Path, *, workers: bool = False) -> Reproduced:
    """workers: whether each of the many short studies and experiments has a process, which imports everything anew."""
    made = Reproduced(folder)
    with pytest.MonkeyPatch.context() as patch:
        if not workers:
            patch.setattr(training, "run_jobs", _here)
            patch.setattr(units, "run_jobs", _here)
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
