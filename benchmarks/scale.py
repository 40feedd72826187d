"""Preflight of files larger than memory: time and memory for 10⁴ to 10⁷ generated sentence pairs.

    python -m benchmarks.scale [--upto 6] [--types 2000] [--again]

Each size runs as its own `heedful preflight --stream` on all cores; the generator is not on the clock. Writes
results/scale.json and, from it, docs/scale.md. A size that was measured before is kept unless `--again` is given.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.run import figure, machine, write

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "scale.json"
PAGE = HERE.parent / "docs" / "scale.md"
WORDS, SHORTEST, LONGEST = 30_000, 5, 25  # types on each side, and words in a sentence
BLOCK = 50_000
BILLION, MINUTE = 10**9, 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upto", type=int, default=6, help="the largest power of ten")
    parser.add_argument("--types", type=int, default=2000, help="words kept on each side")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    options = parser.parse_args()
    report: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"rows": []}
    for power in range(4, options.upto + 1):
        key = {"pairs": 10**power, "types": options.types, "jobs": options.jobs}
        known = [row for row in report["rows"] if {name: row[name] for name in key} == key]
        if known and not options.again:
            continue
        row = key | measure(**key)
        print("{pairs:,} pairs: {wall:.1f} s, {cpu:.1f} CPU s, {peak_mb:.0f} MB".format(**row), flush=True)
        report["rows"] = sorted([*(r for r in report["rows"] if r not in known), row], key=lambda r: r["pairs"])
        report["machine"] = machine()
        write(RESULTS, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    write(PAGE, page(report))


def measure(pairs: int, types: int, jobs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "a.src", Path(folder) / "a.tgt"]
        began = time.perf_counter()
        generate(pairs, *files)
        generated = time.perf_counter() - began
        size = sum(path.stat().st_size for path in files)
        command = [sys.executable, "-m", "heedful", "preflight", *map(str, files), "--stream", "--json"]
        command += ["--max-types", str(types), "--jobs", str(jobs)]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        memory = Memory(process.pid)
        out, _ = process.communicate()
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    result = json.loads(out)
    translated = sum(each["most"][0]["word"] == f"s{each['output'][1:]}" for each in result["outputs"] if each["most"])
    return {
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "driver_cpu": memory.own,
        "peak_mb": memory.stop(),
        "bytes": size,
        "generated_in": generated,
        "entries": result["table"]["entries"],
        "total": result["table"]["total"],
        "verdict": result["verdict"],
        "right": f"{translated} of {len(result['outputs'])}",
    }


def generate(pairs: int, source: Path, target: Path) -> None:
    """Zipf's words in sentences of 5 to 25; target word tN translates source word sN, in another order."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, WORDS + 1)
    edges = np.cumsum(share / share.sum())
    names = [np.array([f"{side}{i}" for i in range(WORDS)], dtype=object) for side in "st"]
    with source.open("w") as first, target.open("w") as second:
        for start in range(0, pairs, BLOCK):
            lengths = rng.integers(SHORTEST, LONGEST + 1, min(BLOCK, pairs - start))
            drawn = np.minimum(np.searchsorted(edges, rng.random(int(lengths.sum()))), WORDS - 1)
            ends = np.cumsum(lengths)
            for file, words, step in ((first, names[0][drawn], 1), (second, names[1][drawn], -1)):
                rows = zip(ends - lengths, ends, strict=True)
                file.write("".join(" ".join(words[a:b][::step]) + "\n" for a, b in rows))


class Memory:
    """The largest memory that a process and its children hold together, each shared page counted once.

    `own` is the CPU time of the process alone, which reads and merges.
    """

    def __init__(self, process: int) -> None:
        self.process, self.peak, self.own, self.over = process, 0, 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def stop(self) -> float:
        self.over.set()
        self.thread.join()
        return self.peak / 1024

    def _watch(self) -> None:
        while not self.over.wait(0.5):
            self.peak = max(self.peak, sum(map(_proportional_kb, [self.process, *_children(self.process)])))
            self.own = max(self.own, _cpu_seconds(self.process))


def _children(process: int) -> list[int]:
    try:
        found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [one for child in map(int, found) for one in (child, *_children(child))]


def _cpu_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _proportional_kb(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def page(report: dict[str, Any]) -> str:
    rows, host = report["rows"], report["machine"]
    first, last = rows[0], rows[-1]
    million = next((row for row in rows if row["pairs"] == 10**6), last)
    grown = last["pairs"] - first["pairs"]
    values = {
        "host": f"{host['cpu']}, {host['cores']} cores, {host['system']}, Python {host['python']}",
        "words": f"{WORDS:,}",
        "shortest": SHORTEST,
        "longest": LONGEST,
        "types": f"{last['types']:,}",
        "table": "\n".join(map(line, rows)),
        "met": "met" if million["wall"] <= MINUTE else "not met",
        "million_cpu": figure(million["cpu"]),
        "million_free": figure(million["cpu"] / million["jobs"]),
        "million_wall": figure(million["wall"]),
        "jobs": million["jobs"],
        "fixed": figure(first["cpu"]),
        "smallest": f"{first['pairs']:,}",
        "largest": f"{last['pairs']:,}",
        "rate": figure(rate := grown / (last["cpu"] - first["cpu"])),
        "serial": figure(serial := grown / (last["driver_cpu"] - first["driver_cpu"])),
        "billion": "\n".join(carried(cores, rate, serial, first["cpu"]) for cores in (2, 4, 8, 16, 64)),
        "gigabytes": f"{BILLION * last['bytes'] / last['pairs'] / 1e9:,.0f}",
        "each": figure(last["bytes"] / last["pairs"]),
    }
    return (HERE / "scale.md").read_text(encoding="utf-8").format(**values)


def line(row: dict[str, Any]) -> str:
    return (
        f"| {row['pairs']:,} | {figure(row['bytes'] / 1e6)} | {figure(row['wall'])} | {figure(row['cpu'])} "
        f"| {figure(row['cpu'] / row['jobs'])} | {row['peak_mb']:,.0f} | {row['entries']:,} | {row['verdict']} "
        f"| {row['right']} |"
    )


def carried(cores: int, rate: float, serial: float, fixed: float) -> str:
    """The hours that a billion pairs take where the slower of cores and driver sets the pace."""
    together, driver = BILLION / rate / cores, BILLION / serial
    by = "the driver" if driver > together else "the cores"
    return f"| {cores:,} | {figure((max(together, driver) + fixed) / 3600)} | {by} |"


if __name__ == "__main__":
    main()
