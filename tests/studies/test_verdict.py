"""The verdict from made-up numbers: the gate, the controls, the sizes, and what is said with few seeds or texts."""

import math
from dataclasses import replace

import pytest

from heedful.metrics.statistics import Estimate
from heedful.studies.result import AgreementResult, Curve, Evidence, Gate, TopPosition, against_chance
from heedful.studies.verdict import fails_to_form, judge


def around(value, half=0.02, n=100):
    return Estimate(value, value - half, value + half, n)


def evidence(value=0.4, expected=0.1, half=0.02, seeds=5, over_seeds=None, words_only=False) -> Evidence:
    wide = half if over_seeds is None else over_seeds
    return Evidence(
        value=around(value, half),
        value_seeds=around(value, wide),
        excess=around(value - expected, half),
        excess_seeds=around(value - expected, wide),
        random=0.05,
        shuffle=around(0.08),
        wrong=None if words_only else around(expected),
        control="wrong label",
        seeds=seeds,
        words_only=words_only,
    )


def row(name="A(alpha,beta)", convention="own", **numbers) -> AgreementResult:
    seen = evidence(words_only=name in ("A(alpha,alpha_hat)", "A(alpha,alpha_fr)"), **numbers)
    return AgreementResult(
        name, convention, seen.value, seen.shuffle, seen.decisive_excess, seen.random, 0, (0.4, 0.4), seen.value,
        Curve((0,), (0.4,)), None, None, None, seen.value, True, evidence=seen,
    )  # fmt: skip


def rows(**numbers):
    names = ["alpha,beta", "alpha,beta_uf", "delta,beta_uf", "alpha,alpha_fr"]
    table = [(f"A({n})", c) for n in names for c in ("own", "cross")]
    table += [("A(beta_uf,beta_px)", "own"), ("A(beta_px,beta_uf)", "cross"), ("A(alpha,alpha_hat)", "cross")]
    return [row(name, convention, **numbers.get(name[2:-1].replace(",", "__"), {})) for name, convention in table]


def gate(passed=True, texts=500, **changes) -> Gate:
    numbers = {"accuracy": around(0.8), "answer": "positive", "baseline": 0.501, "gain": around(0.3)}
    return Gate(passed, texts, **numbers | {"logistic": 0.75} | changes)


def answers(verdict):
    return [question.answer for question in verdict.questions]


@pytest.mark.parametrize(
    ("value", "shuffle", "random", "answer"),
    [(0.3, 0.1, 0.08, "yes"), (0.09, 0.1, 0.08, "unclear"), (0.03, 0.1, 0.08, "no"), (0.2, 0.3, 0.08, "no")],
)
def test_a_followed_training_is_held_against_both_chances(value, shuffle, random, answer):
    assert against_chance(around(value), random, around(value - shuffle)) == answer


def test_sizes_and_answers_come_from_the_excess():
    verdict = judge(rows(alpha__beta={"value": 0.47, "expected": 0.15}, alpha__alpha_fr={"value": 0.1}), gate(), 5)
    assert answers(verdict) == ["yes"] * 6
    assert verdict.questions[0].size == "strongly"
    assert "strongly follows words that predict the label by themselves (47% of texts, 15% expected" in verdict.sentence
    assert "5 seeds" in verdict.scope
    some = judge(rows(alpha__beta={"value": 0.2, "expected": 0.1}), gate(), 5)
    assert (some.questions[0].answer, some.questions[0].size) == ("yes", "partly")
    little = judge(rows(alpha__beta={"value": 0.11, "expected": 0.1}), gate(), 5)
    assert (little.questions[0].answer, little.questions[0].size) == ("no", "hardly")
    assert "does not follow" in little.sentence


def test_the_sentence_reads_cross_and_gives_the_value_within_one_model():
    table = [
        row("A(alpha,beta)", "own", value=0.3, expected=0.2)
        if (r.name, r.convention) == ("A(alpha,beta)", "own")
        else r
        for r in rows(alpha__beta={"value": 0.12, "expected": 0.127})
    ]
    verdict = judge(table, gate(), 2)
    assert (verdict.questions[0].answer, verdict.questions[0].size) == ("no", "hardly")
    assert "does not follow words that predict the label by themselves (12% of texts, 13% expected" in verdict.sentence
    assert "A(alpha,beta) 12% [10%, 14%] (cross)" in verdict.questions[0].because
    assert verdict.questions[0].because.endswith(
        "within one model 30% [28%, 32%] (own) with an excess of 10.0% [8.0%, 12.0%]"
    )


@pytest.mark.parametrize(("value", "given"), [(0.3, "yes"), (0.14, "unclear"), (0.11, "not asked")])
def test_words_that_attention_does_not_look_at_are_not_asked_about(value, given):
    verdict = judge(rows(alpha__beta={"value": value, "expected": 0.1, "half": 0.035}), gate(), 5)
    assert answers(verdict)[1] == given
    assert ("by the first question" in verdict.questions[1].because) == (given != "yes")


@pytest.mark.parametrize(("excess", "given"), [(0.1996, "strongly"), (0.1994, "partly"), (0.0496, "partly")])
def test_a_size_belongs_to_the_number_beside_it(excess, given):
    asked = judge(rows(alpha__beta={"value": 0.1 + excess, "expected": 0.1}), gate(), 5).questions[0]
    assert (asked.size, asked.answer) == (given, "yes")
    assert f"excess {excess:.1%} [" in asked.because


def test_attention_on_no_word_is_said():
    tops = (TopPosition(0, 0.3, 0.1, 0.5, 0.1), TopPosition(1, 0.4, 0.6, 0.0, 0.0))
    sentence = judge(rows(), gate(), 5, top_positions=tops).sentence
    assert "In 65% of texts its highest weight lies on <bos>, <eos> or punctuation. Another seed" in sentence
    on_words = [replace(top, word=0.9, bos=0.0, eos=0.1, punctuation=0.0) for top in tops]
    assert "highest weight" not in judge(rows(), gate(), 5, top_positions=on_words).sentence


def test_as_often_with_the_wrong_label_is_a_no():
    verdict = judge(rows(alpha__beta={"value": 0.36, "expected": 0.36}), gate(), 5)
    assert verdict.questions[0].answer == "no"
    assert "wrong label 36%" in verdict.questions[0].because


@pytest.mark.parametrize(
    ("twins", "given"),
    [
        ({}, ["yes"] * 5),
        ({"uniform": around(0.6), "proxy": around(0.6)}, ["yes"] * 5),
        ({"uniform": around(0.6), "proxy": around(0.53, 0.07)}, ["yes", "yes", "unclear", "yes", "yes"]),
        ({"uniform": around(0.6), "proxy": around(0.49, 0.02)}, ["yes", "yes", "no", "yes", "yes"]),
        ({"uniform": around(0.53, 0.07), "proxy": around(0.6)}, ["yes", "unclear", "unclear", "unclear", "yes"]),
    ],
)
def test_a_model_that_knows_nothing_shares_no_knowledge(twins, given):
    verdict = judge(rows(), gate(), 5, twins)
    assert answers(verdict)[:5] == given
    doubted = [question.because for question in verdict.questions if "not clearly more than 50%" in question.because]
    assert len(doubted) == 5 - given.count("yes")


def test_what_position_explains_is_said():
    table = rows(alpha__beta={"value": 0.83, "expected": 0.82})
    of_position = [replace(r, evidence=replace(r.evidence, control="shuffle")) for r in table]
    assert (
        "(83% of texts, 82% expected from controls) more than position explains."
        in judge(of_position, gate(), 5).sentence
    )
    assert "position" not in judge(table, gate(), 5).sentence


def test_a_closed_gate_asks_nothing():
    closed = gate(False, accuracy=around(0.495, 0.031), gain=around(-0.006, 0.03), preflight="uninformative")
    verdict = judge(rows(), closed, 5)
    assert (verdict.status, set(answers(verdict))) == ("learned nothing", {"not asked"})
    assert verdict.sentence.startswith(
        "The model has learned nothing here: accuracy 49.5% [46.4, 52.6], always answering 'positive' gives 50.1%."
    )
    assert "preflight: uninformative" in verdict.sentence
    assert not verdict.scope


@pytest.mark.parametrize(("gain", "said"), [(0.3, "not learned to translate"), (0.0, "learned nothing here")])
def test_words_guessed_without_translating_are_not_nothing(gain, said):
    table = [*rows(), *(row("A(alpha,alpha_ibm)", convention) for convention in ("own", "cross"))]
    closed = gate(
        False, accuracy=around(0.387), baseline=0.089, gain=around(gain), bleu=1.8, bleu_gain=around(1.4, 0.9)
    )
    verdict = judge(table, closed, 2)
    assert verdict.sentence.startswith(f"The model has {said}: token accuracy 38.7%")
    assert (verdict.status, verdict.questions[0].because) == ("learned nothing", f"the model has {said}")


def test_too_few_texts_answer_nothing():
    verdict = judge(rows(alpha__beta={"value": 0.0, "expected": 0.0}), gate(texts=29), 5)
    assert (verdict.status, set(answers(verdict))) == ("too few texts", {"not asked"})
    assert "29 validation texts" in verdict.sentence
    assert judge(rows(), gate(texts=30), 5).status == "answered"


def test_from_five_seeds_on_intervals_include_them():
    wide = {name: {"over_seeds": 0.5} for name in ("alpha__beta", "alpha__alpha_hat")}
    assert answers(judge(rows(**wide), gate(), 5))[0] == "unclear"
    few = judge(rows(**{name: numbers | {"seeds": 2} for name, numbers in wide.items()}), gate(), 2)
    assert answers(few)[0] == "yes"
    assert few.scope.startswith("Two seeds")
    assert "nothing is claimed about training in general" in few.scope


@pytest.mark.parametrize(
    ("frozen", "normal", "answer"),
    [
        ({"value": 0.07, "expected": 0.07}, {"value": 0.5}, "yes"),
        ({"value": 0.43, "expected": 0.07}, {"value": 0.6}, "no"),  # far below the normal models, and far above chance
        ({"value": 0.07, "expected": 0.07}, {"value": 0.08}, "unclear"),  # normal models agree no more either
        ({"value": 0.12, "expected": 0.07, "half": 0.06}, {"value": 0.6}, "unclear"),
    ],
)
def test_fails_to_form_needs_chance_and_the_normal_model(frozen, normal, answer):
    asked = fails_to_form("?", evidence(**frozen), evidence(**normal))
    assert asked.answer == answer
    assert f"{normal['value']:.0%}" in asked.because
    assert f"{frozen['expected']:.0%}" in asked.because


def test_translations_have_their_own_words():
    names = [("A(alpha,alpha_ibm)", "own"), ("A(alpha,alpha_ibm)", "cross")]
    table = [*rows(), *(row(*name) for name in names)]
    closed = gate(False, logistic=None, bleu=0.5, bleu_gain=around(0.3, 0.2))
    verdict = judge(table, closed, 2)
    assert "BLEU 0.5, where 2 is the least" in verdict.sentence
    assert "heedful preflight" in verdict.sentence
    assert verdict.questions[-1].question == "Does attention align words as co-occurrence counts do?"
    assert "wrong word 10%" in judge(table, replace(closed, passed=True), 2).questions[0].because


def test_nothing_measured_is_unclear():
    nothing = Estimate(math.nan, math.nan, math.nan, 0)
    table = [
        AgreementResult(**{**vars(r), "evidence": Evidence(**{**vars(r.evidence), "excess_seeds": nothing})})
        for r in rows()
    ]
    assert set(answers(judge(table, gate(), 5))) == {"unclear"}
