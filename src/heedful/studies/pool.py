"""The models of a study side by side: one single-threaded process per core."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from heedful.errors import TrainingError
from heedful.studies.run import ModelSpec, Run

OnProgress = Callable[[dict[str, Any]], None]


def train_all(
    run: Run, specs: Sequence[ModelSpec], *, jobs: int | None = None, device: str = "auto", on_progress: OnProgress
) -> None:
    """Train every model that is not done, `jobs` at a time; the first failure stops the rest and is raised."""
    running: set[subprocess.Popen[str]] = set()
    stopped = threading.Event()

    def work(spec: ModelSpec) -> None:
        if stopped.is_set():
            return
        process = subprocess.Popen(
            [sys.executable, "-m", "heedful.studies.worker", str(run.root), spec.kind, str(spec.seed), device],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )
        running.add(process)
        try:
            _follow(process, spec, on_progress)
        except BaseException:
            stopped.set()
            raise
        finally:
            running.discard(process)

    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        futures = [pool.submit(work, spec) for spec in specs if not run.model(spec).is_done()]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stopped.set()
            for process in list(running):
                process.terminate()
            raise


def _follow(process: "subprocess.Popen[str]", spec: ModelSpec, on_progress: OnProgress) -> None:
    """Pass on a worker's lines until it ends; raise what it says went wrong."""
    assert process.stdout is not None
    assert process.stderr is not None
    complaints: list[str] = []
    listener = threading.Thread(target=lambda: complaints.extend(process.stderr or ()), daemon=True)
    listener.start()
    failure = None
    for text in process.stdout:
        line = json.loads(text)
        failure = line.get("error", failure)
        on_progress(line)
    code = process.wait()
    listener.join()
    process.stdout.close()
    process.stderr.close()
    if failure is not None:
        raise TrainingError(f"{spec.name}: {failure}")
    if code != 0:
        last = complaints[-1].strip() if complaints else f"exit code {code}"
        raise TrainingError(f"{spec.name}: the training process ended early: {last}")
    on_progress({"model": spec.name, "done": True})
