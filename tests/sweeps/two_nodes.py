"""A Ray cluster of two nodes on this machine, reachable from nowhere else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

HEAD, OTHER = "127.0.0.2", "127.0.0.3"  # Ray takes 127.0.0.1 for whatever this machine is called outside


@contextmanager
def two_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes with one core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    room = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster = Cluster(
        initialize_head=True, head_node_args={"node_ip_address": HEAD, "include_dashboard": False, **room}
    )
    try:
        cluster.add_node(node_ip_address=OTHER, **room)
        yield cluster.address
    finally:
        cluster.shutdown()
