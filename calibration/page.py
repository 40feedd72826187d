"""docs/calibration.md from results/calibration.json: `python -m calibration.page`."""

import importlib
import json
from pathlib import Path
from typing import Any

from heedful.storage.atomic_files import write_text

ROOT = Path(__file__).resolve().parents[1]
HALVES = ("studies", "audits")
ROWS = {"studies": "calibration.study_rows", "audits": "calibration.audits"}  # modules with a function `rows`


def page(measured: dict[str, Any]) -> str:
    """The page, with a part for each half that was measured."""
    lines = [
        "# How often heedful is wrong",
        "",
        "Written by `make calibrate`; do not edit. Verdicts on data and models whose truth is known, counted.",
        "Intervals of shares are exact (Clopper and Pearson).",
        "",
    ]
    for half in HALVES:
        if half in measured:
            values = measured[half]
            host = values["machine"]
            lines += [importlib.import_module(ROWS[half]).rows(values).rstrip(), ""]
            minutes, cpu = values.get("seconds", 0) / 60, values.get("cpu_seconds", 0) / 60
            took = f"Its steps took {minutes:.0f} minutes by the clock, summed over processes; " if minutes else ""
            took = f"Its steps took {cpu:.0f} minutes of CPU time, summed over processes; " if cpu else took
            lines += [
                f"{took}{host['processes']} processes on {host['cores']} cores, {host['system']}, "
                f"Python {host['python']}.",
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    results = json.loads((ROOT / "results" / "calibration.json").read_text(encoding="utf-8"))
    write_text(ROOT / "docs" / "calibration.md", page(results))
