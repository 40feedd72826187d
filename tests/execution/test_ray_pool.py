"""Jobs on a cluster, without the cluster: what a node does, what it brings home, and how the driver takes it."""

import os
import sys
from pathlib import Path

import pytest

from heedful.errors import DamagedError, DataError, RunError
from heedful.execution import ray_backend
from heedful.execution.pool import Job, Shared, StoppedError, WorkerDiedError, parallel_map
from heedful.execution.ray_backend import INCOMING, NodeOrder, RayPool, run_on_node, versions
from tests.execution.jobs import double
from tests.execution.pretend_ray import LostError, PretendRay, Reference

HERE = "tests.execution.jobs"
STEP = {"step": 1, "steps": 2}  # what the job `write` reports


@pytest.fixture
def job(tmp_path) -> Job:
    return Job("study", f"{HERE}:write", {"text": "whole"}, folder=str(tmp_path / "store" / "study"))


@pytest.fixture
def order(job, tmp_path, monkeypatch):
    """The job on its way; where the node is, and what it knows of corpora, are as before afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEEDFUL_DATA", "set back afterwards")
    monkeypatch.delenv("HEEDFUL_DATA")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mark").touch()

    def make(function=job.function, arguments=job.arguments, **changes) -> NodeOrder:
        settings = {"mark": str(tmp_path / "mark"), "shared_store": None, "cwd": str(tmp_path / "store")}
        settings |= {"mirror": str(tmp_path / "mirror"), "versions": versions()}
        return NodeOrder(Job("study", function, arguments, job.folder), **(settings | changes))

    return make


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(ray_backend.tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


@pytest.fixture
def ray(monkeypatch):
    """A cluster that this process has joined already."""
    pretended = PretendRay()
    monkeypatch.setitem(sys.modules, "ray", pretended)
    return pretended


@pytest.mark.parametrize("known", [True, False], ids=["another version", "nothing known of it"])
def test_a_node_with_other_versions_does_nothing(order, known):
    wanted = versions() | ({"torch": "0.0.1"} if known else {"jax": "0.0.1"})
    ((kind, error),) = run_on_node(order(versions=wanted), [])
    here = f"torch {versions()['torch']}" if known else "no jax"
    assert kind == "error"
    assert f" has {here} instead of " in str(error)
    assert str(error).endswith("0.0.1; results would not be the same")


def test_a_shared_store_is_worked_in(order, job, tmp_path):
    (tmp_path / "store").mkdir()
    (_, begun), *answers = run_on_node(order(), [])
    assert begun["pid"] == os.getpid()
    assert answers == [("event", STEP), ("done", 5)]
    assert (Path(job.folder) / "a.txt").read_text() == "whole"
    assert Path.cwd() == tmp_path / "store"
    assert os.environ["HEEDFUL_DATA"] == str(tmp_path / "mirror")


def test_a_store_that_is_not_seen_is_sent_the_files(order, job, tmp_path, scratch):
    answers = list(run_on_node(order(mark=str(tmp_path / "no mark")), []))
    assert answers[1:] == [("event", STEP), ("file", ("a.txt", b"whole")), ("settle", None), ("done", 5)]
    assert not Path(job.folder).exists()
    assert list(scratch.iterdir()) == []


def test_an_error_of_ours_is_the_last_answer_and_no_file_follows(order, scratch):
    *_, (kind, error) = run_on_node(order(f"{HERE}:refuse", {}, shared_store=False), [])
    assert kind == "error"
    assert isinstance(error, DamagedError)
    assert list(scratch.iterdir()) == []


def test_a_fault_of_ours_is_raised_as_it_is(order):
    with pytest.raises(ZeroDivisionError, match="by nothing"):
        list(run_on_node(order(f"{HERE}:fail"), []))


def test_a_shared_object_is_fetched_when_it_is_needed(order, job, ray, scratch):
    sent = [Reference(lambda: "the corpus")]
    answers = list(run_on_node(order(f"{HERE}:fetch", {}, shared_store=False), sent))
    assert ("file", ("a.txt", b"the corpus")) in answers


@pytest.fixture
def pool(monkeypatch, tmp_path):
    """A pool that joined its cluster itself."""
    pretended = PretendRay()
    monkeypatch.setattr(ray_backend, "connect", lambda address: pretended)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    (tmp_path / "store").mkdir()
    return RayPool(store=tmp_path / "store", width=1)


def test_files_are_brought_home(pool, job, tmp_path):
    pool._shared_store = False
    events = []
    assert pool.run(job, events.append) == 5
    assert (Path(job.folder) / "a.txt").read_text() == "whole"
    assert events[-1] == {"model": "study", **STEP}
    assert pool.about() == {"on": "ray", "ray": "0", "nodes": 1, "needs": {"num_cpus": 1, "num_gpus": 0}}
    pool.stop()
    assert pool._ray.left
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["study"]
    with pytest.raises(StoppedError):
        pool.run(job, events.append)


@pytest.mark.parametrize(
    ("says", "kind", "words", "killed"),
    [
        ([("event", {"stage": "on a"}), ("error", DataError("no such file"))], DataError, "no such file", None),
        ([("event", {"stage": "on a"})], WorkerDiedError, "the task ended without a result", True),
        ([LostError("The node died.\nIts log: …")], WorkerDiedError, "the cluster lost it: The node died", True),
    ],
)
def test_what_may_become_of_a_task(pool, job, says, kind, words, killed):
    def task(order, shared):
        for answer in says:
            if isinstance(answer, Exception):
                raise answer
            yield answer

    pool._task = pool._ray.remote(num_returns="streaming")(task)
    with pytest.raises(kind) as error:
        pool.run(job)
    assert str(error.value) == words
    assert getattr(error.value, "killed", None) is killed
    assert not Path(job.folder).exists()
    assert not pool._running


def test_a_task_that_failed_says_why(pool, job):
    with pytest.raises(WorkerDiedError, match=r"the job failed on its node: ZeroDivisionError: by nothing") as error:
        pool.run(Job("study", f"{HERE}:fail", folder=job.folder))
    assert not error.value.killed


def test_what_is_under_way_is_cancelled(pool, job):
    def task(order, shared):
        yield "event", {"stage": "on a"}
        yield "done", None

    pool._task = pool._ray.remote(num_returns="streaming")(task)
    pool.run(job, lambda event: pool.stop())
    ((answers, force),) = pool._ray.cancelled
    assert iter(answers) is not None
    assert force


def test_a_shared_object_is_sent_once(pool):
    shared = Shared([1, 2])
    (first,), (second,) = pool._reference(shared), pool._reference(shared)
    assert first is second
    assert pool._ray.get(first) == [1, 2]
    assert pool._reference(None) == []


def test_the_mark_lies_in_our_own_folder(pool, tmp_path):
    (mark,) = (tmp_path / "store" / INCOMING).iterdir()
    assert pool._mark == str(mark)


def test_counting_on_a_cluster_that_was_joined_before(ray):
    assert list(parallel_map(double, 2, range(9), on="ray")) == [(i, 2 * i) for i in range(9)]
    assert not ray.left
    with pytest.raises(DataError, match="thirteen"):
        list(parallel_map(double, 2, [13], on="ray"))
    with pytest.raises(RunError, match="TypeError: unsupported operand"):
        list(parallel_map(double, None, [1], on="ray"))
    with pytest.raises(RunError, match=r"^a chunk of work failed: the cluster lost it: Out of memory; .* --jobs$"):
        list(parallel_map(lose, 2, [1], on="ray"))


def lose(shared, chunk):
    raise LostError("Out of memory.\nMore of it.")
