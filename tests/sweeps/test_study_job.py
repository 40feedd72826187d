"""The data of a sweep's studies: a user's own file goes along to nodes, and is used where they do not have it."""

from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import DataError
from heedful.sweeps import sweep as study_job
from heedful.sweeps.grid import grid_of
from heedful.sweeps.sweep import STUDY_FUNCTION, _Runner, run_one_study, run_sweep
from tests.sweeps.tiny import FakeBackend, tiny_grid, write_reviews


@pytest.fixture
def reviews(tmp_path) -> Path:
    return write_reviews(tmp_path)


@pytest.fixture
def config(reviews):
    return grid_of(tiny_grid(reviews)).points[0].config


def test_only_a_file_of_ones_own_is_sent_along(config, reviews, smoke_run, tmp_path):
    runner = _Runner(tmp_path, FakeBackend(smoke_run), 0, "cpu", STUDY_FUNCTION, lambda event: None)
    assert runner._corpus(replace(config, data="sst")) is None
    sent = runner._corpus(config)
    assert len(sent.value.train) > 0
    assert runner._corpus(config) is sent
    reviews.write_text("text,label\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"reviews\.csv"):
        runner._corpus(replace(config, lower=not config.lower))


@pytest.mark.parametrize("remote", [False, True])
def test_data_that_cannot_be_read_fail_a_study_and_stop_nothing(reviews, smoke_run, tmp_path, remote):
    class Backend(FakeBackend):
        def run(self, job, on_event):
            assert (job.shared is not None) is remote
            super().run(job, on_event)

    backend = Backend(smoke_run)
    backend.remote = remote
    assert not run_sweep(grid_of(tiny_grid(reviews)), tmp_path / "out", lambda studies: backend, text="").failed
    if remote:
        reviews.write_text("text,label\n", encoding="utf-8")
        other = grid_of(tiny_grid(reviews, seeds=[3]))
        (study,) = run_sweep(other, tmp_path / "out", lambda studies: backend, text="", retries=0).failed
        assert "reviews.csv" in study.error


def test_sent_data_are_used_where_there_is_no_such_file(config, reviews, monkeypatch, tmp_path):
    corpora = []
    monkeypatch.setattr(study_job, "single_threaded", lambda: None)
    monkeypatch.setattr(study_job, "run_study", lambda config, out, *, corpus, **settings: corpora.append(corpus))
    for _ in range(2):
        run_one_study(folder=str(tmp_path / "study"), config=config, shared=lambda: "the corpus")
        reviews.unlink(missing_ok=True)
    run_one_study(folder=str(tmp_path / "study"), config=config)
    assert corpora == [None, "the corpus", None]
