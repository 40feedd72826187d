import numpy as np
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from heedful.data.batching import collate
from heedful.data.vocabulary import EncodedSplit
from heedful.models.classifier import BagOfWordsProxy, logistic_probe, relative_counts


def two_words(n: int = 40, classes: int = 2) -> EncodedSplit:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, size=n)
    rows = [[4 + y, *rng.integers(7, 10, size=3).tolist()] for y in labels.tolist()]
    return EncodedSplit.of(rows, labels.tolist())


def test_proxy_is_the_mean_of_its_words():
    torch.manual_seed(0)
    model = BagOfWordsProxy(11, 3, width=5).double()
    split = two_words(4)
    batch = collate(split, np.arange(4))
    expected = torch.stack(
        [model.output(model.embedding(torch.from_numpy(split.text(i)).long()).mean(0)) for i in range(4)]
    )
    assert_allclose(model(batch.tokens, batch.mask).detach(), expected.detach(), rtol=1e-12)


def test_proxy_initialisation_has_the_papers_variance():
    torch.manual_seed(0)
    model = BagOfWordsProxy(2000, 2, width=256)
    assert abs(model.embedding.weight.var().item() * 256 - 1) < 0.02


def test_proxy_word_log_odds_of_two_classes_are_opposite():
    model = BagOfWordsProxy(11, 2, width=5)
    table = model.word_log_odds()
    assert table.shape == (11, 2)
    assert_allclose(table[:, 0], -table[:, 1], rtol=1e-5)


def test_relative_counts():
    split = EncodedSplit.of([[4, 5, 4, 6], [5]], [0, 1])
    assert_allclose(relative_counts(split, 7).toarray(), [[0, 0, 0, 0, 0.5, 0.25, 0.25], [0, 0, 0, 0, 0, 1, 0]])


def test_logistic_probe_finds_the_words_that_decide():
    for classes in (2, 3):
        split = two_words(60, classes)
        probe = logistic_probe(split, split, vocabulary=10, classes=classes)
        assert probe.accuracy == 1.0
        assert probe.word_log_odds.shape == (10, classes)
        for label in range(classes):
            assert probe.word_log_odds[:, label].argmax() == 4 + label


def test_ties_in_accuracy_go_to_the_strongest_penalty():
    """Every penalty that separates the classes is equally accurate here; the smallest such C must win."""
    split = two_words(60)
    probe = logistic_probe(split, split, vocabulary=10, classes=2)
    X, y = relative_counts(split, 10).toarray(), 2 * split.labels - 1

    def accuracy(C: float) -> float:
        def objective(w):
            return np.logaddexp(0, -y * (X @ w[:-1] + w[-1])).sum() * C + 0.5 * w[:-1] @ w[:-1]

        w = minimize(objective, np.zeros(11)).x
        return float(np.mean(np.sign(X @ w[:-1] + w[-1]) == y))

    assert accuracy(probe.inverse_penalty) == 1.0
    if probe.inverse_penalty > 1e-3:
        assert accuracy(probe.inverse_penalty / 10) < 1.0
