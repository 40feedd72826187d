"""Thousands of inputs to every reader, to settings, runs and the command line: `python -m tests.faults.long_fuzz`.

python -m tests.faults.long_fuzz [readers|config|cli|runs|bombs|folders|environments|escapes] [HOW MANY ROUNDS]
"""

import sys
from collections.abc import Callable

from tests.faults import bombs, environments, fuzz_cli, fuzz_config, fuzz_readers, fuzz_runs, model_folders
from tests.faults.fuzzing import Tally
from tests.faults.ledger import record

FUZZERS: dict[str, tuple[Callable[[int], Tally], int]] = {
    "readers": (fuzz_readers.fuzz, 300),
    "config": (fuzz_config.fuzz, 3000),
    "cli": (fuzz_cli.fuzz, 2000),
    "runs": (fuzz_runs.fuzz, 300),
    "bombs": (bombs.fuzz, 20),
    "folders": (model_folders.fuzz, 60),
    "environments": (environments.fuzz, 12),
    "escapes": (environments.escapes, 200),
}
HOSTILE = ("bombs", "folders", "environments", "escapes")  # each of these is a fault put in on purpose


def main(only: str | None = None, rounds: int | None = None) -> int:
    """Run the fuzzers, write down their counts, and say how many inputs did not end as promised."""
    total = 0
    for name, (fuzz, usual) in FUZZERS.items():
        if only in (None, name):
            tally = fuzz(rounds or usual)
            for failure in tally.failures:
                print(failure)
            total += len(tally.failures)
            how = f"python -m {__spec__.name} {name}{f' {rounds}' if rounds else ''}"
            injected = tally.tried if name in HOSTILE else 0
            record(tally.name, tally.tried, injected, len(tally.failures), tally.seconds, how)
            print(
                f"{tally.name}: {tally.tried:,} tried, {tally.refused:,} refused, {len(tally.failures)} failures",
                flush=True,
            )
    return total


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(bool(main(given[0] if given else None, int(given[1]) if len(given) > 1 else None)))
