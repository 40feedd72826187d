"""Hostile run folders, links, devices, locks and altered figures: `python -m tests.faults.long_hostile [CLASS]`."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from tests.faults import hostile, hostile_locks
from tests.faults.hostile import Attack
from tests.faults.ledger import record

LOCK_ROUNDS = 10
FIGURES = 100  # characters of each result that are altered
CLASSES: dict[str, Callable[[Path], Attack]] = {
    "links": hostile.links,
    "devices": hostile.devices,
    "names": hostile.names,
    "strangers": hostile.strangers,
    "figures": lambda shelf: hostile.figures(shelf, FIGURES),
    "locks": lambda shelf: hostile_locks.locks(shelf.parent / "locks", LOCK_ROUNDS),
}


def main(only: str | None = None) -> int:
    """Run the classes, write down their counts, and return how many faults did not end as promised."""
    torch.set_num_threads(1)
    failures = 0
    with tempfile.TemporaryDirectory() as made:
        shelf = hostile.make_shelf(Path(made) / "shelf")
        for name, run in CLASSES.items():
            if only in (None, name):
                attack = run(shelf)
                failures += len(attack.failures)
                for failure in attack.failures:
                    print(failure)
                print(
                    f"{attack.name}: {attack.tried:,} tried, {attack.injected:,} faults, "
                    f"{len(attack.failures)} failures, {attack.seconds:.0f} s",
                    flush=True,
                )
                how = f"python -m {__spec__.name} {name}"
                record(attack.name, attack.tried, attack.injected, len(attack.failures), attack.seconds, how)
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:2])))
