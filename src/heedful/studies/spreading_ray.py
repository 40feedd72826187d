"""Pieces of work as Ray tasks; a task whose worker dies is run again by Ray."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from heedful.errors import HeedfulError, MissingExtraError, RunError

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
    ray = _ray()
    begun = not ray.is_initialized()
    if begun:
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise RunError(
                f"no Ray cluster answers at {address or 'its usual place'} ({said}); start one: ray start"
            ) from error
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
                raise RunError(f"the Ray cluster gave up on a chunk: {str(error).strip().splitlines()[0]}") from error

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


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "counting on a cluster") from None
    return ray
