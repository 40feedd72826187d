"""One browser for all tests of a process; each module saves into a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.browser.chromium import CHROMIUM, DRIVER, FLAGS


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    if not (CHROMIUM.exists() and DRIVER.exists()):
        pytest.fail("chromium and chromedriver are needed where CI=true")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    opened.set_script_timeout(100)
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def browser(driver: webdriver.Chrome, downloads: Path) -> webdriver.Chrome:
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads), "eventsEnabled": False}
    )
    return driver
