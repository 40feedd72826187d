import json
import math
import re
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_rgb

from heedful.errors import DataError
from heedful.papers.findings import Figure, Finding, Line, Mark, Panel, Points
from heedful.reports import paper_figures
from heedful.reports.paper_figures import draw_figure, figure_svg
from heedful.storage.serialization import content

NAN = math.nan
X = (0.0, 1.0, 10.0, 100.0, 1000.0)


def curve(label, height=0.0, **options):
    return Line(label, X, tuple(height + 0.1 * i for i in range(5)), **options)


def one(panel):
    return Figure("figure3", "A figure", (panel,))


EVERY_KIND = Figure(
    "figure3",
    "Every kind of panel",
    (
        Panel(
            "lines",
            (
                curve("A(α, β^uf)", low=(0.0,) * 5, high=(1.0,) * 5),
                curve("seed 0", 0.1, group="seeds", faint=True),
                curve("mean", 0.2, group="seeds"),
            ),
            (Mark(10.0, 0.3, "here", guides=True),),
            x_label="step",
            y_label="agreement",
            x_log=True,
            y_percent=True,
            reference=0.1,
        ),
        Panel("matrix", matrix=((0.1, NAN), (0.95, -0.2)), row_labels=("a", "b"), column_labels=("a long label", "d")),
        Panel("marks", marks=(Mark(1.0, 2.0, "one"), Mark(NAN, 2.0, "none"))),
        Panel("empty"),
    ),
)


def drawn(figure):
    """The figure as matplotlib has it, laid out."""
    with paper_figures._plainly():
        sheet = paper_figures._sheet(figure)
        sheet.draw_without_rendering()
    return sheet


def test_both_files_are_written_and_the_same_each_time(tmp_path):
    first, second = draw_figure(EVERY_KIND, tmp_path / "a"), draw_figure(EVERY_KIND, tmp_path / "b")
    assert [path.name for path in first] == ["figure3.svg", "figure3.png"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["figure3.png", "figure3.svg"]
    for one_file, other in zip(first, second, strict=True):
        assert one_file.read_bytes() == other.read_bytes()
    assert first[1].read_bytes().startswith(b"\x89PNG")
    assert first[0].read_text(encoding="utf-8") == figure_svg(EVERY_KIND)


def test_another_process_with_another_style_draws_the_same_bytes(tmp_path):
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nsvg.fonttype: none\n", encoding="utf-8")
    code = (
        "import json, sys; from heedful.papers.findings import Finding; "
        "from heedful.reports.paper_figures import figure_svg; from heedful.storage.serialization import from_mapping; "
        "finding = from_mapping(Finding, json.load(sys.stdin)); "
        "sys.stdout.buffer.write(figure_svg(finding.figures[0]).encode()); "
        "sys.exit('matplotlib.pyplot' in sys.modules or 'torch' in sys.modules)"
    )
    finding = json.dumps(content(Finding(figures=(EVERY_KIND,)))).encode()
    made = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, input=finding, capture_output=True, check=True)
    assert made.stdout.decode() == figure_svg(EVERY_KIND)


def test_the_svg_is_sound_and_carries_no_style_and_no_date():
    svg = figure_svg(EVERY_KIND)
    root = ElementTree.fromstring(svg)
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "Every kind of panel"
    assert not re.search(r"style|<!--|<script|<image|dc:date|Matplotlib", svg)
    assert not re.search(r'(?<=["#])\w*[0-9a-f]{10}(?=[")])', svg)  # a digest of coordinates would differ by process
    names = re.findall(r'\bid="([^"]*)"', svg)
    assert len(names) == len(set(names))
    assert set(re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', svg)) <= {(n, "") for n in names} | {
        ("", n) for n in names
    }


def test_hostile_words_are_only_words():
    words = (
        '<script>alert(1)</script> style="a"',
        "$x$ $",
        r"\frac{1}{2} $\$",
        r"a\^b c^d \^e",
        "漢字 \x00\ud83d\n\nb",
        "w" * 300,
    )
    panels = tuple(
        Panel(text, (curve(text),), (Mark(1.0, 0.2, text),), x_label=text, y_label=text) for text in words
    ) + tuple(Panel(text, matrix=((1.0,),), row_labels=(text,), column_labels=(text,)) for text in words)
    svg = figure_svg(Figure("f", words[0], panels))
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert len(svg) < 2_000_000


def test_nothing_measured():
    for panel in (
        Panel(""),
        Panel("", (Line("a", X, (NAN,) * 5),), x_log=True, reference=NAN),
        Panel("", (Line("a", (), ()),)),
    ):
        (ax,) = drawn(one(panel)).axes
        assert [text.get_text() for text in ax.texts] == ["nothing measured"]
    drawn(one(Panel("", matrix=((NAN, math.inf),))))


def test_lines_of_a_group_share_their_look_and_their_entry():
    panel = Panel(
        "", (curve("a"), *(curve(f"s{i}", i, group="seeds", faint=True) for i in range(3)), curve("m", group="seeds"))
    )
    sheet = drawn(one(panel))
    (legend,) = sheet.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "seeds"]
    lines = sheet.axes[0].lines
    assert len({line.get_linestyle() for line in lines[1:]}) == 1
    assert lines[0].get_color() != lines[4].get_color()
    assert lines[1].get_linewidth() < lines[4].get_linewidth()
    assert lightness(lines[1].get_color()) > lightness(lines[4].get_color())
    assert legend.get_lines()[1].get_linewidth() == lines[4].get_linewidth()


def test_many_kinds_of_line_have_a_legend_under_each_panel():
    panels = tuple(Panel(p, tuple(curve(f"{p}{i}", i) for i in range(5))) for p in "ab")
    sheet = drawn(Figure("f", "t", panels))
    assert sheet.legends == []
    assert [len(part.legends[0].get_texts()) for part in sheet.subfigs] == [5, 5]


def test_a_row_that_is_not_full_ends_in_nothing():
    sheet = drawn(Figure("f", "t", tuple(Panel(name, (curve("a"),)) for name in "abcde")))
    assert [ax.axison for ax in sheet.axes] == [True] * 5 + [False]


def lightness(colour):
    return paper_figures._luminance(to_rgb(colour))


def test_lines_are_told_apart_in_grey():
    looks = [(paper_figures._DASHES[i % 5], paper_figures._MARKERS[i]) for i in range(8)]
    assert len({str(look) for look in looks}) == 8
    assert len(set(paper_figures._MARKERS)) == 8
    shades = [lightness(colour) for colour in paper_figures.COLOURS]
    assert all(abs(a - b) > 0.1 for a, b in pairwise(shades))
    assert all((1.05) / (shade + 0.05) > 2.2 for shade in shades)


def test_numbers_in_cells_are_read_on_their_shade():
    values = tuple(i / 20 for i in range(21))
    (ax,) = drawn(one(Panel("", matrix=(values,), digits=2))).axes
    assert [text.get_text() for text in ax.texts][:3] == ["0.00", "0.05", "0.10"]
    for text, shade in zip(ax.texts, ax.collections[0].get_facecolors(), strict=True):
        dark, light = sorted([lightness(text.get_color()), paper_figures._luminance(tuple(shade))])
        assert (light + 0.05) / (dark + 0.05) > 4
    grey = [paper_figures._luminance(tuple(shade)) for shade in ax.collections[0].get_facecolors()]
    assert grey == sorted(grey, reverse=True)


def test_axes():
    lines, matrix, *_ = drawn(EVERY_KIND).axes
    assert lines.get_xscale() == "symlog"  # step 0 is on the axis
    assert {label.get_text() for label in lines.get_xticklabels()} >= {"0", "1", "1,000"}
    assert all(label.get_text().endswith("\N{NO-BREAK SPACE}%") for label in lines.get_yticklabels())
    assert [label.get_text() for label in matrix.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in matrix.texts] == ["0.10", "–", "0.95", "−0.20"]
    above = Panel("", (Line("a", (1.0, 10.0), (0.5, 1.0)),), x_log=True)
    (ax,) = drawn(one(above)).axes
    assert ax.get_xscale() == "log"
    texts = [label.get_text() for label in ax.get_yticklabels()]
    assert len({len(text) for text in texts}) == 1


def test_a_matrix_in_percent():
    (ax,) = drawn(one(Panel("", matrix=((0.256,),), y_percent=True, digits=1))).axes
    assert ax.texts[0].get_text() == "25.6"


def test_text_is_large_enough():
    with paper_figures._plainly():
        sheet = paper_figures._sheet(EVERY_KIND)
        assert min(text.get_fontsize() for text in sheet.findobj(lambda artist: hasattr(artist, "get_fontsize"))) >= 8


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        (Panel("p", (Line("a", (1.0,), ()),)), "line 'a' has 1 x, 0 y"),
        (Panel("p", (Line("a", (1.0,), (1.0,), low=(1.0,)),)), "as many of each, or no interval"),
        (Panel("p", (Line("a", (1.0,), (1.0,)),), matrix=((1.0,),)), "not both"),
        (Panel("p", matrix=((1.0,), ())), "equally long"),
        (Panel("p", matrix=((),)), "hold something"),
        (Panel("p", matrix=((1.0, 2.0),), row_labels=("a", "b")), "2 labels for 1 rows"),
        (Panel("p", matrix=((1.0, 2.0),), column_labels=("a",)), "1 labels for 2 columns"),
    ],
)
def test_what_cannot_be_drawn(panel, message):
    with pytest.raises(DataError, match=message):
        figure_svg(one(panel))


def test_a_figure_needs_panels_and_a_name(tmp_path):
    with pytest.raises(DataError, match="no panels"):
        figure_svg(Figure("a", "t", ()))
    for name in ("../a", "", ".a", "a/b", "a\n"):
        with pytest.raises(DataError, match="cannot name a file"):
            draw_figure(Figure(name, "t", EVERY_KIND.panels), tmp_path)


def test_points_are_drawn_and_named_once():
    cloud = Points("a", (1.0, 2.0), (3.0, 4.0), group="positive"), Points("b", (1.5,), (3.5,), group="positive")
    svg = figure_svg(Figure("scatter", "A scatter", (Panel("p", points=cloud),)))
    assert svg.count("<use") >= 3
    with pytest.raises(DataError, match="points 'a' have 2 x and 1 y"):
        figure_svg(Figure("scatter", "A scatter", (Panel("p", points=(Points("a", (1.0, 2.0), (3.0,)),)),)))
