"""One panel of a paper's figure: lines with their intervals, clouds of points, marks with a word each, or a matrix."""

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps, patheffects
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter

from heedful.papers.findings import Line, Mark, Panel, Points
from heedful.reports.html import written
from heedful.reports.paper_tables import one_line

CELL_HEIGHT = 0.3
LONGEST, LONGEST_TICK = 60, 24  # letters of a label, and of one at a matrix or a mark; the rest is left out
WRAP = 34  # letters of a title or of an axis that stand on one line
_LINES = 3


def panel_inches(panel: Panel, *, alone: bool) -> tuple[float, float]:
    """Width and height that a panel needs."""
    more = 0.16 * (wrapped(panel.title).count("\n") + wrapped(panel.x_label).count("\n"))
    if not panel.matrix:
        return (4.8, 3.1 + more) if alone else (3.0, 2.4 + more)
    rows, columns = len(panel.matrix), len(panel.matrix[0])
    cell, slanted = cell_inches(panel), turned(panel)
    row_label, column_label = (text_inches(labels) for labels in (panel.row_labels, panel.column_labels))
    beside = 0.35 + max(row_label, 0.8 * column_label - cell / 2 if slanted else 0) + (0.2 if panel.y_label else 0)
    below = (0.65 * column_label if slanted else 0.1) + (0.2 if panel.x_label else 0)
    title = text_inches(panel.title.splitlines()[:1], WRAP)
    return beside + max(columns * cell, title, 1.5), 0.5 + more + rows * CELL_HEIGHT + below


def cell_inches(panel: Panel) -> float:
    """The width of a cell, enough for its number, and for the labels of the columns where these are few and short."""
    numbers = 0.12 + text_inches([in_cell(panel, value) for row in panel.matrix for value in row])
    labels = 0.08 + text_inches(panel.column_labels)
    return max(0.4, numbers, labels if len(panel.matrix[0]) <= 6 and labels <= 0.8 else 0)


def turned(panel: Panel) -> bool:
    """Whether the labels of the columns are too long to stand side by side."""
    return 0.05 + text_inches(panel.column_labels) > cell_inches(panel)


def text_inches(texts: Iterable[str], most: int = LONGEST_TICK) -> float:
    """The width of the widest of these, at 9 points."""
    font, lines = FontProperties(size=9), {one_line(text)[:most] for text in texts}
    return max((text_to_path.get_text_width_height_descent(line, font, False)[0] / 72 for line in lines), default=0.0)


def in_cell(panel: Panel, value: float) -> str:
    """A number as it stands in a matrix."""
    return written(100 * value if panel.y_percent else value, panel.digits)


def entries_in_a_row(names: Sequence[str], width: float) -> int:
    """How many entries of a legend stand side by side."""
    return max(1, min(len(names), int((width - 0.1) / entry_inches(names))))


def entry_inches(names: Sequence[str]) -> float:
    """The width of a legend's entries."""
    return 0.7 + text_inches(names, LONGEST)


def kinds(panels: Sequence[Panel]) -> list[str]:
    """The kinds of line and of point there are, in the order in which they come."""
    return list(dict.fromkeys(kind_of(drawn) for panel in panels for drawn in drawn_in(panel)))


def drawn_in(panel: Panel) -> list[Line | Points]:
    """The lines and clouds of a panel."""
    return [*panel.lines, *panel.points]


def kind_of(drawn: Line | Points) -> str:
    """What a line or a cloud is called in the legend."""
    return drawn.group or drawn.label


def words(text: str, most: int = LONGEST) -> str:
    """Words for matplotlib: one line, not too long, `$` as it is, and `β^uf` with its superscript."""
    words = one_line(text)
    short = words if len(words) <= most else f"{words[: most - 1]}…"
    return re.sub(r"(?<!\\)\^([^\W_]+)", r"$^{\\mathregular{\1}}$", short.replace("$", r"\$"))


def wrapped(text: str, width: int = WRAP) -> str:
    """Words on a few lines."""
    lines = textwrap.wrap(one_line(text), width, max_lines=_LINES, placeholder="…")
    return "\n".join(words(line) for line in lines)


INK, SOFT = "#1b1b1b", "#6b6b6b"
COLOURS = (INK, "#d55e00", "#1f3b8f", "#56b4e9", "#00734d", "#c79a00", "#882255", "#cc79a7")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.3)), (0, (7, 1.6, 1.4, 1.6)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
_MARKERS_ON_A_LINE = 8
_CLOUD = 200  # points from which on a cloud is one image: in an SVG each of them would weigh a hundred bytes
_DARK = 0.2  # luminance below which white stands out more than ink
_SHADES = LinearSegmentedColormap.from_list("shades", colormaps["Blues"](np.linspace(0.03, 0.9, 256)))  # light to dark


def draw_panel(ax: Axes, panel: Panel, names: Sequence[str], handles: dict[str, Line2D]) -> None:
    """Draw all that a panel holds; the first line of each kind goes into `handles`, for a legend."""
    ax.set_title(wrapped(panel.title))
    ax.set_xlabel(wrapped(panel.x_label))
    ax.set_ylabel(wrapped(panel.y_label, WRAP - 8))
    if panel.matrix:
        _draw_matrix(ax, panel)
        return
    if panel.x_log:
        _log_axis(ax, panel)
    for line in panel.lines:
        name = kind_of(line)
        drawn = _draw_line(ax, line, names.index(name))
        if name and (name not in handles or not line.faint):
            handles[name] = drawn
    for cloud in panel.points:
        handles[kind_of(cloud)] = _draw_points(ax, cloud, names.index(kind_of(cloud)))
    if panel.reference is not None and math.isfinite(panel.reference):
        ax.axhline(panel.reference, color=SOFT, linestyle=(0, (1, 2)), linewidth=1.2, zorder=1)
    ax.xaxis.set_major_formatter(_Ticks(alike=not panel.x_log))
    ax.yaxis.set_major_formatter(_Ticks(percent=panel.y_percent))
    marks = [mark for mark in panel.marks if math.isfinite(mark.x) and math.isfinite(mark.y)]
    _draw_marks(ax, marks)
    if not marks and not any(math.isfinite(y) for drawn in drawn_in(panel) for y in drawn.y):
        ax.text(0.5, 0.5, "nothing measured", transform=ax.transAxes, ha="center", va="center", color=SOFT)
        ax.set(xticks=[], yticks=[])


def _draw_line(ax: Axes, line: Line, number: int) -> Line2D:
    colour, dash = COLOURS[number % len(COLOURS)], _DASHES[number % len(_DASHES)]
    x, y = _finite(line.x), _finite(line.y)
    if line.low and line.high:
        opacity = 0.06 if line.faint else 0.16
        ax.fill_between(x, _finite(line.low), _finite(line.high), color=colour, alpha=opacity, linewidth=0, zorder=1)
    if line.faint:
        light = tuple(0.45 * channel + 0.55 for channel in to_rgb(colour))
        marker = "." if len(x) == 1 else ""
        return ax.plot(x, y, color=light, linestyle=dash, linewidth=0.7, marker=marker, zorder=2)[0]
    return ax.plot(
        x,
        y,
        color=colour,
        linestyle=dash,
        linewidth=1.5,
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=4,
        markevery=max(1, math.ceil(len(x) / _MARKERS_ON_A_LINE)),
        zorder=3,
    )[0]


def _draw_points(ax: Axes, cloud: Points, number: int) -> Line2D:
    return ax.plot(
        _finite(cloud.x),
        _finite(cloud.y),
        linestyle="none",
        color=COLOURS[number % len(COLOURS)],
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=3,
        markeredgewidth=0,
        alpha=0.55,
        rasterized=len(cloud.x) >= _CLOUD,
        zorder=2,
    )[0]


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
            words(mark.label, LONGEST_TICK),
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
        text, colour = in_cell(panel, value), "white" if dark else INK
        ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=colour, fontsize=8.5)
    ax.invert_yaxis()
    ax.set_box_aspect(rows * CELL_HEIGHT / (columns * cell_inches(panel)))
    ax.set_anchor("NW")
    ax.set_xticks(
        np.arange(columns) + 0.5, [words(label, LONGEST_TICK) for label in panel.column_labels] or [""] * columns
    )
    ax.set_yticks(np.arange(rows) + 0.5, [words(label, LONGEST_TICK) for label in panel.row_labels] or [""] * rows)
    if turned(panel):
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
    xs = _finite([*(x for drawn in drawn_in(panel) for x in drawn.x), *(mark.x for mark in panel.marks)])
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
