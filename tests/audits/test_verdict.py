import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution.attention_maps import DELETION, EVERYWHERE, RANDOM
from heedful.audits.result import Contrast, Score
from heedful.audits.verdict import FAR, FULL_SEARCH, MOVES, above, beyond, judge
from heedful.metrics.statistics import Estimate

NOTHING = Estimate(float("nan"), float("nan"), float("nan"), 0, 7)


def around(value, width=0.01):
    return Estimate(value, value - width, value + width, 50)


def evidence(tvd=0.3, tau=0.4, excess=0.3, trained=0.2, needs=0.1, jsd=0.1, second=0.2, width=0.01):
    scores = (
        Score("tvd", "permuted", EVERYWHERE, around(tvd)),
        Score("flip", "permuted", EVERYWHERE, around(0.25)),
        Score("tau", "layer 2", DELETION, around(tau, width)),
        Score("tau", "layer 1", DELETION, around(second)),
        Score("agreement", "layer 2", DELETION, around(0.5)),
        Score("shuffled agreement", "layer 2", DELETION, around(0.5 - excess)),
        Score("excess agreement", "layer 2", DELETION, around(excess)),
        Score("adversary", "layer 2", "", around(jsd)),
    )
    contrasts = (
        Contrast(f"tau with {DELETION}", "trained model", "random model", around(trained), 0.01, 0.02),
        Contrast("comprehensiveness", "layer 2", RANDOM, around(needs), 0.01, 0.02),
        Contrast("comprehensiveness", "layer 2", "gradient", around(-needs), 0.01, 0.02),
    )
    return scores, contrasts


def verdict(scores, contrasts):
    return judge(scores, contrasts, headline="layer 2", layers=2, random_agreement=0.1)


def answers(**numbers):
    return [question.answer for question in verdict(*evidence(**numbers)).questions]


def test_the_best_that_can_be_said():
    assert answers() == ["yes", "yes", "yes", "yes", "no", "yes"]
    assert "rests on the words it marks" in verdict(*evidence()).sentence
    assert "may not" not in verdict(*evidence()).sentence


@pytest.mark.parametrize(
    ("numbers", "place", "answer"),
    [
        ({"tvd": 0.02}, 0, "no"),
        ({"tvd": MOVES}, 0, "unclear"),
        ({"tau": 0.0}, 1, "no"),
        ({"excess": -0.2}, 1, "no"),
        ({"excess": 0.0}, 1, "unclear"),
        ({"tau": 0.005, "excess": 0.0, "width": 0.05}, 1, "unclear"),
        ({"trained": 0.005}, 2, "no"),
        ({"needs": -0.02}, 3, "no"),
        ({"needs": 0.005}, 3, "unclear"),
        ({"jsd": 0.6}, 4, "yes"),
        ({"jsd": FAR}, 4, "unclear"),
        ({"second": 0.0}, 5, "no"),
        ({"second": -0.3}, 5, "no"),
    ],
)
def test_each_answer_follows_from_its_own_numbers(numbers, place, answer):
    found = answers(**numbers)
    assert found[place] == answer
    others = [i for i in range(6) if i != place and not (place == 1 and i == 5)]
    assert [found[i] for i in others] == [answers()[i] for i in others]


def test_bad_news_is_said():
    said = verdict(*evidence(tvd=0.0, tau=0.0, trained=0.0, needs=-0.1, jsd=0.6, second=0.0)).sentence
    assert "nothing about why" in said
    assert said.count("nor that") == 5


def test_what_was_not_asked_stays_open_with_its_reason():
    found = verdict((), ())
    assert {question.answer for question in found.questions} == {"unclear"}
    assert all(question.because.startswith("not asked: ") for question in found.questions)
    assert "6 of 6 questions stay open" in found.sentence


def test_a_statistic_of_nothing_answers_nothing():
    scores, contrasts = evidence()
    empty = tuple(Score(s.quantity, s.of, s.against, NOTHING) for s in scores)
    found = verdict(empty, contrasts)
    assert [found.questions[i].answer for i in (0, 1, 4, 5)] == ["unclear"] * 4


def test_a_handful_of_texts_answers_nothing():
    scores, contrasts = evidence()
    few = tuple(Score(s.quantity, s.of, s.against, Estimate(0.9, 0.9, 0.9, 4)) for s in scores)
    found = verdict(few, contrasts)
    assert [found.questions[i].answer for i in (0, 1, 4, 5)] == ["unclear"] * 4
    assert found.questions[0].because.startswith("only 4 texts have a value, 5 are needed")


def test_without_partners_of_the_same_length_chance_is_a_word_drawn_at_random():
    scores, contrasts = evidence()
    lonely = tuple(s if "excess" not in s.quantity else Score(s.quantity, s.of, s.against, NOTHING) for s in scores)
    question = verdict(lonely, contrasts).questions[1]
    assert question.answer == "yes"
    assert "10% at random" in question.because


def test_thresholds_are_stated():
    said = [question.because for question in verdict(*evidence()).questions]
    assert str(MOVES) in said[0]
    assert f"{FAR:.3f}" in said[4]


@settings(deadline=None)
@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0.001, 0.5))
def test_no_interval_says_both(value, width, threshold):
    estimate = Estimate(value, value - width, value + width, 9)
    assert (above(estimate, threshold) == "yes") == (estimate.low > 0)
    if estimate.low <= threshold <= estimate.high:
        assert beyond(estimate, threshold) == "unclear"


def test_a_short_search_can_find_but_not_rule_out():
    def another(jsd, searched):
        scores, contrasts = evidence(jsd=jsd)
        found = judge(scores, contrasts, headline="layer 2", layers=2, random_agreement=0.1, searched=searched)
        return found.questions[4]

    assert [another(0.1, steps).answer for steps in (FULL_SEARCH - 1, FULL_SEARCH)] == ["unclear", "no"]
    assert "a no needs 100" in another(0.1, 15).because
    assert another(0.6, 15).answer == "yes"
