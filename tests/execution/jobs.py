"""Jobs and functions of chunks that a worker imports in no time."""

import os
from pathlib import Path

from heedful.errors import DamagedError, DataError


def double(shared: int, chunk: int) -> int:
    if chunk == 17:
        os._exit(1)
    if chunk == 13:
        raise DataError("thirteen")
    return shared * chunk


def add(a, b, *, report):
    print("whatever a library prints", flush=True)
    os.system("echo and what its processes print")
    report({"step": 1, "steps": 1})
    return a + b, os.getpid()


def refuse(*, report, **arguments):
    raise DamagedError("a.json", "it is empty")


def write(text, *, folder, report):
    Path(folder).mkdir(parents=True)
    (Path(folder) / "a.txt").write_text(text)
    report({"step": 1, "steps": 2})
    return len(text)


def fetch(*, shared=None, folder, report):
    return write(shared(), folder=folder, report=report)


def fail(*, report, **arguments):
    raise ZeroDivisionError("by nothing")


def wait(*, report):
    report({"stage": "waiting"})
    import time

    time.sleep(600)
