"""Joining a Ray cluster: what is refused, and in which words."""

import sys

import pytest

from heedful.errors import ConfigError, MissingExtraError, RunError
from heedful.execution.ray_backend import connect

ray = pytest.importorskip("ray")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("host:6379", r"no Ray cluster answers at host:6379: nobody there; see `ray status`, .* RAY_AUTH_MODE=token"),
        (None, r"Ray does not start: nobody there; see `ray status`"),
    ],
)
def test_a_cluster_that_does_not_answer(monkeypatch, address, words):
    def refuse(**settings):
        raise ConnectionError("nobody there.\nmore of it")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(RunError, match=words):
        connect(address)


def test_a_cluster_is_joined_not_called():
    with pytest.raises(ConfigError, match="give --address auto"):
        connect("ray://host:10001")


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"--on ray needs the package ray; .* 'heedful\[ray\]'"):
        connect(None)
