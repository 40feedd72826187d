"""A disk that is full: a clear error, nothing half, and the same command goes on; on a real one with `make faults`."""

import errno

import pytest

from heedful.errors import DiskFullError
from heedful.storage import atomic_files
from heedful.storage.atomic_files import is_disk_full, write_text
from tests.faults.small import TEXTS, finish


@pytest.mark.parametrize("file", [1, 4, 12, 22, 45, 120])
def test_full_at_some_file(file, tmp_path, monkeypatch, undisturbed):
    made, make = 0, atomic_files.create_temporary

    def full(path):
        nonlocal made
        made += 1
        if made >= file:
            raise OSError(errno.ENOSPC, "No space left on device")
        return make(path)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "create_temporary", full)
        with pytest.raises(DiskFullError, match=r"the disk is full .* are free in .* make room"):
            finish(TEXTS, tmp_path / "run")
    assert not list(tmp_path.rglob(".*.part"))
    assert not list(tmp_path.rglob("lock.json"))
    assert not list(tmp_path.rglob("heartbeat.json"))
    assert finish(TEXTS, tmp_path / "run") == undisturbed


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return finish(TEXTS, tmp_path_factory.mktemp("disk") / "undisturbed")


def test_the_error_says_how_much_was_needed(tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(atomic_files, "create_temporary", full)
    with pytest.raises(DiskFullError, match=r"a\.txt: the disk is full \(the file needs about 0\.5 MB"):
        write_text(tmp_path / "a.txt", "x" * 500_000)
    assert not is_disk_full(OSError(errno.EACCES, "Permission denied"))
