import xml.etree.ElementTree as ET
from dataclasses import dataclass

from heedful import html as markup


@dataclass(frozen=True)
class Asked:
    question: str
    answer: str
    because: str


def agreement(key, convention, value, **others):
    ends = {"low": value - 0.05, "high": value + 0.05, "control": 0.1}
    return {"key": key, "symbol": "A(α, β^uf)", "convention": convention, "value": value, **ends, **others}


def test_answers_are_escaped():
    html = markup.answers([Asked("<i>why</i>?", "yes", "A(alpha,beta_uf) 54% [51%, 57%]; <b>so</b>")])
    assert "&lt;i&gt;why&lt;/i&gt;?" in html
    assert "A(α, β<sup>uf</sup>) 54\N{NO-BREAK SPACE}% (51–57)<br>&lt;b&gt;so" in html


def test_dots_and_whiskers_are_a_picture():
    rows = [agreement("a", "own", 0.4), agreement("a", "cross", 0.3), agreement("b", "own", 0.2)]
    svg = ET.fromstring(str(markup.dots_and_whiskers(rows, 0.07)))
    classes = [node.get("class", "") for node in svg.iter()]
    assert sum(name.startswith("dot ") for name in classes) == 3
    assert sum(name.startswith("whisker") for name in classes) == 3
    assert classes.count("control") == 3
    assert classes.count("random") == 1
    places = {node.get("transform") for node in svg.iter() if node.get("class") == "dot m0"}
    assert len(places) == 2


def test_what_was_not_measured_is_not_drawn():
    nothing = float("nan")
    rows = [
        agreement("a", "own", nothing, low=nothing, high=nothing),
        agreement("b", "own", 0.2, low=nothing, high=None, control=None),
    ]
    svg = ET.fromstring(str(markup.dots_and_whiskers(rows, None)))
    classes = [node.get("class", "") for node in svg.iter()]
    assert sum(name.startswith("dot ") for name in classes) == 1
    assert not any(name.startswith(("whisker", "control", "random")) for name in classes)


def test_a_notebook_has_no_script_and_no_markup_of_others():
    shown = markup.notebook("<script>alert(1)</script>", markup.table([{"word": "</td><img>", "n": 0.25}]))
    assert "<script" not in shown
    assert "<img" not in shown
    assert "<td>0.250</td>" in shown
