import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.metrics.agreement import agreement, other_word_agreement, random_agreement, shuffled_agreement

VALUES = st.integers(-3, 3).map(float)
PAIRS = st.lists(
    st.integers(1, 30).flatmap(lambda n: st.tuples(*[st.lists(VALUES, min_size=n, max_size=n)] * 2)),
    min_size=1,
    max_size=6,
)


def brute(u, v, percent=5):
    higher = sum(x > v[int(np.argmax(u))] for x in v)
    return float(higher < Fraction(percent, 100) * len(u))


@given(PAIRS, st.sampled_from([1, 5, 50, 100]))
def test_brute_force(pairs, percent):
    u, v = ([pair[k] for pair in pairs] for k in (0, 1))
    together = agreement(u, v, percent=percent)
    assert together.tolist() == [brute(a, b, percent) for a, b in pairs]
    assert together.tolist() == [agreement(a, b, percent=percent).item() for a, b in pairs]


def test_the_order_of_the_arguments_matters():
    u, v = np.zeros((1, 40)), np.zeros((1, 40))
    u[0, 3], v[0, 3], v[0, 4] = 1, 1, 2
    assert agreement(u, v).item() == 1
    v[0, 5:10] = 3
    assert agreement(u, v).item() == 0
    assert agreement(v, u).item() == 1


@pytest.mark.parametrize("L", [20, 140, 280, 560])
def test_five_percent_is_counted_in_integers(L):
    """0.05 · 140 is 7.000000000000001: a position with exactly 7 above it would wrongly agree."""
    v = np.arange(L, 0, -1.0)
    for above in (L // 20 - 1, L // 20):
        u = np.zeros(L)
        u[above] = 1
        assert agreement(u, v).item() == float(above < L // 20)


def test_ties():
    assert agreement([1.0, 1.0], [0.0, 1.0], return_ties=True) == (np.array([0.0]), 1)  # first of u's maxima
    value, ties = agreement([0.0, 1.0, 0.5], [1.0, 1.0, 0.0], return_ties=True)  # v's tie favours agreement
    assert (value.item(), ties) == (1.0, 1)
    assert agreement([0.0, 1.0], [0.0, 1.0], return_ties=True)[1] == 0


def test_masked_is_removed():
    u, v = [[0.1, 0.9, 5.0]], [[0.1, 0.9, 9.0]]
    assert agreement(u, v, mask=[[True, True, False]]).item() == agreement([0.1, 0.9], [0.1, 0.9]).item() == 1


def test_permutation_of_positions_changes_nothing():
    rng = np.random.default_rng(0)
    u, v, order = rng.normal(size=(50, 37)), rng.normal(size=(50, 37)), rng.permutation(37)
    np.testing.assert_array_equal(agreement(u, v), agreement(u[:, order], v[:, order]))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=5), st.sampled_from([1, 5, 33]))
def test_random_agreement_is_the_mean_over_all_positions(lengths, percent):
    exact = [np.mean([brute(np.eye(L)[i], np.arange(L), percent) for i in range(L)]) for L in lengths if L <= 60]
    ours = [random_agreement([L], percent=percent) for L in lengths if L <= 60]
    np.testing.assert_allclose(ours, exact)
    expected = np.mean([math.ceil(Fraction(percent * L, 100)) / L for L in lengths])
    assert random_agreement(lengths, percent=percent) == pytest.approx(expected)


@given(st.data())
def test_shuffled_agreement_against_the_loop(data):
    rows = data.draw(st.integers(1, 12))
    lengths = data.draw(st.lists(st.sampled_from([2, 21]), min_size=rows, max_size=rows))
    text = data.draw(st.none() | st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    place = data.draw(st.none() | st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    u = [rng.integers(0, 4, size=n).astype(float) for n in lengths]
    v = [rng.integers(0, 4, size=n).astype(float) for n in lengths]
    owner, at = text or list(range(rows)), place or [0] * rows
    expected = []
    for i in range(rows):
        partners = [j for j in range(rows) if lengths[j] == lengths[i] and at[j] == at[i] and owner[j] != owner[i]]
        expected.append(np.mean([brute(u[i], v[j]) for j in partners]) if partners else np.nan)
    np.testing.assert_allclose(shuffled_agreement(u, v, text=text, position=place), expected)


def test_shuffled_agreement_sees_position_bias():
    """Every text looks at its first word: agreement is perfect, and so is that of any pairing."""
    u = np.tile([9.0, *range(30)], (8, 1))
    u[:, 0] = 99
    assert agreement(u, u).mean() == shuffled_agreement(u, u).mean() == 1


def test_many_rows_of_one_length_need_little_memory():
    rows = np.random.default_rng(0).normal(size=(30_000, 12))  # pairing them would take 7 GB
    assert abs(shuffled_agreement(rows, rows).mean() - 1 / 12) < 0.01


def test_no_rows():
    empty = np.empty((0, 3))
    assert agreement(empty, empty).shape == shuffled_agreement(empty, empty).shape == (0,)


def test_refusals():
    with pytest.raises(DataError, match="1 … 100"):
        agreement([1.0], [1.0], percent=0)
    with pytest.raises(DataError, match="at least one row"):
        random_agreement([])
    with pytest.raises(DataError, match="text has shape"):
        shuffled_agreement([[1.0]], [[1.0]], text=[1, 2])


def test_other_words_of_the_sentence_one_by_one():
    rng = np.random.default_rng(0)
    lengths, text, word = [], [], [3, 5, 3, 7, 11, 13, 13, 2, 2]
    for i, (rows, positions) in enumerate([(4, 23), (3, 41), (2, 7)]):
        lengths += [positions] * rows
        text += [i] * rows
    u, v = ([rng.random(n) for n in lengths] for _ in range(2))
    expected = []
    for r in range(len(text)):
        others = [s for s in range(len(text)) if text[s] == text[r] and word[s] != word[r]]
        expected.append(np.mean([brute(u[r], v[s]) for s in others]) if others else np.nan)
    np.testing.assert_allclose(other_word_agreement(u, v, text=text, word=word), expected)
    assert np.isnan(expected[-1])  # a sentence of one word, twice


def test_rows_of_one_sentence_must_be_as_long():
    with pytest.raises(DataError, match="rows of one sentence have 1 and 2 positions"):
        other_word_agreement([[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.0]], text=[0, 0], word=[1, 2])
    with pytest.raises(DataError, match="word has shape"):
        other_word_agreement([[1.0]], [[1.0]], text=[0], word=[1, 2])
