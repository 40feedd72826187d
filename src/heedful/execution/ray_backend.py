"""Pieces of work as Ray tasks; a task whose worker dies is run again by Ray."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from heedful.errors import ConfigError, HeedfulError, MissingExtraError, RunError


def connect(address: str | None) -> Any:
    """Ray, joined to the cluster at an address or at `RAY_ADDRESS`, else to one started on this machine alone.

    Ray's own search is not asked: it hangs on what a cluster that has ended left behind, and takes other people's. No
    statistics of its use are sent, and it has no dashboard.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "--on ray") from None
    if address is not None and address.startswith("ray://"):
        raise ConfigError(
            f"{address}: heedful joins a cluster rather than calling it from outside; run `ray start --address=…` on "
            "this machine, then give --address auto"
        )
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    if address is None:
        quiet["_node_ip_address"] = "127.0.0.1"
    else:
        del quiet["include_dashboard"]
    try:
        ray.init(address=address or "local", **quiet)
    except (ConnectionError, TimeoutError, ValueError, RuntimeError) as error:
        if address is None:
            raise RunError(f"Ray does not start: {in_words(error)}; see `ray status`") from None
        raise RunError(
            f"no Ray cluster answers at {address}: {in_words(error)}; see `ray status`, and where the cluster asks for "
            "a token, say RAY_AUTH_MODE=token here too"
        ) from None
    return ray


def in_words(error: BaseException) -> str:
    """The first sentence of what Ray says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


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
