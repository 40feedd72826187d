"""Figures of a paper: lines with intervals, clouds of points, marks and matrices; the same bytes every time.

Lines differ in dash, marker and lightness, not in hue alone, so that they can be read in grey; text is drawn as shapes,
so that it looks the same everywhere. The SVG carries no `style`, which a page's Content-Security-Policy would refuse.
"""

import io
import math
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, patheffects, style
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.figure import Figure as Sheet
from matplotlib.figure import SubFigure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter

from heedful.errors import DataError
from heedful.papers.findings import Figure, Line, Mark, Panel, Points
from heedful.reports.html import one_line, written
from heedful.storage.atomic_files import write_atomically, write_text

INK, SOFT = "#1b1b1b", "#6b6b6b"
COLOURS = (INK, "#d55e00", "#1f3b8f", "#56b4e9", "#00734d", "#c79a00", "#882255", "#cc79a7")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.3)), (0, (7, 1.6, 1.4, 1.6)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
_MARKERS_ON_A_LINE = 8
_CLOUD = 200  # points from which on a cloud is one image: in an SVG each of them would weigh a hundred bytes
_DARK = 0.2  # luminance below which white stands out more than ink
_SHADES = LinearSegmentedColormap.from_list("shades", colormaps["Blues"](np.linspace(0.03, 0.9, 256)))  # light to dark
_CELL_HEIGHT = 0.3  # inches, as all lengths here
_LEGEND_LINE = 0.2
_LONGEST, _LONGEST_TICK = 60, 24  # letters of a label, and of one at a matrix or a mark; the rest is left out
_WRAP = 34  # letters of a title or of an axis that stand on one line
_LINES = 3
_PANELS_IN_A_ROW = 3
_SHARED = len(COLOURS)  # so many kinds of line share one legend; of more, each panel has its own
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
    return _tidied(stream.getvalue(), one_line(figure.title))


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
    sizes = [_panel_inches(panel, alone=len(figure.panels) == 1) for panel in figure.panels]
    widths = [max(width for width, _ in sizes[column::columns]) for column in range(columns)]
    heights = [max(height for _, height in sizes[row * columns : (row + 1) * columns]) for row in range(rows)]
    together = len(_kinds(figure.panels)) <= _SHARED
    groups = [figure.panels] if together else [(panel,) for panel in figure.panels]
    across = 1 if together else columns
    width = max(sum(widths), across * max(_entry_inches(_kinds(group)) for group in groups))
    entries = [_entries_in_a_row(_kinds(group), width / across) for group in groups]
    lines = [math.ceil(len(_kinds(group)) / each) for group, each in zip(groups, entries, strict=True)]
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
    names = _kinds(panels)
    handles: dict[str, Line2D] = {}
    for ax, panel in zip(axes, panels, strict=False):
        _draw_panel(ax, panel, names, handles)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    drawn = [name for name in names if name in handles]
    if drawn:
        labels = [_words(name) for name in drawn]
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


def _tidied(svg: str, title: str) -> str:
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


def _panel_inches(panel: Panel, *, alone: bool) -> tuple[float, float]:
    """Width and height that a panel needs."""
    more = 0.16 * (_wrapped(panel.title).count("\n") + _wrapped(panel.x_label).count("\n"))
    if not panel.matrix:
        return (4.8, 3.1 + more) if alone else (3.0, 2.4 + more)
    rows, columns = len(panel.matrix), len(panel.matrix[0])
    cell, slanted = _cell_inches(panel), _turned(panel)
    row_label, column_label = (_text_inches(labels) for labels in (panel.row_labels, panel.column_labels))
    beside = 0.35 + max(row_label, 0.8 * column_label - cell / 2 if slanted else 0) + (0.2 if panel.y_label else 0)
    below = (0.65 * column_label if slanted else 0.1) + (0.2 if panel.x_label else 0)
    title = _text_inches(panel.title.splitlines()[:1], _WRAP)
    return beside + max(columns * cell, title, 1.5), 0.5 + more + rows * _CELL_HEIGHT + below


def _cell_inches(panel: Panel) -> float:
    """The width of a cell, enough for its number, and for the labels of the columns where these are few and short."""
    numbers = 0.12 + _text_inches([_in_cell(panel, value) for row in panel.matrix for value in row])
    labels = 0.08 + _text_inches(panel.column_labels)
    return max(0.4, numbers, labels if len(panel.matrix[0]) <= 6 and labels <= 0.8 else 0)


def _turned(panel: Panel) -> bool:
    """Whether the labels of the columns are too long to stand side by side."""
    return 0.05 + _text_inches(panel.column_labels) > _cell_inches(panel)


def _text_inches(texts: Iterable[str], most: int = _LONGEST_TICK) -> float:
    """The width of the widest of these, at 9 points."""
    font, lines = FontProperties(size=9), {one_line(text)[:most] for text in texts}
    return max((text_to_path.get_text_width_height_descent(line, font, False)[0] / 72 for line in lines), default=0.0)


def _in_cell(panel: Panel, value: float) -> str:
    """A number as it stands in a matrix."""
    return written(100 * value if panel.y_percent else value, panel.digits)


def _entries_in_a_row(names: Sequence[str], width: float) -> int:
    """How many entries of a legend stand side by side."""
    return max(1, min(len(names), int((width - 0.1) / _entry_inches(names))))


def _entry_inches(names: Sequence[str]) -> float:
    """The width of a legend's entries."""
    return 0.7 + _text_inches(names, _LONGEST)


def _kinds(panels: Sequence[Panel]) -> list[str]:
    """The kinds of line and of point there are, in the order in which they come."""
    return list(dict.fromkeys(_kind_of(drawn) for panel in panels for drawn in _drawn_in(panel)))


def _drawn_in(panel: Panel) -> list[Line | Points]:
    """The lines and clouds of a panel."""
    return [*panel.lines, *panel.points]


def _kind_of(drawn: Line | Points) -> str:
    """What a line or a cloud is called in the legend."""
    return drawn.group or drawn.label


def _words(text: str, most: int = _LONGEST) -> str:
    """Words for matplotlib: one line, not too long, `$` as it is, and `β^uf` with its superscript."""
    words = one_line(text)
    short = words if len(words) <= most else f"{words[: most - 1]}…"
    return re.sub(r"(?<!\\)\^([^\W_]+)", r"$^{\\mathregular{\1}}$", short.replace("$", r"\$"))


def _wrapped(text: str, width: int = _WRAP) -> str:
    """Words on a few lines."""
    lines = textwrap.wrap(one_line(text), width, max_lines=_LINES, placeholder="…")
    return "\n".join(_words(line) for line in lines)


def _draw_panel(ax: Axes, panel: Panel, names: Sequence[str], handles: dict[str, Line2D]) -> None:
    """Draw all that a panel holds; the first line of each kind goes into `handles`, for a legend."""
    ax.set_title(_wrapped(panel.title))
    ax.set_xlabel(_wrapped(panel.x_label))
    ax.set_ylabel(_wrapped(panel.y_label, _WRAP - 8))
    if panel.matrix:
        _draw_matrix(ax, panel)
        return
    if panel.x_log:
        _log_axis(ax, panel)
    for line in panel.lines:
        name = _kind_of(line)
        drawn = _draw_line(ax, line, names.index(name))
        if name and (name not in handles or not line.faint):
            handles[name] = drawn
    for cloud in panel.points:
        handles[_kind_of(cloud)] = _draw_points(ax, cloud, names.index(_kind_of(cloud)))
    if panel.reference is not None and math.isfinite(panel.reference):
        ax.axhline(panel.reference, color=SOFT, linestyle=(0, (1, 2)), linewidth=1.2, zorder=1)
    ax.xaxis.set_major_formatter(_Ticks(alike=not panel.x_log))
    ax.yaxis.set_major_formatter(_Ticks(percent=panel.y_percent))
    marks = [mark for mark in panel.marks if math.isfinite(mark.x) and math.isfinite(mark.y)]
    _draw_marks(ax, marks)
    if not marks and not any(math.isfinite(y) for drawn in _drawn_in(panel) for y in drawn.y):
        ax.text(0.5, 0.5, "nothing measured", transform=ax.transAxes, ha="center", va="center", color=SOFT)
        ax.set(xticks=[], yticks=[])


def _draw_line(ax: Axes, line: Line, number: int) -> Line2D:
    look, dash = _look(number), _DASHES[number % len(_DASHES)]
    x, y = _finite(line.x), _finite(line.y)
    if line.low and line.high:
        opacity = 0.06 if line.faint else 0.16
        ax.fill_between(
            x, _finite(line.low), _finite(line.high), color=look["color"], alpha=opacity, linewidth=0, zorder=1
        )
    if line.faint:
        light = tuple(0.45 * channel + 0.55 for channel in to_rgb(look["color"]))
        marker = "." if len(x) == 1 else ""
        return ax.plot(x, y, color=light, linestyle=dash, linewidth=0.7, marker=marker, zorder=2)[0]
    every = max(1, math.ceil(len(x) / _MARKERS_ON_A_LINE))
    return ax.plot(x, y, linestyle=dash, linewidth=1.5, markersize=4, markevery=every, zorder=3, **look)[0]


def _draw_points(ax: Axes, cloud: Points, number: int) -> Line2D:
    x, y, image = _finite(cloud.x), _finite(cloud.y), len(cloud.x) >= _CLOUD
    look = _look(number)
    dots: dict[str, Any] = {"linestyle": "none", "markersize": 3, "markeredgewidth": 0, "alpha": 0.55}
    if cloud.large:
        dots |= {"markersize": 5.5, "alpha": 0.85, "clip_on": False}
    if cloud.hollow:
        dots |= {"markerfacecolor": "none", "markeredgewidth": 1.2}
    return ax.plot(x, y, rasterized=image, zorder=2, **dots, **look)[0]


def _look(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}


def _draw_marks(ax: Axes, marks: Sequence[Mark]) -> None:
    """Points with a word beside each, on the side where there is room, and guides to the axes."""
    for mark in marks:
        ax.plot([mark.x], [mark.y], "o", color=INK, markersize=4.5, zorder=5)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for mark in marks:
        if mark.guides:
            guide: dict[str, Any] = {"color": SOFT, "linestyle": (0, (4, 2)), "linewidth": 0.8, "zorder": 1.5}
            ax.plot([mark.x, mark.x], [bottom, mark.y], **guide)
            ax.plot([left, mark.x], [mark.y, mark.y], **guide)
        across, up = ax.transAxes.inverted().transform(ax.transData.transform((mark.x, mark.y)))
        sideways, upwards = (-1 if across > 0.6 else 1), (-1 if up > 0.85 else 1)
        ax.annotate(
            _words(mark.label, _LONGEST_TICK),
            (mark.x, mark.y),
            xytext=(5 * sideways, 4 * upwards),
            textcoords="offset points",
            ha="right" if sideways < 0 else "left",
            va="top" if upwards < 0 else "bottom",
            fontsize=8.5,
            zorder=6,
            path_effects=[patheffects.withStroke(linewidth=2, foreground="white")],
        )
    ax.set(xlim=(left, right), ylim=(bottom, top))


def _draw_matrix(ax: Axes, panel: Panel) -> None:
    values = np.ma.masked_invalid(np.asarray(panel.matrix, dtype=np.float64))
    rows, columns = values.shape
    scale = _scale(values)
    ax.pcolormesh(values, cmap=_SHADES, norm=scale, edgecolors="white", linewidth=1)
    for (row, column), value in np.ndenumerate(values.data):
        dark = math.isfinite(value) and _luminance(_SHADES(scale(float(value)))) < _DARK
        text, colour = _in_cell(panel, value), "white" if dark else INK
        ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=colour, fontsize=8.5)
    ax.invert_yaxis()
    ax.set_box_aspect(rows * _CELL_HEIGHT / (columns * _cell_inches(panel)))
    ax.set_anchor("NW")
    ax.set_xticks(
        np.arange(columns) + 0.5, [_words(label, _LONGEST_TICK) for label in panel.column_labels] or [""] * columns
    )
    ax.set_yticks(np.arange(rows) + 0.5, [_words(label, _LONGEST_TICK) for label in panel.row_labels] or [""] * rows)
    if _turned(panel):
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _scale(values: np.ma.MaskedArray[Any, np.dtype[np.float64]]) -> Normalize:
    """Shares and correlations have one scale in all panels, so that these can be compared; other numbers their own."""
    least, most = (float(values.min()), float(values.max())) if values.count() else (0.0, 1.0)
    if least >= -1 and most <= 1:
        return Normalize(-1 if least < 0 else 0, 1)
    return Normalize(min(least, 0), max(most, 0))


def _luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance of WCAG 2, from 0 for black to 1 for white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _log_axis(ax: Axes, panel: Panel) -> None:
    """Logarithmic; linear below the least positive value where there is a 0, such as the step before training."""
    xs = _finite([*(x for drawn in _drawn_in(panel) for x in drawn.x), *(mark.x for mark in panel.marks)])
    positive = [x for x in xs if x > 0]
    if positive and any(x <= 0 for x in xs):
        ax.set_xscale("symlog", linthresh=min(positive), linscale=0.4)
    else:
        ax.set_xscale("log")


class _Ticks(Formatter):
    """Numbers at an axis as they stand in tables, `alike` with as many decimals each."""

    def __init__(self, *, percent: bool = False, alike: bool = True) -> None:
        self.scale, self.unit = (100.0, "\N{NO-BREAK SPACE}%") if percent else (1.0, "")
        self.alike = alike

    def __call__(self, value: float, pos: int | None = None) -> str:
        return self.format_ticks([value])[0]

    def format_ticks(self, values: Iterable[float]) -> list[str]:
        scaled = [self.scale * float(value) for value in values]
        plain = [np.format_float_positional(round(float(f"{value:.6g}"), 10), trim="-") for value in scaled]
        decimals = [len(text.partition(".")[2]) for text in plain]
        most = max(decimals, default=0)
        return [
            written(value, most if self.alike else own) + self.unit for value, own in zip(scaled, decimals, strict=True)
        ]


def _finite(values: Sequence[float]) -> list[float]:
    return [value if math.isfinite(value) else math.nan for value in values]
