"""A node of a cluster, without the cluster: what it says, what it brings home, and how a driver takes it."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import DataError, RunError
from heedful.execution.parallel_map import spread
from heedful.sweeps import cluster, node
from heedful.sweeps.cluster import RayCrew
from heedful.sweeps.crew import AttemptError
from heedful.sweeps.grid import grid_of
from heedful.sweeps.node import NodeOrder, on_node, versions
from heedful.sweeps.study_job import StudyJob, finished
from tests.execution.doubling import double
from tests.sweeps.pretend_ray import LostError, PretendRay, Reference, TaskError
from tests.sweeps.tiny import FakeCrew, tiny_grid, write_reviews

SAID = {"model": "standard-0", "step": 1, "steps": 2, "accuracy": 0.5}  # by the crew of these tests


@pytest.fixture
def order(tmp_path) -> StudyJob:
    """A study of a file that only the driver has."""
    reviews = write_reviews(tmp_path)
    config = grid_of(tiny_grid(reviews)).points[0].config
    return StudyJob(str(tmp_path / "store" / "study"), config)


@pytest.fixture
def ask(order, tmp_path, monkeypatch):
    """The order on its way; where the node is, and what it knows of corpora, are as before afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEEDFUL_DATA", "set back afterwards")
    monkeypatch.delenv("HEEDFUL_DATA")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mark").touch()

    def made(**changes) -> NodeOrder:
        settings = {"mark": str(tmp_path / "mark"), "shared": None, "cwd": str(tmp_path / "store")}
        settings |= {"mirror": str(tmp_path / "mirror"), "wanted": versions()}
        return NodeOrder(order=order.to_dict(), **(settings | changes))

    return made


@pytest.fixture
def quick(monkeypatch, smoke_run):
    """Studies are not trained here: each comes at once to the result of another."""
    corpora = []

    def carry_out(order, report, *, corpus=None):
        corpora.append(corpus)
        FakeCrew(smoke_run).attempt(order, report)

    monkeypatch.setattr(node, "carry_out", carry_out)
    return corpora


@pytest.fixture
def ray(monkeypatch):
    pretended = PretendRay()
    monkeypatch.setattr(cluster, "connect", lambda address: pretended)
    monkeypatch.setitem(sys.modules, "ray", pretended)
    return pretended


@pytest.mark.parametrize("known", [True, False], ids=["another version", "nothing known of it"])
def test_a_node_with_other_versions_does_nothing(ask, known):
    wanted = versions() | ({"torch": "0.0.1"} if known else {"jax": "0.0.1"})
    (line,) = on_node(ask(wanted=wanted), [])
    here = f"torch {versions()['torch']}" if known else "no jax"
    assert f" has {here} instead of " in line["error"]
    assert line["error"].endswith("0.0.1; results would not be the same")


def test_a_shared_store_is_worked_in(ask, order, quick, tmp_path):
    (tmp_path / "store").mkdir()
    lines = list(on_node(ask(), []))
    assert lines[0]["pid"] == os.getpid()
    assert lines[1:] == [SAID, {"finished": True}]
    assert finished(order.folder, order.config) is not None
    assert Path.cwd() == tmp_path / "store"
    assert os.environ["HEEDFUL_DATA"] == str(tmp_path / "mirror")


def test_a_store_that_is_not_seen_is_sent_the_files(ask, order, quick, tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(node.tempfile, "tempdir", str(tmp_path / "scratch"))
    lines = list(on_node(ask(mark=str(tmp_path / "no mark")), []))
    assert [line["file"] for line in lines if "file" in line] == ["manifest.json", "result.json"]
    assert lines[-2:] == [{"whole": True}, {"finished": True}]
    assert not Path(order.folder).exists()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_an_error_of_ours_is_the_last_line_and_no_file_follows(ask, order, monkeypatch, tmp_path):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(node.tempfile, "tempdir", str(tmp_path / "scratch"))
    Path(order.config.data).write_text("text,label\n", encoding="utf-8")
    *_, line = on_node(ask(shared=False), [])
    assert list(line) == ["error"]
    assert "reviews.csv" in line["error"]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_fault_of_ours_is_raised_as_it_is(ask, monkeypatch):
    def fail(*arguments, **settings):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(node, "carry_out", fail)
    with pytest.raises(ZeroDivisionError, match="by nothing"):
        list(on_node(ask(), []))


def test_data_are_fetched_where_the_node_has_no_such_file(ask, order, quick, ray):
    sent = [None, Reference(lambda: "the corpus")]
    list(on_node(ask(), sent))
    Path(order.config.data).unlink()
    list(on_node(ask(shared=False), sent))
    assert quick == [None, "the corpus"]


@pytest.fixture
def crew(ray, tmp_path):
    (tmp_path / "store").mkdir()
    return RayCrew(tmp_path / "store", jobs=1)


def test_a_crew_brings_the_files_home(crew, order, quick, ray, tmp_path):
    crew._shared = False
    lines = []
    crew.attempt(order, lines.append)
    assert finished(order.folder, order.config) is not None
    assert lines[-1] == SAID
    assert crew.about() == {"on": "ray", "ray": "0", "nodes": 1, "needs": {"num_cpus": 1, "num_gpus": 0}}
    crew.stop()
    assert ray.left
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["study"]
    with pytest.raises(AttemptError, match="the sweep was stopped"):
        crew.attempt(order, lines.append)


@pytest.mark.parametrize(
    ("says", "words", "died"),
    [
        ([{"stage": "on a"}, {"error": "no such\n  file"}], "^no such file$", False),
        ([{"stage": "on a"}], "^the task ended without a word$", True),
        ([LostError("The node died.\nIts log: …")], "^the cluster lost it: The node died$", True),
    ],
)
def test_what_may_become_of_a_task(crew, order, says, words, died):
    def task(asked, corpora):
        for line in says:
            if isinstance(line, Exception):
                raise line
            yield line

    crew._task = crew._ray.remote(num_returns="streaming")(task)
    with pytest.raises(AttemptError, match=words) as error:
        crew.attempt(order, lambda line: None)
    assert error.value.died is died
    assert not Path(order.folder).exists()
    assert not crew._running


def test_what_is_under_way_is_cancelled(crew, order, ray):
    def task(asked, corpora):
        yield {"stage": "on a"}
        yield {"finished": True}

    crew._task = ray.remote(num_returns="streaming")(task)
    crew.attempt(order, lambda line: crew.stop())
    ((lines, force),) = ray.cancelled
    assert iter(lines) is not None
    assert force


def test_only_a_file_of_ones_own_is_sent_along(crew, order, ray):
    assert crew._corpus(replace(order.config, data="sst")) is None
    sent = crew._corpus(order.config)
    assert len(ray.get(sent).train) > 0
    assert crew._corpus(order.config) is sent
    Path(order.config.data).write_text("text,label\n", encoding="utf-8")
    with pytest.raises(AttemptError, match=r"reviews\.csv"):
        crew._corpus(replace(order.config, lower=not order.config.lower))


def test_counting_on_a_cluster_that_was_joined_before(ray):
    assert list(spread(double, 2, range(9), on="ray")) == [(i, 2 * i) for i in range(9)]
    assert not ray.left
    with pytest.raises(DataError, match="thirteen"):
        list(spread(double, 2, [13], on="ray"))
    with pytest.raises(TaskError, match="unsupported operand"):
        list(spread(double, None, [1], on="ray"))
    with pytest.raises(RunError, match=r"^the Ray cluster gave up on a chunk: Out of memory$"):
        list(spread(lose, 2, [1], on="ray"))


def lose(shared, piece):
    raise LostError("Out of memory.\nMore of it.")


def test_orders_are_plain_json(ask, order):
    assert StudyJob.from_dict(json.loads(json.dumps(ask().order))) == order
