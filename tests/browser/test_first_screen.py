"""The first screen of a study's page in a real browser: it plays, it can be steered, and it can be linked to."""

import pytest
from benchmarks.browser import screen
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from heedful.reports.pages import write_report
from tests.browser.chromium import (
    by_id,
    has_no_sideways_scrolling,
    in_a_browser,
    is_accessible,
    leaves_nothing_and_complains_of_nothing,
    serious_faults,
    settle,
    visit,
)
from tests.reports.answered_study import answered_run

pytestmark = in_a_browser

# What moves: the live example, the dots, the cursor and the examples below.
MOVING = """return [
  [...document.querySelectorAll('#live .w')].map((w) => w.style.backgroundColor).join()
    + [...document.querySelectorAll('#live .tie')].map((t) => t.outerHTML).join(),
  [...document.querySelectorAll('#scatter-chart .word')].map((d) => d.getAttribute('cx')).join(),
  document.querySelector('#accuracy-chart .cursor').getAttribute('x1'),
  [...document.querySelectorAll('.example')].slice(0, 2)
    .flatMap((e) => [...e.querySelectorAll('.w, .cell')])
    .map((w) => w.style.backgroundColor || w.getAttribute('fill')).join(),
]"""

# Names of axes that reach beyond the picture of the dots.
CUT_AXES = """
const chart = document.querySelector("#scatter-chart svg"), end = chart.getBoundingClientRect().right;
return [...chart.querySelectorAll("text.soft")].filter((text) => text.getBoundingClientRect().right > end + 0.5)
  .map((text) => text.textContent);
"""


@pytest.fixture(scope="module", params=["smoke_run", "smoke_translation_run"])
def page(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    return write_report(answered_run(request.getfixturevalue(request.param), folder).root, out=folder / "report.html")


@pytest.fixture
def opened(browser, page):
    return visit(browser, page)


def go(browser, place):
    browser.execute_script("goTo(arguments[0])", place)
    settle(browser)


def test_it_starts_at_step_0_and_plays_once(browser, page):
    visit(browser, page, moving=True)
    WebDriverWait(browser, 20).until(lambda b: b.execute_script("return playing.since > 0 && state.at === last"))
    assert browser.execute_script("return playing.from") == 0
    assert by_id(browser, "play").get_attribute("aria-pressed") == "false"
    leaves_nothing_and_complains_of_nothing(browser)


def test_it_stands_still_at_the_end_where_less_motion_is_wanted(opened):
    assert by_id(opened, "step-text").text.startswith("step 12 of 12")
    assert by_id(opened, "play").get_attribute("aria-pressed") == "false"


def test_everything_moves_between_recorded_steps_too(opened):
    seen = []
    for place in (0, 0.5, 1):
        go(opened, place)
        seen.append(opened.execute_script(MOVING))
    assert all(len(set(parts)) == 3 for parts in zip(*seen, strict=True))
    go(opened, 0.5)
    assert by_id(opened, "step-text").text.startswith("step ≈")
    by_id(opened, "step").send_keys(Keys.ARROW_RIGHT)
    settle(opened)
    assert opened.execute_script("return state.at") == 1


def test_chips_choose_the_example_and_say_why(opened):
    chips = opened.find_elements(By.CSS_SELECTOR, "#chips button")
    assert [chip.text for chip in chips] == ["typical", "most changed", "disagrees", "random"]
    shown = set()
    for chip in chips[:3]:
        chip.click()
        settle(opened)
        assert by_id(opened, "why").text.startswith(chip.text)
        assert chip.get_attribute("aria-pressed") == "true"
        shown.add(by_id(opened, "live").text)
    assert len(shown) >= 2
    chips[3].click()
    assert "random" in by_id(opened, "why").text


def test_a_word_is_followed_by_click_and_by_keyboard(opened):
    opened.execute_script(
        "document.querySelector('#scatter-chart .word').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    settle(opened)
    name = by_id(opened, "scatter-word").get_attribute("value")
    assert name
    assert len(opened.find_elements(By.CSS_SELECTOR, "#course svg")) == 2
    assert opened.execute_script("return document.querySelector('#scatter-chart .trail').points.length") >= 2
    assert "word=" in opened.current_url
    field = by_id(opened, "scatter-word")
    field.clear()
    field.send_keys("no such word", Keys.ENTER, Keys.TAB)
    settle(opened)
    assert not by_id(opened, "course").is_displayed()


def test_a_link_opens_step_and_example(browser, page):
    visit(browser, page)
    number = browser.execute_script("return (page.texts ?? page.pairs).index[3] + 1")
    key = browser.execute_script("return page.texts ? 'text' : 'pair'")
    browser.execute_script("location.hash = arguments[0]; location.reload()", f"step={4}&{key}={number}")
    WebDriverWait(browser, 20).until(lambda b: b.execute_script("return document.body.dataset.ready") == "yes")
    settle(browser)
    assert browser.execute_script("return page.steps[state.step]") in (3, 4, 6)  # the nearest recorded step
    assert f" {number}" in by_id(browser, "live").text
    assert "address" in by_id(browser, "why").text
    browser.execute_script("document.querySelector('.example .link').click()")
    assert f"{key}=" in browser.current_url


def test_values_and_definitions_are_shown_where_they_stand(opened):
    term = opened.find_element(By.CSS_SELECTOR, "#agreements a.term")
    opened.execute_script("arguments[0].focus()", term)
    assert by_id(opened, "tip").is_displayed()
    assert by_id(opened, "tip").text.startswith("agreement A(u, v): the share")
    opened.execute_script("arguments[0].blur()", term)
    assert not by_id(opened, "tip").is_displayed()
    dot = opened.find_element(By.CSS_SELECTOR, "#scatter-chart .word")
    opened.execute_script("arguments[0].dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))", dot)
    assert "attention" in by_id(opened, "tip").text


def test_the_chosen_step_is_ringed(opened):
    assert opened.find_elements(By.CSS_SELECTOR, "#accuracy-chart .chosen")
    assert opened.find_elements(By.CSS_SELECTOR, "#curve-chart .chosen")


def test_on_a_phone_the_axes_of_the_dots_are_named_within_their_picture(opened):
    screen(opened, 390, 844)
    try:
        settle(opened)
        assert opened.execute_script("return innerWidth") == 390
        assert opened.execute_script(CUT_AXES) == []
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [390, 1280])
def test_no_sideways_scrolling(opened, width):
    has_no_sideways_scrolling(opened, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(browser, page, scheme):
    is_accessible(browser, page, scheme)


def test_axe_finds_nothing_serious(opened):
    assert serious_faults(opened) == []
