"""Sweeps here and on two Ray nodes, their workers and drivers killed: `python -m tests.faults.long_sweeps [KILLS]`."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from heedful.sweeps.sweep import SweepSettings, grid_toml, start_sweep
from tests.faults.ledger import record
from tests.sweeps.faults import Killer, kill_driver_after, on_ray, results_of
from tests.sweeps.tiny import tiny_grid, write_reviews
from tests.sweeps.two_nodes import two_nodes

KILLS = 5


def main(kills: int = KILLS) -> int:
    """How many sweeps did not come to the same bytes as one left alone on this machine."""
    with tempfile.TemporaryDirectory() as made, two_nodes() as address:
        root = Path(made)
        grid = tiny_grid(write_reviews(root))
        start_sweep(grid, root / "local", SweepSettings(jobs=1, device="cpu"), progress=False)
        wanted = results_of(root / "local")
        failures = _equal(grid, root, address, wanted)
        failures += _workers(grid, root, address, wanted, kills)
        return failures + _drivers(grid, root, address, wanted, kills)


def _equal(grid: dict[str, Any], root: Path, address: str, wanted: dict[str, bytes]) -> int:
    began, failures = time.monotonic(), 0
    for shared in (True, False):
        out = root / f"equal-{shared}"
        on_ray(grid, out, address, shared=shared)
        failures += results_of(out) != wanted
    return _count("local-equals-ray", 2, 0, failures, began)


def _workers(grid: dict[str, Any], root: Path, address: str, wanted: dict[str, bytes], kills: int) -> int:
    began, failures, killed = time.monotonic(), 0, 0
    for i in range(kills):
        out, killer = root / f"worker-{i}", Killer(after=1 + 7 * i)
        on_ray(grid, out, address, retries=2, on_event=killer)
        killed += killer.killed is not None
        failures += results_of(out) != wanted
    return _count("ray-worker-killed", kills, killed, failures, began)


def _drivers(grid: dict[str, Any], root: Path, address: str, wanted: dict[str, bytes], kills: int) -> int:
    began, failures = time.monotonic(), 0
    file = root / "grid.toml"
    file.write_text(grid_toml(grid), encoding="utf-8")
    for i in range(kills):
        out = root / f"driver-{i}"
        kept = kill_driver_after(1, file, out, "--on", "ray", "--address", address)
        on_ray(grid, out, address)
        failures += kept < 1 or results_of(out) != wanted
    return _count("driver-killed", kills, kills, failures, began)


def _count(name: str, runs: int, injected: int, failures: int, began: float) -> int:
    record(name, runs, injected, failures, time.monotonic() - began, f"python -m {__spec__.name}")
    print(f"{name}: {runs} sweeps, {injected} faults, {failures} failures", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
