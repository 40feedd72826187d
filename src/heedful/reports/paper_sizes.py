"""How much room the words and panels of a paper's figure need, in inches."""

import re
import textwrap
from collections.abc import Iterable, Sequence

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from heedful.papers.finding import Line, Panel, Points
from heedful.reports.paper_tables import one_line, written

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
