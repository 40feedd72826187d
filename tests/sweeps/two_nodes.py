"""A Ray cluster of two nodes on this machine, reachable from nowhere else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

HEAD, OTHER = "127.0.0.2", "127.0.0.3"  # Ray takes 127.0.0.1 for whatever this machine is called outside


@contextmanager
def two_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes with one core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    room = {"num_cpus": 1, "object_store_memory": 80_000_000}
    for last in (False, False, True):
        cluster = Cluster()
        try:
            cluster.add_node(node_ip_address=HEAD, include_dashboard=False, **room)
            cluster.add_node(node_ip_address=OTHER, **room)
            break
        except Exception:  # Ray gives a node thirty seconds, which a busy machine may not have
            cluster.shutdown()
            if last:
                raise
    try:
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()
