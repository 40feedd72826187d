"""Studies that are killed end as if they had not been: `python -m tests.faults.long_kills`.

python -m tests.faults.long_kills [renames|studies|commands|texts|pairs] [HOW MANY KILLS]

`texts` and `pairs` are the two halves of `commands`, which takes longest.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tests.faults import commands
from tests.faults.ledger import record
from tests.faults.small import PAIRS, TEXTS, die_at_rename, finish, kill_in_child

KILLS = 50
VICTIMS = ("command", "command", "command and worker", "worker")
Attempt = Callable[[Path, float | None, str], tuple[str, bool]]  # who was killed, and whether it ended well


def main(only: str | None = None, kills: int = KILLS) -> int:
    torch.set_num_threads(1)
    failures = 0
    for name, config, asked in (("texts", TEXTS, commands.texts), ("sentence pairs", PAIRS, commands.pairs)):
        if only in (None, "renames"):
            failures += at_renames(f"kills: a study of {name}, at its renames", config)
        if only in (None, "studies"):
            failures += at_random(f"kills: a study of {name}, at random instants", partial(_forked, config), kills)
        if only in (None, "commands", asked.__name__):
            what = f"kills: heedful study of {name}, at random instants"
            failures += at_random(what, partial(_commanded, asked), kills)
    return failures


def at_random(name: str, attempt: Attempt, kills: int) -> int:
    """Kill a study or its worker at so many instants, from its first moment to its last, and compare its result.

    Each instant is drawn from its own slice of the time that an undisturbed run takes. The same study follows in the
    same folder, killed in its turn, until it ends before it can be killed; then another folder begins. A command whose
    worker was killed starts another, and ends.
    """
    began, draw = time.monotonic(), random.Random(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        assert attempt(folder / "undisturbed", None, "") == ("", True)
        takes = time.monotonic() - began
        expected = (folder / "undisturbed" / "result.json").read_bytes()
        assert kills > 0
        instants = [(i + draw.random()) / kills * takes for i in range(kills)]
        draw.shuffle(instants)
        runs, killed, failures = 1, 0, 0
        while instants:
            out = folder / f"run-{runs}"
            whom, ended = attempt(out, instants[-1], draw.choice(VICTIMS))
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
            failures += not (ended and _is_as_expected(out, expected))
            runs += 1
        ended = attempt(folder / f"run-{runs}", None, "")[1]
        failures += not (ended and _is_as_expected(folder / f"run-{runs}", expected))
    return _count(name, runs, killed, failures, began)


def _forked(config: Any, out: Path, instant: float | None, victim: str) -> tuple[str, bool]:
    """A study in a child of this process, which has imported all it needs: most of its time is work."""
    code = kill_in_child(partial(finish, config, out), instant)
    return ("command", False) if code < 0 else ("", code == 0)


def _commanded(asked: Callable[[Path], list[str]], out: Path, instant: float | None, victim: str) -> tuple[str, bool]:
    """The command as people type it, with its worker."""
    process = commands.start(asked(out.parent), out)
    whom = "" if instant is None else commands.kill_after(process, instant, out, victim)
    if whom.startswith("command"):
        return whom, False
    said, _ = process.communicate()
    if process.returncode:
        print(f"{out}: exit code {process.returncode}: {said[-500:]}", flush=True)
    return whom, process.returncode == 0


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
    record(name, runs, killed, failures, time.monotonic() - began, f"python -m {__spec__.name}")
    print(f"{name}: {killed} kills in {runs} runs, {failures} failures", flush=True)
    return failures


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(bool(main(given[0] if given else None, *map(int, given[1:]))))
