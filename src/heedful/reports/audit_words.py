"""How an audit's numbers and names are written for people."""

import math
import re

from heedful.measure.uncertainty import Estimate
from heedful.reports.numbers import NONE
from heedful.reports.paper_tables import written

QUERIES = {
    "first": "from the first place, where a classification token stands",
    "last": "from the last place, where the prediction is read",
    "mean": "from all places, averaged",
    "only": "from the one place that it has",
    "": "as it was given",
}


def quantity_name(quantity: str) -> str:
    """A quantity, or what a comparison is about, as a reader knows it.

    >>> quantity_name("auprc"), quantity_name("tau with gradient"), quantity_name("sufficiency")
    ('AUPRC', 'τ with gradient', 'sufficiency')
    """
    known = {"tau": "τ", "token f1": "token F1", "auprc": "AUPRC", "aer": "alignment error rate"}
    first, between, rest = quantity.partition(" with ")
    return known.get(first, first) + between + rest


def decimal(value: float | None, digits: int = 3) -> str:
    """A number with a true minus sign; a dash where there is none.

    >>> decimal(-0.12345), decimal(None)
    ('−0.123', '–')
    """
    return NONE if value is None else written(value, digits)


def ends(estimate: Estimate | None, digits: int = 3) -> str:
    """The interval alone.

    >>> ends(Estimate(0.31, 0.25, 0.372, 40)), ends(Estimate(0.31, -0.1, 0.372, 40), 2), ends(None)
    ('0.250–0.372', '−0.10 to 0.37', '–')
    """
    if estimate is None or math.isnan(estimate.value):
        return NONE
    low, high = decimal(estimate.low, digits), decimal(estimate.high, digits)
    return f"{low}{' to ' if '−' in low + high else '–'}{high}"


def with_ends(estimate: Estimate | None, digits: int = 3) -> str:
    """A mean and its interval; a dash where nothing was measured.

    >>> with_ends(Estimate(0.31, 0.25, 0.372, 40)), with_ends(None)
    ('0.310 (0.250–0.372)', '–')
    """
    between = ends(estimate, digits)
    return NONE if estimate is None or between == NONE else f"{decimal(estimate.value, digits)} ({between})"


def p_value(p: float) -> str:
    """A p-value; small ones are only said to be small.

    >>> p_value(0.03456), p_value(0.00004)
    ('0.035', '<\\xa00.001')
    """
    return "<\N{NO-BREAK SPACE}0.001" if p < 0.001 else decimal(p)


def reason(because: str) -> list[str]:
    """Why a question was answered so, part by part, its intervals as elsewhere on the page.

    >>> reason("τ -0.020 [-0.100, 0.060], asked is more than 0; 54% [51%, 57%] of passages")
    ['τ −0.020 (−0.100 to 0.060), asked is more than 0', '54\\xa0% (51–57) of passages']
    """
    text = re.sub(r"(?<![\w.])-(?=\d)", "−", because)
    text = re.sub(r"\[([−\d.]+)%?, ([−\d.]+)%?\]", _ends, text)
    return re.sub(r"(?<=\d)%", "\N{NO-BREAK SPACE}%", text).split("; ")


def _ends(found: re.Match[str]) -> str:
    return f"({found[1]}{' to ' if '−' in found[0] else '–'}{found[2]})"
