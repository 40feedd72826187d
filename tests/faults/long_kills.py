"""Studies killed at random instants end as if they had not been: `python -m tests.faults.long_kills [HOW MANY]`."""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.commands import kill_after, leftovers, orphans_end, pairs, run, start, texts
from tests.faults.ledger import record

KILLS = 50


def main(kills: int = KILLS) -> int:
    failures = count("a study of texts, killed", texts, kills)
    failures += count("a study of sentence pairs, killed", pairs, kills)
    return failures


def count(name: str, arguments_in: Callable[[Path], list[str]], kills: int) -> int:
    """Kill a study at so many instants, from its first moment to its last, and compare its result byte for byte.

    Each instant is drawn from its own slice of the time that an undisturbed run takes. The same command follows, killed
    in its turn, until it ends before it can be killed; then another run begins.
    """
    began, draw = time.monotonic(), random.Random(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        arguments = arguments_in(folder)
        code, said = run(arguments, folder / "undisturbed")
        takes = time.monotonic() - began
        assert code == 0, said
        expected = (folder / "undisturbed" / "result.json").read_bytes()
        instants = [(i + draw.random()) / kills * takes for i in range(kills)]
        draw.shuffle(instants)
        runs, killed, failures = 1, 0, 0
        out = folder / f"run-{runs}"

        def ended_well(code: int, said: str) -> bool:
            same = code == 0 and (out / "result.json").read_bytes() == expected
            if not same or leftovers(out):
                print(f"{out.name}: exit code {code}, same: {same}, left over: {leftovers(out)}\n{said}", flush=True)
            return same and not leftovers(out)

        while instants:
            process = start(arguments, out)
            if kill_after(process, instants[-1]):
                print(f"{name}: {killed + 1} of {kills}, after {instants.pop():.2f} of {takes:.1f} s", flush=True)
                killed += 1
                if killed % 2 and not orphans_end(out):
                    print(f"{out.name}: workers live on", flush=True)
                    failures += 1
                continue
            failures += not ended_well(process.returncode, "")
            runs += 1
            out = folder / f"run-{runs}"
            if instants[-1] > 0.9 * takes:
                instants[-1] *= 0.9  # this one was quicker than the undisturbed run
        failures += not ended_well(*run(arguments, out))
    record(name, runs, killed, failures, time.monotonic() - began, "make faults")
    print(f"{name}: {killed} kills in {runs} runs, {failures} failures", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
