"""A whole study of translation, small: recorded, measured, aligned."""

from dataclasses import replace

import numpy as np
import pytest

from heedful.config import TrainConfig, study_preset
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.data.synthetic.tasks import generated_pairs
from heedful.errors import DataError
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.study import run_study
from heedful.studies.translation import prepare
from heedful.sweeps.result import main_figures


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
    folder = RunDirectory(toy).model(ModelSpec("lexicon", 0))
    assert folder.trace().steps == (1, 2, 3, 4, 5)
    losses = [line["loss"] for line in folder.metrics()]
    assert losses == sorted(losses, reverse=True)


def test_bleus_signature_is_kept(toy):
    assert "version" in RunDirectory(toy).model(ModelSpec("standard", 0)).summary()["bleu_signature"]


def test_sentence_pairs_survive_saving(toy):
    run = RunDirectory(toy)
    pairs = run.pairs("validation")
    assert pairs.alignments is not None
    pairs.save(toy / "data" / "again.parquet")
    again = type(pairs).load(toy / "data" / "again.parquet")
    assert again.source.values.tolist() == pairs.source.values.tolist()
    assert again.target_words.values.tolist() == pairs.target_words.values.tolist()
    assert again.alignments == pairs.alignments
    words = run.tokeniser().decode(pairs.target[0])
    assert words.endswith((".", "?", "!"))


def pairs_of(validation: int) -> ParallelCorpus:
    some = ParallelSplit(("ein Hund bellt", "eine Katze", "ein " * 9), ("a dog barks", "a cat", "a " * 9))
    return ParallelCorpus("three", some, some.take(np.arange(validation)), NO_PAIRS, in_words=True)


def test_long_pairs_are_left_out_and_counted(tmp_path):
    config = study_preset("three", "smoke", "translation")
    run = RunDirectory(tmp_path)
    prepare(run, replace(config, max_length=9), pairs_of(3))
    run.finish_data(config, "")
    assert (len(run.pairs("train")), len(run.pairs("validation"))) == (3, 3)
    prepare(run, replace(config, max_length=8), pairs_of(3))
    run.finish_data(config, "")
    assert run.pairs("train").source.lengths.tolist() == [5, 4]  # with both ends
    summary = run.data_summary()
    assert (summary["train"], summary["validation"]) == (2, 2)
    assert "train: 1 of 3 pairs longer than 8 left out" in summary["decisions"]


def test_too_few_validation_pairs(tmp_path):
    with pytest.raises(DataError, match="three: 1 validation pairs; a study needs two or more"):
        prepare(RunDirectory(tmp_path), study_preset("three", "smoke", "translation"), pairs_of(1))


def test_the_figures_of_a_sweep_have_the_alignment_error(toy):
    result = StudyResult.load(toy / "result.json")
    figures = {figure.key: figure for figure in main_figures(result)}
    assert list(figures)[:3] == ["accuracy", "entropy", "alignment error"]
    assert figures["alignment error"].estimate == result.alignment.trained
    assert figures["alignment error"].random == result.alignment.chance
