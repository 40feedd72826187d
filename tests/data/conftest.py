import os
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test pays for imports; on a busy machine that passes any deadline.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def mirror(monkeypatch):
    """The mirror of the corpora: HEEDFUL_DATA, else the folder beside this repository, else the test is skipped."""
    folder = Path(os.environ.get("HEEDFUL_DATA", BESIDE))
    if not folder.is_dir():
        pytest.skip("there is no mirror of the corpora; point HEEDFUL_DATA at one")
    monkeypatch.setenv("HEEDFUL_DATA", str(folder))
    return folder


@pytest.fixture
def empty_mirror(monkeypatch, tmp_path):
    """A data directory with nothing in it."""
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "mirror"))
    return tmp_path / "mirror"
