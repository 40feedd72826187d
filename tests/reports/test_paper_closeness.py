"""How close: what is covered, what is not, and what is left out of the share."""

from heedful.metrics.statistics import Estimate
from heedful.papers.findings import Cell, Finding, ResultTable, Row
from heedful.reports.paper_closeness import (
    closeness_figure,
    closeness_html,
    closeness_markdown,
    closeness_rows,
    compared_cells,
    counted,
    how_close_sentence,
    share_covered,
    summary_rows,
)
from tests.reports.test_paper_page import result_of

NAN = float("nan")
ROWS = (
    Row("SST", (Cell(Estimate(0.26, 0.24, 0.28, 9), 25.33, "%", seeds=5, texts=200), Cell(published=3.0))),
    Row("IMDB", (Cell(Estimate(0.40, 0.35, 0.45, 9), 53.0, "%"), Cell(Estimate(7.0, 7.0, 7.0, 1), 7.0))),
    Row("own", (Cell(Estimate(0.4, 0.3, 0.5, 9), None, "%"), Cell(Estimate(NAN, NAN, NAN, 0), 2.0)), "SST"),
)
RESULT = result_of("table2", Finding((ResultTable("Table 2", ("A(α, β^uf)", "size"), ROWS),)))
CELLS = compared_cells([RESULT])


def test_every_published_cell_is_there_in_its_own_unit():
    assert [cell.closeness for cell in CELLS] == ["covered", "not measured", "outside", "no interval", "not measured"]
    assert [cell.row for cell in CELLS] == ["SST", "SST", "IMDB", "IMDB", "SST · own"]
    assert round(CELLS[0].difference, 2) == 0.67
    assert CELLS[1].difference is None
    assert closeness_rows(CELLS)[2]["measured"] == 40.0


def test_the_share_counts_what_has_an_interval_and_says_what_it_leaves_out():
    assert counted(CELLS) == {"covered": 1, "outside": 1, "no interval": 1, "not measured": 2}
    assert share_covered(CELLS) == 0.5
    assert share_covered(CELLS[1:2]) is None
    sentence = how_close_sentence(CELLS)
    assert "covers 1 of 2 published numbers that we measured with an interval (50 %)" in sentence
    assert "1 was measured without an interval and 2 were not measured" in sentence
    assert how_close_sentence([]) == ""
    assert summary_rows(CELLS) == [("Table 2", "5", "3", "1 of 2 (50 %)", "6.8 points", "quick")]


def test_in_markdown_and_html_each_cell_says_whether_it_is_covered():
    text, page = closeness_markdown(CELLS), closeness_html(CELLS)
    line = '| SST | A(α, β<sup>uf</sup>), % | 25.3 | 26.0 | +0.7 | 24.0–28.0 | 5 × 200 | <span class="covered">✓ covers'
    assert line in text
    assert "−13.0" in text
    assert page.count('<tr class="outside">') == 1
    assert page.count('<tr class="not-measured">') == 2


def test_the_plot_has_a_point_for_each_judged_cell():
    figure = closeness_figure("snell2021", CELLS)
    (panel,) = figure.panels
    assert {cloud.label: (cloud.x, cloud.hollow) for cloud in panel.points} == {
        "our interval does not cover the published number": ((53.0,), True),
        "it does": ((25.33,), False),
    }
    assert closeness_figure("snell2021", CELLS[3:]) is None
