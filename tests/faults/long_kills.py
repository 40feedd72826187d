"""Studies that are killed end as if they had not been: `python -m tests.faults.long_kills [HOW MANY]`."""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tests.faults import commands
from tests.faults.ledger import record
from tests.faults.small import PAIRS, TEXTS, die_at_rename, finish

KILLS = 50
VICTIMS = ("command", "command", "command and worker", "worker")


def main(kills: int = KILLS) -> int:
    torch.set_num_threads(1)
    failures = at_renames("kills: a study of texts, at its renames", TEXTS)
    failures += at_renames("kills: a study of sentence pairs, at its renames", PAIRS)
    failures += at_random("kills: heedful study of texts, at random instants", commands.texts, kills)
    failures += at_random("kills: heedful study of sentence pairs, at random instants", commands.pairs, kills)
    return failures


def at_random(name: str, asked: Callable[[Path], list[str]], kills: int) -> int:
    """Kill a command or its worker at so many instants, from its first moment to its last, and compare its result.

    Each instant is drawn from its own slice of the time that an undisturbed run takes. The same command follows in the
    same folder, killed in its turn, until it ends before it can be killed; then another folder begins. A command whose
    worker was killed starts another, and ends.
    """
    began, draw = time.monotonic(), random.Random(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        arguments = asked(folder)
        code, said = commands.run(arguments, folder / "undisturbed")
        assert code == 0, said
        takes = time.monotonic() - began
        expected = (folder / "undisturbed" / "result.json").read_bytes()
        assert kills > 0
        instants = [(i + draw.random()) / kills * takes for i in range(kills)]
        draw.shuffle(instants)
        runs, killed, failures = 1, 0, 0
        while instants:
            out, victim = folder / f"run-{runs}", draw.choice(VICTIMS)
            process = commands.start(arguments, out)
            whom = commands.kill_after(process, instants[-1], out, victim)
            if whom:
                killed += 1
                print(f"{name}: {killed} of {kills}, {whom} after {instants.pop():.2f} of {takes:.1f} s", flush=True)
            else:
                instants[-1] *= 0.9  # it may be quicker than the undisturbed run was
            if whom.startswith("command"):
                if killed % 2 and not commands.orphans_end(out):
                    print(f"{out}: workers live on", flush=True)
                    failures += 1
                continue
            failures += not _has_ended(process, out, expected)
            runs += 1
        code, said = commands.run(arguments, folder / f"run-{runs}")
        assert code == 0, said
        failures += not _is_as_expected(folder / f"run-{runs}", expected)
    return _count(name, runs, killed, failures, began)


def _has_ended(process: "subprocess.Popen[str]", out: Path, expected: bytes) -> bool:
    said, _ = process.communicate()
    if process.returncode:
        print(f"{out}: exit code {process.returncode}: {said[-500:]}", flush=True)
        return False
    return _is_as_expected(out, expected)


def at_renames(name: str, config: object) -> int:
    """Kill a study just before and just after the renames that make its files, again and again until it ends."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        expected = finish(config, Path(made) / "undisturbed")  # type: ignore[arg-type]
        out, killed = Path(made) / "run", 0
        while die_at_rename(config, out, 3 + killed % 7, before=killed % 2 == 0):  # type: ignore[arg-type]
            killed += 1
        failures = int(not _is_as_expected(out, expected))
    return _count(name, 1, killed, failures, began)


def _is_as_expected(out: Path, expected: bytes) -> bool:
    same, left = (out / "result.json").read_bytes() == expected, commands.leftovers(out)
    if left or not same:
        print(f"{out}: same: {same}, left over: {left}", flush=True)
    return same and not left


def _count(name: str, runs: int, killed: int, failures: int, began: float) -> int:
    record(name, runs, killed, failures, time.monotonic() - began, "make faults")
    print(f"{name}: {killed} kills in {runs} runs, {failures} failures", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
