import numpy as np
import pytest

from heedful.attribution.attention_maps import normalised
from heedful.audits.result import find
from heedful.audits.scores import ScoreTable, chance, contrasts, orders, scores
from heedful.metrics.agreement import agreement, shuffled_agreement


def rows(lengths, seed):
    return normalised(np.random.default_rng(seed).random(int(lengths.sum())), lengths)


def table(n=30, **numbers):
    lengths = np.random.default_rng(5).integers(20, 23, n)
    maps = {"layer 1": rows(lengths, 0), "layer 1 head 1": rows(lengths, 1)}
    found = orders(
        maps,
        {"gradient": rows(lengths, 2), "leave one out": rows(lengths, 3)},
        {"hidden gradient": {0: rows(lengths, 4)}},
    )
    text = np.repeat(np.arange(n // 2), 2)
    position = np.tile([1, 2], n // 2)
    return (
        maps,
        found,
        ScoreTable(text, lengths, position, found.numbers | numbers, found.important, resamples=50),
        lengths,
    )


def test_the_matched_shuffle_is_that_of_the_whole_rows():
    maps, _, made, lengths = table()
    u, v = maps["layer 1"], rows(lengths, 3)
    shuffled = shuffled_agreement(u, v, position=made.position, text=made.text)
    found = scores(made)
    both = ~np.isnan(shuffled)
    assert find(found, "shuffled agreement", "layer 1", "leave one out").value == pytest.approx(np.nanmean(shuffled))
    excess = (agreement(u, v) - shuffled)[both].mean()
    assert find(found, "excess agreement", "layer 1", "leave one out").value == pytest.approx(excess)
    assert find(found, "shuffled agreement", "layer 1", "hidden gradient").n > 0
    assert find(found, "agreement", "layer 1 head 1", "gradient") is None


def test_the_unit_is_the_text():
    _, _, made, _ = table()
    assert find(scores(made), "tau", "layer 1", "gradient").n == 15
    np.testing.assert_allclose(made.per_text(np.arange(30.0))[:3], [0.5, 2.5, 4.5])
    assert np.isnan(made.per_text(np.full(30, np.nan))).all()


def test_internal_numbers_are_no_scores():
    _, _, made, _ = table(correct=np.ones(30), probability=np.ones(30))
    assert {score.quantity for score in scores(made)} == {
        "tau",
        "agreement",
        "shuffled agreement",
        "excess agreement",
        "entropy",
    }


def test_a_word_drawn_at_random():
    _, _, made, lengths = table()
    assert chance(made) == pytest.approx(np.mean([-(-5 * L // 100) / L for L in lengths]))


def test_a_difference_is_found_and_its_p_corrected():
    draw = np.random.default_rng(0)
    better, worse = draw.random(30), draw.random(30) - 2
    _, _, made, _ = table(**{"comprehensiveness/layer 1": better, "comprehensiveness/random order": worse})
    found = {(c.quantity, c.second): c for c in contrasts(made, "layer 1")}
    assert found["comprehensiveness", "random order"].difference.value == pytest.approx((better - worse).mean())
    assert found["comprehensiveness", "random order"].p < 0.02
    assert found["comprehensiveness", "random order"].corrected >= found["comprehensiveness", "random order"].p
    assert found["tau", "gradient"].first == "hidden gradient"
    assert ("tau with gradient", "random model") not in found
