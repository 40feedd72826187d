from dataclasses import replace

import numpy as np
import pytest

from heedful.data.corpus import Corpus, Split
from heedful.data.vocabulary import BOS, EOS, UNK, Vocabulary
from heedful.errors import DataError
from heedful.papers.meister2021 import data as jain_wallace
from heedful.papers.meister2021.data import RULES, Rules, encode_corpus, word_vectors, words


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch):
    """`encode_corpus("tiny")` of texts of 1 to 12 words under rules of one's own."""

    def of(rules: Rules, **limits):
        texts = tuple(" ".join(f"w{'abcdefghijkl'[k]}" for k in range(n)) for n in range(1, 13))
        split = Split(texts, tuple(n % 2 for n in range(12)))
        corpus = Corpus("tiny", ("a", "b"), split, split, split, decisions=("as it came",))
        monkeypatch.setattr(jain_wallace, "open_data", lambda name: corpus)
        monkeypatch.setitem(RULES, "tiny", rules)
        return encode_corpus.__wrapped__("tiny", **limits)

    return of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Won 4 of 12!", ["won", "qqq", "of", "qqq"]),
        ("a 21st-century snake_case", ["a", "qqq", "century", "snake", "case"]),
        ("-LRB- café -RRB- <BR>naïve<br />", ["café", "naïve"]),
        ("...", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


def test_numbers_can_be_kept():
    assert words("pos3 n10", keep_numbers=True) == ["pos3", "n10"]


def test_sst_has_exactly_the_published_sizes(mirror):
    encoded = encode_corpus("sst")
    assert (len(encoded.train), len(encoded.validation), len(encoded.test)) == (6355, 821, 1725)


def test_20news_is_near_the_published_sizes(mirror):
    encoded = encode_corpus("20news-sport")
    assert abs(len(encoded.train) + len(encoded.validation) - 1426) < 60
    assert abs(len(encoded.test) - 334) < 60
    assert encoded.train.lengths.min() > 6
    assert encoded.train.lengths.max() < 500


def test_length_limits_are_open_and_the_longest_goes_unless_said(tiny):
    assert sorted(tiny(Rules(5, None, 1)).train.lengths) == [6, 7, 8, 9, 10, 11]
    assert sorted(tiny(Rules(5, 9, 1)).train.lengths) == [6, 7, 8]
    assert sorted(tiny(Rules(5, 9, 1), longest=8).train.lengths) == [6, 7]


def test_a_word_has_to_occur_in_enough_training_texts(tiny):
    encoded = tiny(Rules(0, 100, 10))
    assert encoded.vocabulary.words[4:] == ("wa", "wb", "wc")  # in 12, 11 and 10 texts
    assert (encoded.train.ids.values == UNK).any()


def test_there_are_no_ends(tiny):
    encoded = tiny(Rules(0, 100, 1))
    assert not np.isin(encoded.train.ids.values, (BOS, EOS)).any()


def test_splits_are_divided_anew_and_do_not_overlap(tiny):
    pooled = tiny(Rules(0, 100, 1, "pooled"))
    assert len(pooled.test) == 36 // 5
    assert len(pooled.train) + len(pooled.validation) + len(pooled.test) == 36
    assert "as it came" not in pooled.decisions
    fifths = tiny(Rules(0, 100, 1, "fifths"))
    assert (len(fifths.train), len(fifths.validation), len(fifths.test)) == (10, 2, 4)


def test_samples_are_stated(tiny):
    encoded = tiny(Rules(0, 100, 1), max_train=4, max_test=2)
    assert (len(encoded.train), len(encoded.validation), len(encoded.test)) == (4, 2, 2)
    assert "train: 4 of 12 texts sampled, stratified, seed 0" in encoded.decisions
    assert encoded.decisions[0] == "as it came"


def test_it_is_the_same_again():
    first, second = (encode_corpus.__wrapped__("polarity", 30, 10) for _ in range(2))
    assert np.array_equal(first.train.ids.values, second.train.ids.values)
    assert first.vocabulary == second.vocabulary


def test_sentence_pairs_are_refused():
    with pytest.raises(DataError, match="copy-permutation holds sentence pairs"):
        encode_corpus.__wrapped__("copy-permutation")


def test_word_vectors_are_those_of_the_words(mirror):
    vocabulary = Vocabulary.build([["good", "zzxxqq", "bad"]], 1)
    known, vectors = word_vectors(vocabulary)
    assert [vocabulary.words[i] for i in known] == ["bad", "good"]
    assert vectors.shape == (2, 100)
    swapped = replace(vocabulary, words=(*vocabulary.words[:4], "good", "bad"))
    assert np.array_equal(word_vectors(swapped)[1], vectors[::-1])


def test_missing_and_changed_vectors_are_clear_errors(empty_mirror):
    with pytest.raises(DataError, match="there are no word vectors; point HEEDFUL_DATA"):
        word_vectors(Vocabulary.build([["good"]], 1))
    path = empty_mirror / jain_wallace.VECTORS
    path.parent.mkdir(parents=True)
    path.write_bytes(b"other")
    with pytest.raises(DataError, match="not the checksum"):
        word_vectors(Vocabulary.build([["good"]], 1))
