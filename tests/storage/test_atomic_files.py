"""Files that are whole or not there, and what is said where they cannot be."""

import errno
import os

import pytest

from heedful.errors import ConfigError, DamagedError, RunError
from heedful.storage.atomic_files import verify_checksummed_text, write_atomically, write_text
from heedful.storage.serialization import MAX_BYTES, read_toml


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    for place, words in {
        "file/a.txt": r"file/a\.txt: cannot be written: Not a directory; choose another place",
        "file/deeper/a.txt": "a.txt: cannot be written: Not a directory",
        "folder": "folder: cannot be written: Is a directory",
        "n" * 250: "nnn…' cannot be used as a path: File name too long; give another",
    }.items():
        with pytest.raises(RunError, match=words):
            write_text(tmp_path / place, "whole")
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


@pytest.mark.parametrize(
    ("fault", "raised"),
    [(PermissionError(errno.EACCES, "Permission denied"), RunError), (ValueError("a fault of ours"), ValueError)],
)
def test_what_was_there_stays_where_writing_fails(tmp_path, fault, raised):
    def fails(path):
        path.write_text("half")
        raise fault

    (tmp_path / "a.txt").write_text("before")
    with pytest.raises(raised, match=str(fault.args[-1])):
        write_atomically(tmp_path / "a.txt", fails)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "before")]


def test_an_empty_file_has_lost_its_checksum(tmp_path):
    (tmp_path / "config.toml").write_text(" \n")
    with pytest.raises(DamagedError, match=r"config\.toml: damaged \(it is empty\)"):
        verify_checksummed_text(tmp_path / "config.toml")


def test_settings_are_no_large_file(tmp_path):
    path = tmp_path / "corpus.toml"
    path.touch()
    os.truncate(path, MAX_BYTES + 1)
    with pytest.raises(ConfigError, match=r"corpus\.toml: 16,777,217 bytes are too many for settings; is it the right"):
        read_toml(path)
