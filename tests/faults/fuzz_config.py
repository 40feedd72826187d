"""Settings of every wrong kind, as TOML and as plain values."""

import tempfile
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from heedful.config import ModelConfig, StudyConfig, TrainConfig
from heedful.storage.serialization import digest, from_mapping, from_toml, to_toml
from heedful.studies.result import StudyResult
from heedful.sweeps.grid import grid_of, read_grid
from tests.faults import horrors
from tests.faults.fuzzing import Tally
from tests.faults.mutations import broken, each, values, words

GOOD = to_toml(StudyConfig("sst")).encode()
VALUES: tuple[Any, ...] = (
    0, -1, 1, 2**63, -(2**63), 10**400, 0.0, -0.5, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"), "", "x",
    "../../etc/passwd", "\0", "\ud800", "9" * 5000, True, False, None, [], [[]], [1, "a"], [0, 0], [-1, -2], {},
    {"a": 1},
    {"steps": -5}, [float("nan")] * 3, (3, 2, 1), list(range(3)),
)  # fmt: skip
AXES = ["data", "seeds", "train.steps", "model", "model.projection", "proxy.train.steps", "budget", "task", "target"]
GRID = "grid.toml"
GOOD_GRID = b'[base]\ndata = "sst"\n[grid]\nseeds = [2, 3]\n"model.hidden" = [4, 8]\n'
KINDS = (StudyConfig, ModelConfig, TrainConfig, StudyResult)


def fuzz(rounds: int) -> Tally:
    """Every setting of every configuration with every value; then what hypothesis draws: tables, TOML files, grids."""
    tally = Tally("fuzz-config")
    for kind in KINDS:
        for name in [*_names(kind), "nonsense", "", "__class__"]:
            for value in VALUES:
                what = f"{kind.__name__}.{name[:20]} = {value!r:.40}"
                _mapping(tally, what, kind, {"data": "sst", name: value} if kind is StudyConfig else {name: value})
        some = st.dictionaries(st.sampled_from(_names(kind)) | words, values, max_size=4)
        each(rounds // 10 + 1, some, partial(_mapping, tally, f"{kind.__name__} drawn", kind))
    axis = st.sampled_from(AXES) | words
    grids = st.fixed_dictionaries(
        {},
        optional={
            "base": st.dictionaries(axis, values, max_size=3) | values,
            "grid": st.dictionaries(axis, st.lists(values, max_size=3) | values, max_size=3) | values,
            "nonsense": values,
        },
    )
    each(rounds // 10 + 1, grids, lambda grid: tally.attempt("a grid", lambda: grid_of(grid, where=GRID), place=GRID))
    with tempfile.TemporaryDirectory() as made:
        _files(tally, Path(made), rounds)
    return tally


def _files(tally: Tally, folder: Path, rounds: int) -> None:
    path, grid = folder / "config.toml", folder / GRID

    def read(name: str, content: bytes) -> None:
        path.write_bytes(content)
        tally.attempt(f"TOML, {name}", lambda: from_toml(StudyConfig, path), place=path.name)

    def read_as_grid(name: str, content: bytes) -> None:
        grid.write_bytes(content)
        tally.attempt(f"grid, {name}", lambda: read_grid(grid), place=GRID)

    for name, content in horrors.contents("txt"):
        read(name, content)
        read_as_grid(name, content)
    for name, place in horrors.places(folder, ".toml"):
        tally.attempt(f"TOML, {name}", lambda place=place: from_toml(StudyConfig, place))
        tally.attempt(f"grid, {name}", lambda place=place: read_grid(place))
    each(rounds, broken(GOOD), lambda content: read(f"drawn {content[:60]!r}", content))
    each(rounds, broken(GOOD_GRID), lambda content: read_as_grid(f"drawn {content[:60]!r}", content))


def _names(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def _mapping(tally: Tally, what: str, kind: type[Any], mapping: dict[str, Any]) -> None:
    config = tally.attempt(what, lambda: from_mapping(kind, mapping, where="grid.toml"), place="grid.toml")
    if config is not None and kind is not StudyResult:
        tally.attempt(f"{what}, digest", lambda: digest(config))
