import numpy as np
import pytest

from heedful.attribution.interface import Passage
from heedful.audits.human_labels import alignment_errors, output_words
from heedful.audits.result import find
from heedful.config import AuditSettings
from heedful.data.parallel import Alignment
from heedful.errors import DataError


def outputs(text, n, words=3):
    special = (True, *(False,) * words, True)
    named = tuple(f"w{i}" for i in range(words + 2))
    pieces = tuple(range(words + 2))
    return [Passage(text, named, special, pieces, pieces, target=1, before=tuple(range(2 * t + 1))) for t in range(n)]


def test_output_words_are_counted_in_each_text():
    both = [*outputs(3, 2), *outputs(1, 3)]
    assert [output_words(both)[p.text, len(p.before)] for p in both] == [0, 1, 0, 1, 2]


@pytest.mark.parametrize("include_special", [False, True])
def test_links_to_the_highest_source_word(include_special):
    some = [*outputs(0, 3), *outputs(1, 2)]
    gold = {0: Alignment.of([(0, 0), (1, 1)], [(2, 2)]), 1: Alignment.of([(2, 0), (0, 1)])}
    tops = np.array([0.0, 1.0, 2.0, 2.0, 1.0]) + include_special
    settings = AuditSettings(include_special=include_special)
    found = alignment_errors(some, {"top/mean": tops, "tau/mean/gradient": tops}, gold, output_words(some), settings)
    # A = 5 links, S = 4; three of them are sure and four possible.
    assert find(found, "aer", "mean").value == pytest.approx(1 - (3 + 4) / (5 + 4))
    assert find(found, "aer", "random order").value == pytest.approx(1 - (4 / 3 + 5 / 3) / 9)


def test_words_that_were_not_asked_about_are_no_errors():
    some = outputs(0, 3)
    gold = {0: Alignment.of([(0, 0), (1, 1), (2, 2)])}
    found = alignment_errors(some[1:2], {"top/mean": np.array([1.0])}, gold, output_words(some), AuditSettings())
    assert find(found, "aer", "mean").value == 0


def test_a_special_word_or_no_order_makes_no_link():
    some = outputs(0, 2)
    gold = {0: Alignment.of([(0, 0)])}
    settings = AuditSettings(include_special=True)
    found = alignment_errors(some, {"top/mean": np.array([0.0, np.nan])}, gold, output_words(some), settings)
    assert find(found, "aer", "mean").value == 1


def test_links_of_other_texts_are_an_error():
    some = outputs(0, 1)
    with pytest.raises(DataError, match="none of a text in this audit"):
        alignment_errors(some, {}, {7: Alignment.of([(0, 0)])}, output_words(some), AuditSettings())
