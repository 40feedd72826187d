"""A whole study, small: every model trained, recorded and measured, twice the same, and taken up where it stopped."""

import math
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from heedful.config import StudyConfig, TrainConfig, study_preset, with_overrides
from heedful.data.corpus import Corpus, Split
from heedful.errors import DataError, RunError, TrainingError
from heedful.metrics.agreement import agreement
from heedful.storage.manifest import Manifest, run_kind
from heedful.studies.page_data import study_page_data
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory, model_specs
from heedful.studies.study import analyse, run_study
from heedful.studies.token_table import token_table
from tests.faults.small import TEXTS, corpus_of


@pytest.fixture
def result(smoke_run) -> StudyResult:
    return StudyResult.load(smoke_run / "result.json")


def test_every_column_of_the_issue_is_there(result):
    names = {(row.name, row.convention) for row in result.agreements}
    for pair in ("alpha,beta", "alpha,beta_uf", "delta,beta_uf", "alpha,alpha_fr"):
        assert {(f"A({pair})", "own"), (f"A({pair})", "cross")} <= names
    for pair in ("beta_uf,beta_px", "beta_uf,beta_log"):
        u, v = pair.split(",")
        assert {(f"A({u},{v})", "own"), (f"A({v},{u})", "cross")} <= names
    for row in result.agreements:
        assert 0 <= row.estimate.low <= row.estimate.value <= row.estimate.high <= 1
        assert row.estimate.n == result.data["validation"]
        assert 0 < row.random < 1
        assert row.xi.low <= row.xi.value <= row.xi.high
        assert (row.split_half is None) == (row.chosen_steps is None)


def test_own_convention_is_one_model_at_its_last_step(smoke_run, result):
    run = RunDirectory(smoke_run)
    per_seed = []
    for seed in result.seeds:
        trace = run.model(ModelSpec("standard", seed)).trace()
        last = trace.steps[-1]
        per_seed.append(agreement(trace.quantity("alpha", last), trace.quantity("beta_logit", last)).mean())
    assert result.agreement("A(alpha,beta)", "own").per_seed == pytest.approx(per_seed)


def test_cross_convention_takes_the_best_step_of_the_other_seed(smoke_run, result):
    run = RunDirectory(smoke_run)
    A, B = result.seeds
    own = run.model(ModelSpec("standard", A))
    alpha = own.trace().quantity("alpha", own.summary()["best_step"])
    twin = run.model(ModelSpec("uniform", B)).trace()
    curve = [agreement(alpha, twin.quantity("beta_logit", step)).mean() for step in twin.steps]
    row = result.agreement("A(alpha,beta_uf)", "cross")
    assert row.per_seed[0] == pytest.approx(max(curve))
    assert row.chosen_steps[0] == twin.steps[int(np.argmax(curve))]


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory):
    """A study like those of the paper's budget: shared twins, pretrained vectors, random order, proxy by epochs."""
    folder = tmp_path_factory.mktemp("shared")
    words = ["good", "bad", "film", "unheard-of"]
    (folder / "vectors.txt").write_text("".join(f"{word} {i} {i + 0.5} -1 2\n" for i, word in enumerate(words)))
    config = replace(
        TEXTS,
        seeds=(3, 5, 7),
        min_count=100,
        known_words=str(folder / "vectors.txt"),
        embeddings=str(folder / "vectors.txt"),
        shared_twins=True,
        train=replace(TEXTS.train, bucketed=False),
        proxy=replace(TEXTS.proxy, epochs=2),
    )
    result = run_study(config, folder / "run", corpus=corpus_of(TEXTS), jobs=1)
    return RunDirectory(folder / "run"), result


def test_seeds_may_share_their_twins(shared_run):
    run, result = shared_run
    names = ["standard-3", "standard-5", "standard-7", "uniform-8", "attention-only-8", "proxy-8", "logistic-0"]
    assert [model.name for model in result.models] == names
    twin = run.model("uniform-8").trace()
    for index, A in enumerate((3, 5, 7)):
        own = run.model(ModelSpec("standard", A))
        alpha = own.trace().quantity("alpha", own.summary()["best_step"])
        curve = [agreement(alpha, twin.quantity("beta_logit", step)).mean() for step in twin.steps]
        assert result.agreement("A(alpha,beta_uf)", "cross").per_seed[index] == pytest.approx(max(curve))
    assert study_page_data(run, result).models[0][2].name == "uniform-8"


def test_known_words_and_pretrained_vectors(shared_run):
    run, result = shared_run
    assert set(run.vocabulary().words[4:]) == {"good", "bad", "film"}
    assert "embeddings start from vectors.txt: 3 of 3 words found" in result.data["decisions"]
    frozen = load_file(run.model("attention-only-8").checkpoint_folder(5) / "model.safetensors")["embedding.weight"]
    ids = run.vocabulary().ids(["good", "bad", "film"])
    assert frozen[torch.from_numpy(ids).long()].tolist() == [[i, i + 0.5, -1, 2] for i in range(3)]


def test_a_proxy_may_train_by_epochs(shared_run):
    run, result = shared_run
    per_epoch = -(-result.data["train"] // TEXTS.proxy.train.batch_size)
    assert [line["step"] for line in run.model("proxy-8").metrics()] == [0, per_epoch, 2 * per_epoch]


def test_vectors_of_no_word_are_an_error(tmp_path):
    (tmp_path / "vectors.txt").write_text("unheard-of 1 2 3 4\n")
    config = replace(TEXTS, embeddings=str(tmp_path / "vectors.txt"))
    with pytest.raises(DataError, match="a vector of none of the"):
        run_study(config, tmp_path / "run", corpus=corpus_of(TEXTS))


def test_running_again_trains_nothing_and_gives_the_same_bytes(smoke_run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(smoke_run, copy)
    before = (copy / "result.json").read_bytes()
    lines = []
    run_study(RunDirectory(copy).config(), copy, on_progress=lines.append)
    assert lines == [{"stage": stage} for stage in ("reading the data", "training", "measuring")]
    assert (copy / "result.json").read_bytes() == before


def test_a_missing_model_is_trained_again_to_the_same_bytes(smoke_run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(smoke_run, copy)
    before = (copy / "result.json").read_bytes()
    shutil.rmtree(copy / "models" / "uniform-1")
    lines = []
    run_study(RunDirectory(copy).config(), copy, on_progress=lines.append)
    assert {line["model"] for line in lines if "model" in line} == {"uniform-1"}
    assert (copy / "result.json").read_bytes() == before


def test_data_that_changed_are_not_mixed_with_old_models(smoke_run):
    other = tiny_corpus()
    with pytest.raises(RunError, match="has changed since"):
        run_study(RunDirectory(smoke_run).config(), smoke_run, corpus=other)


def test_another_study_may_not_move_in(smoke_run, tmp_path):
    with pytest.raises(RunError, match="other settings"):
        run_study(with_overrides(RunDirectory(smoke_run).config(), min_count=9), smoke_run)
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(RunError, match="not empty"):
        run_study(StudyConfig("sst"), tmp_path)
    with pytest.raises(RunError, match="not a run"):
        RunDirectory(tmp_path).config()


def test_result_survives_saving(result, tmp_path):
    result.save(tmp_path / "r.json")
    assert StudyResult.load(tmp_path / "r.json").to_dict() == result.to_dict()
    assert "NaN" not in (tmp_path / "r.json").read_text()
    frame = result.to_pandas()
    assert len(frame) == len(result.agreements)
    assert "<script" not in result._repr_html_()
    with pytest.raises(KeyError, match="is not among"):
        result.agreement("A(x,y)")


def test_manifest_says_where_it_came_from(smoke_run):
    manifest = Manifest.read(smoke_run)
    assert (manifest.kind, run_kind(smoke_run)) == ("study", "study")
    assert manifest.versions["torch"]
    assert manifest.started <= manifest.finished
    assert manifest.details["data_digest"] == RunDirectory(smoke_run).data_summary()["digest"]


def test_all_models_of_a_study():
    names = [spec.name for spec in model_specs(StudyConfig("sst", seeds=(3, 5)))]
    assert names == [
        "standard-3", "standard-5", "uniform-3", "uniform-5", "attention-only-3", "attention-only-5",
        "proxy-3", "proxy-5", "logistic-0",
    ]  # fmt: skip


def tiny_corpus(validation: int = 6) -> Corpus:
    texts = tuple(f"{'good' if i % 2 else 'bad'} film number {i % 5}" for i in range(40))
    labels = tuple(i % 2 for i in range(40))
    split = Split(texts, labels)
    return Corpus("tiny", ("no", "yes"), split, Split(texts[:validation], labels[:validation]), Split((), ()))


def test_a_training_that_diverges_says_so(tmp_path):
    config = study_preset("tiny", "smoke")
    train = with_overrides(config.train, learning_rate=1e38)
    with pytest.raises(TrainingError, match=r"loss is .* lower --learning-rate"):
        run_study(with_overrides(config, train=train), tmp_path / "run", corpus=tiny_corpus(), jobs=1)


def test_a_label_without_a_validation_text(tmp_path):
    with pytest.raises(DataError, match=r"label 'yes' has no validation text .*no 20 / 1, yes 20 / 0"):
        run_study(study_preset("tiny", "smoke"), tmp_path / "run", corpus=tiny_corpus(1))


def test_three_classes_and_an_unfinished_run(tmp_path):
    texts = tuple(f"{('red', 'green', 'blue')[i % 3]} thing {i % 4}" for i in range(60))
    labels = tuple(i % 3 for i in range(60))
    corpus = Corpus("colours", ("r", "g", "b"), Split(texts, labels), Split(texts[:9], labels[:9]), Split((), ()))
    config = study_preset("colours", "smoke")
    quick = TrainConfig(steps=3, evaluate_at=(0, 3))
    result = run_study(with_overrides(config, train=quick), tmp_path / "run", corpus=corpus)
    assert result.data["labels"] == ["r", "g", "b"]
    assert not any(math.isnan(row.estimate.value) for row in result.agreements)
    table = token_table(tmp_path / "run").filter(pl.col("token").is_in(["red", "thing"])).sort("token")
    assert table["class"].to_list() == ["r", "neutral"]
    assert table["association"].to_list() == [1.0, 1 / 3]
    (tmp_path / "run" / "models" / "standard-0" / "done.json").unlink()
    with pytest.raises(RunError, match=r"done\.json: no such file"):
        analyse(RunDirectory(tmp_path / "run"))
