"""Pieces of work as Ray tasks; a task whose worker dies is run again by Ray."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from heedful.errors import HeedfulError, RunError
from heedful.studies.joining import connect, in_words

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")


def spread_on_ray(
    function: Callable[[S, P], R],
    shared: S,
    pieces: Iterable[P],
    *,
    jobs: int | None,
    address: str | None,
    ahead: int,
) -> Iterator[tuple[P, R]]:
    """Each piece with `function(shared, piece)`, in order, one task of one CPU for each."""
    ray, begun = _joined(address)
    try:
        width = jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
        common = ray.put((function, shared))
        task = ray.remote(num_cpus=1, max_retries=3)(_apply)
        waiting: deque[tuple[P, Any]] = deque()

        def taken() -> tuple[P, R]:
            piece, reference = waiting.popleft()
            try:
                return piece, ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, HeedfulError):
                    raise error.cause from None
                raise
            except ray.exceptions.RayError as error:
                raise RunError(f"the Ray cluster gave up on a chunk: {in_words(error)}") from error

        for piece in pieces:
            waiting.append((piece, task.remote(common, piece)))
            if len(waiting) >= ahead * width:
                yield taken()
        while waiting:
            yield taken()
    finally:
        if begun:
            ray.shutdown()


def _apply(common: Any, piece: Any) -> Any:
    function, shared = common
    return function(shared, piece)


def _joined(address: str | None) -> tuple[Any, bool]:
    """Ray, and whether it was joined here: who has joined a cluster already stays in it."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return ray, False
    return connect(address), True
