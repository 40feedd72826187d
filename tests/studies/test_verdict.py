import pytest

from heedful.metrics.statistics import Estimate
from heedful.studies.result import AgreementResult, Curve, against_chance, judge


def row(name="A(alpha,beta)", convention="own", value=0.3, shuffle=0.1, random=0.08, half=0.02) -> AgreementResult:
    estimate = Estimate(value, value - half, value + half, 100)
    return AgreementResult(
        name, convention, estimate, Estimate(shuffle, shuffle, shuffle, 100),
        Estimate(value - shuffle, value - shuffle - half, value - shuffle + half, 100), random, 0, (value, value),
        estimate, Curve((0,), (value,)), None, None, None, estimate, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({}, "yes"),
        ({"value": 0.09}, "unclear"),
        ({"value": 0.11, "shuffle": 0.10}, "unclear"),  # above Â but not above the matched shuffle
        ({"value": 0.03}, "no"),
        ({"value": 0.2, "shuffle": 0.3}, "no"),
    ],
)
def test_above_chance_needs_both_chances(settings, answer):
    seen = row(**settings)
    assert against_chance(seen.estimate, seen.random, seen.excess) == answer


def rows(**values):
    names = ["alpha,beta", "alpha,beta_uf", "delta,beta_uf", "alpha,alpha_fr"]
    table = [(f"A({n})", c) for n in names for c in ("own", "cross")]
    table += [("A(beta_uf,beta_px)", "own"), ("A(beta_px,beta_uf)", "cross"), ("A(alpha,alpha_hat)", "cross")]
    return [row(name, convention, **values.get(name[2:-1].replace(",", "__"), {})) for name, convention in table]


def test_sentence_follows_the_answers():
    good = judge(rows(alpha__alpha_fr={"value": 0.1}))
    assert [q.answer for q in good.questions] == ["yes"] * 6
    assert "learnable without attention; another seed attends to the same words" in good.sentence
    poor = judge(rows(alpha__beta={"value": 0.02}, alpha__alpha_hat={"value": 0.02}))
    assert poor.sentence.startswith("Attention here does not look where")
    assert "no single model's heat-map" in poor.sentence


def test_conventions_that_disagree_leave_the_question_open():
    table = rows()
    table[1] = row("A(alpha,beta)", "cross", value=0.09)
    assert judge(table).questions[0].answer == "unclear"
