"""A headless Chromium, for what is measured, pictured or tested in one."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --force-color-profile=srgb "
    "--window-size=1280,900"
)
PATIENCE = 120  # seconds


@contextlib.contextmanager
def chromium(*, logs: bool = False) -> Iterator[webdriver.Chrome]:
    """A browser with a profile of its own, which ends with the block; logs: keep what its console and network say."""
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        if logs:
            options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        driver.set_script_timeout(PATIENCE)
        try:
            yield driver
        finally:
            driver.quit()


def screen(driver: webdriver.Chrome, width: int, height: int, scheme: str = "light") -> None:
    """What the page is shown on."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def visit(driver: webdriver.Chrome, page: Path) -> None:
    """Open a page, and wait until all of it is drawn."""
    driver.get(page.resolve().as_uri())
    deadline = time.monotonic() + PATIENCE
    while driver.execute_script("return document.body.dataset.ready") != "yes":
        if time.monotonic() > deadline:
            raise TimeoutError(f"{page} is not drawn after {PATIENCE} s")
        time.sleep(0.05)
