"""Sweeps with something broken on purpose, compared with one that was left alone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from heedful.execution.pool import Event, OnEvent
from heedful.execution.ray_backend import RayPool
from heedful.sweeps.grid import grid_of
from heedful.sweeps.result import SweepResult
from heedful.sweeps.sweep import run_sweep

PATIENCE = 300.0  # seconds, far more than it takes


def results_of(out: Path) -> dict[str, bytes]:
    """Every study's result.json below a sweep, and the sweep's own."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("result.json"))}


def on_ray(
    grid: dict[str, Any],
    out: Path,
    address: str,
    *,
    shared: bool | None = None,
    retries: int = 1,
    on_event: OnEvent = lambda event: None,
) -> SweepResult:
    """A sweep on the cluster at that address."""
    return run_sweep(
        grid_of(grid),
        out,
        lambda studies: RayPool(store=out, address=address, shared=shared),
        text="",
        retries=retries,
        on_event=on_event,
    )


class Killer:
    """Kills the worker of the first study that has said so many lines, once."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.workers: dict[str, int] = {}
        self.lines: dict[str, int] = {}
        self.killed: str | None = None

    def __call__(self, event: Event) -> None:
        study = event["study"]
        if "pid" in event:
            self.workers[study] = event["pid"]
        if self.killed is None and "state" not in event and study in self.workers:
            self.lines[study] = self.lines.get(study, 0) + 1
            if self.lines[study] > self.after:
                self.killed = study
                os.kill(self.workers[study], signal.SIGKILL)


def kill_driver_after(finished: int, grid: Path, out: Path, *options: str) -> int:
    """Start `heedful sweep` and kill it as soon as that many studies are finished; how many are."""
    command = [sys.executable, "-m", "heedful", "sweep", str(grid), "--out", str(out), "--jobs", "1", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        until = time.monotonic() + PATIENCE
        while _finished(out) < finished and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        driver.send_signal(signal.SIGKILL)
    return _finished(out)


def _finished(out: Path) -> int:
    return len(list(out.glob("studies/*/report.html")))
