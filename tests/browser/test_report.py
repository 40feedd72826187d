"""The page of a study in a real browser."""

import csv
import io
import json
import os
import shutil
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from heedful.reports.page import write_report
from heedful.studies.result import StudyResult

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1280,900"
)
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

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM.exists() and DRIVER.exists()) and os.environ.get("CI") != "true",
        reason="chromium and chromedriver are not installed",
    ),
]


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, downloads: Path) -> Iterator[webdriver.Chrome]:
    if not (CHROMIUM.exists() and DRIVER.exists()):
        pytest.fail("chromium and chromedriver are needed where CI=true")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads), "eventsEnabled": False}
    )
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(smoke_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(smoke_run, out=tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    return visit(browser, page)


def visit(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(page.as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.execute_script("return document.body.dataset.ready") == "yes")
    settle(browser)
    return browser


def settle(browser: webdriver.Chrome) -> None:
    """Wait until what was asked for is drawn."""
    browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


def by_id(browser, name):
    return browser.find_element(By.ID, name)


def shades(browser):
    script = "return [...document.querySelectorAll('.example .w')].map(w => w.style.backgroundColor)"
    return browser.execute_script(script)


def titles(browser):
    return browser.execute_script("return [...document.querySelectorAll('.example h3')].map(h => h.textContent)")


def saved(downloads: Path, name: str) -> Path:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for found in downloads.glob(f"*{name}"):
            if found.stat().st_size:
                return found
        time.sleep(0.05)
    pytest.fail(f"{name} was not saved; there are {list(downloads.iterdir())}")


def test_nothing_is_complained_of_and_nothing_leaves_the_page(opened):
    requests = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    addresses = [r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"]
    assert addresses
    assert [a for a in addresses if not a.startswith(("file:", "data:", "blob:"))] == []
    assert opened.get_log("browser") == []


def test_at_least_ten_examples_with_all_three_quantities(opened):
    assert len(titles(opened)) == 10
    letters = opened.execute_script("return [...document.querySelectorAll('.example .q')].map(q => q.textContent)")
    assert letters == ["α", "β", "Δ"] * 10
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
        By.CSS_SELECTOR, "#agreements .save button, #training .save button, #tokens .save button"
    ):
        opened.execute_script("arguments[0].click()", button)
    for name in ("agreements.svg", "accuracy.svg", "agreement-curves.svg", "entropy.svg"):
        picture = ET.parse(saved(downloads, name)).getroot()
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        assert picture.findall(".//{http://www.w3.org/2000/svg}text")
    assert saved(downloads, "entropy.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(saved(downloads, "agreements.csv").read_text(encoding="utf-8-sig"))))
    result = StudyResult.load(smoke_run / "result.json")
    assert [float(row["agreement"]) for row in rows] == [row.estimate.value for row in result.agreements]
    words = list(csv.reader(io.StringIO(saved(downloads, "words.csv").read_text(encoding="utf-8-sig"))))
    assert words[0] == ["step", "word", "count", "attention", "beta"]
    assert not [row for row in words if row[1].startswith(("=", "+", "@"))]


def test_hostile_words_stay_words(browser, smoke_run, tmp_path):
    run = Path(shutil.copytree(smoke_run, tmp_path / "run"))
    path = run / "data" / "vocabulary.json"
    words = json.loads(path.read_text(encoding="utf-8"))
    words[4 : 4 + len(HOSTILE_WORDS)] = HOSTILE_WORDS
    path.write_text(json.dumps(words), encoding="utf-8")
    visit(browser, write_report(run))
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
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        settle(opened)
        time.sleep(0.2)
        assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(browser, page, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        visit(browser, page)
        browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
        settle(browser)
        assert browser.execute_script(AUDIT) == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


AUDIT = r"""
const faults = [];
const seen = new Set();
for (const node of document.querySelectorAll('[id]')) {
  if (seen.has(node.id)) faults.push(`two elements are called ${node.id}`);
  seen.add(node.id);
}
const named = (node) =>
  node.ariaLabel || node.getAttribute('aria-labelledby') || node.labels?.length || node.textContent.trim();
const operable = 'button, select, input, summary, a, [role=img], [role=region], [role=group]';
for (const node of document.querySelectorAll(operable)) {
  if (!named(node)) faults.push(`${node.outerHTML.slice(0, 80)} has no name`);
}
for (const node of document.querySelectorAll('[aria-labelledby]')) {
  if (!document.getElementById(node.getAttribute('aria-labelledby'))) faults.push(`${node.id} is labelled by nothing`);
}
let level = 0;
for (const node of document.querySelectorAll('h1, h2, h3, h4')) {
  const now = +node.tagName[1];
  if (now > level + 1) faults.push(`${node.textContent} skips a level`);
  level = now;
}
if (document.querySelectorAll('h1').length !== 1) faults.push('there is not one h1');
if (!document.documentElement.lang) faults.push('no language');
for (const table of document.querySelectorAll('table')) {
  if (!table.querySelector('th[scope=col]')) faults.push('a table has no heads');
}
const parse = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => [r, g, b].map((c) => linear(c / 255))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (node) => {
  for (; node; node = node.parentElement) {
    const colour = parse(getComputedStyle(node).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const node = texts.currentNode.parentElement, text = texts.currentNode.data.trim();
  if (!text || node.closest('script, noscript, option') || !node.getClientRects().length) continue;
  const style = getComputedStyle(node);
  const ink = parse(node.closest('svg') ? style.fill : style.color);
  const [a, b] = [light(ink), light(ground(node))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  if (contrast < 4.5) faults.push(`${text.slice(0, 30)} has contrast ${contrast.toFixed(2)}`);
}
return [...new Set(faults)];
"""
