"""What a worker process says to who started it: JSON, one object a line, on a standard output kept for that."""

import json
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[dict[str, Any]], None]


@contextmanager
def answering() -> Iterator[Report]:
    """Take standard output for answers alone: what a library prints meanwhile goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)

        def report(line: dict[str, Any]) -> None:
            print(json.dumps(line), file=answers, flush=True)

        try:
            yield report
        finally:
            os.dup2(answers.fileno(), 1)


DRIVER = "HEEDFUL_DRIVER"  # the process that started this one
_SECONDS = 0.2


def end_with_driver() -> None:
    """End this process as soon as the one that started it is gone, however that ended.

    Nothing is lost by it, since files are whole or not there. A process that nobody started for this goes on.
    """
    driver = int(os.environ.get(DRIVER, "0"))
    if driver:
        threading.Thread(target=_watch, args=(driver,), daemon=True).start()


def watched(module: str, *arguments: str) -> list[str]:
    """The command that runs a module in a process which ends with this one; its environment needs `driven`.

    >>> watched("heedful.sweeps.worker")[1:]
    ['-m', 'heedful.sweeps.process', 'heedful.sweeps.worker']
    """
    return [sys.executable, "-m", "heedful.sweeps.process", module, *arguments]


def driven() -> dict[str, str]:
    """The environment of a single-threaded worker that ends with this process.

    >>> driven()["OMP_NUM_THREADS"]
    '1'
    """
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", DRIVER: str(os.getpid())}


def _watch(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    end_with_driver()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
