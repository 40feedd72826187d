from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.corpus import (
    EMPTY,
    Corpus,
    Split,
    TokenRules,
    divide,
    eighty_ten_ten,
    require_classes,
    sample,
    stratified_order,
)
from heedful.errors import DataError

CORPUS = Corpus("tiny", ("bad", "good"), Split(("so good", "bad"), (1, 0)), EMPTY, EMPTY)
LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=60)


def test_digest_sees_what_matters_and_nothing_else():
    different = [
        replace(CORPUS, labels=("good", "bad")),
        replace(CORPUS, rules=TokenRules(lower=False)),
        replace(CORPUS, train=Split(("so good", "bad"), (1, 1))),
        replace(CORPUS, train=Split(("bad", "so good"), (0, 1))),
        replace(CORPUS, train=Split(("so goodb", "ad"), (1, 0))),
        replace(CORPUS, train=EMPTY, validation=CORPUS.train),
    ]
    digests = [corpus.digest() for corpus in (CORPUS, *different)]
    assert len(set(digests)) == len(digests)
    same = replace(CORPUS, name="other", licence="MIT", source="here", decisions=("none",))
    assert same.digest() == CORPUS.digest()
    assert len(CORPUS.digest()) == 64


def test_digest_of_half_a_surrogate_pair():
    assert replace(CORPUS, train=Split(("\ud800",), (0,))).digest() != CORPUS.digest()


def test_texts_and_labels_must_pair_up():
    with pytest.raises(ValueError, match="2 texts have 1 labels"):
        Split(("a", "b"), (0,))


@given(LABELS, st.integers(0, 2**32))
def test_order_is_a_permutation(labels, seed):
    order = stratified_order(labels, seed)
    assert sorted(order.tolist()) == list(range(len(labels)))
    assert np.array_equal(order, stratified_order(labels, seed))


@given(LABELS, st.integers(0, 99), st.data())
def test_every_sample_keeps_the_proportions(labels, seed, data):
    size = data.draw(st.integers(0, len(labels)))
    drawn = Counter(labels[i] for i in stratified_order(labels, seed)[:size])
    for label, count in Counter(labels).items():
        assert abs(drawn[label] - count * size / len(labels)) <= len(set(labels)) + 1


@given(LABELS, st.integers(0, 99))
def test_every_class_is_in_the_larger_part(labels, seed):
    split = Split(tuple(map(str, range(len(labels)))), tuple(labels))
    first, second, third = divide(split, [len(labels) * 8 // 10, len(labels) // 10], seed)
    assert sorted(first.texts + second.texts + third.texts) == sorted(split.texts)
    if len(labels) >= 10 * len(set(labels)):
        assert set(first.labels) == set(labels)


def test_the_fixed_order_never_changes():
    assert stratified_order([0, 1, 0, 1, 0, 1], 0).tolist() == [3, 2, 5, 4, 1, 0]
    assert stratified_order([0, 1, 0, 1, 0, 1], 1).tolist() != [3, 2, 5, 4, 1, 0]


def test_sample():
    split = Split(tuple("abcdef"), (0, 0, 0, 0, 1, 1))
    assert sample(split, None, 0) is split
    assert sample(split, 6, 0) is split
    assert sample(split, 3, 0).labels == (0, 0, 1)
    assert sample(split, 0, 0) == EMPTY


def _numbered(labels):
    return Split(tuple(map(str, range(len(labels)))), tuple(labels))


@given(LABELS, st.integers(0, 99), st.data())
def test_a_sample_keeps_every_class(labels, seed, data):
    split = _numbered(labels)
    size = data.draw(st.integers(len(set(labels)), len(labels)))
    drawn = sample(split, size, seed)
    assert len(drawn) == size
    assert set(drawn.labels) == set(labels)
    assert list(drawn.texts) == sorted(drawn.texts, key=int)


@given(LABELS, st.integers(0, 99), st.data())
def test_a_sample_that_has_every_class_is_the_stratified_draw(labels, seed, data):
    split = _numbered(labels)
    drawn = split.take(np.sort(stratified_order(labels, seed)[: data.draw(st.integers(0, len(labels)))]))
    if set(drawn.labels) == set(labels):
        assert sample(split, len(drawn), seed) == drawn


def test_three_rare_rows_of_3003_stay_in_a_sample_of_any_size():
    split = _numbered([0] * 1500 + [1] * 1500 + [2] * 3)
    for size in (3, 48, 256, 2000):
        counts = Counter(sample(split, size, 0).labels)
        assert counts[2] >= 1
        assert abs(counts[0] - counts[1]) <= 1


@given(st.integers(2, 30), st.integers(0, 9))
def test_a_class_of_two_or_more_rows_is_in_training_and_validation(rows, seed):
    labels = [0] * 400 + [1] * rows
    train, validation, test = eighty_ten_ten(_numbered(labels), None, seed)
    assert [len(part) for part in (train, validation, test)] == [
        len(labels) * 8 // 10,
        len(labels) // 10,
        len(labels) - len(labels) * 8 // 10 - len(labels) // 10,
    ]
    assert sorted(train.texts + validation.texts + test.texts, key=int) == list(map(str, range(len(labels))))
    assert set(train.labels) == set(validation.labels) == {0, 1}
    assert Counter(train.labels)[1] >= rows // 2


def test_a_label_without_training_or_validation_texts_is_refused():
    labels = tuple("abcdefghijklmno")
    both = _numbered([*range(15), *range(15)])
    require_classes("fine.csv", labels, both, both)
    with pytest.raises(DataError, match=r"^single.csv: 1 labels; a study needs two or more"):
        require_classes("single.csv", ("a",), _numbered([0, 0]), _numbered([0]))
    with pytest.raises(DataError, match=r"label 'o' has no training text \(.*rarest labels.*o 0 / 2\); give more"):
        require_classes("rare.csv", labels, _numbered(range(14)), both)
    with pytest.raises(DataError, match=r"^rare.csv: 14 labels, 'b' first, have no validation text"):
        require_classes("rare.csv", labels, both, _numbered([0]))
