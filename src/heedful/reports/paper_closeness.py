"""How close measured numbers are to published ones: every published cell, ours, the difference, and one share.

A published number is *covered* where it lies within the 95 % interval of our measurement. The share of a paper counts
the cells that were measured with an interval; those without one, and those not measured, are counted beside it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from heedful.html import between, raised
from heedful.papers.findings import Cell, Figure, Line, Panel, Points, Row
from heedful.reports.html import NONE, written
from heedful.reports.paper_tables import cell_sizes, markdown_text

if TYPE_CHECKING:
    from heedful.papers.experiment import Result

Closeness = Literal["covered", "outside", "no interval", "not measured"]
SIGNS: dict[Closeness, str] = {
    "covered": "✓ covers",
    "outside": "✗ outside",
    "no interval": "no interval",
    "not measured": "not measured",
}
HEADS = ("row", "column", "published", "ours", "difference", "95 % interval", "seeds × texts", "covers?")
_LARGEST_SHARE = 1.5  # τ, entropies and divergences lie below; larger numbers without a unit are counts
_MANY = 120  # points that are drawn small
_Text = Callable[[str], str]


@dataclass(frozen=True)
class ComparedCell:
    """A published number beside ours, both in the unit in which the paper prints it."""

    table: str
    row: str
    column: str
    published: float
    measured: float | None
    low: float | None
    high: float | None
    percent: bool
    digits: int
    sizes: str
    budget: str

    @property
    def closeness(self) -> Closeness:
        """Whether our interval covers the published number."""
        if self.measured is None:
            return "not measured"
        if self.low is None or self.high is None:
            return "no interval"
        return "covered" if self.low <= self.published <= self.high else "outside"

    @property
    def difference(self) -> float | None:
        """Ours less the published one."""
        return None if self.measured is None else self.measured - self.published


def compared_cells(results: "Iterable[Result]") -> list[ComparedCell]:
    """Every cell of some results that has a published number, in the order of the tables."""
    return [
        _compared(cell, table.title, _row_name(row), column, result.budget)
        for result in results
        for table in result.finding.tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.published is not None and not math.isnan(cell.published)
    ]


def _row_name(row: Row) -> str:
    return row.name if row.name.startswith(row.group) else f"{row.group} · {row.name}"


def _compared(cell: Cell, table: str, row: str, column: str, budget: str) -> ComparedCell:
    assert cell.published is not None
    scale = 100.0 if cell.unit == "%" else 1.0
    ours = None if cell.measured is None or math.isnan(cell.measured.value) else cell.measured
    ends = (ours.low, ours.high) if ours is not None and ours.low < ours.high else None
    return ComparedCell(
        table,
        row,
        column,
        cell.published,
        None if ours is None else scale * ours.value,
        None if ends is None else scale * ends[0],
        None if ends is None else scale * ends[1],
        cell.unit == "%",
        max(cell.digits, 1) if cell.unit == "%" else cell.digits,
        cell_sizes(cell),
        budget,
    )


def counted(cells: Sequence[ComparedCell]) -> dict[Closeness, int]:
    """How many cells are covered, outside, without an interval, and not measured."""
    return {kind: sum(cell.closeness == kind for cell in cells) for kind in SIGNS}


def share_covered(cells: Sequence[ComparedCell]) -> float | None:
    """The share of cells measured with an interval whose interval covers the published number; None without any."""
    counts = counted(cells)
    judged = counts["covered"] + counts["outside"]
    return counts["covered"] / judged if judged else None


def how_close_sentence(cells: Sequence[ComparedCell]) -> str:
    """The one number of a paper, and what it leaves out.

    >>> cell = ComparedCell("Table 1", "SST", "acc", 80.0, 79.0, 78.0, 80.5, True, 1, "5", "quick")
    >>> how_close_sentence([cell])
    'Our 95 % interval covers 1 of 1 published numbers that we measured with an interval (100 %).'
    """
    share, counts = share_covered(cells), counted(cells)
    if share is None:
        return ""
    judged = counts["covered"] + counts["outside"]
    sentence = (
        f"Our 95 % interval covers {counts['covered']:,} of {judged:,} published numbers that we measured with an "
        f"interval ({100 * share:.0f} %)."
    )
    numbers = (
        (counts["no interval"], "measured without an interval"),
        (counts["not measured"], "not measured"),
    )
    rest = [f"{number:,} {'was' if number == 1 else 'were'} {words}" for number, words in numbers if number]
    return f"{sentence} Of the others, {' and '.join(rest)}." if rest else sentence


def close_tables(cells: Sequence[ComparedCell]) -> dict[str, list[ComparedCell]]:
    """The cells of each table, by its title."""
    tables: dict[str, list[ComparedCell]] = {}
    for cell in cells:
        tables.setdefault(cell.table, []).append(cell)
    return tables


def summary_rows(cells: Sequence[ComparedCell]) -> list[tuple[str, ...]]:
    """A row for each table: published cells, measured ones, covered ones, the median distance, and the budgets."""
    rows: list[tuple[str, ...]] = []
    for title, own in close_tables(cells).items():
        counts, share = counted(own), share_covered(own)
        judged = counts["covered"] + counts["outside"]
        apart = [abs(cell.difference) for cell in own if cell.difference is not None and cell.low is not None]
        rows.append(
            (
                title,
                f"{len(own):,}",
                f"{len(own) - counts['not measured']:,}",
                NONE if share is None else f"{counts['covered']} of {judged} ({100 * share:.0f} %)",
                f"{written(median(apart), 1 if own[0].percent else 3)}{' points' if own[0].percent else ''}"
                if apart
                else NONE,
                ", ".join(dict.fromkeys(cell.budget for cell in own)),
            )
        )
    return rows


SUMMARY_HEADS = ("table", "published", "measured", "covered", "median distance", "budget")


def _texts(cell: ComparedCell) -> tuple[str, ...]:
    """The cells of a row, as plain text."""
    digits, sign = cell.digits, "+" if (cell.difference or 0.0) > 0 else ""
    interval = between(written(cell.low, digits), written(cell.high, digits)) if cell.low is not None else NONE
    published = written(cell.published, 0 if cell.published.is_integer() else digits)
    return (
        cell.row,
        f"{cell.column}, %" if cell.percent else cell.column,
        published,
        written(cell.measured, digits),
        NONE if cell.difference is None else f"{sign}{written(cell.difference, digits)}",
        interval,
        cell.sizes or NONE,
    )


def closeness_rows(cells: Sequence[ComparedCell]) -> list[dict[str, Any]]:
    """The cells as rows of a file."""
    return [
        {
            "table": cell.table,
            "row": cell.row,
            "column": cell.column,
            "published": cell.published,
            "measured": cell.measured,
            "difference": cell.difference,
            "low": cell.low,
            "high": cell.high,
            "covers": cell.closeness,
            "budget": cell.budget,
        }
        for cell in cells
    ]


def closeness_markdown(cells: Sequence[ComparedCell]) -> str:
    """The summary by table, then every cell, folded by table."""
    blocks = [how_close_sentence(cells), _markdown_rows(SUMMARY_HEADS, summary_rows(cells), markdown_text, names=1)]
    for title, own in close_tables(cells).items():
        lines = [
            (
                *(markdown_text(text) for text in _texts(cell)),
                f'<span class="{_class(cell)}">{SIGNS[cell.closeness]}</span>',
            )
            for cell in own
        ]
        blocks += [
            f"<details>\n<summary>{markdown_text(title)}: every published cell</summary>",
            _markdown_rows(HEADS, lines, str, names=2),
            "</details>",
        ]
    return "\n\n".join(blocks)


def _markdown_rows(heads: Sequence[str], rows: Sequence[tuple[str, ...]], text: _Text, *, names: int) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * names}{'--:|' * (len(heads) - names)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(text, row))} |" for row in rows)])


def closeness_html(cells: Sequence[ComparedCell]) -> Markup:
    """Every cell as an HTML `<table>`, coloured by whether our interval covers the published number."""
    heads = Markup().join(
        Markup('<th scope="col"{}>{}</th>').format(Markup(' class="number"') if i > 1 else "", head)
        for i, head in enumerate(HEADS)
    )
    rows = [
        Markup('<tr class="{}"><th scope="row">{}</th><td>{}</td>{}<td class="number sign">{}</td></tr>').format(
            _class(cell),
            raised(texts[0]),
            raised(texts[1]),
            Markup().join(Markup('<td class="number">{}</td>').format(text) for text in texts[2:]),
            SIGNS[cell.closeness],
        )
        for cell in cells
        for texts in [_texts(cell)]
    ]
    return Markup("<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>").format(
        heads, Markup("\n").join(rows)
    )


def _class(cell: ComparedCell) -> str:
    return cell.closeness.replace(" ", "-")


def closeness_figure(paper: str, cells: Sequence[ComparedCell]) -> Figure | None:
    """Ours against published, filled where the interval covers; counts are left out, which have no interval."""
    panels = []
    for title, chosen in (
        ("percentages", [cell for cell in cells if cell.percent]),
        ("τ, entropy, divergence", [c for c in cells if not c.percent and abs(c.published) <= _LARGEST_SHARE]),
    ):
        drawn = [cell for cell in chosen if cell.measured is not None and cell.low is not None]
        if drawn:
            panels.append(_panel(title, drawn))
    if not panels:
        return None
    return Figure(
        f"how-close-{paper}",
        "Ours against published",
        tuple(panels),
        "A point for each published number that we measured with an interval. On the line both are the same.",
    )


def _panel(title: str, cells: Sequence[ComparedCell]) -> Panel:
    ends = [value for cell in cells for value in (cell.published, cell.measured or 0.0)]
    low, high = min(*ends, 0.0), max(ends)
    kinds: tuple[tuple[str, Closeness], ...] = (
        ("our interval does not cover the published number", "outside"),
        ("it does", "covered"),
    )
    clouds = tuple(
        Points(
            name,
            tuple(cell.published for cell in cells if cell.closeness == kind),
            tuple(cell.measured or 0.0 for cell in cells if cell.closeness == kind),
            large=len(cells) < _MANY,
            hollow=kind == "outside",
        )
        for name, kind in kinds
        if any(cell.closeness == kind for cell in cells)
    )
    equal = Line("the same", (low, high), (low, high), faint=True)
    return Panel(title, lines=(equal,), points=clouds, x_label="published", y_label="measured here")
