"""The processes of this machine: what they answer, their last words, and when they end."""

import json
import os
import sys
from dataclasses import replace

import pytest

from heedful.sweeps import worker
from heedful.sweeps.crew import AttemptError
from heedful.sweeps.grid import grid_of
from heedful.sweeps.local import LocalCrew
from heedful.sweeps.process import answering
from heedful.sweeps.study_job import StudyJob
from tests.faults.small import in_child
from tests.sweeps.tiny import tiny_grid, write_reviews


@pytest.fixture
def order(tmp_path) -> StudyJob:
    config = grid_of(tiny_grid(write_reviews(tmp_path))).points[0].config
    return StudyJob(str(tmp_path / "study"), config)


def test_a_worker_that_failed_is_used_again_and_one_that_fell_over_is_not(order, tmp_path, monkeypatch):
    crew, nowhere = LocalCrew(1), replace(order, config=replace(order.config, data=str(tmp_path / "no.csv")))
    try:
        for _ in range(2):
            with pytest.raises(AttemptError, match=r"no\.csv") as error:
                crew.attempt(nowhere, lambda line: None)
            assert not error.value.died
        assert len(crew._all) == 1
        monkeypatch.setattr(StudyJob, "to_dict", lambda self: {})
        with pytest.raises(AttemptError, match=r"^the worker process ended early: KeyError: 'folder'$") as error:
            crew.attempt(order, lambda line: None)
        assert error.value.died
        assert crew._idle == []
    finally:
        crew.stop()
    with pytest.raises(AttemptError, match="the sweep was stopped"):
        crew.attempt(order, lambda line: None)


@pytest.mark.parametrize(("busy", "code"), [(False, 0), (True, 3)], ids=["idle", "at work"])
def test_a_worker_ends_with_what_it_listens_to(order, tmp_path, busy, code):
    orders = tmp_path / "orders"
    orders.write_text(json.dumps(order.to_dict()) + "\n" if busy else "", encoding="utf-8")

    def work():
        sys.stdin = orders.open(encoding="utf-8")
        os.dup2(os.open(tmp_path / "answers", os.O_WRONLY | os.O_CREAT), 1)
        with answering() as report:
            assert worker.main(report) == 0

    assert in_child(work) == code
    assert "finished" not in (tmp_path / "answers").read_text(encoding="utf-8")
