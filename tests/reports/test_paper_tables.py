import math
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from heedful.errors import DataError
from heedful.metrics.statistics import Estimate
from heedful.papers.findings import Cell, ResultTable, Row
from heedful.reports.html import one_line, written
from heedful.reports.paper_tables import html_table, legend, markdown_table, markdown_text

HOSTILE = "<script>alert(1)</script> a|b `c` *d* _e_ [f](g) $h$ ~~i~~ \\ &amp; \n\n# j"
NAN = math.nan


def only(cell, column="a"):
    return ResultTable("t", (column,), (Row("r", (cell,)),))


def markdown_cell(cell):
    return markdown_table(only(cell)).splitlines()[-1].removeprefix("| r | ").removesuffix(" |")


def tokens(markdown):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)


def table_texts(markdown):
    """The text of every cell as a reader sees it, row by row."""
    rows = []
    for token in tokens(markdown):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append("".join(child.content for child in token.children))
    return rows


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Cell(Estimate(0.469, 0.444, 0.494, 9), 25.33, "%"), "46.9 · _25.3_<br><sub>44.4–49.4</sub>"),
        (Cell(Estimate(0.469, 0.444, 0.494, 9), None, "%"), "46.9<br><sub>44.4–49.4</sub>"),
        (Cell(Estimate(0.05, -0.061, 0.21, 9), 5.0, "%"), "5.0 · _5_<br><sub>−6.1 to 21.0</sub>"),
        (Cell(Estimate(0.5, 0.4, 0.6, 9), 53.0, "%", 0, True, True), r"50\* · _53\*_<br><sub>40–60</sub>"),
        (Cell(Estimate(16.4, NAN, NAN, 1), 16.41, digits=2), "16.40 · _16.41_"),
        (Cell(Estimate(12345.0, 12345.0, 12345.0, 1), digits=0), "12,345"),
        (Cell(Estimate(NAN, NAN, NAN, 0), 7.0, starred=True), "– · _7_"),
        (Cell(None, 7.5), "– · _7.5_"),
        (Cell(None, NAN), "–"),
        (Cell(), "–"),
        (Cell(text="no copy"), "no copy"),
        (Cell(Estimate(1.0, 1.0, 1.0, 1), text="exact"), "1.0 exact"),
        (Cell(Estimate(math.inf, NAN, NAN, 1)), "∞"),
    ],
)
def test_a_cell(cell, shown):
    assert markdown_cell(cell) == shown


def test_percent_stands_in_the_head_or_else_beside_the_number():
    share, number = Cell(Estimate(0.5, 0.4, 0.6, 9), 44.0, "%"), Cell(Estimate(3.0, 2.0, 4.0, 9))
    apart = ResultTable(
        "t", ("A", "B", "C in %"), (Row("r", (share, number, share)), Row("s", (Cell(), number, share)))
    )
    assert "|  | A, % | B | C in % |" in markdown_table(apart)
    assert "%" not in markdown_table(apart).splitlines()[2]
    mixed = ResultTable("t", ("A",), (Row("r", (share,)), Row("s", (number,))))
    assert "| r | 50.0\N{NO-BREAK SPACE}% · _44\N{NO-BREAK SPACE}%_<br>" in markdown_table(mixed)
    assert "50.0\N{NO-BREAK SPACE}%" in html_table(mixed)


def test_a_group_has_a_head_unless_its_rows_say_it():
    rows = (Row("a", (Cell(),), "first"), Row("b", (Cell(),), "first"), Row("SST, own", (Cell(),), "SST"))
    lines = markdown_table(ResultTable("t", ("c",), rows)).splitlines()
    assert lines[2:] == ["| **first** |  |", "| a | – |", "| b | – |", "| SST, own | – |"]
    page = html_table(ResultTable("t", ("c",), rows))
    assert page.count("<tbody>") == 2
    assert page.count("rowgroup") == 1


def test_a_row_that_does_not_fit():
    table = ResultTable("T2", ("a", "b"), (Row("SST", (Cell(),)),))
    for draw in (markdown_table, html_table):
        with pytest.raises(DataError, match="'T2': row 'SST' has 1 cells for 2 columns"):
            draw(table)


@given(st.text().filter(lambda text: "^" not in text))
@example(HOSTILE)
@example("1. a")
@example("---")
@example("# a")
@example("+ a")
@example("\ud83d")
@example("a\\")
def test_markdown_shows_words_as_they_are(text):
    table = ResultTable("t", (text, "b"), (Row(text, (Cell(text=text), Cell(published=3.0)), "its group"),))
    line = one_line(text)
    assert table_texts(markdown_table(table)) == [
        ["", line, "b"],
        ["its group", "", ""],
        [line, line or "–", "– · 3"],
    ]
    paragraph = tokens(markdown_text(text))
    assert {token.type for token in paragraph} <= {"paragraph_open", "inline", "paragraph_close"}
    shown = ("".join(child.content for child in token.children) for token in paragraph if token.type == "inline")
    assert "".join(shown) == line


def test_html_is_escaped():
    page = html_table(ResultTable(HOSTILE, (HOSTILE,), (Row(HOSTILE, (Cell(text=HOSTILE),), group="<b>"),)))
    assert "<script" not in page
    assert "<b>" not in page
    assert unescape(page).count("<script>alert(1)</script>") == 3


def test_the_html_of_a_cell():
    page = html_table(only(Cell(Estimate(0.469, 0.444, 0.494, 9), 25.33, "%", starred=True), "β^uf"))
    assert '<th scope="col" class="number">β<sup>uf</sup>, %</th>' in page
    assert (
        '<td class="number">46.9* · <i><span class="hidden">published </span>25.3</i>'
        '<span class="range">44.4–49.4</span></td>'
    ) in page


def test_the_legend_says_what_there_is():
    assert legend([]) == legend([only(Cell(text="a"))]) == ""
    assert legend([only(Cell(Estimate(1.0, NAN, NAN, 1)))]) == "In each cell: measured here."
    full = legend([only(Cell(Estimate(1.0, 0.0, 2.0, 3), 1.0)), only(Cell())])
    assert full == (
        "In each cell: measured here · published (in italics); small below, the 95 % interval of the measurement. "
        "–: not measured."
    )


def test_numbers():
    assert written(-0.5, 0) == "0"
    assert written(-1.5, 0) == "−2"
    assert written(0.0, 2) == "0.00"
