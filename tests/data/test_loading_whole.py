from functools import partial

import pytest

from heedful.data.loading import open_data
from heedful.errors import DataError

open_whole = partial(open_data, all_as_test=True)


def test_every_row_is_a_test_text_in_its_order(tmp_path):
    file = tmp_path / "reviews.csv"
    file.write_text("text,label\nso good,good\n,bad\nso dull,bad\nfine,good\n")
    corpus = open_whole(file)
    assert (len(corpus.train), len(corpus.validation)) == (0, 0)
    assert corpus.test.texts == ("so good", "so dull", "fine")
    assert [corpus.labels[i] for i in corpus.test.labels] == ["good", "bad", "good"]
    columns, empty = corpus.decisions
    assert columns.endswith("texts from column 'text', labels from 'label'")
    assert empty.endswith("1 row with an empty text left out (line 3)")
    file.write_text("text,label\nso good,good\n")
    assert open_whole(file).labels == ("good",)


def test_pairs_of_two_files_or_of_a_table(tmp_path):
    (tmp_path / "a.de").write_text("ein\nzwei\n")
    (tmp_path / "a.en").write_text("one\ntwo\n")
    pairs = open_whole(tmp_path / "a.de", tmp_path / "a.en")
    assert (pairs.test.sources, pairs.test.targets) == (("ein", "zwei"), ("one", "two"))
    assert (pairs.source_language, len(pairs.train)) == ("de", 0)
    (tmp_path / "pairs.tsv").write_text("de\ten\nein\tone\n")
    assert open_whole(tmp_path / "pairs.tsv", task="translation").test.targets == ("one",)


def test_a_dataset_without_splits():
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": ["so good", "so dull"], "label": ["good", "bad"]})
    assert open_whole(rows).test.texts == ("so good", "so dull")
    splits = open_whole(datasets.DatasetDict({"train": rows, "validation": rows}))
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (2, 2, 0)


def test_a_file_without_rows(tmp_path):
    (tmp_path / "empty.csv").write_text("text,label\n")
    with pytest.raises(DataError, match="no rows"):
        open_whole(tmp_path / "empty.csv")
