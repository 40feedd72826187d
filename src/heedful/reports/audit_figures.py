"""Dots with whiskers, drawn as SVG that takes its colours from the page's style sheet; it needs no script.

One picture is 360 units wide, so that its letters can be read on a telephone; on a desk several stand side by side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heedful.markup import dot, line
from heedful.measure.uncertainty import Estimate
from heedful.reports.audit_words import decimal
from heedful.reports.numbers import percent

_WIDTH, _LEFT, _RIGHT = 360, 130, 302  # names stand before the left end of the scale, values after the right
_WORD = 48  # what the name of a reference may take
_TOP, _ROW, _APART = 26, 26, 9
_MOST_TICKS = 5
_TINY = 1e-9  # what rounding may have added to a number


@dataclass(frozen=True)
class Mark:
    """One estimate; mark: which of `markup.dot`, the first a disc."""

    estimate: Estimate
    mark: int = 0


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
        """A tick as text; only the last of shares has the sign.

        >>> scale = Scale(0.0, 1.0, 0.5, shares=True)
        >>> [scale.tick(value).replace("\N{NO-BREAK SPACE}", " ") for value in scale.ticks()]
        ['0', '50', '100 %']
        """
        if self.shares:
            return decimal(100 * value, 0) + ("\N{NO-BREAK SPACE}%" if value > self.high - self.step / 2 else "")
        return decimal(value, max(0, -math.floor(math.log10(self.step) + _TINY)))

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
        *(_row(scale, row, _TOP + _ROW * (i + 0.5)) for i, row in enumerate(lines)),
    ]
    return Markup().join([*parts, Markup("</svg>")])


def _tick(scale: Scale, value: float, bottom: int) -> Markup:
    x, kind = scale.x(value), "axis" if abs(value) < _TINY else "grid"
    written = Markup('<text class="soft" x="{}" y="{}" text-anchor="middle">{}</text>')
    return line(kind, x, _TOP, x, bottom) + written.format(x, bottom + 16, scale.tick(value))


def _reference(scale: Scale, value: float, word: str, bottom: int) -> Markup:
    x = scale.x(value)
    beside, anchor = (4, "start") if x < _LEFT + _WORD else (-4, "end")
    written = Markup('<text class="soft" x="{}" y="{}" text-anchor="{}">{}</text>')
    return line("random", x, _TOP, x, bottom) + written.format(x + beside, bottom - 4, anchor, word)


def _row(scale: Scale, row: Line, middle: float) -> Markup:
    offset = _APART * (len(row.marks) - 1) / 2
    drawn = Markup().join(_mark(scale, mark, middle - offset + _APART * i) for i, mark in enumerate(row.marks))
    name = Markup('<text class="{}" x="0" y="{}">{}</text>').format(
        "strong" if row.strong else "", middle + 4, row.name
    )
    value = scale.value(row.marks[0].estimate.value)
    return name + drawn + Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_WIDTH, middle + 4, value)


def _mark(scale: Scale, mark: Mark, y: float) -> Markup:
    low, at, high = (scale.x(end) for end in (mark.estimate.low, mark.estimate.value, mark.estimate.high))
    return line(f"whisker m{mark.mark}", low, y, high, y) + dot(mark.mark, at, y)


def _round_step(span: float) -> float:
    """1, 2 or 5 of some power of ten, so that there are few ticks."""
    least = (span or 1.0) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(least))
    return next(round(factor * power, 12) for factor in (1, 2, 5, 10) if factor * power >= least * (1 - _TINY))
