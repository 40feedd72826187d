import pytest

from heedful.metrics.statistics import Estimate
from heedful.papers.findings import Finding, Value


def test_a_number_that_was_not_found_is_named_beside_those_that_were():
    with pytest.raises(KeyError, match=r"'b' is not among \['a'\]"):
        Finding(values=(Value("a", Estimate(1.0, 0.0, 2.0, 3)),)).value("b")
