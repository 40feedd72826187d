"""The page of a sweep: whole without a script, and safe whatever things are called."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.metrics.statistics import Estimate
from heedful.reports.sweep_page import headline, render_sweep
from heedful.reports.terminal import print_sweep
from heedful.sweeps.grid import Axis
from heedful.sweeps.result import SweepFigure, SweepResult, SweepStudy

HOSTILE = "<script>alert(1)</script>\"&'{{7*7}}"
NAN = float("nan")


def swept(*sizes: int, bad: bool = False) -> SweepResult:
    axes = tuple(Axis(f"axis{i}", tuple(f"value{j}" for j in range(size))) for i, size in enumerate(sizes))
    places = [()]
    for axis in axes:
        places = [(*place, value) for place in places for value in axis.values]
    studies = tuple(
        SweepStudy(
            f"studies/s-{i}",
            place,
            "d",
            "finished",
            verdict="v",
            figures=(
                SweepFigure("accuracy", "", Estimate(0.1 * i, 0.1 * i - 0.05, 0.1 * i + 0.05, 9)),
                SweepFigure("A(alpha,beta)", "own", Estimate(0.5, 0.4, 0.6, 9), random=0.05, shuffle=NAN),
                SweepFigure("A(alpha,beta)", "cross", Estimate(0.5, 0.4, 0.6, 9), random=0.05),
            ),
        )
        for i, place in enumerate(places)
    )
    if bad:
        studies = (*studies[:-1], replace(studies[-1], state="failed", error=HOSTILE, figures=()))
    return SweepResult(axes, studies)


@pytest.mark.parametrize("sizes", [(), (1,), (5,), (2, 3), (3, 2, 2)])
def test_small_multiples_over_any_grid(sizes):
    result = swept(*sizes)
    page = render_sweep(result, "name")
    pictures = len(result.studies) // max([1, *sizes])
    assert page.count("<svg") == 3 * pictures
    assert page.count('<path class="dot') == 3 * len(result.studies)
    assert page.count("/report.html") == len(result.studies)
    read = page[: page.index("<script")]
    assert "nan" not in read.lower().replace("finance", "")
    assert re.search(r"default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'", html.unescape(page))
    assert page.count("<script") == 2
    assert "http" not in read.replace("http-equiv", "")


def test_names_are_text(capsys):
    result = swept(2, 2, bad=True)
    axes = (Axis(HOSTILE, (HOSTILE, "b")), result.axes[1])
    studies = tuple(replace(study, place=(HOSTILE, study.place[1])) for study in result.studies[:2])
    result = SweepResult(axes, (*studies, *result.studies[2:]))
    page = render_sweep(result, HOSTILE)
    assert page.count("<script") == 2
    assert page.count("&lt;script&gt;") >= 5
    assert "{{7*7}}" in page
    print_sweep(result, Path("report.html"))
    assert "3 of 4 studies finished" in capsys.readouterr().out


def test_studies_that_learned_nothing_are_marked():
    result = swept(2, 2)
    assert "†" not in render_sweep(result, "name")
    first, *others = result.studies
    some = render_sweep(replace(result, studies=(replace(first, status="learned nothing"), *others)), "name")
    assert "† This study learned nothing" in some
    assert "value0 †" in some  # in the pictures
    assert "value0</a> †" in some  # in the table
    none = replace(result, studies=tuple(replace(study, status="learned nothing") for study in result.studies))
    assert headline(none).startswith("Nothing was learned in 4 studies: accuracy ")


def test_figures_are_named_in_words():
    page = render_sweep(swept(2, 2), "name")
    assert '<h3>attention ↔ word knowledge <span class="letter">A(α, β)</span></h3>' in page


def test_a_sweep_of_failures_alone():
    study = SweepStudy("studies/a", (), "d", "failed", error="no data")
    page = render_sweep(SweepResult((), (study,)), "name")
    assert "no data" in page
    assert "<svg" not in page


def test_an_estimate_of_nothing():
    result = swept(2)
    nothing = SweepFigure("accuracy", "", Estimate(NAN, NAN, NAN, 0))
    result = replace(result, studies=(replace(result.studies[0], figures=(nothing,)), result.studies[1]))
    page = render_sweep(result, "name")
    assert page.count('<path class="dot') == 3
    assert result.to_dict()["studies"][0]["figures"][0]["estimate"]["value"] is None


def test_the_title_states_the_result():
    assert (
        headline(swept(2, 3))
        == "Axis0 moves accuracy most: 10.0\N{NO-BREAK SPACE}% with value0, 40.0\N{NO-BREAK SPACE}% with value1"
    )
    assert headline(swept(2)).startswith("Accuracy hardly differs over 2 studies")
    assert headline(swept()) == "Accuracy 0.0\N{NO-BREAK SPACE}% in the one study that finished"
    failed = SweepStudy("studies/a", (), "d", "failed", error="no data")
    assert headline(SweepResult((), (failed, failed))) == "None of 2 studies gave a result"
    assert headline(swept(2, 3)) in render_sweep(swept(2, 3), "name")


def test_no_name_stands_twice():
    page = render_sweep(swept(5), "name")
    assert page.count('<h3 class="hidden">') == 3
    assert '<h3 class="hidden">' not in render_sweep(swept(2, 3), "name")
