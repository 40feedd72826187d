"""Colours that stand for numbers, as classes of a style sheet: an audit's page is shaded without a script.

Three ramps of ten steps, told apart by every kind of colour vision: `a` for attention, `p` for importance and for what
is above 0, `n` for what is below 0. The study pages' colours (templates/shades.js).
"""

from collections.abc import Iterator, Mapping

from heedful.reports.template import assets

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
    return f"{assets('page.css')}\n{shade_css()}{assets('audit.css')}"


def shade_css() -> str:
    """A rule for every step of every ramp, by day, by night and on paper; its ink can be read on its ground.

    >>> shade_css().splitlines()[1]
    '.a0 { background: #ffffff; color: #000; }'
    """
    return "\n".join(line for media, ramps in _RAMPS.items() for line in _rules(media, ramps)) + "\n"


def shade(value: float, largest: float, ramp: str = "a") -> str:
    """The class of a number that lies between 0 and the largest.

    >>> shade(0.2, 0.4), shade(0.0, 0.0)
    ('a5', 'a0')
    """
    return f"{ramp}{round(STEPS * min(abs(value) / largest, 1.0)) if largest else 0}"


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
    return dict(_colours(_RAMPS["all"]))


def _rules(media: str, ramps: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    yield f"@media {media} {{"
    for name, (ground, ink) in _colours(ramps):
        yield f".{name} {{ background: {ground}; color: {ink}; }}"
    yield "}"


def _colours(ramps: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, stops in ramps.items():
        for step in range(STEPS + 1):
            ground = _mixed(stops, step / STEPS)
            ink = "#000" if contrast(ground, "#000000") > contrast(ground, "#ffffff") else "#fff"
            yield f"{name}{step}", (ground, ink)


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
