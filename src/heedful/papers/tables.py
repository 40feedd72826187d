"""Small things that tables and figures of any paper are made of."""

import math
from collections.abc import Sequence

from heedful.measure.uncertainty import Estimate
from heedful.papers.finding import Line, Value


def exactly(value: float) -> Estimate:
    """A number that has no uncertainty: a count, or something derived.

    >>> exactly(3.0).high
    3.0
    """
    return Estimate(value, value, value, 1)


def curve(label: str, x: Sequence[float], estimates: Sequence[Estimate], group: str = "") -> Line:
    """A line through estimates, with their intervals.

    >>> curve("H", (0.0, 1.0), (exactly(0.5), exactly(0.25))).y
    (0.5, 0.25)
    """
    y, low, high = (tuple(getattr(e, part) for e in estimates) for part in ("value", "low", "high"))
    return Line(label, tuple(x), y, low, high, group)


def extremes(name: str, values: Sequence[Value]) -> tuple[Value, Value]:
    """`name, lowest` and `name, highest`: what a claim about all of them is judged by; those that are NaN stand aside.

    >>> [v.name for v in extremes("tau", (Value("a", exactly(1.0)), Value("b", exactly(0.0))))]
    ['tau, lowest', 'tau, highest']
    """
    known = [value for value in values if not math.isnan(value.estimate.value)] or values
    low, high = (choose(known, key=lambda v: v.estimate.value) for choose in (min, max))
    return Value(f"{name}, lowest", low.estimate), Value(f"{name}, highest", high.estimate)
