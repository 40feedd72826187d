"""Worker processes: what comes back from them, when they are used again, and when they end."""

import threading

import pytest

from heedful.errors import DamagedError, TrainingError
from heedful.execution.pool import Job, ProcessPool, StoppedError, WorkerDiedError, run_jobs

HERE = "tests.execution.jobs"
REFUSED = Job("refused", f"{HERE}:refuse")


@pytest.fixture
def pool():
    made = ProcessPool(1)
    yield made
    made.stop()


def test_results_and_events_whatever_a_library_prints():
    events = []
    jobs = [Job(name, f"{HERE}:add", {"a": a, "b": 1}) for name, a in (("x", 1), ("y", 2))]
    results = run_jobs(jobs, workers=2, on_event=events.append)
    assert {name: result[0] for name, result in results.items()} == {"x": 2, "y": 3}
    for name in ("x", "y"):
        assert [event for event in events if event["model"] == name] == [
            {"model": name, "step": 1, "steps": 1},
            {"model": name, "done": True},
        ]
    assert run_jobs([]) == {}


def test_an_error_of_ours_comes_back_as_it_is_and_its_worker_is_used_again(pool):
    _, pid = pool.run(Job("x", f"{HERE}:add", {"a": 1, "b": 2}))
    with pytest.raises(DamagedError, match=r"^a\.json: damaged \(it is empty\); delete it") as error:
        pool.run(REFUSED)
    assert (error.value.path, error.value.why) == ("a.json", "it is empty")
    assert pool.run(Job("x", f"{HERE}:add", {"a": 1, "b": 2})) == (3, pid)
    with pytest.raises(TrainingError, match=r"^refused: a\.json: damaged"):
        run_jobs([REFUSED], backend=pool)


def test_a_worker_that_fell_over_is_not_used_again(pool):
    with pytest.raises(WorkerDiedError) as died:
        pool.run(Job("x", f"{HERE}:fail"))
    assert str(died.value) == "the worker process ended early: ZeroDivisionError: by nothing"
    assert not died.value.killed
    assert "in fail" in died.value.__notes__[0]  # the whole traceback, for whoever looks for the fault
    assert pool.workers == []
    assert pool.run(Job("x", f"{HERE}:add", {"a": 1, "b": 2}))[0] == 3


def test_a_worker_whose_events_nobody_takes_is_not_used_again(pool):
    def on_event(event):
        raise ZeroDivisionError("a fault of the driver")

    with pytest.raises(ZeroDivisionError):
        pool.run(Job("x", f"{HERE}:wait"), on_event)
    assert pool.workers == []


def test_a_pool_that_is_stopped(pool):
    begun, errors = threading.Event(), []

    def run():
        try:
            pool.run(Job("x", f"{HERE}:wait"), lambda event: begun.set())
        except StoppedError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(60)
    (worker,) = pool.workers
    pool.stop()
    thread.join(60)
    assert len(errors) == 1
    assert worker.process.returncode is not None
    with pytest.raises(StoppedError):
        pool.run(REFUSED)
