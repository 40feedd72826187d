"""A page in a real browser: what the tests of all pages share."""

import json
import os
import time
from importlib.resources import files
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1280,900"
)

in_a_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM.exists() and DRIVER.exists()) and os.environ.get("CI") != "true",
        reason="chromium and chromedriver are not installed",
    ),
]


def visit(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(page.as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.execute_script("return document.body.dataset.ready") == "yes")
    settle(browser)
    return browser


def settle(browser: webdriver.Chrome) -> None:
    """Wait until what was asked for is drawn, out of sight too."""
    browser.execute_async_script(SETTLED)


def by_id(browser, name):
    return browser.find_element(By.ID, name)


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


def leaves_nothing_and_complains_of_nothing(browser: webdriver.Chrome) -> None:
    """No request but to the page itself, and an empty console."""
    requests = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    addresses = [r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"]
    assert addresses
    assert [a for a in addresses if not a.startswith(("file:", "data:", "blob:"))] == []
    assert browser.get_log("browser") == []


def serious_faults(browser: webdriver.Chrome) -> list[str]:
    """What axe-core holds against the page as it stands, as far as it is serious or critical."""
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    found: list[str] = browser.execute_async_script(AXE)
    return found


SETTLED = """
const done = arguments[0];
const still = () => (typeof rest === "undefined" || !(frame || rest) ? done() : requestAnimationFrame(still));
requestAnimationFrame(() => requestAnimationFrame(still));
"""

AXE = """
const done = arguments[0];
axe.run(document, { resultTypes: ['violations'], elementRef: false }).then(({ violations }) => done(violations
  .filter((fault) => ['serious', 'critical'].includes(fault.impact))
  .flatMap((fault) => fault.nodes.map((node) => `${fault.id}: ${node.html.slice(0, 120)}`))));
"""

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
