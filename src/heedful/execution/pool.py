"""A pool of worker processes: jobs, and an ordered map over a stream of chunks, here or on any other backend.

A job is a function by its name and its arguments. Workers are single-threaded: one process per core beats threads, and
sums are in one order. A worker serves one job after the other and ends with this process, however that ends. Jobs come
to it over a pipe that is not its standard output, so nothing that a library prints can break the protocol. Messages are
pickled, and go between our own processes only.
"""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from typing import Any, Literal, Protocol, TypedDict, TypeVar, get_args, runtime_checkable

from heedful.errors import ConfigError, HeedfulError, RunError, TrainingError

T = TypeVar("T")
R = TypeVar("R")
_TAIL = 1 << 16  # bytes of a worker's output that are searched for its last line
_POLL_SECONDS = 0.2
_WORKER = "import sys; from heedful.execution.pool import work; work(*map(int, sys.argv[1:]))"
JobState = Literal["kept", "waiting", "started", "finished", "retry", "failed"]


class Event(TypedDict, total=False):
    """Progress of a model, a study, a unit of a paper or a pass over a corpus: whichever of these keys apply.

    model: what the event is about. stage: what is done now. step, steps, resumed, done: how far it is. notice: what
    people should know. The others up to `batch_loss` are measurements at that step. pid: of the process at work.
    passes, expected: forward passes of an audit so far, and in all.
    study, place, state, attempt, figures, error: of a study of a sweep and its place on the axes.
    """

    model: str
    stage: str
    notice: str
    step: int
    steps: int
    resumed: bool
    done: bool
    accuracy: float | None
    loss: float | None
    train_loss: float | None
    bleu: float
    train_bleu: float
    batch_loss: float
    pid: int
    passes: int
    expected: int
    study: str
    place: tuple[str, ...]
    state: JobState
    attempt: int
    figures: str
    error: str


OnEvent = Callable[[Event], None]


class Shared:
    """An object that many jobs need: each worker gets it once."""

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, secrets.token_hex(8)


@dataclass(frozen=True)
class Job:
    """A call of `module:function(**arguments, report=…)` in another process; what it returns is pickled.

    folder: where the job writes its files, passed as `folder=`; on another machine it may be a scratch folder, whose
    files are then brought home. shared: passed as `shared=`, a function without arguments that returns the object.
    """

    name: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    folder: str | None = None
    shared: Shared | None = None


class WorkerDiedError(RunError):
    """The process ended under the job; killed: by a signal that nobody asked for, so another attempt may succeed."""

    def __init__(self, reason: str, *, killed: bool = False) -> None:
        super().__init__(reason)
        self.killed = killed


class StoppedError(RunError):
    """The pool was stopped before the job was done."""


@runtime_checkable
class Backend(Protocol):
    """Where jobs run. `width` jobs may be under way at a time, each of them called from a thread of its own."""

    width: int
    remote: bool  # whether jobs may run on another machine

    def run(self, job: Job, on_event: OnEvent) -> Any:
        """Run one job and return its result; a `HeedfulError` of the job is raised as it is."""

    def stop(self) -> None:
        """Break off whatever is under way, and begin nothing more."""

    def about(self) -> dict[str, Any]:
        """Where jobs run, for a manifest."""


def run_jobs(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    on_event: OnEvent = lambda event: None,
    inherit: Sequence[int] = (),
    backend: Backend | None = None,
) -> dict[str, Any]:
    """The results of all jobs by name; the first failure stops the others at once and is raised.

    workers: how many at a time, one per core where left out. inherit: file descriptors that the workers hold too, such
    as locks. backend: where jobs run, instead of a pool that is started for them; a failure stops it. A job whose
    worker was killed runs once more, on another.

    >>> run_jobs([Job("power", "heedful.execution.pool:apply", {"chunk": 3}, shared=Shared((pow, 2)))])
    {'power': 8}
    """
    if not jobs:
        return {}
    pool = backend or ProcessPool(min(workers or cores(), len(jobs)), inherit=inherit)

    def run(job: Job) -> Any:
        try:
            result = run_again_if_killed(pool, job, on_event)
        except HeedfulError as error:
            raise TrainingError(f"{job.name}: {error}") from error
        on_event({"model": job.name, "done": True})
        return result

    try:
        results = in_threads(run, jobs, pool)
    finally:
        if backend is None:
            pool.stop()
    return {job.name: result for job, result in zip(jobs, results, strict=True)}


def run_again_if_killed(backend: Backend, job: Job, on_event: OnEvent = lambda event: None) -> Any:
    """Run a job, and once more if its worker was killed."""
    try:
        return backend.run(job, on_event)
    except WorkerDiedError as error:
        if not error.killed:
            raise
        on_event({"model": job.name, "notice": f"{job.name}: {error}; another goes on"})
    return backend.run(job, on_event)


def in_threads(function: Callable[[T], R], items: Sequence[T], backend: Backend) -> list[R]:
    """Call a function that uses the backend for each item, `width` at a time; the first failure stops the backend."""
    failures: list[BaseException] = []

    def call(item: T) -> R:
        try:
            if failures:
                raise StoppedError("another job failed")
            return function(item)
        except BaseException as error:
            failures.append(error)
            backend.stop()
            raise

    with ThreadPoolExecutor(max(1, min(backend.width, len(items)))) as threads:
        futures = [threads.submit(call, item) for item in items]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        except BaseException as error:
            failures.append(error)
            backend.stop()
    if failures:
        raise failures[0]
    return [future.result() for future in futures]


def cores() -> int:
    """The number of cores of this machine."""
    return os.cpu_count() or 1


class ProcessPool:
    """Worker processes of this machine, started when they are needed and replaced when they die."""

    remote = False

    def __init__(self, width: int | None = None, *, inherit: Sequence[int] = ()) -> None:
        self.width = width or cores()
        self.workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._inherit = inherit
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, job: Job, on_event: OnEvent = lambda event: None) -> Any:
        """Run a job in a worker that is idle, or a new one; a worker that died is not used again."""
        with self._lock:
            if self._stopped:
                raise StoppedError("the pool was stopped")
            worker = self._idle.pop() if self._idle else _Worker(self._inherit)
            if worker not in self.workers:
                self.workers.append(worker)
        try:
            return worker.run(job, on_event)
        except WorkerDiedError:
            if self._stopped:
                raise StoppedError("the pool was stopped") from None
            raise
        finally:
            with self._lock:
                again = not worker.busy and not self._stopped
                if again:
                    self._idle.append(worker)
                else:
                    self.workers.remove(worker)
            if not again:
                worker.end()

    def stop(self) -> None:
        """End every worker, at once if it is at work."""
        with self._lock:
            self._stopped = True
            idle, self._idle = self._idle, []
            self.workers = [worker for worker in self.workers if worker not in idle]
            for worker in self.workers:
                worker.process.terminate()  # the thread that waits for it then ends it
        for worker in idle:
            worker.end()

    def about(self) -> dict[str, Any]:
        """This machine, and how many jobs at a time."""
        return {"on": "local", "jobs": self.width}


# glibc gives large arrays back at once by default; every training step then pays for new pages, about a tenth of it.
_KEEP_MEMORY = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**30))


class _Worker:
    """A worker process as the driver sees it."""

    def __init__(self, inherit: Sequence[int]) -> None:
        self.busy = False
        self._shared: set[str] = set()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `end`)
        self._pipe, theirs = Pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**_KEEP_MEMORY, **os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            pass_fds=(theirs.fileno(), *inherit),
        )
        theirs.close()

    def run(self, job: Job, on_event: OnEvent) -> Any:
        """Send the job, pass on its events and return its result."""
        self.busy, shared = True, job.shared
        with suppress(BrokenPipeError, ConnectionResetError):  # how it ended is seen below
            if shared is not None and shared.key not in self._shared:
                self._pipe.send(("share", shared.key, shared.value))
                self._shared.add(shared.key)
            arguments = {**job.arguments, **({} if job.folder is None else {"folder": job.folder})}
            self._pipe.send(("run", job.function, arguments, shared and shared.key))
        while True:
            try:
                kind, content = self._pipe.recv()
            except (EOFError, OSError):
                raise self._died() from None
            if kind == "event":
                content.setdefault("model", job.name)
                on_event(content)
                continue
            self.busy = False
            if kind == "error":
                raise content
            return content

    def end(self) -> None:
        """End the process, at once if it is at work, and wait for that: it holds locks."""
        if self.busy:
            self.process.terminate()
        self._pipe.close()
        self.process.wait()
        self._output.close()

    def _died(self) -> WorkerDiedError:
        code = self.process.wait()
        if code < 0:
            killed = -code not in (signal.SIGINT, signal.SIGTERM)
            return WorkerDiedError(f"its process was ended by {_signal_name(-code)}", killed=killed)
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _TAIL))
        lines = self._output.read().decode("utf-8", errors="replace").strip().splitlines()
        error = WorkerDiedError(f"the worker process ended early: {lines[-1] if lines else f'exit code {code}'}")
        if len(lines) > 1:
            error.add_note("\n".join(lines))
        return error


def work(descriptor: int, driver: int) -> None:
    """The worker process: run jobs until the pipe is closed.

    A `HeedfulError` is answered, and the next job may come. Any other exception ends the process, with its traceback
    on standard error.
    """
    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    shared: dict[str, Any] = {}
    while True:
        try:
            message = pipe.recv()
        except EOFError:
            return
        if message[0] == "share":
            shared[message[1]] = message[2]
            continue
        _, function, arguments, key = message
        try:
            result = call(
                function,
                arguments,
                report=lambda event: pipe.send(("event", event)),
                shared=None if key is None else partial(shared.__getitem__, key),
            )
        except HeedfulError as error:
            pipe.send(("error", error))
        else:
            pipe.send(("done", result))


def call(
    function: str, arguments: Mapping[str, Any], *, report: OnEvent, shared: Callable[[], Any] | None = None
) -> Any:
    """Call `module:function` with a job's arguments; `shared` is passed on where the job has a shared object.

    >>> call("builtins:dict", {"a": 1}, report=len)
    {'a': 1, 'report': <built-in function len>}
    """
    module, _, name = function.partition(":")
    more = {} if shared is None else {"shared": shared}
    return getattr(import_module(module), name)(**arguments, **more, report=report)


def _end_with(driver: int) -> None:
    """End this process as soon as the driver is gone, however that ended; every file is written atomically."""
    while os.getppid() == driver:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def _signal_name(number: int) -> str:
    """A signal's name, and what it often means.

    >>> _signal_name(9)
    'SIGKILL (was there memory enough? --jobs 1 needs less)'
    """
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return name + (" (was there memory enough? --jobs 1 needs less)" if name == "SIGKILL" else "")


Place = Literal["local", "ray"]
PLACES: tuple[Place, ...] = get_args(Place)
S = TypeVar("S")
P = TypeVar("P")
AHEAD = 2  # chunks read before they are needed, for each worker


def parallel_map(
    function: Callable[[S, P], R],
    shared: S,
    chunks: Iterable[P],
    *,
    jobs: int | None = None,
    on: Place = "local",
    address: str | None = None,
) -> Iterator[tuple[P, R]]:
    """Each chunk with `function(shared, chunk)`, in order; only some chunks are in memory at a time.

    jobs: how many at a time, one per core where left out; 1 works in this process. on: `ray` sends them to a cluster,
    at `address` or `RAY_ADDRESS`, or else one that is started on this machine alone. Each worker gets `shared` once. A
    chunk whose worker was killed is given to another, once.

    >>> list(parallel_map(pow, 2, [3, 4], jobs=1))
    [(3, 8), (4, 16)]
    """
    if on == "ray":
        return _map(function, shared, chunks, lambda: _ray_pool(jobs, address))
    if address is not None:
        raise ConfigError("--address is that of a Ray cluster; say --on ray too")
    width = jobs or cores()
    if width == 1:
        return ((chunk, function(shared, chunk)) for chunk in chunks)
    return _map(function, shared, chunks, lambda: ProcessPool(width))


def place_named(name: str) -> Place:
    """Check the name of a place where work is done.

    >>> place_named("ray")
    'ray'
    """
    for place in PLACES:
        if place == name:
            return place
    raise ConfigError(f"--on {name!r} is not one of {', '.join(PLACES)}")


def apply(*, chunk: Any, shared: Callable[[], Any], report: OnEvent) -> Any:
    """The job of one chunk.

    >>> apply(chunk=3, shared=lambda: (pow, 2), report=print)
    8
    """
    function, value = shared()
    return function(value, chunk)


def _map(
    function: Callable[[S, P], R], shared: S, chunks: Iterable[P], start: Callable[[], Backend]
) -> Iterator[tuple[P, R]]:
    waiting: deque[tuple[P, Future[R]]] = deque()
    common, backend = Shared((function, shared)), start()
    threads = ThreadPoolExecutor(backend.width)
    try:
        for chunk in chunks:
            job = Job("chunk", "heedful.execution.pool:apply", {"chunk": chunk}, shared=common)
            waiting.append((chunk, threads.submit(run_again_if_killed, backend, job)))
            if len(waiting) >= AHEAD * backend.width:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    finally:
        backend.stop()
        threads.shutdown(cancel_futures=True)


def _ray_pool(jobs: int | None, address: str | None) -> Backend:
    from heedful.execution.ray_backend import RayPool

    pool = RayPool(address=address)
    pool.width = jobs or pool.cores()
    return pool


def _first(waiting: "deque[tuple[P, Future[R]]]") -> tuple[P, R]:
    chunk, future = waiting.popleft()
    try:
        return chunk, future.result()
    except WorkerDiedError as error:
        raise RunError(f"a chunk of work failed: {error}; if memory ran out, lower --max-types or --jobs") from error
