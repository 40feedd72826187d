import itertools
from collections import Counter

import numpy as np
import pytest

from heedful.data.synthetic.tasks import (
    LENGTH,
    TASKS,
    generated_pairs,
    generated_texts,
    permutation,
    stream_numbers,
    stream_pairs,
    stream_texts,
)
from heedful.errors import DataError

PAIRS = [name for name, task in TASKS.items() if task.kind == "translation"]
TEXTS = [name for name, task in TASKS.items() if task.kind == "classification"]


def first(name, count, seed=0):
    stream = stream_pairs if TASKS[name].kind == "translation" else stream_texts
    return list(itertools.islice(stream(name, seed=seed), count))


@pytest.mark.parametrize("name", TASKS)
def test_the_seed_decides(name):
    assert first(name, 50) == first(name, 50)
    assert first(name, 50) != first(name, 50, seed=1)
    assert first(name, 10) == first(name, 50)[:10]


@pytest.mark.parametrize("name", PAIRS)
def test_gold_links_join_words_that_translate(name):
    if name == "toy-de-en":
        return
    for source, target, alignment in first(name, 20):
        x, y = source.split(), target.split()
        assert len(alignment.sure) == LENGTH
        assert all(x[s] == y[t] for s, t in alignment.sure)


def test_which_words_each_copying_task_has():
    drawn = {name: [set(map(int, e.source.split())) for e in first(name, 200)] for name in PAIRS if name != "toy-de-en"}
    assert all(len(words) == 40 for sentences in drawn.values() for words in sentences)
    assert all(words == set(range(1, 41)) for words in drawn["copy-permutation"])
    assert {min(words) for words in drawn["copy-mixture"]} == {1, 41}
    assert set.union(*drawn["copy-vocab"]) == set(range(1, 61))
    assert len({frozenset(words) for words in drawn["copy-vocab"]}) == 200


def test_permute_is_one_fixed_permutation():
    pi = permutation()
    assert np.any(pi != np.arange(LENGTH))
    for seed in (0, 1):
        sources, targets = next(stream_numbers("permute", seed=seed))
        for x, y in zip(sources[:5], targets[:5], strict=True):
            assert [x[pi[t]] for t in range(LENGTH)] == y.tolist()  # Eq. 25


def test_positions_are_uniform():
    sources, _ = next(stream_numbers("copy-permutation"))
    counts = np.stack([np.bincount(column, minlength=41)[1:] for column in sources.T])
    expected = len(sources) / LENGTH
    assert abs(((counts - expected) ** 2 / expected).sum() / (39 * 39) - 1) < 0.2


def test_keyword():
    examples = first("keyword", 4000)
    assert all(text.split().count("1") == label for text, label in examples)
    assert {len(text.split()) for text, _ in examples} == {40}
    assert abs(np.mean([label for _, label in examples]) - 0.5) < 0.05
    places = Counter(text.split().index("1") for text, label in examples if label)
    assert len(places) == 40


def test_polarity():
    for text, label in first("polarity", 1000):
        kinds = Counter(word.rstrip("0123456789") for word in text.split())
        assert kinds == {"n": 10, ("neg", "pos")[label]: 2}


@pytest.mark.parametrize("name", PAIRS)
def test_corpora_of_pairs(name):
    corpus = generated_pairs(name, size=120, seed=2)
    assert [len(s) for s in (corpus.train, corpus.validation, corpus.test)] == [120, 100, 100]
    assert corpus.in_words
    assert (
        corpus.digest() == generated_pairs(name, size=120, seed=2).digest() != generated_pairs(name, size=120).digest()
    )


@pytest.mark.parametrize("name", TEXTS)
def test_corpora_of_texts(name):
    corpus = generated_texts(name, size=120)
    assert len(corpus.train) == 120
    assert set(corpus.train.labels) == {0, 1}


def test_wrong_names_and_sizes():
    with pytest.raises(DataError, match="no translation task 'keyword'; there are copy-vocab"):
        next(stream_pairs("keyword"))
    with pytest.raises(DataError, match="no classification task 'toy-de-en'"):
        next(stream_texts("toy-de-en"))
    with pytest.raises(DataError, match="use stream_pairs"):
        next(stream_numbers("toy-de-en"))
    with pytest.raises(DataError, match="0 training examples"):
        generated_pairs("copy-vocab", size=0)
