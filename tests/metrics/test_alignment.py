import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.parallel import read_alignments
from heedful.data.ragged import Ragged
from heedful.errors import DataError
from heedful.metrics.translation_quality import (
    alignment_scores,
    attention_between_words,
    chance_aer,
    diagonal_links,
    links_from_attention,
)

MIRROR = Path(os.environ.get("HEEDFUL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
GOLD = MIRROR / "word_alignment"
needs_gold = pytest.mark.skipif(
    not GOLD.is_dir(), reason="no mirror: set HEEDFUL_DATA to a folder with word_alignment/"
)
links = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=12)


def test_a_worked_example():
    made = [{(0, 0), (1, 1), (2, 2)}, {(0, 0)}]
    sure = [{(0, 0), (1, 1)}, {(1, 0)}]
    possible = [{(0, 0), (1, 1), (2, 2), (3, 3)}, {(1, 0), (0, 0)}]
    scores = alignment_scores(made, sure, possible)
    assert scores.precision.value == 4 / 4
    assert scores.recall.value == 2 / 3
    assert scores.aer.value == pytest.approx(1 - (2 + 4) / (4 + 3))
    assert scores.per_sentence.tolist() == pytest.approx([1 - (2 + 3) / 5, 1 - (0 + 1) / 2])
    assert scores.aer.low <= scores.aer.value <= scores.aer.high


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(links, links, links), min_size=1, max_size=5))
def test_limits(sentences):
    made, sure, loose = (list(part) for part in zip(*sentences, strict=True))
    possible = [s | p for s, p in zip(sure, loose, strict=True)]
    scores = alignment_scores(made, sure, possible)
    if any(made) or any(sure):
        assert 0 <= scores.aer.value <= 1
    else:
        assert math.isnan(scores.aer.value)
        assert scores.to_dict()["aer"]["value"] is None
    perfect = alignment_scores(sure, sure, possible)
    assert perfect.aer.value == 0 or not any(sure)


@needs_gold
def test_gold_against_itself_and_chance():
    gold = read_alignments(GOLD / "naacl2003" / "enfr.gold")
    sure, possible = [a.sure for a in gold], [a.possible for a in gold]
    assert alignment_scores(sure, sure, possible).aer.value == 0
    everything = alignment_scores(possible, sure, possible)
    assert everything.precision.value == everything.recall.value == 1
    assert everything.aer.value == 0  # possible links cost nothing


def test_chance_is_the_mean_of_random_links():
    rng = np.random.default_rng(0)
    L, T = [3, 7], [5, 2]
    sure = [{(0, 0), (2, 4)}, {(6, 1)}]
    possible = [{(0, 0), (2, 4), (1, 1)}, {(6, 1), (0, 0)}]
    drawn = [
        alignment_scores(
            [{(int(rng.integers(n)), t) for t in range(m)} for n, m in zip(L, T, strict=True)], sure, possible
        ).aer.value
        for _ in range(150)
    ]
    assert chance_aer(sure, L, T, possible) == pytest.approx(np.mean(drawn), abs=0.03)
    with pytest.raises(DataError, match="2 gold sentences"):
        chance_aer(sure, L[:1], T)


def test_links_from_matrices_and_from_rows_agree():
    rng = np.random.default_rng(1)
    matrices = [rng.dirichlet(np.ones(L), size=T) for T, L in ((3, 5), (2, 7), (0, 3))]
    rows = Ragged.of([row for matrix in matrices for row in matrix])
    assert links_from_attention(matrices) == links_from_attention(rows, [3, 2, 0])
    assert links_from_attention([[[0.5, 0.5]]]) == [{(0, 0)}]
    with pytest.raises(DataError, match="5 rows of attention, but 6"):
        links_from_attention(rows, [3, 3])
    with pytest.raises(DataError, match="NaN"):
        links_from_attention(Ragged.of([[math.nan, 1.0]]), [1])
    with pytest.raises(DataError, match="must be"):
        links_from_attention([[0.5, 0.5]])


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 40))
def test_diagonal(L, T):
    found = sorted(diagonal_links(L, T), key=lambda link: link[1])
    assert [t for _, t in found] == list(range(T))
    sources = [s for s, _ in found]
    assert sources == sorted(sources)
    assert min(sources) >= 0
    assert max(sources) < L
    if L == T:
        assert sources == list(range(L))


def test_subwords_become_words():
    alpha = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
    found = attention_between_words(alpha, [-1, 0, 0, 1], [0, 0, -1])
    np.testing.assert_allclose(found, [[0.5, 0.25]])
    np.testing.assert_allclose(attention_between_words(alpha, [0, 1, 2, 3], [0, 1, 2]), alpha)
    with pytest.raises(DataError, match="attention is"):
        attention_between_words(alpha, [0, 1], [0, 1, 2])


def test_no_words_no_links():
    assert links_from_attention(Ragged.of([]), [0, 0]) == [frozenset(), frozenset()]


def test_sentences_must_match():
    with pytest.raises(DataError, match="1 sentences of links, 2 of sure"):
        alignment_scores([set()], [set(), set()])
