"""Evidence of a small study: controls recomputed by hand, steps held out, and the gate."""

import numpy as np
import pytest

from heedful.config import study_preset, with_overrides
from heedful.data.corpus import Corpus, Split
from heedful.data.vocabulary import BOS, EOS
from heedful.metrics.agreement import agreement, first_maximum, shuffled_agreement
from heedful.studies.analysis import Recordings
from heedful.studies.evidence import is_punctuation, position_kinds, top_positions, twin_accuracies
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.study import run_study
from heedful.tracing.recorder import wrong_labels


@pytest.fixture
def recordings(smoke_run) -> Recordings:
    return Recordings(RunDirectory(smoke_run))


@pytest.fixture
def result(smoke_run) -> StudyResult:
    return StudyResult.load(smoke_run / "result.json")


def test_own_controls_are_those_of_the_last_step(recordings, result):
    seen = result.agreement("A(alpha,beta)", "own").evidence
    values, shuffles, wrongs = [], [], []
    for seed in result.seeds:
        last = recordings.steps("standard", seed)[-1]
        alpha, beta = (recordings.quantity("standard", seed, name, last) for name in ("alpha", "beta_logit"))
        values.append(agreement(alpha, beta).mean())
        shuffles.append(np.nanmean(shuffled_agreement(alpha, beta)))
        wrongs.append(agreement(alpha, type(beta)(-beta.values, beta.offsets)).mean())
    assert seen.value.value == pytest.approx(np.mean(values))
    assert seen.shuffle.value == pytest.approx(np.mean(shuffles))
    assert seen.wrong.value == pytest.approx(np.mean(wrongs))
    largest = max(seen.random, seen.shuffle.value, seen.wrong.value)
    assert seen.expected == pytest.approx(largest)
    assert result.agreement("A(alpha,beta)", "own").excess == seen.excess  # two seeds: over texts


def test_chosen_steps_are_held_out(recordings, result):
    A, B = result.seeds
    even = np.arange(len(recordings.lengths)) % 2 == 0
    held_out = []
    for one, other in ((A, B), (B, A)):
        alpha = recordings.quantity("standard", one, "alpha", recordings.best_step(one))
        steps = recordings.steps("uniform", other)
        table = np.stack([agreement(alpha, recordings.quantity("uniform", other, "beta_logit", s)) for s in steps])
        rows = np.empty(len(even))
        rows[even] = table[table[:, ~even].mean(axis=1).argmax(), even]
        rows[~even] = table[table[:, even].mean(axis=1).argmax(), ~even]
        held_out.append(rows.mean())
    row = result.agreement("A(alpha,beta_uf)", "cross")
    assert row.evidence.value.value == pytest.approx(np.mean(held_out))
    assert row.evidence.value.value <= row.estimate.value + 1e-12


def test_the_same_words_are_words(recordings, result):
    kinds, even = position_kinds(recordings), []
    run = recordings.run
    ids = run.split("validation").ids.values
    assert set(kinds[ids == BOS]) == {1}
    assert set(kinds[ids == EOS]) == {2}
    for top in top_positions(recordings):
        assert top.word + top.bos + top.eos + top.punctuation == pytest.approx(1)
    A, B = result.seeds
    for one, other in ((A, B), (B, A)):
        u = recordings.quantity("standard", one, "alpha", recordings.best_step(one))
        v = recordings.quantity("standard", other, "alpha", recordings.steps("standard", other)[-1])
        even.append((agreement(u, v) * (kinds[first_maximum(u)] == 0)).mean())
    seen = result.agreement("A(alpha,alpha_hat)", "cross").evidence
    assert seen.words_only
    assert seen.wrong is None
    assert seen.value.value == pytest.approx(np.mean(even))


def test_punctuation():
    assert [is_punctuation(token) for token in (".", "--", "▁", "'s", "é", "☺", "3")] == [True] * 3 + [False] * 4


def test_wrong_labels_are_wrong_and_take_turns():
    labels = np.array([0, 1, 2, 3, 4, 0, 0])
    wrong = wrong_labels(labels, 5)
    assert (wrong != labels).all()
    assert set(wrong_labels(np.zeros(20, dtype=np.int64), 5)) == {1, 2, 3, 4}
    assert (wrong_labels(labels % 2, 2) == 1 - labels % 2).all()


def texts(n, classes, telling):
    rng = np.random.default_rng(0)
    labels = tuple(int(i) for i in np.arange(n) % classes)
    marks = labels if telling else rng.permutation(labels)
    words = []
    for mark in marks:  # anywhere: at a fixed place, position alone would explain the agreement
        text = rng.choice(list("abcdefg"), 9).tolist()
        words.append(" ".join([*text[: (at := rng.integers(10))], f"mark{mark}", *text[at:]]))
    return Split(tuple(words), labels)


@pytest.mark.parametrize("telling", [True, False])
def test_the_gate_and_three_labels(tmp_path, telling):
    corpus = Corpus("made", ("x", "y", "z"), texts(210, 3, telling), texts(61, 3, telling), Split((), ()))
    config = with_overrides(study_preset("made", "smoke"), max_validation=61, train={"steps": 40})
    result = run_study(config, tmp_path / "run", corpus=corpus, jobs=1)
    gate = result.verdict.gate
    assert gate.passed == telling
    assert gate.texts == 61
    assert gate.baseline == pytest.approx(21 / 61)
    assert (result.verdict.status == "answered") == telling
    trace = RunDirectory(tmp_path / "run").model(ModelSpec("standard", 0)).trace()
    right, wrong = (trace.quantity(name, 40) for name in ("beta_logit", "beta_wrong_logit"))
    assert right.lengths.tolist() == wrong.lengths.tolist()
    assert not np.allclose(right.values, wrong.values)
    twins = twin_accuracies(Recordings(RunDirectory(tmp_path / "run")))
    assert {twin: seen.low > gate.baseline for twin, seen in twins.items()} == dict.fromkeys(twins, telling)
    best = [model.best_accuracy for model in result.models if model.kind == "proxy"]
    assert twins["proxy"].value == pytest.approx(np.mean(best))
    if telling:
        assert result.verdict.questions[0].answer == "yes"
        assert result.agreement("A(alpha,beta)").evidence.wrong.value < 0.5
    else:
        assert gate.preflight == "uninformative"
        assert {question.answer for question in result.verdict.questions} == {"not asked"}


def test_a_proxy_of_translations_need_not_guess_the_next_word(smoke_translation_run):
    assert twin_accuracies(Recordings(RunDirectory(smoke_translation_run))) == {}
