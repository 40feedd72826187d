"""The page of a study in a real browser."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from benchmarks.browser import screen
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from heedful.reports.pages import write_report
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory
from tests.browser.chromium import (
    by_id,
    has_no_sideways_scrolling,
    in_a_browser,
    is_accessible,
    leaves_nothing_and_complains_of_nothing,
    saved,
    saved_picture,
    saved_rows,
    settle,
    titles,
    visit,
)
from tests.conftest import restamp

HOSTILE_WORDS = [
    "<script>alert(1)</script>",
    "</script>",
    "<img src=x onerror=alert(2)>",
    '"quotes"\'',
    "{{7*7}}",
    "x" * 10_000,
    "فيلمان",
    "👩‍👩‍👦",
]

# Names of agreements that reach beyond their picture.
CUT_NAMES = """
const chart = document.querySelector("#agreement-chart svg"), end = chart.getBoundingClientRect().right;
return [...chart.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right > end + 0.5)
  .map((text) => text.textContent);
"""

pytestmark = in_a_browser


@pytest.fixture(scope="module")
def page(smoke_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(smoke_run, out=tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    return visit(browser, page)


def shades(browser):
    script = "return [...document.querySelectorAll('.example .w')].map(w => w.style.backgroundColor)"
    return browser.execute_script(script)


def test_nothing_is_complained_of_and_nothing_leaves_the_page(opened):
    leaves_nothing_and_complains_of_nothing(opened)


def test_words_have_bars_of_their_attention(opened):
    bars = """return [...document.querySelectorAll('#token-table .bar')].map((bar) => {
        const style = getComputedStyle(bar);
        return [style.backgroundColor, style.position, style.padding];
    })"""
    lines = opened.execute_script("return getComputedStyle(document.documentElement).getPropertyValue('--s3').trim()")
    red, green, blue = (int(lines[k : k + 2], 16) for k in (1, 3, 5))
    assert {tuple(bar) for bar in opened.execute_script(bars)} == {(f"rgb({red}, {green}, {blue})", "static", "0px")}


def test_agreement_curves_are_named_in_words(opened):
    texts = "return [...document.querySelectorAll('#curve-chart svg > text')].map((text) => text.textContent)"
    named = [text for text in opened.execute_script(texts) if "↔" in text]
    assert len(named) == 7
    assert "attention ↔ word knowledge A(α, β)" in named


def test_at_least_ten_examples_with_all_three_quantities(opened):
    assert len(titles(opened)) == 10
    names = opened.execute_script("return [...document.querySelectorAll('.example .q')].map(q => q.textContent)")
    assert names == ["attention α", "word knowledge β", "influence Δ"] * 10
    assert len(set(shades(opened))) > 10


def test_the_slider_moves_everything(opened):
    cursor = "return document.querySelector('#curve-chart .cursor').getAttribute('x1')"
    words = "return document.querySelector('#token-table tbody').textContent"
    before = (
        shades(opened),
        opened.execute_script(cursor),
        opened.execute_script(words),
        by_id(opened, "step-text").text,
    )
    slider = by_id(opened, "step")
    slider.send_keys(Keys.HOME)
    settle(opened)
    after = (
        shades(opened),
        opened.execute_script(cursor),
        opened.execute_script(words),
        by_id(opened, "step-text").text,
    )
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert after[-1].startswith("step 0 of 12")
    assert slider.get_attribute("aria-valuetext") == "step 0"


def test_keys_move_and_play(opened):
    body = opened.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.ARROW_LEFT)
    settle(opened)
    assert by_id(opened, "step-text").text.startswith("step 8")
    body.send_keys(Keys.ARROW_RIGHT)
    settle(opened)
    assert by_id(opened, "step-text").text.startswith("step 12")
    body.send_keys(" ")
    assert by_id(opened, "play").get_attribute("aria-pressed") == "true"
    WebDriverWait(opened, 10).until(lambda b: by_id(b, "play").get_attribute("aria-pressed") == "false")
    assert by_id(opened, "step-text").text.startswith("step 12")


def test_typing_into_the_search_box_is_not_playing(opened):
    find = by_id(opened, "find")
    find.send_keys("good film")
    find.send_keys(Keys.ARROW_LEFT)
    settle(opened)
    assert by_id(opened, "play").get_attribute("aria-pressed") == "false"
    assert by_id(opened, "step-text").text.startswith("step 12")


def test_search_finds_and_says_how_many(opened):
    by_id(opened, "find").send_keys("wwwww")
    settle(opened)
    assert by_id(opened, "found").text == "2 of 2 shown"
    assert all("wwwww" in card.text for card in opened.find_elements(By.CLASS_NAME, "example"))
    by_id(opened, "find").send_keys("-no-such-word")
    settle(opened)
    assert titles(opened) == []


def test_orders(opened):
    order = Select(by_id(opened, "order"))
    seen = {}
    for option in ("varied", "agree", "disagree", "changed", "wrong"):
        order.select_by_value(option)
        settle(opened)
        seen[option] = titles(opened)
    assert len({tuple(cards) for cards in seen.values()}) == 5
    right = opened.execute_script("return [...document.querySelectorAll('.state .right')].length")
    assert right < 10  # the most wrong stand first


def test_another_model_and_two_side_by_side(opened):
    before = shades(opened)
    Select(by_id(opened, "model")).select_by_value("standard-1")
    settle(opened)
    assert shades(opened) != before
    Select(by_id(opened, "beside")).select_by_value("uniform-0")
    settle(opened)
    assert len(opened.find_elements(By.CSS_SELECTOR, ".example:first-child .strip")) == 6
    assert "uniform twin, seed 0" in opened.find_element(By.CSS_SELECTOR, ".example").text


def test_more_examples_and_numbers(opened):
    more = by_id(opened, "more")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", more)
    more.click()
    settle(opened)
    assert len(titles(opened)) == 20
    opened.execute_script("document.querySelector('.example details').open = true")
    settle(opened)
    rows = opened.execute_script("return document.querySelector('.example table').tBodies[0].rows.length")
    words = opened.execute_script("return document.querySelector('.example .words').children.length")
    assert rows == words


def test_click_into_a_chart(opened):
    opened.execute_script(
        "const box = document.querySelector('#accuracy-chart .hit').getBoundingClientRect();"
        "document.querySelector('#accuracy-chart .hit').dispatchEvent(new PointerEvent('pointerdown',"
        "{clientX: box.left + 1, clientY: box.top + 5, pointerId: 1, bubbles: true}))"
    )
    settle(opened)
    assert by_id(opened, "step-text").text.startswith("step 0")


def test_words_can_be_sorted(opened):
    head = opened.find_elements(By.CSS_SELECTOR, "#token-table thead button")[1]
    opened.execute_script("arguments[0].click()", head)
    assert opened.execute_script("return document.querySelectorAll('#token-table th')[1].ariaSort") == "descending"
    counts = opened.execute_script(
        "return [...document.querySelectorAll('#token-table tbody tr')].map(r => +r.cells[1].textContent)"
    )
    assert counts == sorted(counts, reverse=True)


def test_pictures_and_tables_are_saved(opened, downloads, smoke_run):
    opened.execute_script("document.getElementById('agreement-details').open = true")
    for button in opened.find_elements(
        By.CSS_SELECTOR,
        "#evidence .save button, #agreements .save button, #training .save button, #tokens .save button",
    ):
        opened.execute_script("arguments[0].click()", button)
    for name in ("agreements.svg", "accuracy.svg", "agreement-curves.svg", "entropy.svg"):
        assert saved_picture(downloads, name)
    assert saved(downloads, "entropy.png").read_bytes().startswith(b"\x89PNG")
    rows = saved_rows(downloads, "agreements.csv")
    result = StudyResult.load(smoke_run / "result.json")
    assert [float(row["agreement"]) for row in rows] == [row.estimate.value for row in result.agreements]
    words = list(csv.reader(io.StringIO(saved(downloads, "words.csv").read_text(encoding="utf-8-sig"))))
    assert words[0] == ["step", "word", "count", "attention", "beta"]
    assert not [row for row in words if row[1].startswith(("=", "+", "@"))]


def test_an_example_is_saved_as_a_picture_and_as_numbers(opened, downloads):
    opened.execute_script("document.querySelector('.example details').open = true")
    settle(opened)
    for button in opened.find_elements(By.CSS_SELECTOR, ".example:first-child .save button"):
        opened.execute_script("arguments[0].click()", button)
    number = titles(opened)[0].split()[1]
    words = opened.execute_script("return document.querySelector('.example .words').children.length")
    assert len(saved_picture(downloads, f"text-{number}.svg")) >= 3 * words
    assert saved(downloads, f"text-{number}.png").read_bytes().startswith(b"\x89PNG")
    rows = saved_rows(downloads, f"text-{number}.csv")
    assert list(rows[0]) == ["step", "model", "place", "word", "alpha", "beta", "delta"]
    assert len(rows) == words
    assert sum(float(row["alpha"]) for row in rows) == pytest.approx(1, abs=0.03)


def test_counting_is_shown_and_does_not_move(opened):
    strips = (
        "return [...document.querySelectorAll('.example:first-child .strip')].map((s) => [...s.querySelectorAll('.w')]"
    )
    colours = f"{strips}.map((w) => w.style.backgroundColor).join())"
    opened.execute_script("document.querySelector('[name=quantity][value=counting]').click()")
    settle(opened)
    before = opened.execute_script(colours)
    assert len(before) == 4
    by_id(opened, "step").send_keys(Keys.HOME)
    settle(opened)
    after = opened.execute_script(colours)
    assert before[3] == after[3]
    assert before[0] != after[0]


def test_equations_are_linked_within_the_page(opened):
    missing = """return [...document.querySelectorAll('a[href^="#"]')].map((a) => a.getAttribute('href'))
      .filter((href) => !href.includes('=') && !document.querySelector(href))"""
    assert opened.execute_script(missing) == []
    assert opened.execute_script("return document.querySelectorAll('#method a[href^=\"#eq-\"]').length") >= 6
    high = "return Math.min(...[...document.querySelectorAll('math')].map((m) => m.getBoundingClientRect().height))"
    assert opened.execute_script(high) > 8


def test_hostile_words_stay_words(browser, smoke_run, tmp_path):
    run = Path(shutil.copytree(smoke_run, tmp_path / "run"))
    path = run / "data" / "vocabulary.json"
    words = json.loads(path.read_text(encoding="utf-8"))
    words[4 : 4 + len(HOSTILE_WORDS)] = HOSTILE_WORDS
    path.write_text(json.dumps(words), encoding="utf-8")
    texts = RunDirectory(run).words()
    RunDirectory(run).save_words(
        [[HOSTILE_WORDS[(i + j) % len(HOSTILE_WORDS)] for j in range(len(t))] for i, t in enumerate(texts)]
    )
    visit(browser, write_report(restamp(run).root))
    shown = set(
        browser.execute_script("return [...document.querySelectorAll('.w, #token-table th')].map(w => w.textContent)")
    )
    assert set(HOSTILE_WORDS) <= shown
    assert browser.execute_script("return document.querySelectorAll('script').length") == 3
    assert browser.execute_script("return document.querySelectorAll('img, i.x, b b').length") == 0
    assert browser.get_log("browser") == []  # nothing ran, nothing was even refused
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_right_to_left_text_runs_right_to_left(browser, smoke_run, opened):
    by_id(opened, "find").send_keys("فيلم")
    settle(opened)
    direction = "return getComputedStyle(document.querySelector('.example .words')).direction"
    assert opened.execute_script(direction) == "rtl"


@pytest.mark.parametrize("width", [320, 390, 800, 1920])
def test_no_sideways_scrolling(opened, width):
    has_no_sideways_scrolling(opened, width)


def test_on_a_phone_agreements_keep_their_names_and_values(opened):
    """Names of the dots end inside the picture; rows of the table are stacked, so that no column is out of sight."""
    screen(opened, 390, 844)
    try:
        settle(opened)
        opened.execute_script("document.getElementById('agreement-details').open = true")
        opened.execute_script("document.getElementById('agreements').scrollIntoView()")
        settle(opened)
        assert opened.execute_script(CUT_NAMES) == []
        assert opened.execute_script("return innerWidth") == 390
        cells = "return [...document.querySelectorAll('#agreement-table tbody td')]"
        assert opened.execute_script(f"{cells}.every((cell) => cell.getBoundingClientRect().right <= 390)")
        assert opened.execute_script(f"{cells}.every((cell) => cell.dataset.head)")
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(browser, page, scheme):
    is_accessible(browser, page, scheme)
