"""What was tried, what was broken on purpose, and what failed: `results/reliability.json`, and the page it becomes.

`python -m tests.faults.ledger` writes `docs/reliability.md` anew from the counts.
"""

import fcntl
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from heedful.storage.atomic_files import write_json, write_text
from heedful.storage.manifest import source_commit

ROOT = Path(__file__).resolve().parents[2]
COUNTS = ROOT / "results" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"
COUNTED = ("tried", "injected", "failures")
PREFACE = """\
# What was broken on purpose

A run that is killed, starved of disk or damaged must end as if nothing had happened, or say what is wrong; an input
that is not what it should be must be refused in words. These are the counts of one execution of each test: how many
inputs or runs were tried, how many faults were put in on purpose, how many did not end as promised. The page is written
from [results/reliability.json](../results/reliability.json), where the time and the commit of each count stand too.

| what | tried | faults injected | failures | took | counted by |
|---|---:|---:|---:|---:|---|""".splitlines()


def record(
    name: str, tried: int, injected: int, failures: int, seconds: float, how: str, *, counts: Path = COUNTS
) -> None:
    """Merge one named entry into the counts; the others stay as they are, whoever writes at the same time.

    tried: inputs given, or runs made; injected: faults put in on purpose; failures: those that did not end as promised;
    how: the command that counts again.
    """
    if not name or min(tried, injected, failures) < 0 or failures > tried + injected:
        raise ValueError(f"{name!r}: {tried} tried, {injected} injected, {failures} failures cannot be")
    entry = {
        "tried": tried,
        "injected": injected,
        "failures": failures,
        "seconds": round(seconds, 1),
        "how": how,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": source_commit(),
        "python": platform.python_version(),
    }
    counts.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(counts.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        entries = entries_of(counts) | {name: entry}
        write_json(counts, {key: entries[key] for key in sorted(entries)})
    finally:
        os.close(folder)


def entries_of(counts: Path = COUNTS) -> dict[str, Any]:
    """Every entry by its name; none where nothing was counted yet."""
    entries: dict[str, Any] = json.loads(counts.read_text(encoding="utf-8")) if counts.exists() else {}
    return entries


def page(entries: dict[str, Any]) -> str:
    """The counts as Markdown."""
    rows = [
        f"| {name} | {e['tried']:,} | {e['injected']:,} | {e['failures']:,} | {e['seconds']:,.0f} s | `{e['how']}` |"
        for name, e in sorted(entries.items())
    ]
    total = "| **all** | " + " | ".join(f"**{sum(e[key] for e in entries.values()):,}**" for key in COUNTED) + " | | |"
    return "\n".join([*PREFACE, *rows, total, ""])


if __name__ == "__main__":
    write_text(PAGE, page(entries_of()))
