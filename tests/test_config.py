from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import api
from heedful.config import LATER, ModelConfig, ProxyConfig, StudyConfig, TrainConfig, study_preset, with_overrides
from heedful.errors import ConfigError
from heedful.storage.serialization import digest, from_mapping, from_toml, to_toml


@pytest.mark.parametrize("budget", ["smoke", "quick", "paper"])
def test_toml_round_trip(tmp_path, budget):
    config = study_preset("sst", budget)
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    assert from_toml(StudyConfig, path) == config


@given(st.text(max_size=30))
def test_any_name_survives_toml(name):
    import tomllib

    assert tomllib.loads(to_toml(StudyConfig(name)))["data"] == name


def test_paper_budget_has_the_papers_sizes():
    config = study_preset("sst", "paper")
    assert config.train.steps == 4000
    assert config.train.evaluate_at[:8] == (0, 10, 50, 100, 150, 200, 250, 500)
    assert config.train.evaluate_at[-1] == 4000
    assert config.model == ModelConfig()
    assert config.proxy.width == ProxyConfig().width == 256


def test_digest_depends_on_content_alone():
    assert digest(StudyConfig("sst")) == digest(StudyConfig("sst", budget="quick"))
    assert digest(StudyConfig("sst")) != digest(StudyConfig("sst", min_count=2))


@pytest.mark.parametrize(
    ("kind", "mapping", "words"),
    [
        (TrainConfig, {"stpes": 3}, "did you mean 'steps'"),
        (StudyConfig, {"data": "sst", "model": {"encoder": "gru"}}, "'gru' is not one of"),
        (StudyConfig, {"data": "sst", "seeds": 3}, "must be a list"),
        (StudyConfig, {"data": "sst", "seeds": [1, 1]}, "different seeds"),
        (StudyConfig, {"data": 3}, "must be of type str"),
        (StudyConfig, {}, "data"),
        (TrainConfig, {"steps": 10, "evaluate_at": [0, 20]}, "increasing steps"),
        (TrainConfig, {"steps": True}, "must be of type int"),
        (ModelConfig, {"projection": "sparsegen"}, "projection_parameter"),
        (ModelConfig, {"dropout": 1.0}, "below 1"),
        (StudyConfig, {"data": "sst", "model": 3}, "must be a table"),
    ],
)
def test_bad_settings_are_named(kind, mapping, words):
    with pytest.raises(ConfigError, match=words):
        from_mapping(kind, mapping)


def test_bad_toml_names_the_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("a = ", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"c\.toml: not TOML"):
        from_toml(StudyConfig, path)
    with pytest.raises(ConfigError, match="no such file"):
        from_toml(StudyConfig, tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="budget"):
        study_preset("sst", "huge")


def test_longer_and_shorter_training():
    assert TrainConfig().changed(steps=4600).evaluate_at[-3:] == (4250, 4500, 4600)
    assert TrainConfig().changed(learning_rate=0.1) == with_overrides(TrainConfig(), learning_rate=0.1)


def test_a_setting_added_later_does_not_make_what_was_measured_stale():
    @dataclass(frozen=True)
    class Before:
        steps: int = 3

    @dataclass(frozen=True)
    class After:
        steps: int = 3
        warmup: int = field(default=0, metadata=LATER)

    assert digest(After()) == digest(Before())
    assert digest(After(warmup=1)) != digest(Before())
    assert digest(After(steps=4)) != digest(After())


def test_a_study_of_a_transformer():
    """The preset's model in another architecture; other settings stay, and can still be changed."""
    texts, pairs = (api.study_config(data, model="transformer", budget="smoke") for data in ("polarity", "toy-de-en"))
    assert (texts.model.encoder, texts.model.layers, texts.model.heads) == ("transformer", 2, 4)
    assert (pairs.translator.cell, pairs.translator.hidden) == ("transformer", 24)
    assert texts.train.learning_rate == api.study_config("polarity", budget="smoke").train.learning_rate / 2
    assert api.study_config("polarity", model="transformer", learning_rate=0.1).train.learning_rate == 0.1
    assert api.study_config("polarity", model={"hidden": 7}).model.hidden == 7
    assert digest(api.study_config("polarity", model="lstm")) == digest(api.study_config("polarity"))
    with pytest.raises(ConfigError, match="model is 'rnn'; it must be lstm or transformer"):
        api.study_config("polarity", model="rnn")
    with pytest.raises(ConfigError, match="guide is 'ibm'; it must be left out of a study of texts"):
        api.study_config("polarity", guide="ibm")
    with pytest.raises(ConfigError, match="guide_steps is 3; it must be 1 or more, and with a guide"):
        api.study_config("toy-de-en", guide_steps=3)
