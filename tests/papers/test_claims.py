import json
import math

import pytest

from heedful.metrics.statistics import Estimate
from heedful.papers.claims import Condition, judge_paper, paper_claims, settle, thresholds
from heedful.papers.experiment import Result
from heedful.papers.findings import Finding, Value, seed_value
from heedful.papers.judge import Threshold
from heedful.papers.reproduction import KEYS, paper
from heedful.storage.manifest import Manifest

SEEDS = (0.31, 0.29, 0.33, 0.28, 0.30, 0.32, 0.35, 0.27, 0.30, 0.31)
TEXTS = 211


def result(experiment, *values, key="snell2021"):
    return Result(key, experiment, experiment, "quick", 1, "0" * 64, {}, Manifest("paper"), Finding(values=values))


def agreement(pair, data, shift=0.0, texts=TEXTS, seeds=10):
    return seed_value(f"A({pair}) above controls, cross, {data}", [x + shift for x in SEEDS[:seeds]], texts)


def judged(*results, earlier=()):
    return {entry.claim.id: entry for entry in settle(judge_paper("snell2021", results, "quick", earlier))}


def test_a_claim_about_every_corpus():
    corpora = ("imdb", "sst", "multi30k:de-en")
    entry = judged(result("table5", *(agreement("alpha,beta", data) for data in corpora)))["S1"]
    assert entry.verdict == "holds"
    assert (entry.seeds, entry.texts) == (10, TEXTS)
    assert entry.explanation == "3 of 3 cases hold"
    assert [each.case.name for each in entry.judgement.cases] == list(corpora)


def test_one_corpus_is_wrong():
    values = [agreement("alpha,beta", "imdb"), agreement("alpha,beta", "sms-spam", shift=-0.4)]
    entry = judged(result("table5", *values))["S1"]
    assert entry.verdict == "holds in part"
    assert entry.explanation == "1 of 2 cases hold; shown wrong: sms-spam; hold: imdb"
    assert entry.weakest.case.name == "sms-spam"


def test_too_few_texts_are_said():
    values = [agreement("alpha,beta", "imdb"), agreement("alpha,beta", "multi30k:de-en", texts=60)]
    entry = judged(result("table5", *values), earlier=["table5", "figure3"])["S1"]
    assert entry.verdict == "inconclusive"
    assert entry.explanation == (
        "1 of 2 cases hold; it would take at least 100 texts for each case, now 60 (multi30k:de-en); "
        "measured with earlier settings (table5)"
    )


def test_the_weakest_case_is_shown_even_where_none_can_be_tested():
    values = [agreement("alpha,beta", "imdb", texts=60), agreement("alpha,beta", "sst", shift=-0.2, texts=60)]
    entry = judged(result("table5", *values))["S1"]
    assert entry.weakest.case.name == "sst"
    assert entry.weakest.margin == pytest.approx(sum(SEEDS) / 10 - 0.2 - 0.05)


def test_what_was_not_measured_is_named():
    entry = judged(result("figure3", Value("share learned, copy-vocab", Estimate(1.0, 0.84, 1.0, 20))))["S6"]
    assert entry.verdict == "not run"
    assert entry.explanation == "not measured yet: slower (z), copy-permutation (figure3)"


def test_numbers_beside_do_not_decide():
    support = [*_taus("on the support, gradient"), *_taus("on the support, leave-one-out")]
    name = "tau of I less tau of x, gradient, sst, BiLSTM softmax"
    all_positions = seed_value(name, [-x for x in SEEDS], TEXTS, (-2.0, 2.0))
    entry = settle(judge_paper("meister2021", [result("table6", *support, all_positions)], "quick"))[0]
    assert entry.verdict == "holds"
    assert [each.status for each in entry.beside] == ["wrong"]


def _taus(how):
    return [seed_value(f"tau of I less tau of x {how}, sst, BiLSTM softmax", SEEDS, TEXTS, (-2.0, 2.0))]


def test_a_dictionary_has_everything_the_ledger_shows():
    corpora = ("imdb", "sst")
    plain = judged(result("table5", *(agreement("alpha,beta", data) for data in corpora)))["S1"].to_dict()
    json.dumps(plain, allow_nan=False)
    for name in ("verdict", "texts", "seeds", "budget", "effect", "smallest_effect", "adjusted_p", "explanation"):
        assert plain[name] is not None
    (condition,) = plain["conditions"]
    assert [case["case"] for case in condition["cases"]] == list(corpora)
    assert condition["random_effects_mean"]["value"] == pytest.approx(sum(SEEDS) / 10)
    assert condition["plan"].endswith("at least 5 seeds and 100 texts")
    assert condition["reason"]


def test_stars_stand_for_one_name_each():
    condition = Condition("table5", "JSD, frozen, *, *", Threshold(lower=0.5))
    assert condition.case_name("JSD, frozen, sst, BiLSTM") == "sst, BiLSTM"
    assert condition.case_name("JSD, frozen, divergence alone, sst, BiLSTM") is None
    assert condition.case_name("JSD, frozen, sst, lowest") is None
    assert Condition("t", "tau(λ)", Threshold()).case_name("tau(λ)") == ""


def test_bounds_are_said_in_words():
    assert str(Condition("t", "a", Threshold(lower=0.0))) == "a > 0"
    assert str(Condition("t", "a", Threshold(upper=0.5))) == "a < 0.5"
    assert str(Condition("t", "a", Threshold(lower=-0.1, upper=0.1))) == "a > -0.1 and < 0.1"
    small = Condition("t", "a", Threshold(lower=0.0, negligible=0.02))
    assert str(small) == "a > 0 (less than 0.02 beyond it counts as none)"
    assert Condition("t", "a", Threshold("exact", upper=1e-9)).plan == "a < 1e-09; exact"
    assert Condition("t", "a", Threshold("share", lower=0.8, texts=0)).plan == "a > 0.8; at least 5 runs"


@pytest.mark.parametrize("key", KEYS)
def test_every_claim_names_an_experiment_and_has_a_bound(key):
    names = {experiment.name for experiment in paper(key).experiments}
    for claim in paper_claims(key):
        assert any(condition.decides for condition in claim.conditions)
        for condition in claim.conditions:
            assert condition.experiment in names
            assert math.isfinite(condition.threshold.lower) or math.isfinite(condition.threshold.upper)


def test_thresholds_are_part_of_the_settings():
    experiment = paper("snell2021").experiment("table11")
    assert experiment.thresholds == thresholds("snell2021", "table11") != ()
    moved = type(experiment)(**{**vars(experiment), "thresholds": ("S11: something else",)})
    assert moved.digest("quick") != experiment.digest("quick")


def test_all_claims_are_of_the_ledger():
    assert len(judged()) == 18
    assert {entry.verdict for entry in judged().values()} == {"not run"}
