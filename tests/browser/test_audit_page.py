"""The page of an audit in a real browser."""

import json

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from heedful.attribution.attention_maps import DELETION, GRADIENT
from heedful.reports.audit_page import write_audit_page
from tests.browser.chromium import (
    by_id,
    has_no_sideways_scrolling,
    in_a_browser,
    is_accessible,
    saved,
    saved_picture,
    saved_rows,
    settle,
    visit,
)
from tests.reports.audit_example import EXAMPLES, HEADS, HOSTILE_WORDS, LAYERS, audit_example, one_head_example

pytestmark = in_a_browser

SHOWN = "return [...document.querySelectorAll('.example:not([hidden]) h3')].map(h => h.textContent.split(' ')[1])"
PRESSED = "return document.querySelector('.grid:not([hidden]) [aria-pressed=true]').ariaLabel"


@pytest.fixture(scope="module")
def result():
    return audit_example()


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    return write_audit_page(result, tmp_path_factory.mktemp("audit") / "page.html", "heedful audit")


@pytest.fixture
def opened(browser, page):
    return visit(browser, page)


def test_nothing_is_complained_of_and_nothing_leaves_the_page(opened):
    requests = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    addresses = [r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"]
    assert addresses
    assert [a for a in addresses if not a.startswith(("file:", "data:", "blob:"))] == []
    assert opened.get_log("browser") == []


def test_another_importance_is_chosen(opened, result):
    cells = "return [...document.querySelectorAll('.grid:not([hidden]) td')].map(td => td.textContent)"
    before = opened.execute_script(cells)
    assert len(before) == LAYERS * (HEADS + 1)
    Select(by_id(opened, "against")).select_by_visible_text(GRADIENT)
    settle(opened)
    after = opened.execute_script(cells)
    assert len(after) == len(before)
    assert after != before
    assert after[0].replace("−", "-") == f"{result.score('tau', 'layer 1 head 1', GRADIENT).value:.2f}"


def test_a_head_is_chosen_by_click_and_by_key(opened, result):
    opened.execute_script("document.querySelector('.grid:not([hidden]) [data-map=\"layer 2 head 3\"] button').click()")
    settle(opened)
    tau, entropy = result.score("tau", "layer 2 head 3", DELETION), result.score("entropy", "layer 2 head 3")
    shown = by_id(opened, "head").text.replace("−", "-")
    assert shown.startswith("layer 2 head 3")
    assert f"{tau.value:.3f} ({tau.low:.3f}" in shown
    assert f"{entropy.value:.3f}" in shown
    button = opened.find_element(By.CSS_SELECTOR, ".grid:not([hidden]) [aria-pressed=true]")
    button.send_keys(Keys.ARROW_DOWN)
    assert opened.execute_script(PRESSED).startswith("layer 3 head 3: ")
    opened.switch_to.active_element.send_keys(Keys.ARROW_DOWN)  # there is no layer below
    opened.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    opened.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert opened.execute_script(PRESSED).startswith("layer 3: ")
    assert "shuffled" in by_id(opened, "head").text
    reachable = "return document.querySelectorAll('.grid:not([hidden]) button[tabindex=\"0\"]').length"
    assert opened.execute_script(reachable) == 1


def test_every_head_is_drawn_and_a_click_enlarges_it(opened, result):
    drawn = "return [...document.querySelectorAll('.grid:not([hidden]) td .bars path')].map(p => p.getAttribute('d'))"
    before = opened.execute_script(drawn)
    assert len(before) == LAYERS * (HEADS + 1)
    assert len(set(before)) > LAYERS * HEADS
    Select(by_id(opened, "head-text")).select_by_index(2)
    settle(opened)
    assert opened.execute_script(drawn) != before
    opened.execute_script("document.querySelector('.grid:not([hidden]) [data-map=\"layer 2 head 3\"] button').click()")
    settle(opened)
    head = by_id(opened, "head")
    assert head.find_element(By.TAG_NAME, "h3").text == f"layer 2 head 3 on text {result.examples[2].text + 1}"
    weights = next(weights.values for weights in result.examples[2].maps if weights.name == "layer 2 head 3")
    words = head.find_elements(By.CSS_SELECTOR, ".w")
    assert [word.text for word in words] == list(result.examples[2].words)
    assert words[0].get_attribute("title") == f"{100 * weights[0]:.1f} %"


def test_an_address_leads_to_a_head_or_an_example(browser, page, result):
    visit(browser, page)
    browser.execute_script("location.hash = 'head=layer+3+head+2'")
    settle(browser)
    assert browser.execute_script(PRESSED).startswith("layer 3 head 2: ")
    number = result.examples[11].text + 1
    browser.execute_script(f"location.hash = 'example={number}'")
    settle(browser)
    assert str(number) in browser.execute_script(SHOWN)
    assert browser.execute_script("return document.querySelector('.example.linked').id") == f"example={number}"
    Select(by_id(browser, "beside")).select_by_value("other")
    settle(browser)
    assert "a different map, same prediction" in browser.find_element(By.CSS_SELECTOR, ".example.linked").text


def test_examples_are_ordered_found_and_turned(opened, result):
    assert len(opened.execute_script(SHOWN)) == 10
    order, text = Select(by_id(opened, "order")), lambda i: str(result.examples[i].text + 1)
    order.select_by_value("sure")
    settle(opened)
    assert opened.execute_script(SHOWN) == [text(i) for i in range(EXAMPLES - 1, 1, -1)]
    order.select_by_value("together")
    settle(opened)
    taus = json.loads(opened.execute_script("return document.getElementById('payload').textContent"))["examples"]
    best = sorted((e for e in taus if e["tau"][DELETION] is not None), key=lambda e: -e["tau"][DELETION])
    assert opened.execute_script(SHOWN) == [str(e["text"]) for e in best[:10]]
    opened.execute_script("document.getElementById('next').click()")
    settle(opened)
    assert by_id(opened, "place").text == f"11–{EXAMPLES} of {EXAMPLES}"
    assert opened.execute_script(SHOWN)[-1] == text(7)  # it has no τ
    assert not by_id(opened, "next").is_enabled()
    by_id(opened, "find").send_keys("STUBBORN")
    settle(opened)
    assert by_id(opened, "found").text == f"3 of {EXAMPLES} found"
    assert len(opened.execute_script(SHOWN)) == 3
    by_id(opened, "find").send_keys("-nowhere")
    settle(opened)
    assert opened.execute_script(SHOWN) == []
    assert by_id(opened, "place").text == "none"


def test_words_are_shaded_by_any_importance(opened):
    beside = "return [...document.querySelectorAll('.example:not([hidden]) .words.beside .w')].map(w => w.className)"
    before = opened.execute_script(beside)
    assert {"w p5", "w n4"} <= set(before)  # words that speak for the prediction, and against it
    Select(by_id(opened, "beside")).select_by_visible_text(GRADIENT)
    settle(opened)
    after = opened.execute_script(beside)
    assert len(after) == len(before)
    assert after != before
    assert f"{GRADIENT} · rank correlation with attention, τ," in opened.find_element(By.CSS_SELECTOR, ".example").text
    assert opened.execute_script("return document.querySelectorAll('.example:first-child .words').length") <= 2


def test_hostile_words_stay_words(opened):
    shown = opened.execute_script("return [...document.querySelectorAll('.w')].map(w => w.textContent)")
    assert set(HOSTILE_WORDS) <= set(shown)
    assert opened.execute_script("return document.querySelectorAll('script').length") == 2
    assert opened.execute_script("return document.querySelectorAll('img').length") == 0


def press(browser, name, kind):
    """Save one thing; a browser refuses more than ten files that no hand has asked for."""
    browser.execute_script(f"document.querySelector('[aria-label=\"Save {name} as {kind}\"]').click()")


def test_pictures_and_tables_are_saved(opened, downloads, result):
    for name in ("scores", "words", "comparisons"):
        press(opened, name, "CSV")
    for name in ("tau-1", "comprehensiveness-2", "moved-1", "another-1"):
        press(opened, name, "SVG")
        assert saved_picture(downloads, f"{name}.svg")
    rows = saved_rows(downloads, "scores.csv")
    assert [row["of"] for row in rows] == [score.of for score in result.scores]
    assert float(rows[0]["value"]) == result.scores[0].estimate.value
    words = saved_rows(downloads, "words.csv")
    assert len(words) == sum(len(example.words) for example in result.examples)
    assert float(words[0]["attention"]) == pytest.approx(result.examples[0].map[0], abs=1e-5)
    assert "'=1+1" in {row["word"] for row in words}
    comparisons = saved(downloads, "comparisons.csv").read_text(encoding="utf-8-sig")
    assert comparisons.startswith("quantity,first,second,p,corrected,difference,low,high,n,undefined")


@pytest.mark.parametrize("width", [320, 390, 800, 1920])
def test_no_sideways_scrolling(opened, width):
    has_no_sideways_scrolling(opened, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(browser, page, scheme):
    is_accessible(browser, page, scheme)


def test_everything_is_there_without_a_script(browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert len(browser.find_elements(By.CSS_SELECTOR, ".example")) == EXAMPLES
        assert by_id(browser, "verdict-title").is_displayed()
        assert not by_id(browser, "example-tools").is_displayed()
        assert "head 3" in by_id(browser, "heads").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.fixture(scope="module")
def one_head(tmp_path_factory):
    """An audit of one layer with one head: there is no grid of heads."""
    made = one_head_example()
    return made, write_audit_page(made, tmp_path_factory.mktemp("one") / "page.html", "heedful audit")


def test_the_page_of_one_head_has_no_errors_and_pages_finds_orders_and_saves(browser, one_head, downloads):
    result, page = one_head
    opened = visit(browser, page)
    assert opened.get_log("browser") == []
    assert opened.find_elements(By.ID, "heads") == []
    assert len(opened.execute_script(SHOWN)) == 10
    opened.execute_script("document.getElementById('next').click()")
    settle(opened)
    assert by_id(opened, "place").text == f"11–{EXAMPLES} of {EXAMPLES}"
    Select(by_id(opened, "order")).select_by_value("sure")
    settle(opened)
    assert opened.execute_script(SHOWN)[0] == str(result.examples[-1].text + 1)
    by_id(opened, "find").send_keys("STUBBORN")
    settle(opened)
    assert by_id(opened, "found").text == f"3 of {EXAMPLES} found"
    press(opened, "words", "CSV")
    assert len(saved_rows(downloads, "words.csv")) == sum(len(example.words) for example in result.examples)


def test_words_that_speak_against_the_output_have_another_colour(opened):
    beside = "return [...document.querySelectorAll('.example:not([hidden]) .words.beside .w')].map(w => w.className)"
    assert any(" n" in name for name in opened.execute_script(beside))
    Select(by_id(opened, "beside")).select_by_visible_text(GRADIENT)
    settle(opened)
    assert not any(" n" in name for name in opened.execute_script(beside))
