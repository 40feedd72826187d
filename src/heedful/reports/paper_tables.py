"""Tables of a paper, measured beside published, in Markdown and in HTML.

A cell reads `46.9 · 25.3`: what was measured here, then what the paper prints there, in italics; the 95 % interval
of the measurement stands small below, and seeds × texts after it. `legend` says so in words. Everything that comes from
outside is escaped.
"""

import math
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from markupsafe import Markup

from heedful.errors import DataError
from heedful.html import between, raised
from heedful.metrics.statistics import Estimate
from heedful.papers.findings import Cell, ResultTable, Row
from heedful.reports.html import NONE, one_line, written

_SPACE = "\N{NO-BREAK SPACE}"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def markdown_table(table: ResultTable) -> str:
    r"""The table in GitHub's Markdown, without its title and caption.

    >>> from heedful.metrics.statistics import Estimate
    >>> cell = Cell(Estimate(0.469, 0.444, 0.494, 872), published=25.33, unit="%", starred=True)
    >>> print(markdown_table(ResultTable("Agreement", ("A(α, β^uf)",), (Row("SST", (cell,)),))))
    |  | A(α, β<sup>uf</sup>), % |
    |---|--:|
    | SST | 46.9\* · _25.3_<br><sub>44.4–49.4</sub> |
    """
    heads, in_head = _heads(table)
    lines = [
        f"|  | {' | '.join(markdown_text(head) for head in heads)} |",
        f"|---{'|--:' * len(heads)}|",
    ]
    for group, rows in _groups(table):
        if group:
            lines.append(f"| **{markdown_text(group)}** {'|  ' * len(heads)}|")
        for row in rows:
            cells = (_markdown_cell(cell, unit_too=not in_it) for cell, in_it in zip(row.cells, in_head, strict=True))
            lines.append(f"| {markdown_text(row.name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def html_table(table: ResultTable) -> Markup:
    """The table as an HTML `<table>`, without its title and caption.

    >>> print(html_table(ResultTable("", ("<i>",), (Row("β^uf", (Cell(text="a < b"),)),))))
    <table>
    <thead><tr><td></td><th scope="col" class="number">&lt;i&gt;</th></tr></thead>
    <tbody>
    <tr><th scope="row">β<sup>uf</sup></th><td class="number">a &lt; b</td></tr>
    </tbody>
    </table>
    """
    heads, in_head = _heads(table)
    columns = Markup().join(Markup('<th scope="col" class="number">{}</th>').format(raised(head)) for head in heads)
    parts = [Markup("<table>\n<thead><tr><td></td>{}</tr></thead>").format(columns)]
    for group, rows in _groups(table):
        parts.append(Markup("<tbody>"))
        if group:
            head = Markup('<tr><th scope="rowgroup" colspan="{}">{}</th></tr>')
            parts.append(head.format(len(heads) + 1, raised(group)))
        for row in rows:
            cells = (_html_cell(cell, unit_too=not in_it) for cell, in_it in zip(row.cells, in_head, strict=True))
            name = Markup('<tr><th scope="row">{}</th>').format(raised(row.name))
            parts.append(name + Markup().join(cells) + Markup("</tr>"))
        parts.append(Markup("</tbody>"))
    return Markup("\n").join([*parts, Markup("</table>")])


def table_rows(table: ResultTable) -> list[dict[str, Any]]:
    """The table as rows of a file: one for each cell, with the measured and the published number.

    >>> table_rows(ResultTable("", ("AER",), (Row("sst", (Cell(published=3.0, unit="%"),), "text"),)))[0]["published"]
    3.0
    """
    return [
        {
            "group": row.group,
            "row": row.name,
            "column": column,
            **_numbers(cell.measured),
            "published": cell.published,
            "unit": cell.unit,
            "starred": cell.starred,
            "text": cell.text,
            "seeds": cell.seeds,
            "texts": cell.texts,
        }
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]


def _numbers(measured: Estimate | None) -> dict[str, Any]:
    if measured is None:
        return dict.fromkeys(("measured", "low", "high", "n"))
    return {"measured": measured.value, "low": measured.low, "high": measured.high, "n": measured.n}


def plain_cell(cell: Cell) -> str:
    """A cell for a terminal: measured, its interval, and what the paper prints in parentheses.

    >>> from heedful.metrics.statistics import Estimate
    >>> plain_cell(Cell(Estimate(0.469, 0.444, 0.494, 872), published=25.33, unit="%"))
    '46.9 [44.4–49.4] (25.3)'
    """
    interval, published = _interval(cell), _published(cell)
    parts = [_first(cell, ""), f"[{interval}]" if interval else "", f"({published})" if published else ""]
    return " ".join(part for part in parts if part)


def legend(tables: Iterable[ResultTable]) -> str:
    """How to read a cell, in plain words; only of what these tables hold, and empty where they hold no numbers.

    >>> legend([ResultTable("", ("a",), (Row("b", (Cell(published=3.0, published_starred=True),)),))])
    'In each cell: measured here · published (in italics). –: not measured. *: the agreement was never exceeded.'
    """
    cells = [cell for table in tables for row in table.rows for cell in row.cells]
    numbers = [cell for cell in cells if _measured(cell) or _published(cell)]
    if not numbers:
        return ""
    form = "measured here · published (in italics)" if any(_published(cell) for cell in numbers) else "measured here"
    below = "; small below, the 95 % interval of the measurement" if any(_interval(cell) for cell in numbers) else ""
    if any(cell_sizes(cell) for cell in numbers):
        below += "; then seeds × texts" if below else "; small below, seeds × texts"
    sentences = [f"In each cell: {form}{below}."]
    if any(not _measured(cell) and cell.text is None for cell in cells):
        sentences.append(f"{NONE}: not measured.")
    if any(cell.starred or cell.published_starred for cell in cells):
        sentences.append("*: the agreement was never exceeded.")
    return " ".join(sentences)


def markdown_text(text: str) -> str:
    r"""Words that Markdown shows as they are, on one line, also within a table; `β^uf` gets its superscript.

    >>> print(markdown_text("a|b `c`\n<script> *d* 2^10"))
    a\|b \`c\` &lt;script&gt; \*d\* 2<sup>10</sup>
    """
    pieces = re.split(r"\^(\w+)", one_line(text))
    escaped = [re.sub(r"[&<>]", lambda match: _ENTITIES[match[0]], piece) for piece in pieces]
    escaped = [re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", piece) for piece in escaped]
    line = "".join(f"<sup>{piece}</sup>" if i % 2 else piece for i, piece in enumerate(escaped))
    line = re.sub(r"^([-+=#])(?=\1|\s|$)", r"\\\1", line)  # neither a list nor a heading begins here
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", line)


def _heads(table: ResultTable) -> tuple[list[str], list[bool]]:
    """The heads of the columns, with "%" where all numbers below are percentages; and for which that is so."""
    for row in table.rows:
        if len(row.cells) != len(table.columns):
            raise DataError(
                f"table {table.title!r}: row {row.name!r} has {len(row.cells)} cells for {len(table.columns)} columns"
            )
    in_head = []
    for column in range(len(table.columns)):
        cells = [row.cells[column] for row in table.rows]
        units = {cell.unit for cell in cells if _measured(cell) or _published(cell)}
        in_head.append(units == {"%"})
    heads = [
        f"{name}, %" if in_it and "%" not in name else name for name, in_it in zip(table.columns, in_head, strict=True)
    ]
    return heads, in_head


def _groups(table: ResultTable) -> Iterator[tuple[str, list[Row]]]:
    """Rows that belong together, under their group's name; under none where each row begins with it."""
    for group, together in groupby(table.rows, key=lambda row: row.group):
        rows = list(together)
        yield "" if all(row.name.startswith(group) for row in rows) else group, rows


def _markdown_cell(cell: Cell, *, unit_too: bool) -> str:
    unit = f"{_SPACE}%" if unit_too and cell.unit == "%" else ""
    text = markdown_text(_first(cell, unit))
    if published := _published(cell):
        text += f" · _{markdown_text(published + unit)}_"
    below = " · ".join(part for part in (_interval(cell), cell_sizes(cell)) if part)
    return f"{text}<br><sub>{below}</sub>" if below else text


def _html_cell(cell: Cell, *, unit_too: bool) -> Markup:
    unit = f"{_SPACE}%" if unit_too and cell.unit == "%" else ""
    text = Markup('<td class="number">{}').format(raised(_first(cell, unit)))
    if published := _published(cell):
        text += Markup(' · <i><span class="hidden">published </span>{}</i>').format(published + unit)
    if below := " · ".join(part for part in (_interval(cell), cell_sizes(cell)) if part):
        text += Markup('<span class="range">{}</span>').format(below)
    return text + Markup("</td>")


def _first(cell: Cell, unit: str) -> str:
    """The first part of a cell: the measurement, a word, or a dash."""
    measured = _measured(cell)
    return one_line(f"{measured and measured + unit} {cell.text or ''}") or NONE


def _measured(cell: Cell) -> str:
    if cell.measured is None or math.isnan(cell.measured.value):
        return ""
    return written(_scale(cell) * cell.measured.value, cell.digits) + ("*" if cell.starred else "")


def _interval(cell: Cell) -> str:
    """The ends of the interval; nothing where it is unknown or a point."""
    if cell.measured is None or not cell.measured.low < cell.measured.high:
        return ""
    low, high = (written(_scale(cell) * end, cell.digits) for end in (cell.measured.low, cell.measured.high))
    return between(low, high)


def cell_sizes(cell: Cell) -> str:
    """Seeds and texts, each where it is known.

    >>> cell_sizes(Cell(seeds=10, texts=1821)), cell_sizes(Cell(seeds=10))
    ('10 × 1,821', '10')
    """
    if cell.seeds is None:
        return "" if cell.texts is None else f"{cell.texts:,} texts"
    return str(cell.seeds) if cell.texts is None else f"{cell.seeds} × {cell.texts:,}"


def _published(cell: Cell) -> str:
    """What the paper prints; a whole number stays whole, since more decimals would claim more than is printed."""
    if cell.published is None or math.isnan(cell.published):
        return ""
    digits = 0 if cell.published.is_integer() else cell.digits
    return written(cell.published, digits) + ("*" if cell.published_starred else "")


def _scale(cell: Cell) -> float:
    return 100.0 if cell.unit == "%" else 1.0
