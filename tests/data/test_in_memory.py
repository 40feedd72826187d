import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest

from heedful.data.in_memory import tables_in_memory
from heedful.data.loading import open_data
from heedful.errors import DataError

TEXTS, LABELS = ["so good", "so dull"], [1, 0]
COLUMNS = {"text": TEXTS, "label": LABELS}


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pl.LazyFrame(COLUMNS),
        datasets.Dataset.from_dict(COLUMNS),
        COLUMNS,
        [dict(zip(COLUMNS, row, strict=True)) for row in zip(TEXTS, LABELS, strict=True)],
        (TEXTS, LABELS),
        [TEXTS, LABELS],
        (TEXTS, np.array(LABELS)),
        (pd.Series(TEXTS), pd.Series(LABELS)),
        (tuple(TEXTS), tuple(LABELS)),
        list(zip(TEXTS, LABELS, strict=True)),
        [["so good", np.int64(1)], ["so dull", np.int64(0)]],
    ],
    ids=lambda data: type(data).__name__,
)
def test_the_same_table(data):
    (table,) = tables_in_memory(data).values()
    assert table.columns == COLUMNS
    assert table.where(1).endswith(": row 1")


def test_texts_alone_and_pairs_of_texts():
    for texts in (TEXTS, tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS), pl.Series(TEXTS)):
        assert tables_in_memory(texts)["train"].columns == {"text": TEXTS}
    pairs = ([("a man", "a person"), ("a cat", "a dog")], ["yes", "no"])
    assert tables_in_memory(pairs)["train"].columns == {
        "text": ["a man", "a cat"],
        "text_b": ["a person", "a dog"],
        "label": ["yes", "no"],
    }


def test_what_pandas_calls_missing_is_missing_and_categories_keep_their_order():
    frame = pd.DataFrame({"text": ["a", None], "label": pd.Categorical(["low", "high"], ["low", "high"])})
    table = tables_in_memory(frame)["train"]
    assert table.columns["text"] == ["a", None]
    assert table.classes["label"] == ("low", "high")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (7, "not from a int"),
        ({}, "not from a dict"),
        ([], "the list has no rows"),
        (pd.DataFrame({"text": []}), "the DataFrame has no rows"),
        ({"text": ["a", "b"], "label": [1]}, "the columns differ in length: 'text' 2, 'label' 1"),
        ((["a", "b"], [1]), "2 texts, but 1 labels"),
        (["a", 5], "item 1 of the list is of type int"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "several columns 'text'"),
    ],
)
def test_what_is_no_table(data, said):
    with pytest.raises(DataError, match=said):
        tables_in_memory(data)


def test_a_study_takes_them_too():
    rows = [(f"so good {i}", "good") for i in range(10)] + [(f"so dull {i}", "bad") for i in range(10)]
    corpora = [open_data(data) for data in (pd.DataFrame(rows, columns=["text", "label"]), rows)]
    assert [len(corpus.train) for corpus in corpora] == [16, 16]
    assert corpora[0].digest() == corpora[1].digest()
    with pytest.raises(DataError, match="the columns are 'text'; say which holds the label"):
        open_data(["so good", "so dull"])
