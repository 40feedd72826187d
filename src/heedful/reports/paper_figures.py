"""Draw the figures of a paper: readable in grey, and the same bytes every time.

Lines differ in dash, marker and lightness, not in hue alone; text is drawn as shapes, so that it looks the same
everywhere. The SVG carries no `style`, which a page's Content-Security-Policy would refuse.
"""

import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.figure import Figure as Sheet
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from heedful.errors import DataError
from heedful.papers.findings import Figure, Panel
from heedful.reports.paper_panels import (
    COLOURS,
    INK,
    draw_panel,
    entries_in_a_row,
    entry_inches,
    kinds,
    panel_inches,
    words,
)
from heedful.reports.paper_tables import one_line
from heedful.storage.atomic_files import write_atomically, write_text


def tidied(svg: str, title: str) -> str:
    """The same drawing with a title, short names, and each `style` as attributes of its element."""
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>\s*", "", svg)
    svg = re.sub(r'\bstyle="([^"]*)"', lambda match: _attributes(match[1]), svg)
    svg = re.sub(r'\b([dxy]|points)="([^"]*)"', lambda match: f'{match[1]}="{_rounded(match[2])}"', svg)
    names: dict[str, str] = {}  # matplotlib's are digests of coordinates, to the last bit
    svg = re.sub(r'(?<=["#])\w*[0-9a-f]{10}(?=[")])', lambda name: names.setdefault(name[0], f"s{len(names)}"), svg)
    start, root, rest = svg.partition("<svg ")
    attributes, _, content = rest.partition(">")
    joints = 'stroke-linejoin="round" stroke-linecap="butt"'
    return f"{start}{root}{joints} {attributes}>\n <title>{escape(title)}</title>{content}"


def _rounded(coordinates: str) -> str:
    """Places to a hundredth of a point, which is less than anyone sees, and half the bytes.

    >>> _rounded("M 12.345678 -0.004 L 7 8.500000")
    'M 12.35 0 L 7 8.5'
    """
    return re.sub(
        r"-?\d+\.\d+", lambda number: f"{round(float(number[0]), 2) + 0.0:.2f}".rstrip("0").rstrip("."), coordinates
    )


def _attributes(declarations: str) -> str:
    pairs = (part.split(":", 1) for part in declarations.split(";") if part.strip())
    return " ".join(f'{name.strip()}="{value.strip()}"' for name, value in pairs)


_PANELS_IN_A_ROW = 3
_SHARED = len(COLOURS)  # so many kinds of line share one legend; of more, each panel has its own
_LEGEND_LINE = 0.2  # inches, as all lengths here
_DPI = 200
_STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.xmargin": 0.03,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.07,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.columnspacing": 1.5,
    "legend.handlelength": 3.2,
    "svg.fonttype": "path",
    "svg.hashsalt": "heedful",
    "text.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


def draw_figure(figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Draw a figure as `name`.svg and `name`.png in a folder; returns their paths."""
    if not re.fullmatch(r"\w[\w.-]*", figure.name):
        raise DataError(f"figure name {figure.name!r} cannot name a file; letters, digits, '.', '_' and '-' can")
    svg, png = folder / f"{figure.name}.svg", folder / f"{figure.name}.png"
    write_text(svg, figure_svg(figure))
    with _plainly():
        sheet = _sheet(figure)
        write_atomically(png, lambda p: sheet.savefig(p, format="png", dpi=_DPI, metadata={"Software": None}))
    return svg, png


def figure_svg(figure: Figure) -> str:
    """The figure as SVG, the same text each time.

    >>> from heedful.papers.findings import Line
    >>> figure = Figure("a", "A line", (Panel("", lines=(Line("y", (0.0, 1.0), (1.0, 2.0)),)),))
    >>> figure_svg(figure) == figure_svg(figure), figure_svg(figure).count("style")
    (True, 0)
    """
    stream = io.StringIO()
    with _plainly():
        _sheet(figure).savefig(stream, format="svg", dpi=_DPI, metadata={"Date": None})
    return tidied(stream.getvalue(), one_line(figure.title))


@contextmanager
def _plainly() -> Iterator[None]:
    """Our style, whatever the user's own; a letter that the font lacks is a box, not a warning."""
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def _sheet(figure: Figure) -> Sheet:
    """All panels, with one legend below them all; or one below each where there are too many kinds of line for one."""
    _check(figure)
    rows = math.ceil(len(figure.panels) / _PANELS_IN_A_ROW)
    columns = math.ceil(len(figure.panels) / rows)
    sizes = [panel_inches(panel, alone=len(figure.panels) == 1) for panel in figure.panels]
    widths = [max(width for width, _ in sizes[column::columns]) for column in range(columns)]
    heights = [max(height for _, height in sizes[row * columns : (row + 1) * columns]) for row in range(rows)]
    together = len(kinds(figure.panels)) <= _SHARED
    groups = [figure.panels] if together else [(panel,) for panel in figure.panels]
    across = 1 if together else columns
    width = max(sum(widths), across * max(entry_inches(kinds(group)) for group in groups))
    entries = [entries_in_a_row(kinds(group), width / across) for group in groups]
    lines = [math.ceil(len(kinds(group)) / each) for group, each in zip(groups, entries, strict=True)]
    legends = _LEGEND_LINE * max(lines) * (1 if together else rows)
    sheet = Sheet(figsize=(width, sum(heights) + legends), layout="constrained")
    grid: dict[str, Any] = {"squeeze": False, "width_ratios": widths, "height_ratios": heights}
    parts = [sheet] if together else sheet.subfigures(rows, columns, **grid).ravel()
    for part, panels, each in zip(parts, groups, entries, strict=False):
        axes = sheet.subplots(rows, columns, **grid).ravel() if together else [part.subplots()]
        _draw_panels(part, axes, panels, each)
    sheet.draw_without_rendering()
    sheet.set_layout_engine("none")
    for ax in sheet.axes:  # each process computes the layout again, and not to the last bit
        left, bottom, width, height = (round(length, 6) for length in ax.get_position(original=True).bounds)
        ax.set_position((left, bottom, width, height))
    return sheet


def _draw_panels(part: Sheet | SubFigure, axes: Any, panels: Sequence[Panel], each: int) -> None:
    """Panels and the legend of their lines, `each` entries in a row; a kind of line looks the same in all of them."""
    names = kinds(panels)
    handles: dict[str, Line2D] = {}
    for ax, panel in zip(axes, panels, strict=False):
        draw_panel(ax, panel, names, handles)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    drawn = [name for name in names if name in handles]
    if drawn:
        labels = [words(name) for name in drawn]
        part.legend([handles[name] for name in drawn], labels, loc="outside lower center", ncols=each)


def _check(figure: Figure) -> None:
    if not figure.panels:
        raise DataError(f"figure {figure.name!r} has no panels")
    for panel in figure.panels:
        where = f"figure {figure.name!r}, panel {panel.title!r}"
        if panel.matrix and (panel.lines or panel.points or panel.marks):
            raise DataError(f"{where}: a panel has lines, points and marks, or a matrix, not both")
        for cloud in panel.points:
            if len(cloud.x) != len(cloud.y):
                raise DataError(f"{where}: points {cloud.label!r} have {len(cloud.x)} x and {len(cloud.y)} y")
        for line in panel.lines:
            lengths = [len(line.x), len(line.y), *(len(end) for end in (line.low, line.high) if end)]
            if len(set(lengths)) > 1 or bool(line.low) != bool(line.high):
                raise DataError(
                    f"{where}: line {line.label!r} has {len(line.x)} x, {len(line.y)} y, {len(line.low)} low and "
                    f"{len(line.high)} high; it needs as many of each, or no interval"
                )
        shape = len(panel.matrix), len(panel.matrix[0]) if panel.matrix else 0
        if any(len(row) != shape[1] for row in panel.matrix) or (panel.matrix and not shape[1]):
            raise DataError(f"{where}: the rows of a matrix must be equally long, and hold something")
        for labels, size, of in zip((panel.row_labels, panel.column_labels), shape, ("rows", "columns"), strict=True):
            if labels and len(labels) != size:
                raise DataError(f"{where}: {len(labels)} labels for {size} {of}")
