import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution.attention_maps import DELETION, EVERYWHERE, GRADIENT, RANDOM
from heedful.audits.result import Contrast, LabelCount, Score
from heedful.audits.scores import RANDOM_MODELS
from heedful.audits.verdict import FULL_SEARCH, NO_LABELS, beyond, effect_size, judge
from heedful.config import AuditSettings
from heedful.metrics.statistics import Estimate

NOTHING = Estimate(float("nan"), float("nan"), float("nan"), 0, 7)
DEFAULT = AuditSettings()
LABELS = (LabelCount("bad", 30, 28), LabelCount("good", 20, 22))


def around(value, width=0.01):
    return Estimate(value, value - width, value + width, 50)


def evidence(
    tvd=0.3, tau=0.4, gradient=0.3, excess=0.3, trained=0.2, needs=0.1, jsd=0.1, first=0.2, everywhere=0.4, p=0.001
):
    scores = (
        Score("tvd", "permuted", EVERYWHERE, around(everywhere)),
        Score("tvd", "permuted", "layer 2", around(tvd)),
        Score("flip", "permuted", "layer 2", around(0.25)),
        Score("tau", "layer 2", DELETION, around(tau)),
        Score("tau", "layer 2", GRADIENT, around(gradient)),
        Score("tau", "layer 1", DELETION, around(first)),
        Score("agreement", "layer 2", DELETION, around(0.5)),
        Score("shuffled agreement", "layer 2", DELETION, around(0.5 - excess)),
        Score("excess agreement", "layer 2", DELETION, around(excess)),
        Score("random concordance", "layer 2", DELETION, Estimate(0.1, 0.0, 0.2, 5)),
        Score("adversary", "layer 2", "", around(jsd)),
    )
    contrasts = (
        Contrast(f"concordance with {DELETION}", "this model", RANDOM_MODELS, around(trained), p, p),
        Contrast("comprehensiveness", "layer 2", RANDOM, around(needs), p, p),
        Contrast("comprehensiveness", "layer 2", "gradient", around(-needs), p, p),
    )
    return scores, contrasts


def verdict(scores, contrasts, *, accuracy=0.9, **options):
    return judge(
        scores,
        contrasts,
        headline="layer 2",
        layers=2,
        random_agreement=0.1,
        accuracy=accuracy if accuracy is None else around(accuracy),
        labels=LABELS,
        **options,
    )


def answers(**numbers):
    return [question.answer for question in verdict(*evidence(**numbers)).questions]


def test_the_best_that_can_be_said():
    assert answers() == ["yes", "yes", "yes", "yes", "no", "yes"]
    best = verdict(*evidence())
    assert best.grade == "show"
    assert best.sentence.startswith("Show it: the prediction rests on the words it marks")
    assert {question.sense for question in best.questions} == {"reassuring"}


@pytest.mark.parametrize(
    ("numbers", "place", "answer"),
    [
        ({"tvd": 0.02}, 0, "no"),
        ({"tvd": DEFAULT.smallest_movement}, 0, "unclear"),
        ({"tau": 0.0}, 1, "no"),
        ({"excess": -0.2}, 1, "no"),
        ({"excess": DEFAULT.smallest_excess}, 1, "unclear"),
        ({"gradient": 0.0}, 1, "unclear"),
        ({"trained": 0.005}, 2, "no"),
        ({"trained": DEFAULT.smallest_tau}, 2, "unclear"),
        ({"needs": -0.02}, 3, "no"),
        ({"needs": 0.005}, 3, "unclear"),
        ({"jsd": 0.6}, 4, "yes"),
        ({"jsd": DEFAULT.smallest_divergence}, 4, "unclear"),
        ({"first": 0.0}, 5, "no"),
        ({"first": -0.3}, 5, "no"),
    ],
)
def test_each_answer_follows_from_its_own_numbers(numbers, place, answer):
    found = answers(**numbers)
    assert found[place] == answer
    others = [i for i in range(6) if i != place and not (place == 1 and i == 5)]
    assert [found[i] for i in others] == [answers()[i] for i in others]


@pytest.mark.parametrize(
    ("numbers", "grade", "reason"),
    [
        ({"tau": 0.0}, "do not show", "not the ones that matter (τ of layer 2 with leave one out 0.000"),
        ({"needs": -0.02}, "do not show", "no more than random ones"),
        ({"gradient": 0.0, "needs": 0.005}, "do not show", "not shown that the marked words matter"),
        ({"tvd": 0.02}, "show with a caveat", "hardly depends on these weights"),
        ({"tvd": 0.02, "needs": 0.005}, "do not show", "hardly depends on these weights"),
        ({"jsd": 0.6}, "show with a caveat", "quite different weights give the same prediction"),
        ({"trained": 0.0}, "show with a caveat", "random models"),
        ({"tvd": 0.05}, "show with a caveat", "whether these weights move the prediction is open"),
        ({"first": 0.0}, "show", "rests on the words it marks"),
    ],
)
def test_a_grade_names_its_reason_and_the_number(numbers, grade, reason):
    found = verdict(*evidence(**numbers))
    assert found.grade == grade
    assert reason in found.sentence
    assert "threshold" in found.sentence


def test_the_map_shown_decides_and_all_layers_stand_beside():
    question = verdict(*evidence(tvd=0.0, everywhere=0.4)).questions[0]
    assert question.answer == "no"
    assert "with all layers permuted: 0.400" in question.because


def test_a_difference_that_the_table_does_not_show_is_no_yes():
    found = verdict(*evidence(p=0.091))
    assert [found.questions[i].answer for i in (2, 3)] == ["unclear", "unclear"]
    assert "corrected p 0.091" in found.questions[3].because


def test_the_question_about_layers_cannot_contradict_the_one_about_the_map():
    scores, contrasts = evidence(tau=0.0)
    one = judge(scores, contrasts, headline="layer 2", layers=2, random_agreement=0.1)
    assert one.questions[5].answer == "no"
    named = tuple(Score(s.quantity, s.of.replace("2", "1"), s.against.replace("2", "1"), s.estimate) for s in scores)
    for excess in (-0.2, 0.3):
        kept = tuple(
            Score(s.quantity, s.of, s.against, around(excess)) if s.quantity == "excess agreement" else s for s in named
        )
        single = judge(kept, contrasts, headline="layer 1", layers=1, random_agreement=0.1)
        assert single.questions[5].answer == single.questions[1].answer


def test_a_model_at_the_majority_rate_gets_no_permission():
    poor = verdict(*evidence(), accuracy=0.605)
    assert poor.grade == "do not show"
    assert "not clearly beat always saying “bad” (accuracy 60.5% [59.5%, 61.5%] against 60.0%)" in poor.sentence
    assert [question.answer for question in poor.questions] == answers()


def test_without_labels_that_is_said():
    assert NO_LABELS in verdict(*evidence(), accuracy=None).sentence
    assert NO_LABELS not in verdict(*evidence()).sentence


def test_every_answer_has_its_statistic_threshold_and_effect_size():
    for question in verdict(*evidence()).questions:
        assert question.statistic
        assert question.estimate.n == 50
        assert question.threshold > 0
        assert question.effect == pytest.approx(effect_size(question.estimate, question.threshold))
        assert f"threshold {question.threshold:.3g}" in question.because


def test_thresholds_can_be_set():
    strict = AuditSettings(smallest_movement=0.35)
    assert verdict(*evidence(), settings=strict).questions[0].answer == "no"


def test_what_was_not_asked_stays_open_with_its_reason():
    found = verdict((), ())
    assert {question.answer for question in found.questions} == {"unclear"}
    assert all(question.because.startswith("not asked: ") for question in found.questions)
    assert found.grade == "do not show"


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
    assert "only 4 texts have a value, 5 are needed" in found.questions[0].because


def test_without_partners_of_the_same_length_chance_is_a_word_drawn_at_random():
    scores, contrasts = evidence()
    lonely = tuple(s if "excess" not in s.quantity else Score(s.quantity, s.of, s.against, NOTHING) for s in scores)
    question = verdict(lonely, contrasts).questions[1]
    assert question.answer == "yes"
    assert "threshold 0.15" in question.because


@settings(deadline=None)
@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0.001, 0.5))
def test_no_interval_says_both(value, width, threshold):
    estimate = Estimate(value, value - width, value + width, 9)
    assert (beyond(estimate, threshold) == "yes") == (estimate.low > threshold)
    if estimate.low <= threshold <= estimate.high:
        assert beyond(estimate, threshold) == "unclear"


def test_a_short_search_can_find_but_not_rule_out():
    def another(jsd, steps):
        return verdict(*evidence(jsd=jsd), settings=AuditSettings(adversary_steps=steps)).questions[4]

    assert [another(0.1, steps).answer for steps in (FULL_SEARCH - 1, FULL_SEARCH)] == ["unclear", "no"]
    assert "a no needs 100" in another(0.1, 15).because
    assert another(0.6, 15).answer == "yes"


LEFT_OUT = {
    "changes": 0, "random": 2, "erasure": 3, "adversary": 4,
}  # fmt: skip


@pytest.mark.parametrize(("measure", "number"), LEFT_OUT.items())
def test_a_grade_needs_the_questions_it_rests_on(measure, number):
    chosen = AuditSettings(measures=tuple(name for name in DEFAULT.measures if name != measure))
    quantities = {
        "changes": "tvd",
        "random": "random concordance",
        "erasure": "comprehensiveness",
        "adversary": "adversary",
    }
    scores, contrasts = evidence()
    scores = tuple(s for s in scores if s.quantity != quantities[measure])
    contrasts = tuple(
        c for c in contrasts if c.quantity != quantities[measure] and not (number == 2 and "concordance" in c.quantity)
    )
    found = verdict(scores, contrasts, settings=chosen)
    assert found.grade is None
    assert found.sentence == (
        f"Not graded: questions that a grade rests on were not asked ({found.questions[number].question})."
    )
    assert found.questions[number].because.endswith("was skipped (--only or --skip)")


def test_an_answer_that_decides_alone_grades_without_the_others():
    only = AuditSettings(measures=("tau",))
    scores, _ = evidence(tau=0.0)
    agreement = tuple(s for s in scores if s.quantity in ("tau", "agreement", "excess agreement"))
    assert verdict(agreement, (), settings=only).grade == "do not show"
    good, _ = evidence()
    assert verdict(tuple(s for s in good if s.quantity in ("tau", "excess agreement")), (), settings=only).grade is None


def test_no_search_and_no_random_models_are_questions_left_out():
    scores, contrasts = evidence()
    for name, gone in (("adversary_steps", "adversary"), ("random_models", f"concordance with {DELETION}")):
        found = verdict(
            tuple(s for s in scores if s.quantity != gone),
            tuple(c for c in contrasts if c.quantity != gone),
            settings=AuditSettings(**{name: 0}),
        )
        assert found.grade is None


def test_where_the_word_that_matters_has_one_position_no_excess_is_possible():
    scores, contrasts = evidence(excess=0.0)
    full = tuple(
        Score(s.quantity, s.of, s.against, Estimate(1.0, 1.0, 1.0, 50)) if s.quantity == "shuffled agreement" else s
        for s in scores
    )
    found = verdict(full, contrasts)
    assert found.questions[1].answer == "unclear"
    assert "leaves no room for more" in found.questions[1].because
    assert found.grade == "show with a caveat"
    assert verdict(scores, contrasts).questions[1].answer == "no"
