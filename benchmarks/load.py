"""Other work on the machine while something is measured: it is noted in every row, and waited for.

The load average counts the benchmark itself, so a row is marked by the cores that are busy while the benchmark sleeps.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

IDLE = 0.15  # cores that other work may take, such as the system's own
SECONDS = 1.0  # of one look
BETWEEN = 5.0  # seconds between two looks


class Waiting:
    """Waits for an idle machine before each row, `seconds` in all, and notes what other work there was.

    >>> Waiting(0, look=lambda: 0.8).note()["under_load"]
    True
    """

    def __init__(self, seconds: float, look: Callable[[], float | None] | None = None) -> None:
        self.left, self.look = seconds, look or busy_cores

    def note(self) -> dict[str, Any]:
        """The cores that other work takes, once there is little of it or there is no time left to wait for that."""
        while (busy := self.look()) is not None and busy > IDLE and self.left > 0:
            time.sleep(min(BETWEEN, self.left))
            self.left -= BETWEEN + SECONDS
        average = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
        return {"load_average": average, "busy_cores": busy, "under_load": busy is None or busy > IDLE}

    def noted(self, before: dict[str, Any]) -> dict[str, Any]:
        """The same after a row was measured: the larger share of other work counts."""
        after = self.look()
        seen = [busy for busy in (before["busy_cores"], after) if busy is not None]
        busy = max(seen) if seen else None
        return before | {"busy_cores": busy, "under_load": busy is None or busy > IDLE}


def busy_cores(seconds: float = SECONDS) -> float | None:
    """How many cores are busy while this process sleeps; None where the system does not say."""
    first = _spent()
    time.sleep(seconds)
    second = _spent()
    if first is None or second is None:
        return None
    all_of_it = second[1] - first[1]
    return round((second[0] - first[0]) / all_of_it * (os.cpu_count() or 1), 2) if all_of_it else None


def _spent() -> tuple[int, int] | None:
    """Busy and all ticks of all cores since the start of the system (Linux)."""
    try:
        user, nice, system, idle, waiting, *others = map(
            int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
        )
    except (OSError, ValueError):
        return None
    busy = user + nice + system + sum(others)
    return busy, busy + idle + waiting
