"""Error rates of heedful's own verdicts, on data and models whose truth is known.

    python -m calibration.run [--only studies] [--short] [--work FOLDER] [--jobs 2]

A half of it is a module beside this one, `studies` or `audits`: its `measure(work, jobs)` returns plain values. `page`
shows them. Writes results/calibration.json and, from it, docs/calibration.md; a
short run only prints. An interrupted run continues where it was: finished steps are kept in the work folder.
"""

import argparse
import importlib
import inspect
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from calibration.page import HALVES, page
from heedful.execution.pool import Event
from heedful.storage.atomic_files import write_text

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "results" / "calibration.json", ROOT / "docs" / "calibration.md"


def main() -> None:
    """Measure, and write or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=HALVES, help="one half; the other keeps what was measured before")
    parser.add_argument("--short", action="store_true", help="few repetitions, and nothing is written")
    parser.add_argument("--work", type=Path, default=Path("runs/calibration"), help="folder of finished steps")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    measured = dict(known)
    for half in (options.only,) if options.only else HALVES:
        module = importlib.import_module(f"calibration.{half}")
        values = measure(module, options.work / ("short" if options.short else half), options.jobs, options.short)
        measured[half] = {**values, "machine": machine(options.jobs)}
    if options.short:
        print(page(measured))
        return
    write_text(RESULTS, json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    write_text(PAGE, page(measured))
    print(f"wrote {RESULTS} and {PAGE}")


def measure(module: Any, work: Path, jobs: int, short: bool) -> dict[str, Any]:
    """One half; `short` and `on_event` are passed to a module that knows them."""
    known = inspect.signature(module.measure).parameters
    options = {"short": short, "on_event": show}
    values: dict[str, Any] = module.measure(work.resolve(), jobs, **{k: v for k, v in options.items() if k in known})
    return values


def show(event: Event) -> None:
    """Print a line for each finished job."""
    if event.get("done"):
        print(f"{event['model']} done", file=sys.stderr, flush=True)


def machine(jobs: int) -> dict[str, Any]:
    """Where it was measured."""
    return {
        "cores": os.cpu_count(),
        "processes": jobs,
        "system": platform.system(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
