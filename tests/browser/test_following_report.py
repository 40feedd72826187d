"""The page of a followed training in a real browser."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from heedful.reports.pages import write_report
from tests.browser.chromium import AUDIT, by_id, in_a_browser, settle, titles, visit
from tests.reports.test_followed_page import RIGHT, follow

pytestmark = in_a_browser


KINDS = {"labelled": (RIGHT, 1), "unlabelled": (None, 1), "many heads": (RIGHT, 3)}


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def labels(kind):
    return kind[0]


@pytest.fixture(scope="module")
def page(kind, tmp_path_factory):
    labels, heads = kind
    return write_report(follow(tmp_path_factory.mktemp("followed") / "run", labels=labels, heads=heads).root)


@pytest.fixture
def opened(browser, page):
    return visit(browser, page)


def test_all_is_drawn_and_nothing_complained_of(opened, labels):
    assert opened.get_log("browser") == []
    opened.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    settle(opened)
    assert opened.execute_script(AUDIT) == []
    charts = {chart.get_attribute("id") for chart in opened.find_elements(By.CSS_SELECTOR, ".chart:has(svg)")}
    wanted = {"agreement-chart", "entropy-chart", "special-chart", "curve-chart"}
    assert charts - {"scatter-chart"} == (wanted | {"accuracy-chart"} if labels else wanted)
    assert len(titles(opened)) == 10
    assert all(("labelled" in title) == bool(labels) for title in titles(opened))
    assert not by_id(opened, "model").is_displayed()
    assert not by_id(opened, "beside").is_displayed()


def test_the_slider_moves_everything(opened, labels):
    shades = "return [...document.querySelectorAll('.example .w')].map(w => w.style.backgroundColor).join()"
    words = "return document.querySelector('#token-table tbody').textContent"
    before = (opened.execute_script(shades), opened.execute_script(words), by_id(opened, "step-text").text)
    by_id(opened, "step").send_keys(Keys.HOME)
    settle(opened)
    after = (opened.execute_script(shades), opened.execute_script(words), by_id(opened, "step-text").text)
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert after[2].startswith("step 0 of 30")
    assert ("accuracy" in after[2]) == bool(labels)
    assert "seed" not in after[2]
