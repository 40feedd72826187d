import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful.errors import DataError
from heedful.metrics.association import association, token_classes, token_counts, token_labels

COUNTS = arrays(np.int64, st.tuples(st.integers(0, 20), st.just(2)), elements=st.integers(0, 60))


def by_the_book(f_minus, f_plus):
    if f_minus + f_plus == 0:
        return "none"
    gamma = (f_plus - f_minus) / (f_plus + f_minus)
    if gamma >= 0.5 and f_plus > 5:
        return "positive"
    if gamma <= -0.5 and f_minus > 5:
        return "negative"
    return "neutral" if abs(gamma) < 0.1 and abs(f_plus - f_minus) < 5 else "none"


@given(COUNTS)
def test_classes_one_by_one(counts):
    assert token_classes(counts).tolist() == [by_the_book(*row) for row in counts.tolist()]


@given(COUNTS)
def test_labels_exchanged(counts):
    np.testing.assert_array_equal(association(counts), -association(counts[:, ::-1]))
    turned = {"positive": "negative", "negative": "positive"}
    assert [turned.get(c, c) for c in token_classes(counts)] == token_classes(counts[:, ::-1]).tolist()


def test_closed_at_one_and_at_the_bounds():
    assert association([[0, 6], [6, 0], [3, 9]]).tolist() == [1, -1, 0.5]
    assert token_classes([[0, 6], [6, 0], [3, 9], [2, 6]]).tolist() == ["positive", "negative", "positive", "positive"]
    assert token_classes([[0, 5], [100, 104], [100, 105]]).tolist() == ["none", "neutral", "none"]


@given(COUNTS)
def test_two_labels_are_a_case_of_many(counts):
    labels = token_labels(counts, threshold=0.75)
    names = {1: "positive", 0: "negative"}
    for label, name in zip(labels.tolist(), token_classes(counts).tolist(), strict=True):
        assert names.get(label, "neither") == (name if name in names.values() else "neither")


def test_counts_of_texts():
    ids, labels = [[4, 1, 1], [1], [0, 4]], [2, 0, 2]
    counts = token_counts(ids, labels, vocabulary=6, classes=3)
    assert counts.shape == (6, 3)
    assert counts.sum() == 6
    assert counts[1].tolist() == [1, 0, 2]
    assert counts[4].tolist() == [0, 0, 2]
    padded = np.array([[4, 1, 1], [1, 9, 9], [0, 4, 9]])
    mask = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0]], dtype=bool)
    np.testing.assert_array_equal(token_counts(padded, labels, mask=mask, vocabulary=6, classes=3), counts)


def test_refusals():
    with pytest.raises(DataError, match=r"shape \(1, 3\)"):
        association([[1, 2, 3]])
    with pytest.raises(DataError, match="0 or more"):
        token_labels([[1, -1, 2]])
    with pytest.raises(DataError, match="a share"):
        token_labels([[1, 2, 3]], threshold=1.5)
    with pytest.raises(DataError, match="2 texts but 1 labels"):
        token_counts([[1], [2]], [0])
    with pytest.raises(DataError, match="token 7 is out of range: ids run from 0 to 4"):
        token_counts([[7]], [0], vocabulary=5)
    with pytest.raises(DataError, match="token -1"):
        token_counts([[-1]], [0])
