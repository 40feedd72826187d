"""Pictures of an audit for a page of the docs: SVG files that bring their own style."""

from collections.abc import Sequence

from markupsafe import Markup

from heedful.audits.followed import FollowedTraining
from heedful.papers.finding import Figure, Line, Panel
from heedful.reports.audit_grid import HeadGrid
from heedful.reports.audit_sections import Picture
from heedful.reports.audit_shades import shade_colours
from heedful.reports.words import symbol

_STYLE = """
svg { background: #fff; font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
text { fill: #1d1c1a; font-size: 12px; } text.soft { fill: #5a5852; font-size: 11px; }
text.name { font-size: 13px; font-weight: 600; } text.strong { font-weight: 700; }
.grid { stroke: #dcd9d1; } .axis { stroke: #5a5852; } .random { stroke: #5a5852; stroke-dasharray: 5 4; }
.whisker, .dot { stroke-width: 2; } .m0 { stroke: #3a4ca6; } .m1 { stroke: #b3460b; } .m2 { stroke: #0a7068; }
.dot.m0 { fill: #3a4ca6; } .dot.m1 { fill: #fff; } .dot.m2 { fill: #0a7068; }
"""
_WIDTH, _CELL, _ROW, _LEFT, _TOP, _GAP = 360, 42, 24, 62, 46, 8


def side_by_side(pictures: Sequence[Picture]) -> str:
    """Pictures of an audit's page, one beside the other, as a file of its own."""
    heights = [int(picture.svg.split('height="', 1)[1].split('"', 1)[0]) for picture in pictures]
    placed = Markup().join(
        Markup('<g transform="translate({} 8)">{}</g>').format(8 + i * (_WIDTH + 32), _inner(picture.svg))
        for i, picture in enumerate(pictures)
    )
    return _file(len(pictures) * (_WIDTH + 32) - 16, max(heights) + 16, placed)


def grid_picture(grid: HeadGrid) -> str:
    """τ of every head of every layer, blue above 0 and orange below, as a file of its own."""
    colours = shade_colours()
    heads = len(grid.rows[0][1]) - 1
    parts = [Markup('<text class="name" x="0" y="14">τ of every head with {}</text>').format(grid.against)]
    for column in range(heads + 1):
        name = "mean" if column == heads else f"{column + 1}"
        parts.append(_text(_x(column, heads) + _CELL / 2, _TOP - 8, name, "soft"))
    for row, (layer, cells) in enumerate(grid.rows):
        y = _TOP + row * _ROW
        parts.append(Markup('<text x="0" y="{}">{}</text>').format(y + 16, layer))
        for column, cell in enumerate(cells):
            ground, ink = colours[cell.shade]
            parts.append(
                Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}" stroke="#dcd9d1"/>').format(
                    _x(column, heads), y, _CELL - 2, _ROW - 2, ground
                )
            )
            parts.append(_text(_x(column, heads) + _CELL / 2 - 1, y + 16, cell.text, "", ink))
    inner = Markup('<g transform="translate(8 8)">{}</g>').format(Markup().join(parts))
    return _file(_x(heads + 1, heads) + 16, _TOP + _ROW * len(grid.rows) + 16, inner)


def course_figure(name: str, training: FollowedTraining) -> Figure:
    """What training did to accuracy, to where attention goes, and to its agreements."""
    steps = tuple(float(step.step) for step in training.steps)
    accuracy = Line("accuracy", steps, tuple(step.accuracy for step in training.steps))
    special = Line("attention on special tokens", steps, tuple(step.special for step in training.steps))
    entropy = Line(
        "entropy of attention over words",
        steps,
        tuple(step.entropy.value for step in training.steps),
        tuple(step.entropy.low for step in training.steps),
        tuple(step.entropy.high for step in training.steps),
    )
    agreements = tuple(_agreement(training, row.name, steps) for row in training.steps[-1].agreements)
    return Figure(
        name,
        "Through training",
        (
            Panel("The model", lines=(accuracy, special, entropy), x_label="step", y_percent=True),
            Panel(
                "Agreement, with a random word’s dotted",
                lines=agreements,
                x_label="step",
                y_percent=True,
                reference=training.random_agreement,
            ),
        ),
    )


def _agreement(training: FollowedTraining, name: str, steps: tuple[float, ...]) -> Line:
    rows = [step.agreement(name).estimate for step in training.steps]
    return Line(
        symbol(name),
        steps,
        tuple(row.value for row in rows),
        tuple(row.low for row in rows),
        tuple(row.high for row in rows),
    )


def _x(column: int, heads: int) -> int:
    """Where a column begins; the mean stands apart from the heads."""
    return _LEFT + column * _CELL + (_GAP if column >= heads else 0)


def _text(x: float, y: int, words: str, kind: str, ink: str = "") -> Markup:
    style = Markup(' style="fill: {}"').format(ink) if ink else ""
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="middle"{}>{}</text>').format(kind, x, y, style, words)


def _inner(svg: Markup) -> Markup:
    """What stands between the tags of a picture."""
    return Markup(svg.split(">", 1)[1].removesuffix("</svg>"))


def _file(width: int, height: int, inner: Markup) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f"<style>{_STYLE}</style>"
        f'<rect width="{width}" height="{height}" fill="#fff"/>{inner}</svg>\n'
    )
