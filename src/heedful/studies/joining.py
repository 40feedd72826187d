"""Ray, joined to a cluster that is named, or started on this machine alone."""

import os
from typing import Any

from heedful.errors import ConfigError, MissingExtraError, RunError


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
