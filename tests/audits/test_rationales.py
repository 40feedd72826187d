import numpy as np
import pytest

from heedful.audits.human_labels import marked_percent, plausibility, rationale_of
from heedful.errors import DataError
from tests.audits.constructed import passages


def test_the_right_words_have_the_best_scores():
    some = passages(3, lengths=(5,))
    rationales = {0: [0, 1, 0, 0, 0], 1: [0, 0, 0, 0, 0]}
    rankings = {"right": [np.array([0.0, 1.0, 0.2, 0.1, 0.3])] * 3, "flat": [np.ones(5)] * 3}
    found = plausibility(some, rankings, rationales, marked_percent(some, rationales))
    np.testing.assert_array_equal(found["token f1/right"], [1, np.nan, np.nan])
    np.testing.assert_array_equal(found["auprc/right"], [1, np.nan, np.nan])
    assert np.isnan(found["auprc/flat"]).all()


def test_a_cut_text_keeps_the_first_of_its_rationale():
    (passage,) = passages(1)
    with pytest.raises(DataError, match="text 0 has 5 words, but its rationale has 6"):
        rationale_of(passage, {0: [True] * 6})
    with pytest.raises(DataError, match="its rationale has 4"):
        rationale_of(passage, {0: [True] * 4})
    assert rationale_of(passage, {}) is None


def test_rationales_without_a_mark_are_an_error():
    with pytest.raises(DataError, match="none of a text in this audit has a marked word"):
        marked_percent(passages(1), {0: [False] * 5})
