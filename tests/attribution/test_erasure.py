import numpy as np
import pytest

from heedful.attribution.importance import d_y_x
from heedful.attribution.interventions import average_random_orders, erasures, random_orders
from tests.audits.constructed import in_pieces, passages, pooled, stacked


def test_against_deletions_written_out():
    subject = stacked()
    some = subject.with_targets(in_pieces())
    ranking = [np.arange(len(passage.words) - 2)[::-1] / 10 for passage in some]
    found = erasures(subject, some, {"forwards": ranking})
    for i, passage in enumerate(some):
        n = len(passage.words) - 2

        def left(words, n=n, passage=passage):
            return subject.predict([passage], [np.array([False, *words, False])])[0]

        whole = left([True] * n)
        sizes = [-(-percent * n // 100) for percent in (1, 5, 10, 20, 50)]
        without = [whole - left([j >= size for j in range(n)]) for size in sizes]
        alone = [whole - left([j < size for j in range(n)]) for size in sizes]
        assert found["comprehensiveness/forwards"][i] == pytest.approx(np.mean(without))
        assert found["sufficiency/forwards"][i] == pytest.approx(np.mean(alone))


def test_the_decisive_word_is_what_the_prediction_needs():
    subject = pooled()
    some = subject.with_targets(passages(9))
    decisive = [row[1:] for row in d_y_x(subject, some)]
    rankings = {"leave one out": decisive, **random_orders(some, 0, 3)}
    found = average_random_orders(erasures(subject, some, rankings))
    assert sorted(found) == [
        f"{name}/{ranking}"
        for name in ("comprehensiveness", "sufficiency")
        for ranking in ("leave one out", "random order")
    ]
    assert (found["comprehensiveness/leave one out"] > 0.3).all()
    assert found["comprehensiveness/random order"].mean() < 0.25


def test_a_ranking_without_an_order_has_no_value():
    subject = pooled()
    some = subject.with_targets(passages(1))
    assert np.isnan(erasures(subject, some, {"flat": [np.ones(5)]})["comprehensiveness/flat"]).all()


def test_no_question_is_put_twice(monkeypatch):
    subject = pooled()
    some = subject.with_targets(passages(3))
    asked = []
    whole = subject.predict
    monkeypatch.setattr(
        subject,
        "predict",
        lambda who, keep: (
            asked.extend((p.text, k.tobytes()) for p, k in zip(who, keep, strict=True)),
            whole(who, keep),
        )[1],
    )
    erasures(subject, some, random_orders(some, 0, 4))
    assert len(asked) == len(set(asked))


def test_random_orders_are_averaged_in_their_order_to_the_last_bit():
    """Not in that of a set, which is another one in every process."""
    values = np.random.default_rng(0).normal(size=(7, 50))
    found = {f"auprc/random order {k}": row for k, row in enumerate(values)}
    np.testing.assert_array_equal(average_random_orders(found)["auprc/random order"], np.mean(list(values), axis=0))
