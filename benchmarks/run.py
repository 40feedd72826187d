"""Every performance figure: ours and the peer's in one process, on one thread, in turn.

    python -m benchmarks.run [--only rank] [--quick] [--wait 1800]
    python -m benchmarks.run --page     docs/performance.md anew from results/benchmarks.json, nothing measured

A subject is a module beside this one whose `cases(quick)` yields `Case`s, whose `growth()` yields `Point`s and whose
`limits(quick)` yields `Limit`s, as far as it has them.
Writes results/benchmarks.json and, from it, docs/performance.md; a quick run only prints. Every row notes what other
work ran on the machine; before each, an idle machine is waited for, `--wait` seconds in all.
"""

import argparse
import ctypes
import importlib
import importlib.metadata
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from benchmarks.case import Case, Point
from benchmarks.load import Waiting

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "benchmarks.json"
PAGE = HERE.parent / "docs" / "performance.md"
PACKAGES = ("numpy", "scipy", "numba", "torch", "entmax")
NO_SUBJECTS = ("__init__", "browser", "case", "load", "products", "run", "scale")
# The subjects with limits, and what stands above their tables.
LIMITS = {
    "study": ("## The demo", "", "From the command to the page, on all cores, without installation."),
    "page": ("## The page", "", "In headless Chromium on this machine, 1280 × 900, without a graphics card; medians."),
    "long_prompt": (
        "## Long prompts",
        "",
        "Memory beyond that of the process with its model. Of a layer's attention, only the rows that are read stay.",
    ),
}
SLOW, VERY_SLOW = 1.0, 10.0  # seconds


def main() -> None:
    subjects = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in NO_SUBJECTS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=subjects, help="one subject; the others keep what was measured before")
    parser.add_argument("--quick", action="store_true", help="few rounds, and nothing is written")
    parser.add_argument("--wait", type=float, default=1800.0, help="seconds to wait for an idle machine, in all")
    parser.add_argument("--page", action="store_true", help="only write the page of what was measured before")
    options = parser.parse_args()
    if options.page:
        write(PAGE, page(json.loads(RESULTS.read_text(encoding="utf-8"))))
        return
    torch.set_num_threads(1)
    waiting = Waiting(0.0 if options.quick else options.wait)

    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"rows": [], "growth": []}
    rows = [row for row in known["rows"] if options.only and row["subject"] != options.only]
    growth = [row for row in known["growth"] if options.only and row["subject"] != options.only]
    limits = [row for row in known.get("limits", ()) if options.only and row["subject"] != options.only]
    for subject in [options.only] if options.only else subjects:
        module = importlib.import_module(f"benchmarks.{subject}")
        before = waiting.note()
        for limit in getattr(module, "limits", lambda quick: ())(options.quick):
            limits.append({"subject": subject, **asdict(limit), "ok": limit.ok, **waiting.noted(before)})
            print("{work}: {value:.4g} {unit} ({side} {bar:.4g})".format(**limits[-1]) + load_words(limits[-1]))
            before = waiting.note()
        for case in getattr(module, "cases", lambda quick: ())(options.quick):
            before = waiting.note()
            measured = race(case, rounds=3 if options.quick else 41)
            rows.append({"subject": subject, **measured, **waiting.noted(before)})
            line = (
                "{work}: {ours_ms:.4g} ms, {peer} {peer_ms:.4g} ms, {ratio:.4g}× (CPU {cpu_ratio:.4g}×, bar {bar:g}×)"
            )
            print(line.format(**rows[-1]) + load_words(rows[-1]), flush=True)
        for point in getattr(module, "growth", list)() if not options.quick else ():
            before = waiting.note()
            measured = cost(point)
            growth.append({"subject": subject, **measured, **waiting.noted(before)})
            print("{work}, {size}: {ms:.4g} ms, {peak_mb} MB".format(**growth[-1]) + load_words(growth[-1]))
    if options.quick:
        return
    report = {
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "rows": sorted(rows, key=lambda row: row["subject"]),
        "growth": sorted(growth, key=lambda row: row["subject"]),
        "limits": sorted(limits, key=lambda row: row["subject"]),
    }
    write(RESULTS, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    write(PAGE, page(report))


def race(case: Case, rounds: int) -> dict[str, Any]:
    """Medians over rounds; in each, both run often enough to fill 10 ms, one after the other. Slow work gets fewer.

    Work of more than `VERY_SLOW` seconds is timed once, after one call that is not. `cpu_ratio` is the ratio of the
    processor's times, which other work on the machine hardly changes.
    """
    sides = (case.ours, case.theirs)
    if max(first := [seconds_per_call(side, 1) for side in sides]) > VERY_SLOW:
        often, rounds = [1, 1], 1
    else:
        often = [calls_in(side, seconds=0.01) for side in sides]
        rounds = max(3, min(rounds, round(30 / first[1])))
    times: tuple[list[float], list[float]] = ([], [])
    used: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for side, n, taken, cpu in zip(sides, often, times, used, strict=True):
            begun = time.process_time() + case.cpu_elsewhere()
            taken.append(seconds_per_call(side, n))
            cpu.append((time.process_time() + case.cpu_elsewhere() - begun) / n)
    ours, theirs = statistics.median(times[0]), statistics.median(times[1]) / case.share
    ratio = theirs / ours
    return {
        "work": case.work,
        "peer": case.peer,
        "ours_ms": 1e3 * ours,
        "peer_ms": 1e3 * theirs,
        "ratio": ratio,
        "cpu_ratio": statistics.median(used[1]) / case.share / statistics.median(used[0]),
        "bar": case.bar,
        "ok": ratio >= case.bar,
        "account": case.account(ratio) if case.account and ratio < case.bar else "",
    }


def cost(point: Point) -> dict[str, Any]:
    """Median time, and how far the process's memory rose above what it held before.

    What takes longer than `SLOW` seconds is run once, cold: its time and its memory are of the same call.
    """
    start = time.perf_counter()
    peak = peak_mb(point.run)
    taken = time.perf_counter() - start
    if taken < SLOW:
        peak = peak_mb(point.run)
        n = calls_in(point.run, seconds=0.03)
        taken = statistics.median(seconds_per_call(point.run, n) for _ in range(9))
    return {"work": point.work, "size": point.size, "ms": 1e3 * taken, "peak_mb": peak}


def calls_in(run: Callable[[], Any], seconds: float) -> int:
    run()
    return max(1, round(seconds / seconds_per_call(run, 1)))


def seconds_per_call(run: Callable[[], Any], n: int) -> float:
    start = time.perf_counter()
    for _ in range(n):
        run()
    return (time.perf_counter() - start) / n


def peak_mb(run: Callable[[], Any]) -> float | None:
    """Linux keeps the highest resident size and can be told to start again; elsewhere nothing is reported."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        run()
        return round(max(0, _status("VmHWM") - before) / 1024, 1)
    except OSError:
        return None


def _status(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"/proc/self/status has no {name}")
    return int(found[1])


def machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        cpu = found[1] if found else cpu
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()}


def page(report: dict[str, Any]) -> str:
    host, versions = report["machine"], ", ".join(f"{k} {v}" for k, v in report["versions"].items())
    lines = [
        "# How fast",
        "",
        "Written by `make bench`; do not edit. Ours and the peer's run in turn, in one process on one thread; medians.",
        f"{host['cpu']}, {host['cores']} cores, {host['system']}, Python {host['python']}; {versions}.",
        "",
        load_sentence([row for kind in ("rows", "growth", "limits") for row in report.get(kind, ())]),
        "",
        "| work | ours, ms | peer | peer, ms | ratio | of CPU time | at least | | other work |",
        "|---|--:|---|--:|--:|--:|--:|---|---|",
    ]
    for row in report["rows"]:
        met = "met" if row["ok"] else "**missed**"
        cpu = f"{figure(row['cpu_ratio'])}×" if "cpu_ratio" in row else ""
        lines.append(
            f"| {row['work']} | {figure(row['ours_ms'])} | {row['peer']} | {figure(row['peer_ms'])} "
            f"| {figure(row['ratio'])}× | {cpu} | {row['bar']:g}× | {met} | {other_work(row)} |"
        )
    lines += [
        "",
        *(f"*{row['work']}* against {row['peer']}: {row['account']}" for row in report["rows"] if row.get("account")),
    ]
    lines += [
        "",
        "## How cost grows",
        "",
        "Memory is the rise of the process's highest resident size above what it held before, inputs not counted.",
        "",
        "| work | size | ms | memory, MB | other work |",
        "|---|---|--:|--:|---|",
    ]
    for row in report["growth"]:
        memory = "" if row["peak_mb"] is None else f"{row['peak_mb']:g}"
        lines.append(f"| {row['work']} | {row['size']} | {figure(row['ms'])} | {memory} | {other_work(row)} |")
    for subject, heading in LIMITS.items():
        rows = [row for row in report.get("limits", ()) if row["subject"] == subject]
        if rows:
            lines += ["", *heading, "", "| what | measured | | | other work |", "|---|--:|--:|---|---|"]
        for row in rows:
            met = "met" if row["ok"] else "**missed**"
            bar = f"{row['side']} {figure(row['bar'])}"
            lines.append(
                f"| {row['work']} | {figure(row['value'])} {row['unit']} | {bar} | {met} | {other_work(row)} |"
            )
    return "\n".join(lines) + "\n"


def load_words(row: dict[str, Any]) -> str:
    """What to say of other work when a row has been measured."""
    return f"; other work: {other_work(row)}" if row["under_load"] else ""


def other_work(row: dict[str, Any]) -> str:
    """The cores that other work took before or after a row was measured, and the load average."""
    if "under_load" not in row:
        return "not noted"
    if not row["under_load"]:
        return "none"
    busy = "unknown" if row["busy_cores"] is None else f"{row['busy_cores']:g} cores"
    return f"**{busy}**, load average {row['load_average']}"


def load_sentence(rows: list[dict[str, Any]]) -> str:
    noted = [row for row in rows if "under_load" in row]
    if not noted:
        return "Other work that ran on the machine was not noted."
    loaded = sum(row["under_load"] for row in noted)
    missing = f"; of {len(rows) - len(noted)} it was not noted" if len(noted) < len(rows) else ""
    return f"Other work ran on the machine while {loaded} of {len(noted)} figures were measured{missing}: last column."


def figure(value: float) -> str:
    """Three significant digits, never an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


if __name__ == "__main__":
    main()
