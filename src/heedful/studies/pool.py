"""The models of a study side by side: one single-threaded process per core, each taking the next model in line."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from heedful.errors import TrainingError
from heedful.studies.run import ModelSpec, Run

OnProgress = Callable[[dict[str, Any]], None]


def train_all(
    run: Run, specs: Sequence[ModelSpec], *, jobs: int | None = None, device: str = "auto", on_progress: OnProgress
) -> None:
    """Train every model that is not done, `jobs` at a time; the first failure stops the rest and is raised."""
    waiting: queue.SimpleQueue[ModelSpec] = queue.SimpleQueue()
    unfinished = [spec for spec in specs if not run.model(spec).is_done()]
    for spec in unfinished:
        waiting.put(spec)
    if not unfinished:
        return
    workers: list[subprocess.Popen[str]] = []
    stopped = threading.Event()

    def work() -> None:
        complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed below)
        process = _start(run, device, complaints)
        workers.append(process)
        try:
            while not stopped.is_set():
                try:
                    spec = waiting.get_nowait()
                except queue.Empty:
                    break
                _follow(process, spec, complaints, on_progress)
        except BaseException:
            stopped.set()
            raise
        finally:
            _end(process, stopped.is_set())
            complaints.close()

    width = min(jobs or os.cpu_count() or 1, len(unfinished))
    with ThreadPoolExecutor(width) as pool:
        futures = [pool.submit(work) for _ in range(width)]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stopped.set()
            for process in workers:
                process.terminate()
            raise


def _start(run: Run, device: str, complaints: IO[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "heedful.studies.worker", str(run.root), device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    )


def _follow(process: "subprocess.Popen[str]", spec: ModelSpec, complaints: IO[str], on_progress: OnProgress) -> None:
    """Give a worker one model and pass on its lines until the model is done; raise what it says went wrong."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        print(spec.kind, spec.seed, file=process.stdin, flush=True)
    for text in process.stdout:
        line = json.loads(text)
        if "error" in line:
            raise TrainingError(f"{spec.name}: {line['error']}")
        on_progress(line)
        if line.get("done"):
            return
    code = process.wait()
    complaints.seek(0)
    said = complaints.read().strip().splitlines()
    reason = said[-1] if said else f"exit code {code}"
    raise TrainingError(f"{spec.name}: the training process ended early: {reason}")


def _end(process: "subprocess.Popen[str]", at_once: bool) -> None:
    if at_once:
        process.terminate()
    process.communicate()
