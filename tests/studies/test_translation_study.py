"""A whole study of translation, small: recorded, measured, aligned."""

from dataclasses import replace

import pytest

from heedful.budgets import study_preset
from heedful.config import TrainConfig
from heedful.data.synthetic import generated_pairs
from heedful.studies.result import StudyResult
from heedful.studies.run import ModelSpec, Run
from heedful.studies.study import run_study


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    preset = study_preset("toy-de-en", "smoke", "translation")
    config = replace(preset, train=TrainConfig(steps=4, learning_rate=1e-2, evaluate_at=(0, 4)))
    out = tmp_path_factory.mktemp("runs") / "toy"
    run_study(config, out, corpus=generated_pairs("toy-de-en", size=300), device="cpu")
    return out


def test_columns_of_translation(toy):
    result = StudyResult.load(toy / "result.json")
    names = {row.name for row in result.agreements}
    assert {
        "A(alpha,beta)",
        "A(alpha,beta_uf)",
        "A(delta,beta_uf)",
        "A(alpha,alpha_ibm)",
        "A(alpha,alpha_hat)",
    } <= names
    assert not names & {"A(alpha,alpha_fr)", "A(beta_uf,beta_log)"}
    for row in result.agreements:
        assert row.estimate.n == result.data["validation"]  # the unit is the sentence pair
        assert row.xi_bleu is not None
    assert result.task == "translation"
    assert all(len(model.bleu) == 2 for model in result.models if model.kind == "standard")


def test_alignment_against_gold(toy):
    alignment = StudyResult.load(toy / "result.json").alignment
    assert alignment is not None
    assert alignment.attention.steps == (0, 4)
    assert alignment.model_1.value < alignment.diagonal.value < alignment.chance
    assert alignment.untrained.value > alignment.counting.value


def test_the_lexicons_steps_are_iterations(toy):
    folder = Run(toy).model(ModelSpec("lexicon", 0))
    assert folder.trace().steps == (1, 2, 3, 4, 5)
    losses = [line["loss"] for line in folder.metrics()]
    assert losses == sorted(losses, reverse=True)


def test_bleus_signature_is_kept(toy):
    assert "version" in Run(toy).model(ModelSpec("standard", 0)).summary()["bleu_signature"]


def test_sentence_pairs_survive_saving(toy):
    run = Run(toy)
    pairs = run.pairs("validation")
    assert pairs.alignments is not None
    pairs.save(toy / "data" / "again.parquet")
    again = type(pairs).load(toy / "data" / "again.parquet")
    assert again.source.values.tolist() == pairs.source.values.tolist()
    assert again.target_words.tolist() == pairs.target_words.tolist()
    assert again.alignments == pairs.alignments
    words = run.tokeniser().decode(pairs.target[0])
    assert words.endswith((".", "?", "!"))
