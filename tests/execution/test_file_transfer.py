"""Files on their way home: whole, or not there; and never anywhere else."""

import pytest

from heedful.errors import RunError
from heedful.execution import ray_backend as file_transfer
from heedful.execution.ray_backend import INCOMING, Arrival, clear_incoming, incoming_folder, pieces


def test_what_was_sent_arrives(tmp_path, monkeypatch):
    monkeypatch.setattr(file_transfer, "PIECE", 3)
    source, home = tmp_path / "source", tmp_path / "home" / "study"
    for name, content in {"a.txt": b"", "models/x/b.bin": bytes(range(11)), ".lock": b"no"}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    (source / "link").symlink_to("/etc/passwd")
    with Arrival(home, tmp_path) as arrival:
        for name, piece in pieces(source):
            arrival.add(name, piece)
        assert not home.exists()
        arrival.settle()
    assert {p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_file()} == {"a.txt", "models/x/b.bin"}
    assert (home / "models/x/b.bin").read_bytes() == bytes(range(11))


def test_what_was_set_aside_stays(tmp_path):
    home = tmp_path / "study"
    (home / "data").mkdir(parents=True)
    for name in ("train.parquet", "train.parquet.damaged-1"):
        (home / "data" / name).write_bytes(b"old")
    with Arrival(home, tmp_path) as arrival:
        arrival.add("data/train.parquet", b"new")
        arrival.settle()
    assert (home / "data" / "train.parquet").read_bytes() == b"new"
    assert (home / "data" / "train.parquet.damaged-1").read_bytes() == b"old"


def test_a_broken_off_arrival_leaves_what_was_there(tmp_path):
    home = tmp_path / "study"
    home.mkdir()
    (home / "result.json").write_text("old")
    (home / "notes.txt").write_text("somebody's")
    with Arrival(home, tmp_path) as arrival:
        arrival.add("result.json", b"new")
    assert (home / "result.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [INCOMING, "study"]
    assert list((tmp_path / INCOMING).iterdir()) == []
    with Arrival(home, tmp_path) as arrival:
        arrival.add("config.toml", b"new")
        arrival.settle()
    assert {path.name for path in home.iterdir()} == {"config.toml", "notes.txt"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [INCOMING, "study"]
    assert list((tmp_path / INCOMING).iterdir()) == []


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/../../b", "", "a\\b", "a\0b"])
def test_names_cannot_leave_the_folder(name, tmp_path):
    with Arrival(tmp_path / "study", tmp_path) as arrival, pytest.raises(RunError, match="is not the name of a file"):
        arrival.add(name, b"x")
    assert [path.name for path in tmp_path.rglob("*")] == [INCOMING]


def test_only_our_own_folder_is_ever_cleared_and_no_link_is_followed(tmp_path):
    other = tmp_path / "other"
    (other / "data").mkdir(parents=True)
    store = tmp_path / "store"
    arriving = incoming_folder(store) / "abc"
    arriving.mkdir()
    (arriving / "link").symlink_to(other)
    (store / ".hidden").mkdir()
    clear_incoming(store)
    assert [path.name for path in store.iterdir()] == [".hidden"]
    (store / INCOMING).symlink_to(other)
    clear_incoming(store)
    assert (other / "data").is_dir()
    with pytest.raises(RunError, match="is a symbolic link"):
        incoming_folder(store)
