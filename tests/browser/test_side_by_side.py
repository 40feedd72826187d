"""Audits, and followed trainings, side by side in a real browser."""

import shutil
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from heedful.reports.pages import write_page
from heedful.reports.sweep_page import render_sweep
from heedful.storage.manifest import RunClock
from tests.browser.chromium import (
    AUDIT,
    SHADES,
    by_id,
    has_no_sideways_scrolling,
    in_a_browser,
    leaves_nothing_and_complains_of_nothing,
    saved_picture,
    saved_rows,
    settle,
    visit,
)
from tests.reports.audit_example import HOSTILE_WORDS, audit_example, one_head_example
from tests.reports.test_followed_page import RIGHT, follow
from tests.reports.test_sweep_page import swept

pytestmark = in_a_browser


def test_followed_trainings_move_together(browser, tmp_path, downloads):
    one = follow(tmp_path / "one", labels=RIGHT).root
    visit(browser, write_page([one, Path(shutil.copytree(one, tmp_path / "two"))], out=tmp_path / "page.html"))
    leaves_nothing_and_complains_of_nothing(browser)
    before = browser.execute_script(SHADES)
    by_id(browser, "step").send_keys(Keys.HOME)
    settle(browser)
    after = browser.execute_script(SHADES)
    assert len(before) == 2
    assert all(a != b for a, b in zip(before, after, strict=True))
    heads = [head.text for head in browser.find_elements(By.CSS_SELECTOR, "#token-table thead th")]
    wanted = ["word", "count", "attention, one", "word knowledge, one", "attention, two", "word knowledge, two"]
    assert [head.rstrip(" ▼▲") for head in heads] == wanted
    browser.execute_script("document.querySelector('[data-name=words] button').click()")
    rows = saved_rows(downloads, "words.csv")
    assert {row["run"] for row in rows} == {"one", "two"}
    assert {row["step"] for row in rows} == {"0"}
    has_no_sideways_scrolling(browser, 390)


@pytest.mark.parametrize(
    "results",
    [(audit_example, audit_example), (one_head_example, one_head_example), (one_head_example, audit_example)],
    ids=["many heads", "one head", "one head and many"],
)
def test_audits_stand_side_by_side(browser, tmp_path, downloads, results):
    for earlier in downloads.iterdir():
        earlier.unlink()
    audits = {name: make() for name, make in zip(("one", "two"), results, strict=True)}
    for name, audit in audits.items():
        (tmp_path / name).mkdir()
        RunClock("audit").finish(tmp_path / name, audit)
    visit(browser, write_page([tmp_path / "one", tmp_path / "two"], out=tmp_path / "page.html"))
    leaves_nothing_and_complains_of_nothing(browser)
    shown = browser.execute_script("return [...document.querySelectorAll('.w')].map(w => w.textContent)")
    assert set(HOSTILE_WORDS) <= set(shown)
    assert browser.execute_script("return document.querySelectorAll('script, img').length") == 2
    for name in ("measured", "scores", "figure-1"):
        browser.execute_script(f"document.querySelector('[data-name={name}] button').click()")
    assert list(saved_rows(downloads, "measured.csv")[0]) == ["Measurement", "one", "two"]
    assert len(saved_rows(downloads, "scores.csv")) == sum(len(audit.scores) for audit in audits.values())
    assert saved_picture(downloads, "figure-1.svg")[0].startswith("τ with")
    has_no_sideways_scrolling(browser, 390)


def test_a_sweep_is_saved(browser, tmp_path, downloads):
    page = tmp_path / "sweep.html"
    page.write_text(render_sweep(swept(2, 2), "grid"), encoding="utf-8")
    visit(browser, page)
    leaves_nothing_and_complains_of_nothing(browser)
    assert browser.execute_script(AUDIT) == []
    for kind in ("figures", "studies"):
        browser.execute_script(f"document.querySelector('#{kind} .save button').click()")
    assert len(saved_rows(downloads, "studies.csv")) == 4
    assert saved_picture(downloads, "grid-accuracy-1.svg")


@pytest.mark.parametrize("kind", ["dot", "whisker"])
def test_marks_have_colours(browser, tmp_path, kind):
    (tmp_path / "one").mkdir()
    RunClock("audit").finish(tmp_path / "one", audit_example())
    visit(browser, write_page([tmp_path / "one"]))
    strokes = f"return [...new Set([...document.querySelectorAll('.{kind}')].map((m) => getComputedStyle(m).stroke))]"
    found = browser.execute_script(strokes)
    assert len(found) == 3
    assert "none" not in found
