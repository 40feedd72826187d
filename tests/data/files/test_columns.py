import pytest

from heedful.data.files.columns import Examples, class_indices, class_names, examples
from heedful.data.files.tables import MISSING, Table
from heedful.errors import DataError


def table(**columns):
    size = len(next(iter(columns.values()), []))
    return Table("a.csv", columns, list(range(2, size + 2)))


def labelled(*labels):
    return Examples("a.csv", ("x",) * len(labels), labels, tuple(f"a.csv:{i}" for i in range(2, len(labels) + 2)))


@pytest.mark.parametrize(
    "columns",
    [
        {"text": ["good"], "label": ["1"]},
        {"id": ["7"], "Label": ["1"], "Review": ["good"]},
        {"sentiment": ["1"], "anything": ["good"]},
        {"text": ["good"], "score_of_it": ["1"]},
        {"title": ["x"], "text": ["good"], "review": ["y"], "class": ["1"], "rating": ["9"]},
    ],
)
def test_obvious_columns_are_found_and_said(columns):
    found = examples(table(**columns))
    assert (found.texts, found.labels) == (("good",), ("1",))
    assert "texts from column" in found.decisions[0]


def test_named_columns_are_not_guessed():
    found = examples(table(text=["x"], body=["good"], label=["9"], kind=["1"]), "body", "kind")
    assert (found.texts, found.labels, found.decisions) == (("good",), ("1",), ())


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"text": ["a"], "label": ["1"]},
            {"text": "texts"},
            "no column 'texts'; .*'text', 'label'; did you mean 'text'?",
        ),
        ({"text": ["a"], "label": ["1"]}, {"label": "zz"}, "no column 'zz'; .*; name one of them with --label"),
        ({"text": ["a"], "label": ["1"]}, {"text": "text", "label": "text"}, "cannot be both"),
        (
            {"a": ["x"], "b": ["y"]},
            {},
            "columns are 'a', 'b'; say which holds the text with --text and the label with --l",
        ),
        ({"a": ["x"], "b": ["y"], "label": ["1"]}, {}, "say which holds the text with --text"),
        ({}, {}, "there are no columns"),
        ({"text": ["a", None], "label": ["1", "0"]}, {}, r"a\.csv:3: there is no text; column 'text' is null here"),
        (
            {"text": ["a", MISSING], "label": ["1", "0"]},
            {},
            r"a\.csv:3: there is no text; column 'text' is missing here",
        ),
        ({"text": ["a", 5], "label": ["1", "0"]}, {}, r"a\.csv:3: column 'text' holds 5, not a text"),
        (
            {"text": ["a", "\ud800"], "label": ["1", "0"]},
            {},
            r"a\.csv:3: the text holds a NUL or half a surrogate pair",
        ),
        ({"text": ["a", "b"], "label": ["1", " "]}, {}, r"a\.csv:3: there is no label; column 'label' is empty here"),
        ({"text": ["a", "b"], "label": [1, None]}, {}, r"a\.csv:3: there is no label; column 'label' is null here"),
        ({"text": ["a", "b"], "label": [1, [2]]}, {}, r"a\.csv:3: column 'label' holds \[2\], not a label"),
        ({"text": ["a", "b"], "label": [1, 0.5]}, {}, r"a\.csv:3: label '0.5' is not a whole number.*regression"),
        ({"text": ["a", "b"], "label": [1, float("nan")]}, {}, r"a\.csv:3: label 'nan' is not a whole number"),
        ({"text": [" ", ""], "label": ["1", "0"]}, {}, "every text in column 'text' is empty"),
    ],
)
def test_what_is_wrong_is_said(columns, options, message):
    with pytest.raises(DataError, match=message):
        examples(table(**columns), **options)


def test_empty_texts_are_left_out_and_counted():
    found = examples(table(text=["a", "", "b", " \n"] + [""] * 5, label=["1", "0", "0", "1"] + ["1"] * 5))
    assert found.texts == ("a", "b")
    assert found.places == ("a.csv:2", "a.csv:4")
    assert found.decisions[1] == "a.csv: 7 rows with an empty text left out (lines 3, 5, 6, 7, 8, …)"


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["1", "0", "1.0", "0.00"], ("1", "0", "1", "0")),
        ([1, 0.0, 1.0], ("1", "0", "1")),
        ([True, False], ("True", "False")),
        ([" good ", "bad"], ("good", "bad")),
        (["1.5", "v2"], ("1.5", "v2")),
        (["-1", "1"], ("-1", "1")),
    ],
)
def test_labels_become_names(labels, names):
    assert examples(table(text=["x"] * len(labels), label=labels)).labels == names


def test_classes_in_order():
    assert class_names("a.csv", ["10", "9", "-1"], 3) == ("-1", "9", "10")
    assert class_names("a.csv", ["b", "a", "10"], 3) == ("10", "a", "b")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["good"] * 3, "every label is 'good'; a classifier needs at least two classes"),
        ([str(i % 51) for i in range(102)], "51 distinct labels, which looks like a regression or ID column"),
        ([str(i) for i in range(5)], "a label of its own in every row"),
    ],
)
def test_labels_that_are_no_classes(labels, message):
    with pytest.raises(DataError, match=message):
        class_names("a.csv", labels, len(labels))


def test_a_label_never_seen_in_training():
    with pytest.raises(DataError, match=r"a\.csv:3: label 'odd' does not occur in training, which has 'bad', 'good'"):
        class_indices(labelled("good", "odd"), ("bad", "good"))
