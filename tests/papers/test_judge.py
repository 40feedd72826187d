import math

import numpy as np
import pytest
from scipy import stats

from heedful.errors import DataError
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.judge import (
    Case,
    Threshold,
    decide,
    holm,
    judge_claim,
    needed,
    random_effects,
    sign_flip,
    smallest_effect,
)

SEEDS, TEXTS = 10, 211
ABOVE = Threshold(lower=0.0)


def case(values, name="sst", texts=TEXTS, text_error=0.0, within=None):
    return Case(name, mean_over_seeds(values, within), len(values), texts, tuple(values), text_error)


def verdict(*cases, threshold=ABOVE):
    return decide([judge_claim([(threshold, cases)])])[0]


def simulated(rng, effects, seeds=SEEDS, deviation=1.0):
    """One case for each true effect, in standard deviations between seeds; the seeds of all cases are independent."""
    return [case(rng.normal(effect, deviation, seeds), f"corpus {i}") for i, effect in enumerate(effects)]


def shares(truth, claims, seed, threshold=ABOVE):
    """How often each verdict is given to claims of that truth, in ledgers of 36."""
    rng, counts = np.random.default_rng(seed), dict.fromkeys(("holds", "holds in part", "fails", "inconclusive"), 0)
    for _ in range(claims // 36):
        for judged in decide([judge_claim([(threshold, simulated(rng, truth))]) for _ in range(36)]):
            counts[judged.verdict] += 1
    return {word: count / (claims // 36 * 36) for word, count in counts.items()}


def alone(truth, claims, seed, threshold=ABOVE):
    """The same for ledgers of a single claim, where nothing is adjusted."""
    rng = np.random.default_rng(seed)
    seen = [verdict(*simulated(rng, truth), threshold=threshold).verdict for _ in range(claims)]
    return {word: seen.count(word) / claims for word in ("holds", "holds in part", "fails", "inconclusive")}


@pytest.mark.parametrize(
    ("truth", "expected"),
    [((2.0, 2.0, 2.0), "holds"), ((-2.0, -2.0, -2.0), "fails"), ((2.0, 2.0, -2.0), "holds in part")],
)
def test_simulated_claims_of_known_truth_get_the_right_verdict(truth, expected):
    seen = shares(truth, claims=180, seed=1)
    assert seen[expected] >= 0.95
    assert sum(seen[word] for word in ("holds", "holds in part", "fails") if word != expected) <= 0.05


@pytest.mark.parametrize("truth", [(0.0,), (0.0, 0.0, 0.0), (0.0, 3.0, 3.0)])
def test_false_positives_are_at_most_five_percent(truth):
    n = 800
    seen = alone(truth, claims=n, seed=2)
    most = stats.binom.ppf(0.999, n, 0.05) / n  # what chance makes of a true 5 %
    assert seen["holds"] <= most
    assert seen["fails"] + seen["holds in part"] <= most
    assert seen["inconclusive"] >= 0.85


def test_a_ledger_of_effects_that_do_not_exist_is_left_open():
    rng = np.random.default_rng(3)
    ledgers = [decide([judge_claim([(ABOVE, simulated(rng, (0.0,)))]) for _ in range(36)]) for _ in range(40)]
    for wrong in (("holds",), ("fails", "holds in part")):
        share = np.mean([any(each.verdict in wrong for each in ledger) for ledger in ledgers])
        assert share <= stats.binom.ppf(0.999, 40, 0.05) / 40


def test_one_corpus_that_does_not_show_it_keeps_a_claim_from_holding():
    rng = np.random.default_rng(4)
    weak, strong = rng.normal(0.1, 1.0, SEEDS), [rng.normal(3.0, 1.0, SEEDS) for _ in range(6)]
    judged = verdict(*(case(x, f"c{i}") for i, x in enumerate((weak, *strong))))
    assert judged.verdict == "inconclusive"
    assert [each.case.name for each in judged.of("undecided")] == ["c0"]
    assert judged.needs.startswith("about ")
    assert judged.needs.endswith("(c0)")


def test_an_effect_that_is_negligible_fails():
    tiny = case(np.random.default_rng(5).normal(0.0, 0.01, SEEDS))
    assert verdict(tiny).verdict == "inconclusive"
    assert verdict(tiny, threshold=Threshold(lower=0.0, negligible=0.1)).verdict == "fails"


def test_equivalence_needs_both_sides():
    within = Threshold(lower=-0.1, upper=0.1)
    close, far = (np.random.default_rng(6).normal(mean, 0.02, SEEDS) for mean in (0.03, 0.2))
    assert verdict(case(close), threshold=within).verdict == "holds"
    assert verdict(case(far), threshold=within).verdict == "fails"
    assert verdict(case(close), case(-far, "b"), threshold=within).verdict == "holds in part"
    assert verdict(case((close - close.mean()) * 20 + 0.05), threshold=within).verdict == "inconclusive"


@pytest.mark.parametrize(("seeds", "expected"), [(4, "inconclusive"), (5, "holds")])
def test_four_seeds_decide_nothing(seeds, expected):
    judged = verdict(case([1.0, 1.1, 0.9, 1.05, 0.95][:seeds]))
    assert judged.verdict == expected
    assert (judged.needs == "at least 5 seeds, now 4 (sst)") == (seeds == 4)


@pytest.mark.parametrize(
    ("texts", "expected"), [(99, "at least 100 texts for each case, now 99 (sst)"), (100, ""), (None, "not recorded")]
)
def test_few_texts_decide_nothing(texts, expected):
    judged = verdict(case([1.0, 1.1, 0.9, 1.05, 0.95], texts=texts))
    assert judged.verdict == ("holds" if texts == 100 else "inconclusive")
    assert expected in judged.needs


def test_signs_that_all_agree_are_a_sign_test():
    judged = verdict(case([1.0] * 5, within=(-1.0, 1.0)))
    assert judged.right == pytest.approx(1 / 32)
    assert judged.cases[0].case.estimate.low < 0 < judged.cases[0].case.estimate.high
    assert verdict(case([1.0] * 5)).verdict == "inconclusive"  # the range is unknown, so there is no interval


def test_student_is_not_believed_where_flipping_signs_does_not_agree():
    values = [0.01, 0.011, 0.0105, 0.0102, 5.0, 0.0104]
    judged = judge_claim([(ABOVE, [case(values)])])
    assert judged.right >= stats.ttest_1samp(values, 0, alternative="greater").pvalue
    assert judged.right >= 1 / 64


def test_the_error_over_texts_widens_the_interval_and_more_seeds_do_not_help():
    by_texts = Case("sst", Estimate(0.03, -0.02, 0.08, 200), 10, 200, text_error=0.02)
    assert "texts for each case, now 200" in needed(by_texts, ABOVE)
    assert needed(by_texts, Threshold(lower=0.02999)).startswith("about")
    assert "seeds" in needed(Case("sst", Estimate(0.03, -0.02, 0.08, 200), 10, 200), ABOVE)


def test_the_seeds_needed_would_decide_it():
    rng = np.random.default_rng(7)
    sample = rng.normal(0.5, 1.0, 10)
    few = Case("sst", mean_over_seeds(sample), 10, TEXTS)
    words = needed(few, ABOVE)
    count = int(words.split()[1])
    effect, spread = float(sample.mean()), float(sample.std(ddof=1))
    runs = [verdict(case(rng.normal(effect, spread, count))).verdict == "holds" for _ in range(300)]
    assert 0.7 <= np.mean(runs) <= 0.95


def test_the_smallest_effect_is_seen_in_four_of_five_experiments():
    rng = np.random.default_rng(8)
    effect = smallest_effect(Case("sst", Estimate(0.0, -(s := stats.t.ppf(0.975, 9)), s, 10), 10), ABOVE)  # error 1
    runs = [verdict(case(rng.normal(effect, math.sqrt(10), 10))).verdict == "holds" for _ in range(300)]
    assert 0.7 <= np.mean(runs) <= 0.9


@pytest.mark.parametrize(("learned", "expected"), [(20, "holds"), (0, "fails"), (15, "inconclusive")])
def test_shares_are_tested_exactly(learned, expected):
    runs = Case("copy", Estimate(learned / 20, 0.0, 1.0, 20), 20)
    threshold = Threshold("share", lower=0.8, texts=0)
    judged = verdict(runs, threshold=threshold)
    assert judged.verdict == expected
    assert judged.right == pytest.approx(stats.binomtest(learned, 20, 0.8, alternative="greater").pvalue)


def test_the_smallest_share_that_an_exact_test_sees():
    four, twenty = (Case("copy", Estimate(0.0, 0.0, 0.5, n), n) for n in (4, 20))
    threshold = Threshold("share", upper=0.5, texts=0)
    assert math.isnan(smallest_effect(four, threshold))  # 0 of 4 has p = 0.0625 at a half: nothing could have been seen
    distance = smallest_effect(twenty, threshold)
    assert stats.binom.cdf(5, 20, 0.5 - distance) >= 0.8 > stats.binom.cdf(5, 20, 0.5 - distance + 0.01)


def test_a_statistic_that_is_standard_normal():
    threshold = Threshold("z", lower=0.0, texts=0)
    slow = Case("copy", Estimate(6.2, 4.2, 8.2, 40), 40)
    assert judge_claim([(threshold, [slow])]).right == pytest.approx(stats.norm.sf(6.2))
    weak = Case("copy", Estimate(0.5, -1.5, 2.5, 8), 8)
    assert verdict(weak, threshold=threshold).needs == "about 200 runs, now 8 (copy)"


@pytest.mark.parametrize(("value", "expected"), [(1e-15, "holds"), (1e-3, "fails")])
def test_algebra_is_not_tested(value, expected):
    exact = Case("", Estimate(value, value, value, 1), 1)
    judged = verdict(exact, threshold=Threshold("exact", upper=1e-9, texts=0))
    assert judged.verdict == expected
    assert math.isnan(judged.cases[0].smallest)


def test_a_statistic_that_was_not_measured():
    judged = decide([judge_claim([(ABOVE, [case([1.0] * 6)])], missing=["rise"]), judge_claim([])])
    assert [each.verdict for each in judged] == ["not run", "not run"]


def test_claims_are_adjusted_over_the_ledger():
    p = [0.001, 0.01, 0.02, 0.04]
    z = [Case("", Estimate(float(stats.norm.isf(each)), 0.0, 5.0, 20), 20) for each in p]
    ledger = decide([judge_claim([(Threshold("z", lower=0.0, texts=0), [each])]) for each in z])
    assert [each.adjusted for each in ledger] == pytest.approx(stats.false_discovery_control(p).tolist())


def test_flipping_signs_is_the_permutation_test_of_scipy():
    x = np.random.default_rng(9).normal(0.3, 1.0, 7)
    scipy = stats.permutation_test(
        (x,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    ).pvalue
    assert sign_flip(x) == pytest.approx(scipy)
    many = np.random.default_rng(10).normal(0.5, 1.0, 23)
    assert sign_flip(many) == pytest.approx(stats.ttest_1samp(many, 0, alternative="greater").pvalue, abs=0.01)


def test_holm_is_monotone_and_never_below_p():
    p = np.random.default_rng(11).random(13).tolist()
    adjusted = holm(p)
    assert all(a >= b for a, b in zip(adjusted, p, strict=True))
    assert [adjusted[i] for i in np.argsort(p)] == sorted(adjusted)


def test_random_effects_cover_the_mean_of_cases():
    rng, covered = np.random.default_rng(12), []
    for _ in range(300):
        truths = rng.normal(0.3, 0.2, 7)
        pooled = random_effects([case(rng.normal(truth, 0.3, SEEDS)) for truth in truths])
        covered.append(pooled.mean.low < 0.3 < pooled.mean.high)
    assert 0.92 <= np.mean(covered) <= 0.98
    assert random_effects([case(rng.normal(0, 1, SEEDS))]) is None


@pytest.mark.parametrize("bad", [{"lower": 1.0, "upper": 0.0}, {"negligible": -0.1}])
def test_impossible_thresholds_are_refused(bad):
    with pytest.raises(DataError):
        Threshold(**bad)
