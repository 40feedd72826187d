"""Studies that are killed end as if they had not been: `python -m tests.faults.long_kills [HOW MANY]`."""

import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from tests.faults import commands
from tests.faults.ledger import record
from tests.faults.small import PAIRS, TEXTS, die_at_rename, finish, in_child

KILLS = 50
Attempt = Callable[[Path, float | None], bool]  # whether it was killed; else it has ended, and ended well


def main(kills: int = KILLS) -> int:
    torch.set_num_threads(1)
    failures = 0
    for name, config in (("texts", TEXTS), ("sentence pairs", PAIRS)):
        failures += at_random(f"kills: a study of {name}, at random instants", partial(_forked, config, False), kills)
        failures += at_renames(f"kills: a study of {name}, at its renames", config)
    failures += at_random(
        "kills: a study with its worker, at random instants", partial(_forked, TEXTS, True), kills // 5
    )
    failures += at_random("kills: the command, at random instants", _commanded, kills // 10)
    return failures


def at_random(name: str, attempt: Attempt, kills: int) -> int:
    """Kill a study at so many instants, from its first moment to its last, and compare its result byte for byte.

    Each instant is drawn from its own slice of the time that an undisturbed run takes. The same study follows in the
    same folder, killed in its turn, until it ends before it can be killed; then another begins.
    """
    began, draw = time.monotonic(), random.Random(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        assert not attempt(folder / "undisturbed", None)
        takes = time.monotonic() - began
        expected = (folder / "undisturbed" / "result.json").read_bytes()
        assert kills > 0
        instants = [(i + draw.random()) / kills * takes for i in range(kills)]
        draw.shuffle(instants)
        runs, killed, failures = 1, 0, 0
        out = folder / f"run-{runs}"
        while instants:
            if attempt(out, instants[-1]):
                killed += 1
                print(f"{name}: {killed} of {kills}, after {instants.pop():.2f} of {takes:.1f} s", flush=True)
                if killed % 2 and not commands.orphans_end(out):
                    print(f"{out}: workers live on", flush=True)
                    failures += 1
                continue
            failures += not _is_as_expected(out, expected)
            runs += 1
            out = folder / f"run-{runs}"
            instants[-1] *= 0.9  # it may be quicker than the undisturbed run was
        assert not attempt(out, None)
        failures += not _is_as_expected(out, expected)
    return _count(name, runs, killed, failures, began)


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


def _forked(config: object, workers: bool, out: Path, instant: float | None) -> bool:
    work = partial(finish, config, out, workers=workers)  # type: ignore[arg-type]
    code = in_child(work, kill_after=instant)
    assert code in (0, -signal.SIGKILL), code
    return code != 0


def _commanded(out: Path, instant: float | None) -> bool:
    process = commands.start(commands.texts(out.parent), out)
    if instant is not None and commands.kill_after(process, instant):
        return True
    said, _ = process.communicate() if instant is None else ("", "")
    assert process.returncode == 0, said
    return False


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
