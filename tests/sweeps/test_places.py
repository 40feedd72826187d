"""One sweep in several places: processes of this machine, a Ray cluster of two nodes, with and without misfortune."""

import os
import signal

import pytest

import heedful
from heedful.errors import ConfigError, RunError
from heedful.execution.pool import ProcessPool
from heedful.execution.ray_backend import RayPool
from heedful.storage.manifest import Manifest
from heedful.sweeps.grid import grid_of
from heedful.sweeps.result import SweepResult
from heedful.sweeps.sweep import grid_toml, run_sweep
from tests.sweeps.faults import Killer, kill_driver_after, on_ray, results_of
from tests.sweeps.tiny import tiny_grid, write_reviews
from tests.sweeps.two_nodes import two_nodes


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    return tiny_grid(write_reviews(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def local(grid, tmp_path_factory):
    """The sweep on this machine, left alone."""
    out = tmp_path_factory.mktemp("sweeps") / "local"
    assert not heedful.sweep(grid, out=out, jobs=1, progress=False, device="cpu").failed
    return out


@pytest.fixture(scope="module")
def cluster():
    with two_nodes() as address:
        yield address


def test_local_is_whole(local):
    result = SweepResult.load(local / "result.json")
    assert [study.place for study in result.studies] == [("softmax",), ("sparsemax",)]
    for study in result.studies:
        assert (local / study.folder / "report.html").exists()
        assert (local / study.folder / "models" / "standard-0" / "trace" / "4.parquet").exists()
    assert Manifest.read(local).details["jobs"] == 1


def test_ray_without_a_shared_path_brings_the_same_bytes_home_though_a_worker_was_killed(
    grid, local, cluster, tmp_path
):
    out, killer = tmp_path / "ray", Killer(after=6)
    assert not on_ray(grid, out, cluster, shared=False, on_event=killer).failed
    assert results_of(out) == results_of(local)
    about = Manifest.read(out).details
    assert (about["on"], about["nodes"]) == ("ray", 2)
    assert killer.killed is not None
    assert about["tried"][killer.killed]["attempts"] == 2
    assert sorted(p.name for p in (out / "studies").iterdir()) == sorted(p.name for p in (local / "studies").iterdir())


def test_a_driver_killed_between_studies_goes_on(grid, local, cluster, tmp_path):
    file, out = tmp_path / "grid.toml", tmp_path / "resumed"
    file.write_text(grid_toml(grid), encoding="utf-8")
    assert kill_driver_after(1, file, out, "--on", "ray", "--address", cluster) == 1
    on_ray(grid, out, cluster)
    assert Manifest.read(out).details["kept"] == 1
    assert results_of(out) == results_of(local)


def test_what_the_cluster_cannot_do(cluster, tmp_path):
    with pytest.raises(RunError, match="no node of the cluster has 64 cores"):
        RayPool(store=tmp_path, address=cluster, cpus=64)
    with pytest.raises(ConfigError, match="run `ray start --address=…` on this machine"):
        RayPool(store=tmp_path, address="ray://127.0.0.1:1")
    with pytest.raises(ConfigError, match="cannot need"):
        RayPool(store=tmp_path, address=cluster, cpus=0)


def test_a_local_worker_killed_is_replaced(grid, local, tmp_path):
    killed = []

    def on_event(event):
        if event.get("step") and not killed:
            killed.append(event["study"])
            os.kill(pool.workers[0].process.pid, signal.SIGKILL)

    pool = ProcessPool(1)
    out = tmp_path / "out"
    result = run_sweep(grid_of(grid), out, lambda studies: pool, text="", on_event=on_event)
    assert not result.failed
    assert Manifest.read(out).details["tried"][killed[0]]["attempts"] == 2
    assert results_of(out) == results_of(local)
