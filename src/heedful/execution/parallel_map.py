"""One function over many pieces, in their order, on every core of this machine or of a Ray cluster."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Literal, TypeVar

from heedful.errors import ConfigError, RunError

Place = Literal["local", "ray"]
S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")
AHEAD = 2  # pieces read before they are needed, for each worker

_kept: Any = None  # in a worker: the function and what all pieces share


def spread(
    function: Callable[[S, P], R],
    shared: S,
    pieces: Iterable[P],
    *,
    jobs: int | None = None,
    on: Place = "local",
    address: str | None = None,
) -> Iterator[tuple[P, R]]:
    """Each piece with `function(shared, piece)`, in order; only some pieces are in memory at a time.

    jobs: how many at a time, one per core where left out; 1 works in this process. on: `ray` sends them to a cluster,
    at `address` or `RAY_ADDRESS`, or else one that is started on this machine alone.

    >>> list(spread(pow, 2, [3, 4], jobs=1))
    [(3, 8), (4, 16)]
    """
    if on == "ray":
        from heedful.execution.ray_backend import spread_on_ray

        return spread_on_ray(function, shared, pieces, jobs=jobs, address=address, ahead=AHEAD)
    if address is not None:
        raise ConfigError("--address is that of a Ray cluster; say --on ray too")
    width = jobs or os.cpu_count() or 1
    if width == 1:
        return ((piece, function(shared, piece)) for piece in pieces)
    return _on_processes(function, shared, pieces, width)


def _on_processes(function: Callable[[S, P], R], shared: S, pieces: Iterable[P], width: int) -> Iterator[tuple[P, R]]:
    waiting: deque[tuple[P, Future[R]]] = deque()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(width, context, _keep, (function, shared)) as pool:
        try:
            for piece in pieces:
                waiting.append((piece, pool.submit(_apply, piece)))
                if len(waiting) >= AHEAD * width:
                    yield _taken(waiting)
            while waiting:
                yield _taken(waiting)
        except BrokenProcessPool:
            raise RunError(
                "a counting process ended early, perhaps for want of memory: try --max-types or --jobs with less; "
                'a script must call this below `if __name__ == "__main__":`'
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _taken(waiting: "deque[tuple[P, Future[R]]]") -> tuple[P, R]:
    piece, future = waiting.popleft()
    return piece, future.result()


def _keep(function: Any, shared: Any) -> None:
    global _kept
    _kept = function, shared


def _apply(piece: Any) -> Any:
    function, shared = _kept
    return function(shared, piece)
