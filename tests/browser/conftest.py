"""One browser for all tests of a process; each module saves into a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.browser import chromium
from selenium import webdriver

from tests.browser.chromium import INSTALLED


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    if not INSTALLED:
        pytest.fail("chromium and chromedriver are needed where CI=true")
    with chromium(logs=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser(driver: webdriver.Chrome, downloads: Path) -> webdriver.Chrome:
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads), "eventsEnabled": False}
    )
    return driver
