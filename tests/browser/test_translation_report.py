"""The page of a translation study in a real browser."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from heedful.reports.pages import write_report
from tests.browser.chromium import (
    by_id,
    has_no_sideways_scrolling,
    in_a_browser,
    is_accessible,
    saved,
    saved_rows,
    settle,
    titles,
    visit,
)

pytestmark = in_a_browser


@pytest.fixture(scope="module")
def page(smoke_translation_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(smoke_translation_run, out=tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    visit(browser, page)
    browser.execute_script("document.getElementById('example-list').scrollIntoView()")
    settle(browser)
    WebDriverWait(browser, 10).until(lambda b: "none" not in fills(b, 0))
    return browser


def fills(browser, card):
    """The colours of a card's cells."""
    script = "return [...document.querySelectorAll('.pair')[arguments[0]].querySelectorAll('.cell')]"
    return browser.execute_script(f"{script}.map(c => c.getAttribute('fill'))", card)


def outputs_and_positions(browser):
    """How many rows and columns the first card's matrices have, by their description."""
    title = browser.execute_script("return document.querySelector('.pair .matrices svg').getAttribute('aria-label')")
    return [int(number) for number in re.findall(r"(\d+) (?:output|source) words", title)]


def readout(browser):
    return browser.execute_script("return document.querySelector('.pair .numbers').textContent")


def press(browser, *keys):
    holder = browser.find_element(By.CSS_SELECTOR, ".matrices")
    browser.execute_script("arguments[0].focus()", holder)
    for key in keys:
        holder.send_keys(key)
    settle(browser)


def test_nothing_is_complained_of_and_nothing_leaves_the_page(opened):
    requests = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    addresses = [r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"]
    assert addresses
    assert [a for a in addresses if not a.startswith(("file:", "data:", "blob:"))] == []
    assert opened.get_log("browser") == []


def test_matrices_of_three_quantities_side_by_side(opened):
    assert len(titles(opened)) == 5
    names = "return [...document.querySelector('.pair').querySelectorAll('text.name')].map(n => n.textContent)"
    assert opened.execute_script(names) == ["attention α", "word knowledge β", "word counts αIBM"]
    size = outputs_and_positions(opened)
    assert len(fills(opened, 0)) == 3 * size[0] * size[1]
    best = "return document.querySelectorAll('.pair')[0].querySelectorAll('.best').length"
    assert opened.execute_script(best) == 3 * size[0]
    assert opened.execute_script("return document.querySelectorAll('.pair .gold').length") > 0
    assert opened.execute_script("return document.querySelectorAll('.pair .gold.possible').length") > 0


def test_the_slider_moves_everything_but_the_counts(opened):
    def seen():
        cells, text = fills(opened, 0), opened.find_element(By.CSS_SELECTOR, ".pair .state").text
        charts = [
            opened.execute_script(f"return document.querySelector('#{chart}-chart .cursor').getAttribute('x1')")
            for chart in ("bleu", "alignment", "curve")
        ]
        words = opened.execute_script("return document.querySelector('#token-table tbody').textContent")
        third = len(cells) // 3
        return cells[:third], cells[third : 2 * third], charts, words, text, cells[2 * third :]

    before = seen()
    by_id(opened, "step").send_keys(Keys.HOME)
    settle(opened)
    after = seen()
    assert all(a != b for a, b in zip(before[:4], after[:4], strict=True))
    assert before[5] == after[5]
    assert by_id(opened, "step-text").text.startswith("step 0 of 12 · accuracy")


def test_a_cell_is_read_out_by_pointer_and_by_keys(opened):
    cell = opened.find_element(By.CSS_SELECTOR, ".pair .cell[data-cell='1']")
    webdriver.ActionChains(opened).move_to_element(cell).perform()
    settle(opened)
    pointed = readout(opened)
    assert all(
        part in pointed for part in (" → ", "attention ", "word knowledge ", "influence ", "Model 1 ", "would say")
    )
    webdriver.ActionChains(opened).move_to_element(opened.find_element(By.CSS_SELECTOR, ".pair h3")).perform()
    assert "arrow keys" in readout(opened)
    press(opened, Keys.ARROW_RIGHT)
    assert readout(opened) == pointed
    assert opened.execute_script("return document.querySelector('.pair .numbers').ariaLive") == "polite"
    press(opened, Keys.ARROW_DOWN)
    assert readout(opened) != pointed
    assert by_id(opened, "step-text").text.startswith("step 12")  # the arrows walked, the slider stayed
    lit = opened.execute_script("return document.querySelectorAll('.pair .label.lit').length")
    assert lit == 5  # one row, one column of each matrix, and the output word of the lines


def test_keys_elsewhere_move_the_slider_and_play(opened):
    body = opened.find_element(By.TAG_NAME, "body")
    opened.execute_script("document.activeElement.blur()")
    body.send_keys(Keys.ARROW_LEFT)
    settle(opened)
    assert by_id(opened, "step-text").text.startswith("step 6")
    body.send_keys(" ")
    assert by_id(opened, "play").get_attribute("aria-pressed") == "true"
    WebDriverWait(opened, 10).until(lambda b: by_id(b, "play").get_attribute("aria-pressed") == "false")
    assert by_id(opened, "step-text").text.startswith("step 12")


def test_search_and_orders(opened):
    by_id(opened, "find").send_keys("فيلم جيد")
    settle(opened)
    assert by_id(opened, "found").text == "1 of 1 shown"
    assert "סרט" in opened.find_element(By.CLASS_NAME, "pair").text
    assert opened.execute_script("return getComputedStyle(document.querySelector('.pair dd')).direction") == "rtl"
    by_id(opened, "find").send_keys("-no-such-word")
    settle(opened)
    assert titles(opened) == []
    by_id(opened, "find").clear()
    by_id(opened, "find").send_keys(" ")
    order, seen = Select(by_id(opened, "order")), []
    options = [option.get_attribute("value") for option in order.options]
    assert options == ["varied", "disagree", "agree", "changed", "wrong", "misaligned", "aligned"]
    for option in options:
        order.select_by_value(option)
        settle(opened)
        seen.append(tuple(titles(opened)))
    assert len(set(seen)) >= 5
    assert not set(seen[-1]) <= set(seen[-2])


def test_models_and_quantities(opened):
    before = fills(opened, 0)
    Select(by_id(opened, "model")).select_by_value("standard-1")
    opened.execute_script("document.getElementById('example-list').scrollIntoView()")
    WebDriverWait(opened, 10).until(lambda b: "none" not in fills(b, 0))
    assert fills(opened, 0) != before
    Select(by_id(opened, "beside")).select_by_value("uniform-0")
    for name in ("delta", "model_1"):
        opened.execute_script("arguments[0].click()", opened.find_element(By.CSS_SELECTOR, f"[value={name}]"))
    WebDriverWait(opened, 10).until(lambda b: "none" not in fills(b, 0))
    names = opened.execute_script("return document.querySelector('.pair').querySelectorAll('text.name').length")
    assert names == 10
    assert "attention is frozen uniform" in opened.find_element(By.CSS_SELECTOR, ".pair").text
    opened.execute_script("document.querySelector('.pair details').open = true")
    settle(opened)
    rows = opened.execute_script("return document.querySelector('.pair table').tBodies[0].rows.length")
    assert rows == outputs_and_positions(opened)[0]


def test_pictures_and_tables_are_saved(opened, downloads):
    for button in opened.find_elements(
        By.CSS_SELECTOR,
        "[data-name=bleu] button, [data-name=alignment] button, #tokens .save button, .pair:first-child .save button",
    ):
        opened.execute_script("arguments[0].click()", button)
    for name in ("bleu.svg", "alignment.svg", "standard-0.svg"):
        picture = ET.parse(saved(downloads, name)).getroot()
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        assert picture.findall(".//{http://www.w3.org/2000/svg}text")
    assert saved(downloads, "standard-0.png").read_bytes().startswith(b"\x89PNG")
    words = saved_rows(downloads, "words.csv")
    assert {row["way"] for row in words} == {"counting", "model_1", "knowledge", "attention"}
    assert not [row for row in words if row["word"].startswith(("=", "+", "@", "-"))]


def test_translations_can_be_searched(opened):
    find = by_id(opened, "find-token")
    find.send_keys("<script>alert(1)")
    heads = "return [...document.querySelectorAll('#token-table tbody th')].map(h => h.textContent)"
    assert opened.execute_script(heads) == ["<script>alert(1)</script>"]


def test_hostile_words_stay_words(opened):
    while by_id(opened, "more").is_displayed():
        opened.execute_script("arguments[0].click()", by_id(opened, "more"))
        settle(opened)
    shown = opened.execute_script(
        "return [...document.querySelectorAll('.pair dd, .pair .label')].map(w => w.textContent)"
    )
    assert "<script>alert(1)</script> Hund" in shown
    assert "lang " + "w" * 10_000 + " Wort" in shown
    assert "wwwwwwwwwwwwwww…" in shown
    assert "{{7*7}}" in shown
    assert opened.execute_script("return document.querySelectorAll('script').length") == 3
    assert opened.execute_script("return document.querySelectorAll('img, dd b, dt b').length") == 0
    assert opened.get_log("browser") == []


@pytest.mark.parametrize("width", [320, 390, 800, 1920])
def test_no_sideways_scrolling(opened, width):
    has_no_sideways_scrolling(opened, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(browser, page, scheme):
    is_accessible(browser, page, scheme)
