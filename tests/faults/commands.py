"""Small studies as people start them: a command line, in a process of its own that can be killed."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

from heedful.data.synthetic.tasks import stream_pairs
from heedful.storage.locks import HEARTBEAT, LOCK

EVERY_STEP = {"HEEDFUL_CHECKPOINT_SECONDS": "0", "OMP_NUM_THREADS": "1"}
GRACE = 60.0  # seconds that orphans have to end in


def texts(folder: Path) -> list[str]:
    """The arguments of a study of sixty texts in which one word gives the label away."""
    draw = random.Random(0)
    filler = ["the", "a", "film", "plot", "with", "some", "actors", "of", "it", "was", "very", "long", "and", "then"]
    rows = [
        f"{' '.join([*draw.choices(filler, k=draw.randint(3, 9)), ('bad', 'good')[i % 2]])},{i % 2}" for i in range(60)
    ]
    path = folder / "texts.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return ["study", str(path), "--budget", "smoke", "--steps", "8", "--jobs", "1"]


def pairs(folder: Path) -> list[str]:
    """The arguments of a study of a hundred sentence pairs."""
    made = list(islice(stream_pairs("toy-de-en"), 100))
    sides = [folder / "toy.de", folder / "toy.en"]
    for i, path in enumerate(sides):
        path.write_text("".join(pair[i] + "\n" for pair in made), encoding="utf-8")
    return ["study", *map(str, sides), "--budget", "smoke", "--steps", "8", "--jobs", "1"]


def start(arguments: list[str], out: Path, **environment: str) -> "subprocess.Popen[str]":
    """Start the command of a study in `out`."""
    return subprocess.Popen(
        [sys.executable, "-m", "heedful", *arguments, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **EVERY_STEP, **environment},
    )


def run(arguments: list[str], out: Path, **environment: str) -> tuple[int, str]:
    """Run the command to its end: exit code, and all it said."""
    process = start(arguments, out, **environment)
    said, _ = process.communicate()
    return process.returncode, said


def kill_after(process: "subprocess.Popen[str]", seconds: float, out: Path, victim: str = "command") -> str:
    """Who was killed so many seconds after now: the command, its worker, or both; nobody where it ended before.

    A command that has no worker just then dies instead.
    """
    try:
        process.wait(timeout=seconds)
        return ""
    except subprocess.TimeoutExpired:
        workers = [pid for pid in workers_of(out) if pid != process.pid] if "worker" in victim else []
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if workers and victim == "worker":
        return "worker"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return "command and worker" if workers else "command"


def workers_of(out: Path) -> list[int]:
    """The processes that have the folder among their arguments."""
    found = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = cmdline.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(out).encode() in words:
            found.append(int(cmdline.parent.name))
    return found


def orphans_end(out: Path) -> bool:
    """Whether all processes that work in the folder end by themselves."""
    until = time.monotonic() + GRACE
    while workers_of(out):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def leftovers(out: Path) -> list[str]:
    """What a finished run should not have: temporary files, its lock, states of trainings that are over."""
    unwanted = (".*.part", LOCK, HEARTBEAT, "state.json", "training.safetensors")
    return sorted(str(path.relative_to(out)) for name in unwanted for path in out.rglob(name))
