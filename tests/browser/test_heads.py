"""The heads of a Transformer on a study's page, in a real browser."""

from dataclasses import replace

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from heedful.config import study_preset, with_architecture
from heedful.reports.pages import write_report
from heedful.studies.study import run_study
from tests.browser.chromium import (
    by_id,
    has_no_sideways_scrolling,
    in_a_browser,
    is_accessible,
    leaves_nothing_and_complains_of_nothing,
    settle,
    visit,
)
from tests.conftest import tiny_corpus, tiny_pairs

pytestmark = in_a_browser

MAPS = """return [...document.querySelectorAll('#head-grid canvas')].map((c) => c.toDataURL()).join()
  + document.querySelector('#head .matrices svg').outerHTML + document.querySelector('#head .links svg').outerHTML"""


@pytest.fixture(scope="module", params=["classification", "translation"])
def page(request, tmp_path_factory):
    corpus = tiny_corpus() if request.param == "classification" else tiny_pairs()
    config = with_architecture(study_preset(corpus.name, "smoke", request.param), "transformer")
    folder = tmp_path_factory.mktemp("heads")
    run_study(replace(config, min_count=2), folder / "run", corpus=corpus, jobs=1, device="cpu")
    return write_report(folder / "run", out=folder / "report.html")


def test_every_head_has_a_map_that_can_be_enlarged_and_moves(browser, page):
    visit(browser, page)
    cells = browser.find_elements(By.CSS_SELECTOR, "#head-grid td.cell button")
    assert len(cells) == 8
    assert by_id(browser, "head").text.startswith("layer 1 head 1 on ")
    browser.execute_script("arguments[0].click()", cells[6])
    assert by_id(browser, "head").text.startswith("layer 2 head 3 on ")
    assert cells[6].get_attribute("aria-pressed") == "true"
    cells[6].send_keys(Keys.ARROW_RIGHT)
    assert by_id(browser, "head").text.startswith("layer 2 head 4 on ")
    assert browser.execute_script("return location.hash").endswith("head=layer+2+head+4")
    before = browser.execute_script(MAPS)
    browser.execute_script("goTo(0)")
    settle(browser)
    assert browser.execute_script(MAPS) != before
    leaves_nothing_and_complains_of_nothing(browser)


def test_a_head_can_be_linked_to(browser, page):
    visit(browser, page)
    browser.get(f"{page.resolve().as_uri()}#head=layer+2+head+1")
    browser.refresh()
    settle(browser)
    assert by_id(browser, "head").text.startswith("layer 2 head 1 on ")


def test_the_maps_fit_and_can_be_used_by_everybody(browser, page):
    is_accessible(browser, page, "light")
    for width in (390, 1280):
        has_no_sideways_scrolling(browser, width)
