"""An ordered parallel map over a stream of chunks, on the cores of this machine or of a Ray cluster."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from heedful.errors import ConfigError, RunError
from heedful.execution.pool import Backend, Job, ProcessPool, Shared, WorkerDiedError, cores, run_again_if_killed
from heedful.execution.worker import OnEvent

Place = Literal["local", "ray"]
S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")
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
            job = Job("chunk", "heedful.execution.parallel_map:apply", {"chunk": chunk}, shared=common)
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
        raise RunError(f"a chunk was not counted: {error}; if memory ran out, lower --max-types or --jobs") from error
