"""Work on every core at once: worker processes take orders, one after the other, until none is left."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import IO, Any

from heedful.errors import TrainingError
from heedful.execution.worker import driven, watched

OnProgress = Callable[[dict[str, Any]], None]


def work_through(
    module: str,
    arguments: Sequence[str],
    orders: Mapping[str, str],
    *,
    jobs: int | None = None,
    on_progress: OnProgress = lambda line: None,
    lock: int | None = None,
) -> None:
    """Give each order (a line, under its name) to one of `jobs` single-threaded processes `python -m module arguments`.

    A worker answers in JSON, one object a line: progress, then `done`, or `error`. The first failure stops the rest
    and is raised; but an order whose worker was killed is given once more, to another. One process per core where
    `jobs` is left out. Workers end with this process.
    """
    waiting: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    for order in orders.items():
        waiting.put(order)
    if not orders:
        return
    workers: list[subprocess.Popen[str]] = []
    stopped = threading.Event()

    def work() -> None:
        complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed below)

        def start() -> "subprocess.Popen[str]":
            process = _start(module, arguments, complaints, lock)
            workers.append(process)
            if stopped.is_set():  # after whoever stopped them went through the list
                process.terminate()
            return process

        process = start()
        try:
            while not stopped.is_set():
                try:
                    name, order = waiting.get_nowait()
                except queue.Empty:
                    break
                try:
                    _follow(process, name, order, complaints, on_progress)
                except WorkerKilledError as killed:
                    if stopped.is_set():
                        raise
                    on_progress({"model": name, "notice": f"{killed}: another goes on"})
                    _end(process, at_once=True)
                    process = start()
                    _follow(process, name, order, complaints, on_progress)
        except BaseException:
            stopped.set()
            raise
        finally:
            _end(process, stopped.is_set())
            complaints.close()

    width = min(jobs or os.cpu_count() or 1, len(orders))
    with ThreadPoolExecutor(width) as pool:
        futures = [pool.submit(work) for _ in range(width)]
        try:
            ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in ended:
                future.result()
        except BaseException:
            stopped.set()
            for process in workers:
                process.terminate()
            raise


class WorkerKilledError(TrainingError):
    """A worker that a signal ended: the machine ran out of memory, or somebody killed it."""


def _start(module: str, arguments: Sequence[str], complaints: IO[str], lock: int | None) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        watched(module, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        env=driven(),
        pass_fds=() if lock is None else (lock,),
    )


def _follow(
    process: "subprocess.Popen[str]", name: str, order: str, complaints: IO[str], on_progress: OnProgress
) -> None:
    """Give a worker one order and pass on its lines until it is done; raise what it says went wrong."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        print(order, file=process.stdin, flush=True)
    for text in process.stdout:
        line = json.loads(text)
        if "error" in line:
            raise TrainingError(f"{name}: {line['error']}")
        on_progress(line)
        if line.get("done"):
            return
    code = process.wait()
    if code < 0:
        kind = TrainingError if -code in (signal.SIGINT, signal.SIGTERM) else WorkerKilledError
        raise kind(f"{name}: its process was ended by {_signal(-code)}")
    complaints.seek(0)
    said = complaints.read().strip().splitlines()
    reason = said[-1] if said else f"exit code {code}"
    raise TrainingError(f"{name}: the training process ended early: {reason}")


def _signal(number: int) -> str:
    """A signal's name, and what it often means.

    >>> _signal(9)
    'SIGKILL (was there memory enough? --jobs 1 needs less)'
    """
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return name + (" (was there memory enough? --jobs 1 needs less)" if name == "SIGKILL" else "")


def _end(process: "subprocess.Popen[str]", at_once: bool) -> None:
    if at_once:
        process.terminate()
    process.communicate()
