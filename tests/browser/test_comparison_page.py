"""Two studies side by side in a real browser."""

from dataclasses import replace

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from heedful import api
from heedful.reports.pages import write_page
from heedful.studies.run_directory import RunDirectory
from tests.browser.chromium import (
    AUDIT,
    SHADES,
    by_id,
    in_a_browser,
    leaves_nothing_and_complains_of_nothing,
    saved_rows,
    settle,
    visit,
)
from tests.reports.test_comparison import beside

pytestmark = in_a_browser


@pytest.fixture(scope="module")
def page(smoke_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    other = RunDirectory(beside(smoke_run, folder))
    manifest = other.manifest()
    replace(manifest, details=manifest.details | {"device": "another"}).write(other.root)
    return write_page([smoke_run, other.root], out=folder / "page.html")


@pytest.fixture
def opened(browser, page):
    return visit(browser, page)


def test_both_runs_stand_side_by_side(opened):
    leaves_nothing_and_complains_of_nothing(opened)
    assert opened.execute_script(AUDIT) == []
    heads = [head.text for head in opened.find_elements(By.CSS_SELECTOR, ".example:first-child h4")]
    assert heads == ["smoke: standard model, seed 0", "other: standard model, seed 0"]
    marks = "return [...document.querySelectorAll('#agreement-chart .dot')].map((d) => d.getAttribute('class'))"
    assert set(opened.execute_script(marks)) == {"dot m0", "dot m1"}


def test_the_slider_moves_both_runs(opened):
    before = opened.execute_script(SHADES)
    by_id(opened, "step").send_keys(Keys.HOME)
    settle(opened)
    after = opened.execute_script(SHADES)
    assert len(before) == len(after) == 2
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert by_id(opened, "step-text").text.startswith("step 0 of 12 · smoke ")
    assert " · other " in by_id(opened, "step-text").text


def test_conventions_and_agreements_are_chosen(opened):
    chart = "return document.querySelector('#agreement-chart').textContent"
    curve = "return document.querySelector('#curve-chart polyline').getAttribute('points')"
    before = opened.execute_script(chart), opened.execute_script(curve)
    opened.execute_script("document.querySelector('[name=convention][value=own]').click()")
    settle(opened)
    own = opened.execute_script(chart), opened.execute_script(curve)
    assert all(a != b for a, b in zip(before, own, strict=True))
    Select(by_id(opened, "which")).select_by_index(2)
    settle(opened)
    assert opened.execute_script(curve) != own[1]


def test_tables_are_saved(opened, downloads):
    for name in ("verdicts", "differences"):
        opened.execute_script(f"document.querySelector('[data-name={name}] button').click()")
    rows = saved_rows(downloads, "verdicts.csv")
    assert list(rows[0]) == ["Question", "smoke", "other"]
    assert rows[1]["smoke"].startswith("not asked")  # a smoke study learns nothing
    assert saved_rows(downloads, "differences.csv") == [{"What differs": "device", "smoke": "cpu", "other": "another"}]


def test_texts_are_compared_with_translations(browser, smoke_run, smoke_translation_run, tmp_path):
    opened = visit(browser, write_page([smoke_run, smoke_translation_run], out=tmp_path / "page.html"))
    leaves_nothing_and_complains_of_nothing(opened)
    drawn = "return [...document.querySelectorAll('.chart')].map((chart) => chart.querySelectorAll('svg').length)"
    assert set(opened.execute_script(drawn)) == {1}


def test_studies_of_different_corpora_are_compared_as_far_as_they_can_be(browser, smoke_run, tmp_path):
    rows = [f"{'pqr'[i % 3]} {'xyzw'[i % 4]} {'vu'[i % 2]},{'pqr'[i % 3]}" for i in range(60)]
    (tmp_path / "letters.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    api.study(tmp_path / "letters.csv", out=tmp_path / "letters", budget="smoke", steps=8, jobs=1, progress=False)
    opened = visit(browser, write_page([smoke_run, tmp_path / "letters"], out=tmp_path / "page.html"))
    leaves_nothing_and_complains_of_nothing(opened)
    assert "were not shown the same validation texts" in by_id(opened, "examples").text
    drawn = "return [...document.querySelectorAll('.chart')].map((chart) => chart.querySelectorAll('svg').length)"
    assert set(opened.execute_script(drawn)) == {1}
    by_id(opened, "step").send_keys(Keys.HOME)
    settle(opened)
    assert by_id(opened, "step-text").text.startswith("step 0 of ")
