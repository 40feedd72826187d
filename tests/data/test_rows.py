import datasets
import pytest

from heedful.data.rows import read_rows
from heedful.errors import DataError


def test_labels_are_optional(tmp_path):
    (tmp_path / "a.csv").write_text("id,review\n1,so good\n2,so dull\n3,fine\n4,bad\n5,nice\n")
    rows = read_rows(tmp_path / "a.csv")
    assert rows.texts[:2] == ("so good", "so dull")
    assert rows.labels == (None,) * 5
    (tmp_path / "b.txt").write_text("so good\n\nso dull\n")
    rows = read_rows(tmp_path / "b.txt")
    assert rows.texts == ("so good", "so dull")
    assert "1 row with an empty text left out (line 2)" in rows.decisions[0]


def test_some_labels_may_be_missing_and_numbers_are_whole(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nso good,1.0\nso dull,\nfine,0\n")
    rows = read_rows(tmp_path / "a.csv")
    assert (rows.labels, rows.names) == (("1", None, "0"), ("0", "1"))


def test_labels_that_are_secret_are_unknown():
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    data = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [-1, 1]}, features=features)
    assert read_rows(data).labels == (None, "yes")
    both = datasets.DatasetDict({"train": data, "test": data.select([0])})
    assert [len(read_rows(both, split=split).texts) for split in (None, "train")] == [1, 2]
    with pytest.raises(DataError, match="has no split 'validation'; there are 'train', 'test'"):
        read_rows(both, split="validation")


def test_pairs_are_found_or_named():
    columns = {"premise": ["a"], "hypothesis": ["b"], "gold": ["c"]}
    for text in (None, "premise,hypothesis", ("premise", "hypothesis")):
        rows = read_rows(columns, text=text, label="gold")
        assert (rows.texts, rows.labels) == ((("a", "b"),), ("c",))
    assert read_rows(columns, text="hypothesis").texts == ("b",)


def test_lists_of_words_and_answers():
    rows = read_rows({"tokens": [["Ann", "sings"]], "ner_tags": [["P", "O"]]}, task="token-classification")
    assert (rows.texts, rows.words, rows.labels) == (("Ann sings",), (("Ann", "sings"),), (("P", "O"),))
    squad = {"question": ["who?"], "context": ["Ann sings"], "answers": [{"text": ["Ann"], "answer_start": [0]}]}
    rows = read_rows(squad, task="question-answering")
    assert (rows.texts, rows.labels) == ((("who?", "Ann sings"),), ("Ann",))
    rows = read_rows({"text": ["a"], "labels": ["rude, loud"]}, task="multi-label")
    assert rows.labels == (("rude", "loud"),)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, {}, "say which holds the text with --text"),
        ({"text": ["x"]}, {"text": "txt"}, "there is no column 'txt'; the columns are 'text'; did you mean 'text'"),
        ({"a": ["x"], "b": ["y"]}, {"text": "a,b,a"}, "one text or a pair of two"),
        ({"a": ["x"], "b": ["y"]}, {"text": "a", "label": "a"}, "cannot be both the text and the label"),
        ({"text": [" ", ""]}, {}, "every text in 'text' is empty"),
        ({"text": [["x"]], "label": [1]}, {}, "not a text"),
        ({"text": ["x"], "label": [{"a": 1}]}, {}, "not a label"),
        ({"tokens": [["x"]], "tags": [3]}, {"task": "token-classification"}, "not a list of labels"),
        ({"context": ["x"], "q": ["y"]}, {"task": "question-answering"}, "say which holds the texts with --text A,B"),
    ],
)
def test_what_is_wrong_is_said(columns, options, said):
    with pytest.raises(DataError, match=said):
        read_rows(columns, **options)
