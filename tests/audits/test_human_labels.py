import pytest

from heedful.attribution.interface import Passage
from heedful.audits.human_labels import marked_words
from heedful.errors import DataError


def passage(*words: str, special: int = 0) -> Passage:
    n = len(words)
    return Passage(3, words, tuple(i < special for i in range(n)), tuple(range(n)), tuple(range(n)))


def test_words_are_split_and_joined_anew():
    got = marked_words(
        passage("[CLS]", "Ugly", "dull-", "ish", "film", special=1), ["ugly", "dull", "-ish", "film"], [0, 0, 1, 0]
    )
    assert got.tolist() == [False, True, True, False]


def test_a_passage_that_was_cut_is_shorter():
    assert marked_words(passage("a", "dull"), ["a", "dull", "film"], [0, 1, 1]).tolist() == [False, True]


def test_control_characters_which_tokenisers_drop_are_passed_over():
    """One of ERASER's reviews has a control character for an apostrophe."""
    words, marks = ["i", "don\x12t", "be\u00adlieve", "it"], [0, 1, 0, 1]
    assert marked_words(passage("i", "don", "t", "believe", "it"), words, marks).tolist() == [0, 1, 1, 0, 1]


def test_another_text_is_refused():
    with pytest.raises(DataError, match="text 3: the passage continues with 'bright', the marked text with 'dullfilm'"):
        marked_words(passage("a", "bright"), ["a", "dull", "film"], [0, 1, 1])
    with pytest.raises(DataError, match="3 words, but 2 marks"):
        marked_words(passage("a"), ["a", "dull", "film"], [0, 1])
    with pytest.raises(DataError, match="continues with 'film'"):
        marked_words(passage("a", "film"), ["a"], [1])
