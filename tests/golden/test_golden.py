"""Small commands give the results that are stored: those of the code before it was rearranged."""

import json

import pytest

from tests.golden.cases import CASES, STORED, differences, machine, new_path, run_case

SHOWN = 40  # differences of one result


@pytest.mark.parametrize("case", CASES)
def test_results_are_the_stored_ones(case, tmp_path_factory):
    lines = []
    for name, content in run_case(case, tmp_path_factory.mktemp(case).resolve()).items():
        stored = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
        found = differences(name, stored["result"], content, exact=stored["machine"] == machine())
        lines += [*found[:SHOWN], *([f"{name}: {len(found) - SHOWN} more"] if len(found) > SHOWN else [])]
    assert not lines, "\n".join(["results differ from the stored ones", *lines])


def test_every_stored_file_belongs_to_a_case():
    names = {name for _, commands in CASES.values() for name in commands}
    assert {path.stem for path in STORED.glob("*.json")} == names


def test_differences_are_seen(monkeypatch):
    old = {"a": [{"b": 1.0, "c": "x 1"}], "d": []}
    assert differences("n", old, old, exact=True) == []
    assert differences("n", old, {**old, "e": None}, exact=True) == ["n/e is new: None"]
    assert differences("n", old, {"a": old["a"]}, exact=True) == ["n/d is missing; it was []"]
    moved = {"a": [{"b": 1.0000001, "c": "x 2"}], "d": []}
    assert len(differences("n", old, moved, exact=True)) == 2
    assert differences("n", old, moved, exact=False) == []
    assert len(differences("n", old, {"a": [{"b": 1.01, "c": "y 1"}], "d": []}, exact=False)) == 2

    monkeypatch.setattr("tests.golden.cases.RENAMED", {"*/a/*/b": "*/z/*/y", "n/d": None})
    monkeypatch.setattr("tests.golden.cases.ADDED", {"n/e"})
    monkeypatch.setattr("tests.golden.cases.REWORDED", {"x 1": "one"})
    assert new_path(("n", "a", "3", "b", "low")) == ("n", "z", "3", "y", "low")
    assert differences("n", old, {"a": [{"c": "one"}], "z": [{"y": 1.0}], "e": {"f": 2}}, exact=True) == []
    assert len(differences("n", old, {"a": [{"c": "one"}], "z": [{"y": 2.0}]}, exact=True)) == 1
