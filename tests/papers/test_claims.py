import math

import pytest

from heedful.metrics.statistics import Estimate
from heedful.papers.claims import Claim, Condition, LedgerEntry


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.2, "holds"), (-0.2, -0.1, "fails"), (-0.1, 0.2, "inconclusive"), (math.nan, math.nan, "inconclusive")],
)
def test_a_lower_bound(low, high, verdict):
    assert Condition("t", "v", lower=0.0).verdict(Estimate((low + high) / 2, low, high, 5)) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(-0.05, 0.05, "holds"), (0.11, 0.2, "fails"), (0.05, 0.2, "inconclusive")]
)
def test_between_two_bounds(low, high, verdict):
    assert Condition("t", "v", -0.1, 0.1).verdict(Estimate((low + high) / 2, low, high, 5)) == verdict


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (("holds", "holds"), "holds"),
        (("holds", "inconclusive"), "inconclusive"),
        (("fails", "inconclusive"), "fails"),
        (("fails", "not run"), "not run"),
    ],
)
def test_a_claim_is_as_strong_as_its_weakest_condition(verdicts, verdict):
    claim = Claim("X1", "p", "s", (Condition("t", "a"), Condition("t", "b")))
    entry = LedgerEntry(claim, "smoke", (None, None), verdicts)
    assert entry.verdict == verdict
    assert entry.to_dict()["verdict"] == verdict


def test_bounds_are_said_in_words():
    assert str(Condition("t", "a", lower=0.0)) == "a > 0"
    assert str(Condition("t", "a", upper=0.5)) == "a < 0.5"
    assert str(Condition("t", "a", -0.1, 0.1)) == "a > -0.1 and < 0.1"
