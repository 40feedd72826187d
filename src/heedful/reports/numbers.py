"""Numbers as people read them: 54.3 %, 51–57, 1 h 12 min."""

import math

from heedful.measure.uncertainty import Estimate

NONE = "–"
_SPACE = "\N{NO-BREAK SPACE}"
_FINE = 0.03  # an interval narrower than this would vanish in whole percents


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal; a dash where there is none.

    >>> percent(0.5432), percent(float("nan"))
    ('54.3\\xa0%', '–')
    """
    return NONE if share is None or math.isnan(share) else f"{_signed(share, 1)}{_SPACE}%"


def interval(estimate: Estimate) -> str:
    """The ends of an interval in percent, whole unless it is narrow; a dash where there is none.

    >>> interval(Estimate(0.54, 0.51, 0.57, 90)), interval(Estimate(0.54, 0.531, 0.549, 9000))
    ('51–57', '53.1–54.9')
    >>> interval(Estimate(0.05, -0.06, 0.21, 2))
    '−6 to 21'
    """
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return NONE
    digits = 1 if estimate.high - estimate.low < _FINE else 0
    low, high = _signed(estimate.low, digits), _signed(estimate.high, digits)
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def duration(seconds: float | int) -> str:
    """Seconds as a person says them.

    >>> duration(4.5), duration(312), duration(4321)
    ('5 s', '5 min 12 s', '1 h 12 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _signed(share: float, digits: int) -> str:
    """Percent with a true minus sign, and no minus before zero."""
    text = f"{100 * share:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")
