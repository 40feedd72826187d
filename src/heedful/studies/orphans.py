"""No worker outlives the process that started it."""

import os
import threading
import time

DRIVER = "HEEDFUL_DRIVER"  # the process that started this one
_SECONDS = 0.2


def end_with_driver() -> None:
    """End this process as soon as the one that started it is gone, however that ended.

    Nothing is lost by it, since files are whole or not there. A process that nobody started for this goes on.
    """
    driver = int(os.environ.get(DRIVER, "0"))
    if driver:
        threading.Thread(target=_watch, args=(driver,), daemon=True).start()


def _watch(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(_SECONDS)
    os._exit(1)
