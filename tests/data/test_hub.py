"""What comes from the hub is read only if every file has the size and the checksum that the hub lists."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from heedful.data.corpora.entry import HubSource
from heedful.data.hub import check_files, download_splits, git_checksum, resolve
from heedful.errors import DataError, MissingExtraError

huggingface_hub = pytest.importorskip("huggingface_hub")
TRAIN, README = b"text,label\nso good,1\nso dull,0\n", b"---\nlicense: mit\n---\n"
README_IN_GIT = hashlib.sha1(b"blob %d\0" % len(README) + README).hexdigest()
SOURCE = HubSource("someone/texts", "a" * 40)


def listed():
    large = SimpleNamespace(sha256=hashlib.sha256(TRAIN).hexdigest())
    return [
        SimpleNamespace(rfilename="train.csv", size=len(TRAIN), lfs=large, blob_id="of the pointer"),
        SimpleNamespace(rfilename="README.md", size=len(README), lfs=None, blob_id=README_IN_GIT),
    ]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub whose files lie in a folder."""
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / "train.csv").write_bytes(TRAIN)
    (folder / "README.md").write_bytes(README)
    asked = []

    def info(api, repository, revision, files_metadata):
        asked.append((repository, revision, files_metadata))
        return SimpleNamespace(siblings=listed())

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda name, repo_type, revision, allow_patterns: str(folder)
    )
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return SimpleNamespace(folder=folder, asked=asked)


def test_files_as_listed_are_read(hub):
    splits = download_splits(SOURCE)
    assert splits["train"]["text"][:] == ["so good", "so dull"]
    assert hub.asked == [("someone/texts", "a" * 40, True)]


def test_only_the_folder_of_a_source_is_read(hub, monkeypatch):
    inside = hub.folder / "en-nl"
    inside.mkdir()
    (inside / "train.csv").write_bytes(TRAIN)
    (hub.folder / "train.csv").unlink()
    file = SimpleNamespace(
        rfilename="en-nl/train.csv", size=len(TRAIN), lfs=None, blob_id=git_checksum(inside / "train.csv")
    )
    info = SimpleNamespace(siblings=[*listed(), file])
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *arguments, **options: info)
    assert download_splits(replace(SOURCE, folder="en-nl"))["train"]["label"][:] == [1, 0]
    with pytest.raises(DataError, match="has no folder it-pt; try another --revision"):
        download_splits(replace(SOURCE, folder="it-pt"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.csv", TRAIN.replace(b"good", b"gold"), r"train\.csv does not have the checksum that the hub lists"),
        ("README.md", README.replace(b"mit", b"MIT"), r"README\.md does not have the checksum that the hub lists"),
        ("train.csv", TRAIN + b"\n", r"train\.csv has 32 bytes, not 31"),
        ("train.csv", None, r"train\.csv did not arrive"),
    ],
)
def test_others_are_refused_before_they_are_read(hub, monkeypatch, name, content, message):
    monkeypatch.setattr("datasets.load_dataset", lambda *arguments: pytest.fail("it was read"))
    (hub.folder / name).unlink() if content is None else (hub.folder / name).write_bytes(content)
    with pytest.raises(DataError, match=f"someone/texts at {'a' * 40}: {message}"):
        download_splits(SOURCE)


def test_git_names_files_so(tmp_path):
    (tmp_path / "a").write_bytes(TRAIN)
    said = subprocess.run(["git", "hash-object", "a"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert git_checksum(tmp_path / "a") == said.stdout.strip()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"rfilename": "../thesis.tex", "size": 1}, r"the hub lists '\.\./thesis\.tex', no name within a folder"),
        ({"rfilename": "/etc/passwd", "size": 1}, r"the hub lists '/etc/passwd', no name within a folder"),
        ({"rfilename": "a.csv", "size": None}, r"the hub lists a\.csv without a size"),
        ({"rfilename": "a.csv", "size": 1 << 40}, r"1,099,511,627,776 bytes, more than 8,589,934,592"),
    ],
)
def test_a_hostile_list_is_refused_before_anything_is_downloaded(hub, monkeypatch, file, message):
    siblings = [SimpleNamespace(**file, lfs=None, blob_id="")]
    monkeypatch.setattr(
        huggingface_hub.HfApi, "dataset_info", lambda *args, **options: SimpleNamespace(siblings=siblings)
    )
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *args, **options: pytest.fail("it was downloaded"))
    with pytest.raises(DataError, match=message):
        download_splits(SOURCE)


def test_nothing_listed_is_nothing_wrong(tmp_path):
    check_files(tmp_path, [], "nothing")


def out_of_reach(*args, **kwargs):
    raise ConnectionError("no route to host\nand a long story of how it was tried")


@pytest.mark.parametrize("function", [resolve, download_splits])
def test_a_hub_out_of_reach_is_one_sentence_that_says_what_would_do(monkeypatch, function):
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", out_of_reach)
    with pytest.raises(DataError, match=r"^someone/texts at main could not be fetched \(no route to host\); fetch it"):
        function(HubSource("someone/texts", "main"))


@pytest.mark.parametrize(("missing", "function"), [("huggingface_hub", resolve), ("datasets", download_splits)])
def test_without_the_hubs_packages(monkeypatch, missing, function):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"fetching someone/texts.*heedful\[hf\]"):
        function(HubSource("someone/texts", "main"))


def test_a_branch_is_resolved_to_its_commit(monkeypatch):
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *a, revision: SimpleNamespace(sha=revision * 2))
    assert resolve(HubSource("someone/texts", "ab")) == HubSource("someone/texts", "abab")


def test_files_that_are_no_dataset(hub, monkeypatch):
    monkeypatch.setattr("datasets.load_dataset", out_of_reach)
    with pytest.raises(DataError, match="could not be fetched"):
        download_splits(SOURCE)
