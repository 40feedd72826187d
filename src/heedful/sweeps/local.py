"""Studies on this machine: single-threaded processes, each of which carries out one study after the other."""

import contextlib
import json
import os
import subprocess
import tempfile
import threading
from typing import IO, Any

from heedful.sweeps.crew import AttemptError, as_attempt_error
from heedful.sweeps.process import Report, driven, watched
from heedful.sweeps.study_job import StudyJob


class LocalCrew:
    """Worker processes, started when first needed and replaced when they die."""

    def __init__(self, jobs: int | None = None) -> None:
        self.width = jobs or os.cpu_count() or 1
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []
        self._lock = threading.Lock()
        self._stopped = False

    def attempt(self, order: StudyJob, report: Report) -> None:
        """Carry out a study in a process that is idle or new; one that died is not used again."""
        worker = self._take()
        try:
            worker.follow(order, report)
        finally:
            with self._lock:
                again = worker.is_alive() and not self._stopped
                if again:
                    self._idle.append(worker)
            if not again:
                worker.end()

    def stop(self) -> None:
        """End every process, at once where it is at work."""
        with self._lock:
            self._stopped = True
            idle, self._idle = self._idle, []
            busy, self._all = [worker for worker in self._all if worker not in idle], []
        for worker in idle:
            worker.end()
        for worker in busy:
            worker.terminate()  # whoever follows it hears of that, and ends it

    def about(self) -> dict[str, Any]:
        """This machine, and how many studies at a time."""
        return {"on": "local", "jobs": self.width}

    def _take(self) -> "_Worker":
        with self._lock:
            if self._stopped:
                raise AttemptError("the sweep was stopped")
            if self._idle:
                return self._idle.pop()
            worker = _Worker()
            self._all.append(worker)
            return worker


class _Worker:
    def __init__(self) -> None:
        self._complaints: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed in `end`)
        self._process = subprocess.Popen(
            watched("heedful.sweeps.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="utf-8",
            env=driven(),
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def follow(self, order: StudyJob, report: Report) -> None:
        """Give the order and pass on what is answered, until it is finished or failed."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(order.to_dict()), file=process.stdin, flush=True)
        for text in process.stdout:
            line = json.loads(text)
            if "error" in line:
                raise as_attempt_error(line)
            if line.get("finished"):
                return
            report(line)
        code = process.wait()
        raise AttemptError(f"the worker process ended early: {self._last_words(code)}", died=True)

    def terminate(self) -> None:
        self._process.terminate()

    def end(self) -> None:
        self.terminate()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._complaints.close()

    def _last_words(self, code: int) -> str:
        if code < 0:
            return f"killed by signal {-code}"
        self._complaints.seek(0)
        said = self._complaints.read().strip().splitlines()
        return said[-1] if said else f"exit code {code}"
