import base64
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from heedful.errors import DataError
from heedful.metrics.statistics import Estimate
from heedful.papers.experiment import Result
from heedful.papers.findings import Cell, Figure, Finding, Line, Panel, ResultTable, Row
from heedful.reports.paper_page import write_docs_page, write_paper_report
from heedful.storage.manifest import Manifest
from tests.reports.elements import Elements, admits_one_style_and_one_script

HOSTILE = "<script>alert(1)</script> <img src=x> a|b `c`\n\n# d ![e](f) \"'"
CLAIM = {
    "id": "S1",
    "sentence": "α agrees with β^uf",
    "statistic": "A(α, β^uf) − Â",
    "expected": "above 0",
    "measured": "0.31 (0.28 to 0.34)",
    "size": "10 seeds, 200 texts",
    "tested": "quick, adjusted p 0.003",
    "note": "8 of 8 cases hold",
    "budget": "quick",
    "verdict": "holds",
}


def result_of(experiment, finding, **changes):
    result = Result(
        paper="snell2021",
        experiment=experiment,
        title=f"{experiment}: agreement with β^uf",
        budget="quick",
        version=3,
        config_digest="0123456789abcdef" * 4,
        settings={"seeds": [0, 1]},
        manifest=Manifest(
            "paper",
            command=f"heedful reproduce snell2021 {experiment} --budget quick",
            versions={"torch": "2.13.0"},
            commit="41dface0123456789",
            finished="2026-03-04T05:06:07Z",
            seconds=312.0,
        ),
        finding=finding,
    )
    return replace(result, **changes)


def figure_of(name, words="A figure"):
    return Figure(name, words, (Panel(words, (Line(words, (1.0, 2.0), (3.0, 4.0)),)),), "Its caption.")


def finding_of(figure, words="SST"):
    cell = Cell(Estimate(0.469, 0.444, 0.494, 872), 25.33, "%")
    table = ResultTable(words, (words,), (Row(words, (cell,)), Row("text", (Cell(text=words),))), words)
    return Finding((table,), (figure_of(figure, words),), notes=(words,))


RESULTS = [result_of("table2", finding_of("figure2")), result_of("figure3", finding_of("figure3"))]
HOSTILE_MANIFEST = Manifest("paper", HOSTILE, {HOSTILE: HOSTILE}, finished=HOSTILE, seconds=1.0)
MALICE = [result_of("x", finding_of("x", HOSTILE), title=HOSTILE, manifest=HOSTILE_MANIFEST)]


def docs(tmp_path, results, claims="| id |\n|---|\n| S1 |", preface="# The paper\n\nBy hand."):
    papers = tmp_path / "docs" / "papers"
    return write_docs_page(results, claims, preface, papers / "snell2021.md", papers / "figures" / "snell2021")


def report(tmp_path, results, claims=(CLAIM,)):
    return write_paper_report(results, list(claims), tmp_path / "deep" / "report.html").read_text(encoding="utf-8")


def test_the_docs_page_from_top_to_bottom(tmp_path):
    page = docs(
        tmp_path, RESULTS, preface="# The paper\n\nBy hand.\n\n## Equations\n\n### One\n\n## Departures\n\nLast."
    )
    text = page.read_text(encoding="utf-8")
    first, *lines = text.splitlines()
    assert first == "<!-- Written by a command from the results of snell2021; do not edit. -->"
    headings = [line for line in lines if line.startswith("#")]
    assert headings == [
        "# The paper",
        "## How close are we?",
        "## Claims",
        "## table2: agreement with β<sup>uf</sup>",
        "## figure3: agreement with β<sup>uf</sup>",
        "## Equations",
        "### One",
        "## Departures",
    ]
    assert text.count("In each cell: measured here") == 1
    assert "| SST | 46.9 · _25.3_<br><sub>44.4–49.4</sub> |" in lines
    assert "![SST. Its caption.](figures/snell2021/figure3.svg)" in lines
    assert "- SST" in lines
    assert (
        "<sub><code>heedful reproduce snell2021 table2 --budget quick</code> · budget quick · version 3 · "
        "settings 0123456789ab · commit 41dface0 · 5 min 12 s · 2026-03-04</sub>"
    ) in lines
    assert "By hand.\n\n## How close are we?\n" in text
    assert "## Claims\n\n| id |\n|---|\n| S1 |\n" in text
    assert text.endswith("## Departures\n\nLast.\n")
    for place in re.findall(r"\]\(([^)]*)\)", text):
        assert (page.parent / place).exists()
        assert (page.parent / place).with_suffix(".png").exists()


def test_the_same_results_give_the_same_pages(tmp_path):
    assert docs(tmp_path / "a", RESULTS).read_bytes() == docs(tmp_path / "b", RESULTS).read_bytes()
    assert report(tmp_path / "a", RESULTS) == report(tmp_path / "b", RESULTS)


def test_a_title_where_the_preface_has_none_and_no_claims(tmp_path):
    bare = result_of("table2", Finding(), manifest=Manifest("paper"))
    text = docs(tmp_path, [bare], claims="", preface="").read_text(encoding="utf-8")
    assert "\n# snell2021\n" in text
    assert "Claims" not in text
    assert "In each cell" not in text
    assert " · no commit · " in text


def test_hostile_words_in_the_docs(tmp_path):
    text = docs(tmp_path, MALICE, preface="# The paper").read_text(encoding="utf-8")
    assert "<script" not in text
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type == "heading_open" for token in tokens) == 4
    assert sum(token.type == "table_open" for token in tokens) == 4
    inline = [child for token in tokens if token.type == "inline" for child in token.children]
    images = [child.attrs["src"] for child in inline if child.type == "image"]
    assert images == ["figures/snell2021/how-close-snell2021.svg", "figures/snell2021/x.svg"]
    tags = {"<sub>", "</sub>", "<code>", "</code>", "<br>", '<span class="outside">', "</span>"}
    assert {child.content for child in inline if child.type == "html_inline"} <= tags
    assert "code_inline" not in {child.type for child in inline}


def test_the_report_holds_everything(tmp_path):
    page = report(tmp_path, RESULTS)
    seen = Elements(page)
    text = " ".join("".join(seen.text).split())
    for words in ("table2: agreement with βuf", "46.9 · published 25.3", "44.4–49.4", "settings 0123456789ab", "holds"):
        assert words in text
    assert "commit 41dface0 · 5 min 12 s · 2026-03-04 · torch 2.13.0" in text
    assert text.count("In each cell: measured here") == 1
    anchors = [link[1:] for link in seen.links if link.startswith("#")]
    assert anchors == ["table2-quick", "claim-S1", "close", "claims", "table2-quick", "figure3-quick"]
    assert set(anchors) <= set(seen.ids)
    assert len(seen.ids) == len(set(seen.ids))
    assert page.endswith("</html>\n")


def test_figures_are_in_the_page(tmp_path):
    images = [link for link in Elements(report(tmp_path, RESULTS)).links if not link.startswith("#")]
    assert len(images) == 3
    for image in images:
        kind, _, content = image.partition(",")
        assert kind == "data:image/svg+xml;base64"
        ElementTree.fromstring(base64.b64decode(content))


def test_the_policy_admits_this_style_and_this_script_alone(tmp_path):
    admits_one_style_and_one_script(report(tmp_path, RESULTS))


def test_hostile_words_in_the_report(tmp_path):
    page = report(tmp_path, MALICE, [CLAIM | dict.fromkeys(CLAIM, HOSTILE)])
    seen = Elements(page)
    assert seen.tags.count("script") == 2
    assert seen.tags.count("img") == 2
    assert "alert(1)</script>" not in page
    assert "<script>alert(1)</script>" in "".join(seen.text)
    report(tmp_path, [result_of("x", Finding(notes=("\ud83d",)))])


def test_only_a_verdict_is_a_badge(tmp_path):
    words = ("holds", "holds in part", "fails", "inconclusive", "not run", "(for comparison)", "")
    page = report(tmp_path, RESULTS, [CLAIM | {"verdict": word} for word in words])
    badges = re.findall(r'<td><span class="badge (\w+)">([^<]*)</span>', page)
    assert badges == [
        ("yes", "holds"),
        ("unclear", "holds in part"),
        ("no", "fails"),
        ("unclear", "inconclusive"),
        ("unclear", "not run"),
    ]
    assert "<td>(for comparison)</td>" in page


def test_the_same_experiment_within_two_budgets(tmp_path):
    twice = [RESULTS[0], replace(RESULTS[0], budget="paper"), RESULTS[0]]
    seen = Elements(report(tmp_path, twice, []))
    assert len(seen.ids) == len(set(seen.ids))
    assert "claims" not in seen.ids
    with pytest.raises(DataError, match="two figures are called 'figure2'"):
        docs(tmp_path, twice)


def test_the_smaller_budget_is_folded_behind(tmp_path):
    full = replace(RESULTS[0], budget="paper")
    out = write_paper_report([full], [], tmp_path / "page.html", behind=[RESULTS[0]])
    page = out.read_text(encoding="utf-8")
    assert page.index("budget paper") < page.index("The same within the budget quick")
    text = write_docs_page([full], "", "", tmp_path / "a.md", tmp_path / "f", behind=[RESULTS[0]]).read_text("utf-8")
    assert "<summary>The same within the budget quick</summary>" in text


def test_a_page_is_of_one_paper(tmp_path):
    mixed = [RESULTS[0], replace(RESULTS[1], paper="meister2021")]
    for write in (docs, report):
        with pytest.raises(DataError, match="the results are of none"):
            write(tmp_path, [])
        with pytest.raises(DataError, match="the results are of meister2021, snell2021"):
            write(tmp_path, mixed)
    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_lacks_something(tmp_path):
    with pytest.raises(DataError, match="claim 'S1' lacks verdict"):
        report(tmp_path, RESULTS, [{name: words for name, words in CLAIM.items() if name != "verdict"}])


def test_the_page_of_a_study_needs_no_matplotlib_and_no_page_needs_torch():
    code = (
        "import sys, heedful.reports.pages; drawing = 'matplotlib' in sys.modules; "
        "import heedful.reports.paper_page; sys.exit(drawing or 'torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_our_own_experiments_open_with_their_first_figure(tmp_path):
    result = result_of("dose", replace(finding_of("dose"), tables=()))
    page = write_docs_page([result], "## Claims\n", "# Ours", tmp_path / "a.md", tmp_path / "f").read_text("utf-8")
    assert page.count("dose.svg") == 1
    assert page.index("dose.svg") < page.index("## Claims")
    html = write_paper_report([result], [], tmp_path / "a.html").read_text("utf-8")
    assert html.count("<img ") == 1
    assert 'id="opening-figure"' in html
