"""A rehearsal promises what the study then does."""

from heedful.config import study_preset, with_overrides
from heedful.models.translator import Translator
from heedful.studies import dry_run as rehearsal
from heedful.studies.dry_run import makespan, rehearse
from heedful.studies.run_directory import model_specs
from tests.conftest import tiny_pairs


def test_models_and_disk_are_those_of_the_study(monkeypatch):
    monkeypatch.setattr(rehearsal, "SAMPLE", 5)
    config = with_overrides(study_preset("pairs", "smoke", "translation"), train_sample=5, seeds=(1, 4))
    plan = rehearse(config, corpus=tiny_pairs(), device="cpu", jobs=2)
    assert [model.name for model in plan.models] == [spec.name for spec in model_specs(config)]
    assert plan.models[0].steps == config.train.steps
    weights = 4 * sum(p.numel() for p in Translator(config.translator, plan.data["vocabulary"]).parameters())
    assert plan.models[0].disk > weights
    assert 4 * weights < plan.disk < 20 * weights
    assert plan.data["train"] == 87
    assert plan.to_dict()["config"]["train_sample"] == 5


def test_makespan():
    assert makespan([4.0, 3.0, 2.0, 1.0], 2) == 5
    assert makespan([1.0, 1.0, 1.0], 1) == 3
