"""Dots with whiskers, drawn as SVG that takes its colours from the page's style sheet; it needs no script.

One picture is 360 units wide, so that its letters can be read on a telephone; on a desk several stand side by side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heedful.measure.uncertainty import Estimate
from heedful.reports.audit_words import decimal
from heedful.reports.numbers import percent

_WIDTH, _LEFT, _RIGHT = 360, 130, 308  # names stand before the left end of the scale, values after the right
_TOP, _ROW, _APART = 26, 25, 7
_MOST_TICKS = 5
_TINY = 1e-9  # what rounding may have added to a number


@dataclass(frozen=True)
class Mark:
    """One estimate; kind: a class of the style sheet, which also decides the shape (`other` is a square)."""

    estimate: Estimate
    kind: str = ""


@dataclass(frozen=True)
class Line:
    """A row of a picture: a name and what is drawn there, one below the other; the first is also written out."""

    name: str
    marks: tuple[Mark, ...]
    strong: bool = False


@dataclass(frozen=True)
class Scale:
    """From where to where numbers are drawn, and how far its ticks are apart."""

    low: float
    high: float
    step: float
    shares: bool = False

    @classmethod
    def over(cls, lines: Sequence[Line], *, shares: bool = False) -> "Scale":
        """Round numbers around all whiskers, and around 0.

        >>> Scale.over([Line("a", (Mark(Estimate(0.31, 0.25, 0.37, 9)),))])
        Scale(low=0.0, high=0.4, step=0.1, shares=False)
        """
        estimates = [mark.estimate for line in lines for mark in line.marks]
        low = min([0.0, *(estimate.low for estimate in estimates)])
        high = max([0.0, *(estimate.high for estimate in estimates)])
        step = _round_step(high - low)
        first, last = math.floor(low / step + _TINY), max(math.ceil(high / step - _TINY), 1)
        return cls(round(first * step, 12), round(last * step, 12), step, shares)

    def x(self, value: float) -> float:
        """Where a number is drawn."""
        return round(_LEFT + (_RIGHT - _LEFT) * (value - self.low) / (self.high - self.low), 1)

    def ticks(self) -> list[float]:
        """The numbers that are written below."""
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]

    def tick(self, value: float) -> str:
        """A tick as text."""
        digits = max(0, -math.floor(math.log10(self.step) + _TINY))
        return f"{decimal(100 * value, 0)}\N{NO-BREAK SPACE}%" if self.shares else decimal(value, digits)

    def value(self, value: float) -> str:
        """A number as text."""
        return percent(value) if self.shares else decimal(value)


def dots_svg(
    title: str, lines: Sequence[Line], scale: Scale, *, references: Sequence[tuple[float, str]] = ()
) -> Markup:
    """One row per line, on one scale; references: numbers to hold them against, as upright lines with a word.

    >>> line = Line("<b>", (Mark(Estimate(0.3, 0.25, 0.37, 9)),))
    >>> "&lt;b&gt;" in dots_svg("τ", [line], Scale.over([line]))
    True
    """
    bottom = _TOP + _ROW * len(lines) + (14 if references else 0)
    height = bottom + 24
    parts = [
        Markup('<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">').format(
            _WIDTH, height, title
        ),
        Markup('<text class="name" x="0" y="14">{}</text>').format(title),
        *(_tick(scale, value, bottom) for value in scale.ticks()),
        *(_reference(scale, value, word, bottom) for value, word in references),
        *(_line(scale, line, _TOP + _ROW * (i + 0.5)) for i, line in enumerate(lines)),
    ]
    return Markup().join([*parts, Markup("</svg>")])


def _tick(scale: Scale, value: float, bottom: int) -> Markup:
    kind = "axis" if abs(value) < _TINY else "grid"
    return Markup(
        '<line class="{0}" x1="{1}" x2="{1}" y1="{2}" y2="{3}"/>'
        '<text class="soft" x="{1}" y="{4}" text-anchor="middle">{5}</text>'
    ).format(kind, scale.x(value), _TOP, bottom, bottom + 16, scale.tick(value))


def _reference(scale: Scale, value: float, word: str, bottom: int) -> Markup:
    return Markup(
        '<line class="random" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
        '<text class="soft" x="{0}" y="{3}" dx="-4" text-anchor="end">{4}</text>'
    ).format(scale.x(value), _TOP, bottom, bottom - 4, word)


def _line(scale: Scale, line: Line, middle: float) -> Markup:
    offset = _APART * (len(line.marks) - 1) / 2
    drawn = Markup().join(_mark(scale, mark, middle - offset + _APART * i) for i, mark in enumerate(line.marks))
    name = Markup('<text class="{}" x="0" y="{}">{}</text>').format(
        "strong" if line.strong else "", middle + 4, line.name
    )
    value = scale.value(line.marks[0].estimate.value)
    return name + drawn + Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_WIDTH, middle + 4, value)


def _mark(scale: Scale, mark: Mark, y: float) -> Markup:
    x, estimate = scale.x(mark.estimate.value), mark.estimate
    whisker = Markup('<line class="whisker {0}" x1="{1}" x2="{2}" y1="{3}" y2="{3}"/>').format(
        mark.kind, scale.x(estimate.low), scale.x(estimate.high), y
    )
    if mark.kind == "other":
        return whisker + Markup('<rect class="dot {}" x="{}" y="{}" width="7" height="7"/>').format(
            mark.kind, x - 3.5, y - 3.5
        )
    return whisker + Markup('<circle class="dot {}" cx="{}" cy="{}" r="3.5"/>').format(mark.kind, x, y)


def _round_step(span: float) -> float:
    """1, 2 or 5 of some power of ten, so that there are few ticks."""
    least = (span or 1.0) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(least))
    return next(round(factor * power, 12) for factor in (1, 2, 5, 10) if factor * power >= least * (1 - _TINY))
