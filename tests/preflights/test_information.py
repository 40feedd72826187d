import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.files.text_files import read_lines
from heedful.data.loading import open_data
from heedful.data.ragged import as_ids
from heedful.data.synthetic.tasks import TASKS, generated_pairs, generated_texts
from heedful.data.vocabulary import tokenise
from heedful.errors import DataError
from heedful.models.lexicon import count_table
from heedful.preflights.information import informativeness, label_targets
from heedful.preflights.preflight import determinants

MIRROR = Path(os.environ.get("HEEDFUL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
needs_mirror = pytest.mark.skipif(not MIRROR.is_dir(), reason="no mirror of the corpora: set HEEDFUL_DATA")
NUMBERS = [str(number) for number in range(1000)]


def numbered(texts):
    known = {}
    return as_ids([[known.setdefault(word, len(known)) for word in text] for text in texts])


def task(name, size, seed=0):
    if TASKS[name].kind == "translation":
        train = generated_pairs(name, size=size, seed=seed).train
        return numbered([s.split() for s in train.sources]), numbered([s.split() for s in train.targets])
    train = generated_texts(name, size=size, seed=seed).train
    return numbered([s.split() for s in train.texts]), label_targets(train.labels)


def labelled(name):
    if name == "sms":
        rows = [line.split("\t", 1) for line in read_lines(MIRROR / "sms_spam" / "sms.tsv")]
    else:
        rows = [line.split(" ", 1) for line in read_lines(MIRROR / "sst" / "stsa.binary.train")]
    rows = [(label, tokenise(text)) for label, text in rows]
    rows = [(label, words) for label, words in rows if words]
    names = sorted({label for label, _ in rows})
    return numbered([words for _, words in rows]), label_targets([names.index(label) for label, _ in rows])


def plainly(sources, targets):
    """Contrast and concentration as the docstring has them, one sentence and one output at a time."""
    C = count_table(sources, targets).matrix().toarray()
    x_count = sum(len(x) for x in sources)
    share = np.bincount(np.concatenate(targets))
    token, share = share.sum() / x_count, share / share.sum()
    gains, divergences = [], []
    for x, y in zip(sources, targets, strict=True):
        own = count_table([x], [y], source_size=C.shape[0], target_size=C.shape[1]).matrix().toarray()
        rest = C - own
        for o in y:
            beta = np.array([(rest[i, o] + token * share[o]) / (rest[i].sum() + token) for i in x])
            alpha = beta / beta.sum()
            gains.append(alpha @ beta - beta.mean())
            divergences.append(np.sum(alpha * np.log(alpha * len(x))))
    return np.mean(gains), np.mean(divergences)


sentence = st.lists(st.integers(0, 5), min_size=1, max_size=5)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(sentence, sentence), min_size=2, max_size=7))
def test_agrees_with_the_plain_way(corpus):
    sources, targets = zip(*corpus, strict=True)
    found = informativeness(sources, targets, permutations=1)
    contrast, concentration = plainly(sources, targets)
    assert found.contrast.value == pytest.approx(contrast, abs=1e-11)
    assert found.concentration.value == pytest.approx(concentration, abs=1e-11)
    C = count_table(sources, targets).matrix().toarray()
    joint = C / C.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    information = np.sum(joint[joint > 0] * np.log(joint[joint > 0] / product[joint > 0]))
    assert found.information.value == pytest.approx(information, abs=1e-11)


@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("name", TASKS)
def test_verdicts_on_the_generated_tasks(name, size):
    found = informativeness(*task(name, size), max_cells=200_000)
    blind = name in ("copy-permutation", "copy-mixture")
    assert found.verdict == ("uninformative" if blind else "learnable")
    assert found.examined <= found.pairs == size
    if blind:
        assert found.contrast.value == found.concentration.value == 0
        assert found.contrast.p == 1
        assert found.information.value == pytest.approx(np.log(2) if name == "copy-mixture" else 0, abs=0.02)


@pytest.mark.parametrize("name", ["copy-vocab", "toy-de-en", "polarity", "keyword"])
def test_shuffled_outputs_are_uninformative(name):
    sources, targets = task(name, 400)
    verdicts = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(targets))
        verdicts.append(informativeness(sources, targets.take(order), max_cells=60_000, seed=seed).verdict)
    assert verdicts.count("uninformative") >= 4
    assert "learnable" not in verdicts


@needs_mirror
@pytest.mark.parametrize("name", ["sms", "sst"])
def test_verdicts_on_real_labels(name):
    sources, targets = labelled(name)
    assert informativeness(sources, targets).verdict == "learnable"
    shuffled = targets.take(np.random.default_rng(5).permutation(len(targets)))
    assert informativeness(sources, shuffled).verdict == "uninformative"
    few = np.arange(400)
    assert informativeness(sources.take(few), targets.take(few)).verdict == "learnable"


@needs_mirror
def test_verdict_on_multi30k(monkeypatch):
    monkeypatch.setenv("HEEDFUL_DATA", str(MIRROR))
    train = open_data("multi30k").train.take(range(300))
    sources, targets = (numbered([tokenise(s) for s in side]) for side in (train.sources, train.targets))
    found = informativeness(sources, targets)
    assert found.verdict == "learnable"
    assert found.contrast.value > 3 * found.contrast.null_mean


def test_repeated_words_make_no_contrast():
    rng = np.random.default_rng(0)
    sources = [np.repeat(rng.permutation(5), rng.integers(1, 4)) for _ in range(60)]
    constant = [[0, 1]] * 60
    assert informativeness(sources, constant).contrast.value == 0
    one_word = [[3] * int(rng.integers(1, 6)) for _ in range(60)]
    assert informativeness(one_word, [[int(y)] for y in rng.integers(2, size=60)]).verdict == "uninformative"


def test_one_label_says_nothing():
    assert informativeness([[0, 1], [1, 2], [3]], label_targets([1, 1, 1])).verdict == "uninformative"


def test_the_seed_decides_and_the_sample_is_stated():
    sources, targets = task("toy-de-en", 1000)
    first = informativeness(sources, targets, max_cells=20_000, permutations=20)
    assert first == informativeness(sources, targets, max_cells=20_000, permutations=20)
    assert 100 <= first.examined < 1000 == first.pairs
    assert first != informativeness(sources, targets, max_cells=20_000, permutations=20, seed=1)
    assert first.to_dict()["contrast"]["permutations"] == 20
    assert "by chance" in str(first.contrast)


def test_empty_outputs_are_passed_over_and_too_few_refused():
    found = informativeness([[0, 1], [0, 2], [1, 2]], [[0], [], [1]], permutations=3)
    assert found.examined == 2
    with pytest.raises(DataError, match="1 pairs with an output"):
        informativeness([[0], [1]], [[0], []])
    with pytest.raises(DataError, match="0 permutations"):
        informativeness([[0], [1]], [[0], [1]], permutations=0)


def test_determinants_of_the_keyword_and_of_polarity():
    train = generated_texts("keyword", size=600).train
    sources = as_ids([[int(word) for word in text.split()] for text in train.texts])
    found = determinants(sources, label_targets(train.labels), NUMBERS, NUMBERS, top=3)
    assert found[1].most[0].word == "1"
    assert found[1].most[0].trans == pytest.approx(1)
    assert found[0].least[0].word == "1"
    assert found[1].most[0].together == found[1].most[0].count == sum(train.labels)


def test_rare_words_do_not_stand_out():
    sources = [[0, 2 + i] if i % 2 else [1, 2 + i] for i in range(100)]  # every other word occurs once
    found = determinants(sources, label_targets([i % 2 for i in range(100)]), NUMBERS, NUMBERS, top=1)
    assert found[1].most[0].word == "0"
    assert found[0].most[0].word == "1"
    assert found[1].most[0].z == pytest.approx(np.sqrt(99))


def test_determinants_do_not_change_what_they_are_given():
    sources, targets = task("toy-de-en", 50)
    before = sources.values.copy(), sources.offsets.copy()
    determinants(sources, targets, NUMBERS, NUMBERS)
    assert np.array_equal(before[0], sources.values)
    assert np.array_equal(before[1], sources.offsets)


def test_determinants_of_named_outputs():
    (found,) = determinants([[0], [1]], [[0, 1], [2]], "ab", "xyz", chosen=[2])
    assert (found.output, found.count, found.most[0].word, found.least[0].word) == ("z", 1, "b", "a")
    assert determinants([[0], [1]], [[0, 1], [2]], "ab", "xyz", chosen=[2], skip=1)[0].least == ()
    with pytest.raises(DataError, match="top is 0"):
        determinants([[0]], [[0]], "a", "x", top=0)
