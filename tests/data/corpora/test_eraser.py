import json
from pathlib import Path

import pytest

from heedful.data.catalog import data_directory, open_corpus
from heedful.data.corpora.eraser import is_eraser, read_marked
from heedful.errors import DataError


def laid_out(folder: Path, *rows: dict) -> Path:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "a.txt").write_text("a dull ,\ndull film\n", encoding="utf-8")
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def row(start: int = 1, end: int = 2, name: str = "a.txt") -> dict:
    return {
        "annotation_id": name,
        "classification": "NEG",
        "evidences": [[{"docid": name, "start_token": start, "end_token": end}]],
    }


def test_spans_become_marked_words(tmp_path):
    marked = read_marked(laid_out(tmp_path, row(), row(3, 5)), "test")
    assert marked.texts == ("a dull , dull film",) * 2
    assert marked.labels == ("NEG", "NEG")
    assert marked.mask(0).tolist() == [False, True, False, False, False]
    assert marked.mask(1).tolist() == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(4, 9), r"test\.jsonl:1: the span 4–9 does not lie within the 5 words of 'a\.txt'"),
        (row(3, 2), "the span 3–2"),
        (row(name="b.txt"), "no document 'b.txt'"),
        ({"annotation_id": "a.txt", "classification": "NEG"}, r"test\.jsonl:1: there is no 'evidences'; each line"),
    ],
)
def test_a_bad_row_is_named(tmp_path, bad, said):
    with pytest.raises(DataError, match=said):
        read_marked(laid_out(tmp_path, bad), "test")


def test_a_folder_of_another_kind_is_refused(tmp_path):
    assert not is_eraser(tmp_path)
    with pytest.raises(DataError, match="not laid out as in ERASER"):
        read_marked(tmp_path, "test")
    with pytest.raises(DataError, match="has no val"):
        read_marked(laid_out(tmp_path, row()), "val")
    with pytest.raises(DataError, match="'dev' is not a part"):
        read_marked(tmp_path, "dev")


def test_the_real_reviews(mirror):
    corpus = open_corpus("eraser-movies")
    assert [len(split) for split in (corpus.train, corpus.validation, corpus.test)] == [1600, 200, 199]
    marked = read_marked(data_directory() / "eraser_movies", "test")
    assert marked.texts == corpus.test.texts
    first = marked.texts[0].split()
    assert " ".join(first[40:43]) == "i even giggled"
    assert marked.mask(0)[40:43].all()
    assert 0.2 < sum(marked.mask(i).mean() for i in range(len(marked))) / len(marked) < 0.4
