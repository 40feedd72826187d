"""Processes that all want one run: `python -m tests.faults.long_lock`."""

import os
import sys
import tempfile
import time
from pathlib import Path

import torch

from heedful.errors import RunError
from tests.faults.commands import leftovers
from tests.faults.ledger import record
from tests.faults.small import TEXTS, finish

ROUNDS, PROCESSES = 5, 4
REFUSED = 3


def main() -> int:
    torch.set_num_threads(1)
    began, refused, failures = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as made:
        expected = finish(TEXTS, Path(made) / "undisturbed")
        for number in range(ROUNDS):
            out = Path(made) / f"run-{number}"
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in _begin(out)]
            same = (out / "result.json").read_bytes() == expected
            well = same and set(codes) <= {0, REFUSED} and 0 in codes and not leftovers(out)
            print(f"round {number + 1}: exit codes {codes}, {'same result' if well else 'FAILED'}", flush=True)
            refused, failures = refused + codes.count(REFUSED), failures + (not well)
    record(
        "lock: processes on one run",
        ROUNDS * PROCESSES,
        refused,
        failures,
        time.monotonic() - began,
        f"python -m {__spec__.name}",
    )
    return failures


def _begin(out: Path) -> list[int]:
    """Children that all begin the study in one folder; one refused in the right words has a code of its own."""
    children = []
    for _ in range(PROCESSES):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                finish(TEXTS, out)
                code = 0
            except RunError as error:
                code = REFUSED if "is in use by process" in str(error) else 1
                print(error, file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        children.append(pid)
    return children


if __name__ == "__main__":
    sys.exit(bool(main()))
