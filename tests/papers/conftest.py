"""A whole paper at `smoke`, made once."""

from pathlib import Path

import pytest

from heedful.papers.reproduce import reproduce


class Reproduced:
    """Where a paper's results and long work lie."""

    def __init__(self, folder: Path) -> None:
        self.results, self.work = folder / "results", folder / "work"


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All of snell2021 at `smoke`; copy it before changing anything in it."""
    made = Reproduced(tmp_path_factory.mktemp("reproduced"))
    reproduce("snell2021", budget="smoke", results=made.results, work=made.work, device="cpu")
    return made
