"""A study that is killed again and again ends with the bytes of one that was not; `make faults` kills more often."""

import numpy as np
import pytest

from tests.faults.commands import leftovers
from tests.faults.small import PAIRS, TEXTS, die_at_rename, finish


@pytest.mark.parametrize("config", [TEXTS, PAIRS], ids=lambda config: config.task)
def test_killed_at_its_renames(config, tmp_path):
    drawn = np.random.get_state()[1].tobytes()
    expected = finish(config, tmp_path / "undisturbed")
    assert np.random.get_state()[1].tobytes() == drawn  # whose state no checkpoint holds; Python's is drawn by beartype
    kills = 0
    while die_at_rename(config, tmp_path / "run", 9 + kills % 5, before=kills % 2 == 0):
        kills += 1
    assert kills > 5
    assert (tmp_path / "run" / "result.json").read_bytes() == expected
    assert leftovers(tmp_path / "run") == []
    names = {p.relative_to(tmp_path / "run") for p in (tmp_path / "run").rglob("*") if p.is_file()}
    assert names == {
        p.relative_to(tmp_path / "undisturbed") for p in (tmp_path / "undisturbed").rglob("*") if p.is_file()
    }
    for name in names:
        if name.name not in ("done.json", "manifest.json"):  # these know how long it took
            assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name


def test_checkpoints_are_few_and_hold_no_pickle(tmp_path):
    assert die_at_rename(TEXTS, tmp_path / "run", 27, before=True)
    states = sorted((tmp_path / "run" / "models" / "standard-0" / "checkpoints").glob("*/state.json"))
    assert len(states) == 2
    kinds = {path.suffix for path in (tmp_path / "run").rglob("*") if path.is_file() and path.suffix != ".part"}
    assert kinds == {".toml", ".json", ".jsonl", ".parquet", ".safetensors"}
