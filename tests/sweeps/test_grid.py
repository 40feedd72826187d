"""A grid file becomes studies, or one clear sentence."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import ConfigError
from heedful.storage.serialization import digest
from heedful.sweeps.grid import grid_of, read_grid


def test_every_combination_once(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(
        '[base]\ndata = "sst"\nbudget = "smoke"\ntrain.steps = 5\n'
        '[grid]\nmodel.scale = [1, 10, 100]\n"model.projection" = ["softmax", "sparsemax"]\n'
    )
    grid = read_grid(path)
    assert [axis.name for axis in grid.axes] == ["model.scale", "model.projection"]
    assert len({digest(point.config) for point in grid.points}) == len(grid.points) == 6
    assert {(p.config.model.scale, p.config.model.projection) for p in grid.points} == {
        (scale, projection) for scale in (1.0, 10.0, 100.0) for projection in ("softmax", "sparsemax")
    }
    for point in grid.points:
        assert point.config.train.evaluate_at == (0, 4, 5)  # the preset's steps as far as they go
        assert point.folder == f"sst-{digest(point.config)[:12]}"


def test_a_table_of_settings_is_one_axis():
    tables = [{"projection": "softmax"}, {"projection": "sparsegen", "projection_parameter": 0.5}]
    grid = grid_of({"base": {"data": "sst"}, "grid": {"model": tables, "seeds": [2, [3, 5]]}})
    assert [point.config.model.projection_parameter for point in grid.points] == [None, None, 0.5, 0.5]
    assert [point.config.seeds for point in grid.points][:2] == [(0, 1), (3, 5)]


def test_data_choose_their_preset():
    grid = grid_of({"base": {"budget": "smoke"}, "grid": {"data": ["sst", "toy-de-en", "copy-vocab"]}})
    assert [point.config.task for point in grid.points] == ["classification", "translation", "translation"]
    assert [point.config.source_bos for point in grid.points] == [True, True, False]


def test_no_grid_is_one_study():
    assert len(grid_of({"base": {"data": "sst"}}).points) == 1


SIZES = ("model.hidden", "model.layers", "model.scale")


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"base": {"data": "sst"}, "gird": {}}, "unknown table 'gird'; did you mean 'grid'?"),
        ({"base": {"data": "sst"}, "grid": {"model.scal": [1]}}, "did you mean 'model.scale'?"),
        ({"base": {"data": "sst"}, "grid": {"scale": [1]}}, "did you mean 'model.scale'?"),
        ({"base": {"data": "sst", "step": 3}}, "unknown setting 'step'"),
        ({"base": {"data": "sst"}, "grid": {"seeds.x": [1]}}, "'seeds' has no settings of its own"),
        ({"base": {"data": "sst"}, "grid": {"model.scale": 1}}, "must be a list"),
        ({"base": {"data": "sst"}, "grid": {"model.scale": []}}, "must be a list"),
        ({"base": {"data": "sst"}, "grid": {"model.scale": [1, 1.0]}}, "are the same study"),
        ({"base": {"data": "sst"}, "grid": {"model.scale": ["a"]}}, "must be of type float"),
        ({"base": {"data": "sst"}, "grid": {"model.scale": [-1]}}, "must be above 0"),
        ({"base": {"data": "sst", "budget": "tiny"}}, "is not one of smoke, quick, paper"),
        ({"base": {"data": "sst", "model": 3}}, "must be a table"),
        ({"base": {"data": "sst", "seeds": 1}}, "two or more different seeds"),
        ({"base": {"data": "sst", "task": "song"}}, "'song' is not one of"),
        ({"base": {"data": 3}}, "must be of type str"),
        ({"base": {"data": "sst", "train.steps": 0}}, "whole number, 1 or more"),
        ({"base": {}}, "no data"),
        ({"base": 3}, "must be a table"),
        ({"base": {"data": "sst", "min_count": 2}, "grid": {"min_count": [3]}}, "leave it out of one"),
        ({"base": {"data": "sst"}, "grid": {"model": [{}], "model.scale": [1]}}, "both axes"),
        ({"base": {"data": "sst"}, "grid": {name: list(range(1, 30)) for name in SIZES}}, "at most"),
    ],
)
def test_mistakes_are_one_sentence(grid, said):
    with pytest.raises(ConfigError) as error:
        grid_of(grid, where="grid.toml")
    assert str(error.value).startswith("grid.toml")
    assert said in str(error.value)


def test_files_that_are_no_grids(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_grid(tmp_path / "none.toml")
    for content in (b"[base", b"\xff\xfe", b"= 3"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ConfigError, match=r"bad\.toml: not TOML"):
            read_grid(tmp_path / "bad.toml")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
settings = st.sampled_from(["data", "model", "model.scale", "train.steps", "seeds", "budget", "proxy", "max_train"])
tables = st.dictionaries(settings | st.text(max_size=8), plain, max_size=4)


@given(st.fixed_dictionaries({"base": tables | plain}, optional={"grid": tables | plain}))
def test_anything_is_a_grid_or_a_config_error(mapping):
    with suppress(ConfigError):
        assert grid_of(mapping).points


def test_switches_are_said_in_words():
    grid = grid_of({"base": {"data": "sst"}, "grid": {"lower": [True, False]}})
    assert [point.place for point in grid.points] == [("yes",), ("no",)]
    assert [point.config.lower for point in grid.points] == [True, False]
