import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from heedful.data import hub as module
from heedful.data.catalog import CATALOG, check
from heedful.data.hub import fetch
from heedful.data.loading import open_data
from heedful.errors import DataError

datasets = pytest.importorskip("datasets")
huggingface_hub = pytest.importorskip("huggingface_hub")
table = datasets.Dataset.from_dict


def sst5():
    rows = {
        "text": ["so good", "so-so", "so dull"],
        "label": [4, 2, 1],
        "label_text": ["very positive", "neutral", "negative"],
    }
    return {split: table(rows) for split in ("train", "validation", "test")}


def imdb():
    rows = {"text": ["so\tgood<br />indeed", "so dull\n"], "label": [1, 0]}
    return {"train": table(rows), "test": table(rows), "unsupervised": table({"text": ["x"], "label": [-1]})}


def newsgroups():
    rows = {
        "text": ["Ash bats.\n\nLast words.", "Nice goal.", "Vroom.", "Hurts.", "Bang.", "Orbit.", ""],
        "label": [9, 10, 8, 13, 16, 14, 9],
        "label_text": [
            *("rec.sport.baseball", "rec.sport.hockey", "rec.motorcycles", "sci.med", "talk.politics.guns"),
            *("sci.space", "rec.sport.baseball"),
        ],
    }
    return {"train": table(rows), "test": table(rows)}


def ag_news():
    train = {
        "text": ["War #39;s end", 'Goal, "he" said', "Oil\\price rises", "New chip", "Both"],
        "label": [0, 1, 2, 3, 0],
    }
    test = {"text": ["Peace", "Stocks fall", "Both"], "label": [0, 2, 0]}
    return {"train": table(train), "test": table(test)}


def sms_spam():
    size = 3510
    return {
        "train": table(
            {"sms": [f"message {i}\n" for i in range(size)], "label": [int(i % 9 == 0) for i in range(size)]}
        )
    }


def yelp():
    rows = {"text": ["so\tgood\nindeed", "so-so", "so dull", "so bad"], "label": [4, 2, 1, 0]}
    return {"train": table(rows), "test": table(rows)}


def pairs_of(*languages):
    def splits():
        rows = {"id": ["0", "1"], "translation": [dict.fromkeys(languages, "a\nb"), dict.fromkeys(languages, "c")]}
        return {split: table(rows) for split in ("train", "validation", "test")}

    return splits


HUB = {"sst": sst5, "sst-fine": sst5, "imdb": imdb, "20news-sport": newsgroups, "20news-three": newsgroups}
HUB |= {"ag-news": ag_news, "sms-spam": sms_spam, "yelp": yelp, "iwslt14": pairs_of("de", "en")}
HUB |= {f"news-commentary:{pair}": pairs_of(*pair.split("-")) for pair in ("en-nl", "en-pt", "it-pt")}


def test_every_corpus_of_the_hub_is_tested():
    assert set(HUB) == {name for name, entry in CATALOG.items() if entry.hub}


@pytest.mark.parametrize("name", HUB)
def test_what_is_fetched_loads(name, empty_mirror):
    asked = []
    folder = fetch(name, download=lambda source: asked.append(source) or HUB[name]())
    assert asked == [CATALOG[name].hub]
    assert folder == empty_mirror / CATALOG[name].folder
    assert check(name).ok
    corpus = open_data(name)
    assert corpus.decisions[0] == f"fetched: {CATALOG[name].hub.repository} at {CATALOG[name].hub.revision}"
    assert [path.name for path in empty_mirror.iterdir()] == [folder.name]


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum here")
def test_the_checksum_file_is_one_that_sha256sum_reads(empty_mirror):
    folder = fetch("sst", download=lambda source: sst5())
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, check=True)


def test_contents(empty_mirror):
    for name, rows in HUB.items():
        if name not in ("sst-fine", "20news-three"):
            fetch(name, download=lambda source, rows=rows: rows())
    sst, fine, news = open_data("sst"), open_data("sst-fine"), open_data("20news-sport")
    assert (sst.train.texts, sst.train.labels) == (("so good", "so dull"), (1, 0))
    assert (fine.test.texts, fine.test.labels) == (("so good", "so-so", "so dull"), (4, 2, 1))
    assert news.train.texts == ("Ash bats.\n\nLast words.", "Nice goal.")
    assert open_data("20news-three").train.labels == (0, 1, 2)
    assert (open_data("yelp").train.texts, open_data("yelp").train.labels) == (
        ("so good indeed", "so dull", "so bad"),
        (1, 0, 0),
    )
    assert open_data("iwslt14:en-de").test.targets == ("a b", "c")
    assert open_data("news-commentary:it-pt").validation.sources == ("a b",)
    assert open_data("imdb").train.texts == ("so good<br />indeed", "so dull")
    agency = open_data("ag-news")
    assert (agency.train.texts, agency.train.labels) == (("War 's end", "Oil price rises"), (0, 1))
    assert "train: 1 texts that are also in the test set dropped" in agency.decisions
    assert len(open_data("sms-spam").train) == 3500


def test_the_same_hub_gives_the_same_bytes(empty_mirror):
    def digest():
        folder = fetch("ag-news", force=True, download=lambda source: ag_news())
        return hashlib.sha256((folder / "SHA256SUMS").read_bytes()).hexdigest()

    assert digest() == digest()


def test_what_is_here_is_not_fetched_again(empty_mirror):
    folder = fetch("sst", download=lambda source: sst5())
    (folder / "SHA256SUMS").unlink()  # a folder that somebody else put there
    with pytest.raises(
        DataError, match=r"is there, but sst: sst/stsa\.binary\.train .* or replace the folder with --force"
    ):
        fetch("sst", download=lambda source: pytest.fail("fetched"))
    said = []
    fetch("sst", force=True, revision="main", download=lambda source: sst5(), notify=said.append)
    assert said == [f"the old {folder} is kept as sst.damaged-1"]
    assert fetch("sst-fine", download=lambda source: pytest.fail("fetched")) == folder
    assert open_data("sst").decisions == ("fetched: SetFit/sst5 at main",)
    assert sorted(path.name for path in empty_mirror.iterdir()) == ["sst", "sst.damaged-1"]


def test_force_deletes_nothing_and_follows_no_link(empty_mirror, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.tex").write_text("years of work")
    empty_mirror.mkdir()
    (empty_mirror / "sst").symlink_to(elsewhere)
    fetch("sst", force=True, download=lambda source: sst5())
    assert (elsewhere / "thesis.tex").read_text() == "years of work"
    assert (empty_mirror / "sst.damaged-1").is_symlink()
    assert not (empty_mirror / "sst").is_symlink()
    assert check("sst").ok


@pytest.mark.parametrize("changed", ["2 changed\n", ""])
def test_what_was_fetched_and_is_damaged_is_set_aside_and_fetched_again(empty_mirror, changed):
    folder = fetch("sst", download=lambda source: sst5())
    whole = (folder / "stsa.fine.dev").read_bytes()
    (folder / "stsa.fine.dev").write_text(changed)
    with pytest.raises(DataError, match=r"sst/stsa\.fine\.dev in .* does not have the checksum it should have"):
        open_data("sst")
    said = []
    fetch("sst", download=lambda source: sst5(), notify=said.append)
    assert "stsa.fine.dev" in said[0]
    assert "it is fetched again" in said[0]
    assert (folder / "stsa.fine.dev").read_bytes() == whole
    assert (empty_mirror / "sst.damaged-1" / "stsa.fine.dev").read_text() == changed
    assert check("sst").ok


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": sst5()["train"]}, "has the splits train, not 'validation'"),
        ({"train": table({"sentence": ["a"], "label": [1]})}, "has the columns sentence, label, not 'text'"),
    ],
)
def test_whole_or_not_at_all(empty_mirror, splits, message):
    with pytest.raises(DataError, match=message):
        fetch("sst", download=lambda source: splits)
    assert list(empty_mirror.iterdir()) == []


def test_a_fault_while_replacing_keeps_the_old(empty_mirror, monkeypatch):
    folder = fetch("sst", download=lambda source: sst5())
    before = (folder / "SHA256SUMS").read_bytes()
    with pytest.raises(DataError):
        fetch("sst", force=True, download=lambda source: {"train": sst5()["train"]})
    assert (folder / "SHA256SUMS").read_bytes() == before
    assert [path.name for path in empty_mirror.iterdir()] == ["sst"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rotten-tomatoes", "needs no fetching: it comes with pip install"),
        ("amazon", "amazon is not on the hub; get it from https://"),
        ("imbd", "did you mean 'imdb'"),
    ],
)
def test_what_cannot_be_fetched(name, message, empty_mirror):
    with pytest.raises(DataError, match=message):
        fetch(name)


def test_without_a_network(empty_mirror, monkeypatch):
    def unreachable(*arguments, **options):
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", unreachable)
    with pytest.raises(
        DataError, match=r"^SetFit/sst5 at e51b\w+ could not be fetched \(no route\); fetch it where"
    ) as caught:
        fetch("sst")
    assert "\n" not in str(caught.value)
    assert not empty_mirror.exists()


def test_a_branch_is_resolved_to_its_commit(empty_mirror, monkeypatch):
    class Api:
        def dataset_info(self, repository, revision):
            assert (repository, revision) == ("SetFit/sst5", "main")
            return huggingface_hub.DatasetInfo(id=repository, sha="a" * 40)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(module, "download_splits", lambda source: sst5())
    fetch("sst", revision="main")
    assert open_data("sst").decisions == (f"fetched: SetFit/sst5 at {'a' * 40}",)


def test_a_place_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "file"))
    with pytest.raises(DataError, match="cannot be written"):
        fetch("sst", download=lambda source: sst5())


@pytest.mark.parametrize("failing", [".part", ".damaged-1"])
def test_a_folder_that_cannot_be_moved_is_said_and_the_old_stays(empty_mirror, monkeypatch, failing):
    folder = fetch("sst", download=lambda source: sst5())
    before, rename = (folder / "SHA256SUMS").read_bytes(), Path.rename

    def refuse(path, target):
        if failing == (path.suffix or Path(target).suffix):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(DataError, match=r"sst: cannot be written: .*No space left"):
        fetch("sst", force=True, revision="main", download=lambda source: sst5())
    assert (folder / "SHA256SUMS").read_bytes() == before
    assert [path.name for path in empty_mirror.iterdir()] == ["sst"]


def test_a_mirror_that_cannot_be_written_to(empty_mirror):
    empty_mirror.write_text("a file, not a folder")
    with pytest.raises(DataError, match="sst: cannot be written"):
        fetch("sst", download=lambda source: sst5())
