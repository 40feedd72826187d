"""A whole paper at `smoke`, made once; tests of one paper run in one process (tests/conftest.py)."""

from pathlib import Path

import pytest

from heedful.papers.reproduce import reproduce


class Reproduced:
    """Where a paper's results and long work lie."""

    def __init__(self, folder: Path) -> None:
        self.results, self.work = folder / "results", folder / "work"


def _smoke(paper: str, folder: Path) -> Reproduced:
    made = Reproduced(folder)
    reproduce(paper, budget="smoke", results=made.results, work=made.work, jobs=1, device="cpu")
    return made


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of snell2021 at `smoke`; copy it before changing anything in it."""
    return _smoke("snell2021", tmp_path_factory.mktemp("snell2021"))


@pytest.fixture(scope="session")
def reproduced_meister(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of meister2021 at `smoke`; copy it before changing anything in it."""
    return _smoke("meister2021", tmp_path_factory.mktemp("meister2021"))


@pytest.fixture(scope="session")
def reproduced_sunlu(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of sunlu2020 at `smoke`; copy it before changing anything in it."""
    return _smoke("sunlu2020", tmp_path_factory.mktemp("sunlu2020"))
