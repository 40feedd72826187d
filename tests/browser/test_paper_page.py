"""The page of a paper in a real browser."""

import xml.etree.ElementTree as ET

import pytest
from selenium.webdriver.common.by import By

from heedful.reports.paper_page import write_paper_report
from tests.browser.chromium import (
    AUDIT,
    in_a_browser,
    leaves_nothing_and_complains_of_nothing,
    saved,
    saved_rows,
    visit,
)
from tests.reports.test_paper_page import CLAIM, HOSTILE, MALICE, RESULTS

pytestmark = in_a_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_paper_report(RESULTS, [CLAIM], tmp_path_factory.mktemp("paper") / "page.html")


def test_tables_and_figures_are_saved(browser, page, downloads):
    visit(browser, page)
    leaves_nothing_and_complains_of_nothing(browser)
    assert browser.execute_script(AUDIT) == []
    for button in browser.find_elements(By.CSS_SELECTOR, ".save button"):
        browser.execute_script("arguments[0].click()", button)
    cells = saved_rows(downloads, "table2-quick.csv")
    table = RESULTS[0].finding.tables[0]
    assert len(cells) == len(table.rows) * len(table.columns)
    assert float(cells[0]["measured"]) == table.rows[0].cells[0].measured.value
    assert float(cells[0]["published"]) == table.rows[0].cells[0].published
    claims = saved_rows(downloads, "claims.csv")
    assert claims == [{name: CLAIM[name] for name in claims[0]}]
    figure = next(figure for result in RESULTS for figure in result.finding.figures)
    assert ET.parse(saved(downloads, f"{figure.name}.svg")).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert saved(downloads, f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")


def test_hostile_words_stay_words(browser, tmp_path):
    claim = CLAIM | dict.fromkeys(("id", "sentence", "statistic", "measured"), HOSTILE)
    visit(browser, write_paper_report(MALICE, [claim], tmp_path / "page.html"))
    assert browser.execute_script("return document.querySelectorAll('script').length") == 2
    assert browser.execute_script("return document.querySelectorAll('img').length") == 2
    assert browser.get_log("browser") == []
