"""A short calibration: the corpora are what they claim to be, and studies of two of them say what is true."""

from collections import Counter

import numpy as np
import pytest
from calibration.corpora import KNOWN, QUESTIONS, TRAIN, polar_words
from calibration.page import page
from calibration.studies import (
    HELD_OUT_SETS,
    NOISE_STEPS,
    NOISES,
    NoiseRecordings,
    SampledRecordings,
    measure,
    measured_sizes,
)
from calibration.study_rows import covered, judged, rows, share

from heedful.data.corpus import Corpus
from heedful.studies.analysis import Recordings
from heedful.studies.evidence import evidence_of
from heedful.studies.run_directory import RunDirectory
from heedful.studies.verdict import answer_from

SIZES = measured_sizes()


@pytest.mark.parametrize("name", KNOWN)
def test_a_corpus_is_the_same_again_and_another_with_another_seed(name):
    make = KNOWN[name].make
    assert make(0).digest() == make(0).digest() != make(1).digest()
    assert make(0).name == name


@pytest.mark.parametrize("name", ["word-order", "word-position"])
def test_counts_of_words_do_not_tell_the_label(name):
    corpus = KNOWN[name].make(0)
    assert isinstance(corpus, Corpus)
    key = {"word-order": "left", "word-position": "mark"}[name]
    for label in (0, 1):
        texts = [t.split() for t, y in zip(corpus.train.texts, corpus.train.labels, strict=True) if y == label]
        assert len(texts) == TRAIN // 2
        assert all(text.count(key) == 1 for text in texts)


def test_a_keyword_decides():
    corpus = KNOWN["one-keyword"].make(0)
    assert [int("key" in text.split()) for text in corpus.train.texts] == list(corpus.train.labels)


def test_labels_at_random_have_their_shares_and_keep_every_class():
    for name, rarest in (("shuffled-binary", 0.5), ("shuffled-six", 0.06), ("rare-class", 0.02)):
        corpus = KNOWN[name].make(0)
        for split in (corpus.train, corpus.validation):
            counts = Counter(split.labels)
            assert len(counts) == len(corpus.labels)
            assert min(counts.values()) / len(split) == pytest.approx(rarest, abs=0.01)


def test_shuffled_targets_are_those_of_other_sentences():
    straight, shuffled = (KNOWN[name].make(0) for name in ("translation", "shuffled-targets"))
    assert straight.train.sources == shuffled.train.sources
    assert sorted(straight.train.targets) == sorted(shuffled.train.targets)
    same = sum(a == b for a, b in zip(straight.train.targets, shuffled.train.targets, strict=True))
    assert same < len(straight.train) / 20


def test_what_counts_as_right_open_wrong_and_praise():
    planted = {"corpus": "two-keywords", "passed": True, "answers": dict.fromkeys(QUESTIONS, "yes") | {"last": "no"}}
    assert judged(planted) == {"right": 7, "open": 0, "wrong": 0, "praise": 0}
    unclear = planted | {"answers": dict.fromkeys(QUESTIONS, "unclear") | {"last": "yes"}}
    assert judged(unclear) == {"right": 1, "open": 5, "wrong": 1, "praise": 1}
    closed = {"corpus": "word-order", "passed": False, "answers": dict.fromkeys(QUESTIONS, "not asked")}
    assert judged(closed) == {"right": 1, "open": 0, "wrong": 0, "praise": 0}
    praised = closed | {"passed": True, "answers": closed["answers"] | {"counting": "yes"}}
    assert judged(praised) == {"right": 0, "open": 0, "wrong": 1, "praise": 1}


def test_share_has_an_exact_interval():
    assert share(0, 30) == "0 of 30 (0.0 %, at most 11.6 %)"
    assert share(15, 30).startswith("15 of 30 (50.0 %, 31.3 to 68.7 %")


def test_coverage_counts_intervals_with_the_population_value():
    key = "A(alpha,beta) own"
    groups = [{key: {"excess": [0.5, low, low + 0.1]}} for low in (0.3, 0.45, 0.6)]
    assert covered({"population": groups[0], "disjoint": groups}, "disjoint", key, "excess") == (1, 3)


def test_a_sample_of_all_seeds_and_texts_is_the_study(smoke_run):
    whole = Recordings(RunDirectory(smoke_run))
    again = SampledRecordings(whole, whole.seeds)
    for convention in ("own", "cross"):
        assert evidence_of(again, "A(alpha,beta_uf)", convention) == evidence_of(whole, "A(alpha,beta_uf)", convention)
    fewer = SampledRecordings(whole, whole.seeds, np.arange(0, len(whole.example), 2))
    assert evidence_of(fewer, "A(alpha,beta)", "own").value.n == (len(whole.example) + 1) // 2


@pytest.mark.parametrize("kind", NOISES)
def test_noise_gets_no_praise(kind):
    rng = np.random.default_rng(7)
    answers = [
        answer_from(evidence_of(NoiseRecordings(kind, rng), "A(alpha,beta_uf)", convention).decisive_excess)
        for _ in range(8)
        for convention in ("own", "cross")
    ]
    assert "yes" not in answers


def test_attention_that_follows_the_probe_is_found_in_the_same_way():
    recordings = NoiseRecordings("unrelated", np.random.default_rng(7))
    attention = recordings.quantity("standard", 0, "alpha", NOISE_STEPS - 1)
    recordings.quantity = lambda kind, seed, name, step: attention
    assert answer_from(evidence_of(recordings, "A(alpha,beta_uf)", "cross").decisive_excess) == "yes"


def test_two_studies_say_what_is_true_and_are_kept(tmp_path):
    names = ("two-keywords", "shuffled-binary")
    values = measure(tmp_path, 2, short=True, names=names)
    planted, shuffled = values["studies"]
    assert planted["status"] == "answered"
    assert judged(planted) == {"right": 7, "open": 0, "wrong": 0, "praise": 0}
    assert shuffled["status"] == "learned nothing"
    assert judged(shuffled) == {"right": 1, "open": 0, "wrong": 0, "praise": 0}
    assert measure(tmp_path, 2, short=True, names=names)["studies"] == values["studies"]
    written = page({"studies": {**values, "machine": {"processes": 2, "cores": 2, "system": "", "python": ""}}})
    assert rows(values).splitlines()[0] == "## Studies"
    assert "| two-keywords | one of two words decides | must; 1 of 1 | 100.0 %, 50.0 % | 7 | 0 | 0 | 0 |" in written


def test_held_out_sets_are_counted_apart_from_those_the_rules_were_made_with():
    right = {"passed": False, "accuracy": 0.5, "baseline": 0.5, "answers": dict.fromkeys(QUESTIONS, "not asked")}
    wrong = {**right, "passed": True}
    studies = [{"corpus": "shuffled-six", "set": k, **(wrong if k == 0 else right)} for k in (0, *HELD_OUT_SETS)]
    held_out, seen = rows({"sizes": SIZES, "studies": studies}).split("### Sets that the rules were made with: 1 ")
    assert "### Held-out sets: 8 of each corpus" in held_out
    assert "false praise: 0 of 8 (0.0 %, at most 36.9 %)" in held_out
    assert "false praise: 1 of 1 (100.0 %" in seen
    assert "earlier calibration" not in seen


def test_frozen_models_are_counted_by_where_their_attention_is():
    values = {"sizes": SIZES, "studies": [], "frozen": [{"corpus": "one-keyword", "shares": [0.0, 0.5, 0.95, 1.0]}]}
    assert "| one-keyword | 4 | 2 | 1 | 1 |" in rows(values)


def test_words_of_the_coverage_corpus_lean_to_a_label():
    corpus = polar_words(0, 100)
    assert len(corpus.validation) == 100
    counts = Counter(
        (word[:4] == "plus", label)
        for text, label in zip(corpus.train.texts, corpus.train.labels, strict=True)
        for word in text.split()
        if word[0] in "pm"
    )
    right = counts[True, 1] + counts[False, 0]
    assert sum(counts.values()) == 2 * TRAIN
    assert right / (2 * TRAIN) == pytest.approx(0.75, abs=0.04)
