"""Charts without a script: dots with whiskers as SVG, and shades of colour for numbers.

Colours come from the page's style sheet. A chart is 360 units wide, so that it can be read on a phone; wider screens
show several side by side.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from heedful.html import dot, line
from heedful.metrics.statistics import Estimate
from heedful.reports.html import assets, percent, written

_WIDTH, _LEFT, _RIGHT = 360, 130, 302  # names stand before the left end of the scale, values after the right
_WORD = 48  # what the name of a reference may take
_TOP, _ROW, _APART = 26, 26, 9
_GAUGE, _EDGE = 190, 8
_MOST_TICKS = 5
_SOFT = Markup('<text class="soft" x="{}" y="{}" text-anchor="{}">{}</text>')
_TINY = 1e-9  # what rounding may have added to a number


@dataclass(frozen=True)
class ChartMark:
    """One estimate; mark: which of `markup.dot`, the first a disc."""

    estimate: Estimate
    mark: int = 0


@dataclass(frozen=True)
class ChartLine:
    """A row of a picture: a name and what is drawn there, one below the other; the first is also written out."""

    name: str
    marks: tuple[ChartMark, ...]
    strong: bool = False


@dataclass(frozen=True)
class ChartScale:
    """From where to where numbers are drawn, and how far its ticks are apart."""

    low: float
    high: float
    step: float
    shares: bool = False

    @classmethod
    def over(cls, lines: Sequence[ChartLine], *, shares: bool = False) -> "ChartScale":
        """Round numbers around all whiskers, and around 0.

        >>> ChartScale.over([ChartLine("a", (ChartMark(Estimate(0.31, 0.25, 0.37, 9)),))])
        ChartScale(low=0.0, high=0.4, step=0.1, shares=False)
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

        >>> scale = ChartScale(0.0, 1.0, 0.5, shares=True)
        >>> [scale.tick(value).replace("\N{NO-BREAK SPACE}", " ") for value in scale.ticks()]
        ['0', '50', '100 %']
        """
        if self.shares:
            return written(100 * value, 0) + ("\N{NO-BREAK SPACE}%" if value > self.high - self.step / 2 else "")
        return written(value, max(0, -math.floor(math.log10(self.step) + _TINY)))

    def value(self, value: float) -> str:
        """A number as text."""
        return percent(value) if self.shares else written(value)


@dataclass(frozen=True)
class Picture:
    """A chart and its name."""

    name: str
    svg: Markup


@dataclass(frozen=True)
class ShadedCell:
    """A cell of a table: its text, the class of its colour, and the map that it is about, if any."""

    text: str
    shade: str
    map: str = ""


def dots_svg(
    title: str, lines: Sequence[ChartLine], scale: ChartScale, *, references: Sequence[tuple[float, str]] = ()
) -> Markup:
    """One row per line, on one scale; references: numbers to hold them against, as upright lines with a word.

    >>> line = ChartLine("<b>", (ChartMark(Estimate(0.3, 0.25, 0.37, 9)),))
    >>> "&lt;b&gt;" in dots_svg("τ", [line], ChartScale.over([line]))
    True
    """
    bottom = _TOP + _ROW * len(lines) + (14 if references else 0)
    svg = Markup('<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">')
    parts = [
        svg.format(_WIDTH, bottom + 24, title),
        Markup('<text class="name" x="0" y="14">{}</text>').format(title),
        *(_tick(scale, value, bottom) for value in scale.ticks()),
        *(_reference(scale, value, word, bottom) for value, word in references),
        *(_row(scale, row, _TOP + _ROW * (i + 0.5)) for i, row in enumerate(lines)),
    ]
    return Markup().join([*parts, Markup("</svg>")])


def gauge_svg(title: str, estimate: Estimate, threshold: float) -> Markup:
    """One number with its interval on a line from 0, and the threshold that it is held against.

    >>> 'aria-label="τ"' in gauge_svg("τ", Estimate(0.3, 0.25, 0.37, 9), 0.05)
    True
    """
    ends = (0.0, threshold, estimate.low, estimate.high)
    low, high = min(ends), max(ends)
    x = partial(_at, low, (high - low) or 1.0)
    return Markup(
        '<svg class="gauge" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">{3}</svg>'
    ).format(
        _GAUGE,
        18,
        title,
        Markup().join(
            [
                line("grid", x(low), 9, x(high), 9),
                line("axis", x(0.0), 4, x(0.0), 14),
                line("random", x(threshold), 0, x(threshold), 18),
                line("whisker m0", x(estimate.low), 9, x(estimate.high), 9),
                dot(0, x(estimate.value), 9),
            ]
        ),
    )


def _at(low: float, span: float, value: float) -> float:
    return round(_EDGE + (_GAUGE - 2 * _EDGE) * (value - low) / span, 1)


def _tick(scale: ChartScale, value: float, bottom: int) -> Markup:
    x, kind = scale.x(value), "axis" if abs(value) < _TINY else "grid"
    return line(kind, x, _TOP, x, bottom) + _SOFT.format(x, bottom + 16, "middle", scale.tick(value))


def _reference(scale: ChartScale, value: float, word: str, bottom: int) -> Markup:
    x = scale.x(value)
    beside, anchor = (4, "start") if x < _LEFT + _WORD else (-4, "end")
    return line("random", x, _TOP, x, bottom) + _SOFT.format(x + beside, bottom - 4, anchor, word)


def _row(scale: ChartScale, row: ChartLine, middle: float) -> Markup:
    offset = _APART * (len(row.marks) - 1) / 2
    drawn = Markup().join(_mark(scale, mark, middle - offset + _APART * i) for i, mark in enumerate(row.marks))
    name = Markup('<text class="{}" x="0" y="{}">{}</text>')
    value = scale.value(row.marks[0].estimate.value)
    named = name.format("strong" if row.strong else "", middle + 4, row.name)
    return named + drawn + Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_WIDTH, middle + 4, value)


def _mark(scale: ChartScale, mark: ChartMark, y: float) -> Markup:
    low, at, high = (scale.x(end) for end in (mark.estimate.low, mark.estimate.value, mark.estimate.high))
    return line(f"whisker m{mark.mark}", low, y, high, y) + dot(mark.mark, at, y)


def _round_step(span: float) -> float:
    """1, 2 or 5 of some power of ten, so that there are few ticks."""
    least = (span or 1.0) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(least))
    return next(round(factor * power, 12) for factor in (1, 2, 5, 10) if factor * power >= least * (1 - _TINY))


STEPS = 10

_RAMPS = {
    "all": {
        "a": ("#ffffff", "#d5caf2", "#8d6bd0", "#43207f"),
        "p": ("#ffffff", "#bcd7f0", "#4e93d3", "#11497f"),
        "n": ("#ffffff", "#fdd3a8", "#ef8a2c", "#9a4300"),
    },
    "screen and (prefers-color-scheme: dark)": {
        "a": ("#1c1e25", "#43356f", "#8f70e2", "#e0d6ff"),
        "p": ("#1c1e25", "#1b3f63", "#4089cc", "#c2e2ff"),
        "n": ("#1c1e25", "#5a3512", "#c56f1c", "#ffcb92"),
    },
}


def shaded_style() -> str:
    """The style of a page whose numbers have colours: audits and sweeps."""
    return f"{assets('page.css')}\n{shade_css()}{assets('grid.css', 'audit.css')}"


def shade_css() -> str:
    """A rule for every step of every ramp, by day, by night and on paper; its ink can be read on its ground.

    >>> shade_css().splitlines()[1]
    '.a0 { background: #ffffff; color: #000; }'
    """
    sheets = []
    for media, ramps in _RAMPS.items():
        rules = [f".{k} {{ background: {ground}; color: {ink}; }}\n" for k, (ground, ink) in _colours(ramps).items()]
        sheets.append(f"@media {media} {{\n{''.join(rules)}}}\n")
    return "".join(sheets)


def shade(value: float, largest: float, ramp: str = "a") -> str:
    """The class of a number that lies between 0 and the largest.

    >>> shade(0.2, 0.4), shade(0.0, 0.0)
    ('a5', 'a0')
    """
    return f"{ramp}{round(STEPS * min(abs(value) / largest, 1.0)) if largest else 0}"


def share_shade(share: float, ramp: str = "a") -> str:
    """The class of a share of attention: one square-root scale from 0 to 100 % for all texts of all pages.

    >>> share_shade(0.04), share_shade(0.36), share_shade(1.0)
    ('a2', 'a6', 'a10')
    """
    return shade(math.sqrt(abs(share)), 1.0, ramp)


def signed_shade(value: float, largest: float) -> str:
    """The class of a number on either side of 0.

    >>> signed_shade(0.4, 0.4), signed_shade(-0.2, 0.4)
    ('p10', 'n5')
    """
    return shade(value, largest, "n" if value < 0 else "p")


def contrast(a: str, b: str) -> float:
    """How well one colour can be read on another, from 1 to 21 (WCAG 2).

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def shade_colours() -> dict[str, tuple[str, str]]:
    """The ground and the ink of every class, by day.

    >>> shade_colours()["p10"]
    ('#11497f', '#fff')
    """
    return _colours(_RAMPS["all"])


def _colours(ramps: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, str]]:
    colours = {}
    for name, stops in ramps.items():
        for step in range(STEPS + 1):
            ground = _mixed(stops, step / STEPS)
            ink = "#000" if contrast(ground, "#000000") > contrast(ground, "#ffffff") else "#fff"
            colours[f"{name}{step}"] = ground, ink
    return colours


def _mixed(stops: tuple[str, ...], amount: float) -> str:
    place = amount * (len(stops) - 1)
    i = min(int(place), len(stops) - 2)
    pairs = zip(_channels(stops[i]), _channels(stops[i + 1]), strict=True)
    return "#" + "".join(f"{round(a + (place - i) * (b - a)):02x}" for a, b in pairs)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (n / 255 for n in _channels(colour))]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
