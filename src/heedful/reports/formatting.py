"""Numbers as people read them: 54.3 %, 51–57, 1 h 12 min."""

import math
import re

from heedful.html import symbol
from heedful.metrics.statistics import Estimate

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


def written(value: float, digits: int) -> str:
    """A number with a true minus sign and no minus before zero; a dash where there is none.

    >>> written(-0.04, 1), written(-12345.678, 1), written(float("nan"), 1), written(float("-inf"), 1)
    ('0.0', '−12,345.7', '–', '−∞')
    """
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if round(value, digits) == 0 else text.replace("-", "−")


__all__ = ["ANSWERS", "MODEL_TITLES", "symbol"]

MODEL_TITLES = {
    "standard": "standard model",
    "uniform": "uniform twin",
    "attention-only": "frozen twin",
    "proxy": "bag-of-words proxy",
    "logistic": "logistic regression",
    "lexicon": "IBM Model 1",
}

ANSWERS = {"yes": "yes    ", "no": "no     ", "unclear": "unclear"}


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
