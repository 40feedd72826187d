"""A page in a real browser: what the tests of all pages share."""

import csv
import io
import json
import os
import time
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path

import pytest
from benchmarks import browser as headless
from benchmarks.browser import CHROMIUM, DRIVER
from selenium import webdriver
from selenium.webdriver.common.by import By

INSTALLED = CHROMIUM.exists() and DRIVER.exists()
in_a_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not INSTALLED and os.environ.get("CI") != "true",
        reason="chromium and chromedriver are not installed",
    ),
]


STILL = {"name": "prefers-reduced-motion", "value": "reduce"}


def visit(browser: webdriver.Chrome, page: Path, *features: dict[str, str], moving: bool = False) -> webdriver.Chrome:
    """Open a page; moving: let it play by itself, where a reader has not asked for less motion."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [*features, *([] if moving else [STILL])]})
    browser.get_log("performance")
    browser.get_log("browser")
    headless.visit(browser, page)
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


def saved_rows(downloads: Path, name: str) -> list[dict[str, str]]:
    """A table that was saved, row by row."""
    return list(csv.DictReader(io.StringIO(saved(downloads, name).read_text(encoding="utf-8-sig"))))


def saved_picture(downloads: Path, name: str) -> list[str]:
    """The texts of a picture that was saved, of which there must be some."""
    root = ET.parse(saved(downloads, name)).getroot()
    assert root.tag == f"{SVG}svg"
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert texts
    return texts


def has_no_sideways_scrolling(browser: webdriver.Chrome, width: int) -> None:
    """The page, all of it unfolded, fits a screen of that width."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.execute_script(UNFOLDED)
        settle(browser)
        time.sleep(0.2)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def is_accessible(browser: webdriver.Chrome, page: Path, scheme: str) -> None:
    """Names, order and contrast of the whole page, by day or by night."""
    try:
        visit(browser, page, {"name": "prefers-color-scheme", "value": scheme})
        browser.execute_script(UNFOLDED)
        settle(browser)
        assert browser.execute_script(AUDIT) == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


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


SVG = "{http://www.w3.org/2000/svg}"
UNFOLDED = "for (const details of document.querySelectorAll('details')) details.open = true"
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

# The colours of the first example's words, a text for each side.
SHADES = """return [...document.querySelectorAll('.example:first-child .sides > div')]
  .map((side) => [...side.querySelectorAll('.w')].map((w) => w.style.backgroundColor).join())"""
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
