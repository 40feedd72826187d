"""sunlu2020: its data, models and scores by hand, the terms of a real run, and a whole reproduction at `smoke`."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from heedful.data.batching import training_batches
from heedful.data.corpus import EMPTY
from heedful.data.vocabulary import BOS, EOS, EncodedSplit, Vocabulary
from heedful.errors import DataError
from heedful.metrics.association import dominance, even_tokens, token_classes
from heedful.papers.claims import paper_claims
from heedful.papers.experiment import Result, result_path
from heedful.papers.findings import Cell, Finding
from heedful.papers.published import published_lines
from heedful.papers.reproduction import prepare
from heedful.papers.sunlu2020 import gradient_terms as terms
from heedful.papers.sunlu2020.config import BUDGETS, KINDS, LARGE, MODERATE, SCALES
from heedful.papers.sunlu2020.contents import EXPERIMENTS
from heedful.papers.sunlu2020.data import (
    NEUTRAL_CLASS,
    NO_CLASS,
    Sample,
    SunLuTexts,
    open_corpus,
    read_texts,
    with_test_split,
)
from heedful.papers.sunlu2020.figures import COLUMNS, _five, find_figure3, large_cases
from heedful.papers.sunlu2020.models import (
    PenalisedLayer,
    Recipe,
    TrainingJob,
    build_model,
    summarise,
    token_scores,
    train_and_score,
)
from heedful.papers.sunlu2020.open_questions import (
    candidates,
    find_differences,
    follow_accuracy,
    is_possible,
    split_table,
)
from heedful.papers.sunlu2020.tables import lowest_class, p_over_seeds, per_seed, statistics
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import content, from_mapping
from tests.papers.conftest import Reproduced

CPU = torch.device("cpu")
SMALL = Sample(train=200, validation=30, test=30)
QUICKLY = Recipe(epochs=2, batch_size=20, width=7)


def trained(**changes):
    order = replace(TrainingJob("polarity", "DP", 10.0, 1, sample=SMALL, recipe=QUICKLY), **changes)
    return train_and_score(**order.unit.arguments, device=CPU, report=lambda line: None)


def finding(reproduced_sunlu: Reproduced, experiment: str) -> Finding:
    return Result.load(result_path(reproduced_sunlu.results, "sunlu2020", "smoke", experiment)).finding


def answers_of(reproduced_sunlu: Reproduced, orders: list[TrainingJob]):
    answers = reproduced_sunlu.workspace.answers(order.unit for order in orders)
    return dict(zip(orders, answers, strict=True))


def test_texts_have_no_ends_and_every_token_its_class():
    texts = read_texts("polarity", SMALL)
    assert not np.isin(texts.train.ids.values, (BOS, EOS)).any()
    assert set(texts.train.lengths) == {12}
    names = token_classes(texts.counts)
    for name, label in (("negative", 0), ("positive", 1), ("neutral", NEUTRAL_CLASS), ("none", NO_CLASS)):
        assert ((names == name) == (texts.token_class == label)).all()
    assert texts.frequency.sum() == len(texts.train.ids.values)


def test_a_corpus_without_a_test_set_is_divided_anew():
    corpus = replace(open_corpus("polarity"), name="20news-sport", test=EMPTY)
    divided = with_test_split(corpus)
    parts = divided.train, divided.validation, divided.test
    whole = len(corpus.train) + len(corpus.validation)
    assert [len(part) for part in parts[:2]] == [round(0.64 * whole), round(0.16 * whole)]
    pairs = sorted(pair for part in parts for pair in zip(part.texts, part.labels, strict=True))
    assert pairs == sorted(
        pair for part in (corpus.train, corpus.validation) for pair in zip(part.texts, part.labels, strict=True)
    )


def test_sentence_pairs_have_no_polarity():
    with pytest.raises(DataError, match="copy-vocab holds sentence pairs; polarity is of texts with labels"):
        open_corpus("copy-vocab")


def test_a_class_without_tokens_in_some_seed_has_no_quartiles():
    one, other = (TrainingJob("polarity", "DP", 10.0, seed, sample=SMALL, recipe=QUICKLY) for seed in (0, 1))
    numbers = [0.0, 1.0, 2.0, 3.0, 4.0, 2.0]
    weights = {"neutral": {"alpha": numbers}, "positive": {"alpha": []}}
    answers = {order: {"weights": weights, "hits": [1, 0, 1]} for order in (one, other)}
    assert [cell.measured.value for cell in _five(answers, (one, other), "neutral", "alpha")] == numbers
    assert _five(answers, (one, other), "positive", "alpha") == (Cell(),) * 6


def test_three_labels_have_tokens_of_their_own():
    texts = read_texts("topics", Sample(train=1000))
    for label, name in enumerate(texts.labels):
        words = [texts.vocabulary.words[i] for i in np.flatnonzero(texts.token_class == label)]
        own = [word for word in words if word.startswith(name)]
        assert len(own) > 40
        assert not [word for word in words if not word.startswith((name, "n"))]  # a neutral word may be so by chance
    assert (even_tokens(texts.counts) == (texts.token_class == NEUTRAL_CLASS)).all()


@pytest.mark.parametrize("kind", [*KINDS, "mean"])
def test_models_begin_as_the_paper_says(kind):
    texts = read_texts("polarity", SMALL)
    order = TrainingJob("polarity", kind, 10.0, 3)
    model = build_model(order, texts)
    again = build_model(order, texts)
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    assert model.embedding.weight.abs().max() <= 0.1
    assert model.embedding.weight.abs().max() > 0.099
    assert model.output.bias is None
    assert model.scorer.scale == 10.0
    V = (model.scorer.out if kind == "AD" else model.scorer.context).weight
    assert V.shape == (1, 100)
    assert 0.8 < V.std() < 1.2
    assert model.mode == ("uniform" if kind == "mean" else "learned")
    narrow = build_model(replace(order, spread=0.1), texts)
    assert torch.allclose((narrow.scorer.out if kind == "AD" else narrow.scorer.context).weight, V * 0.1)


@pytest.mark.parametrize("kind", ["DP-L", "DP-A", "AD"])
def test_a_penalty_on_one_layer_is_weight_decay_there_and_nowhere_else(kind):
    texts = read_texts("polarity", SMALL)
    model = build_model(TrainingJob("polarity", kind, 10.0, 3, recipe=QUICKLY), texts).eval()
    batch = next(training_batches(texts.train, 7, 0))
    names = [name for name, _ in model.named_parameters()]
    with_penalty, without = (
        torch.autograd.grad(loss(batch), list(model.parameters()))
        for loss in (PenalisedLayer(model, 0.5).loss, model.loss)
    )
    layer = "scorer.hidden." if kind == "AD" else "encoder."
    assert any(name.startswith(layer) for name in names)
    for name, one, other, weight in zip(names, with_penalty, without, model.parameters(), strict=True):
        expected = other + 0.5 * weight if name.startswith(layer) else other
        torch.testing.assert_close(one, expected.detach())


def test_the_penalty_by_adagrad_on_all_parameters_takes_rare_words_to_zero():
    norms = {}
    for penalised in ("all", "layer"):
        job = TrainingJob("polarity", "DP-A", 0.001, 0, sample=SMALL, recipe=replace(QUICKLY, penalised=penalised))
        answer = follow_accuracy(**content(job), device=CPU, report=lambda line: None)
        norms[penalised] = answer["norm"]
        assert len(answer["dev"]) == len(answer["test"]) == 2
    assert norms["all"] < 0.5 * norms["layer"]


def test_later_options_leave_units_as_they_were():
    job = TrainingJob("polarity", "DP-L", 10.0, 3)
    assert set(content(job)["recipe"]) == {"epochs", "patience", "batch_size", "learning_rate", "decay", "width"}
    assert set(content(job)["sample"]) == {"train", "validation", "test", "max_length"}


def test_a_candidate_is_excluded_where_the_published_run_cannot_be_one_more():
    candidate, *_ = chosen = candidates("quick")
    runs = [{"dev": [0.1, 0.2], "test": [0.5, accuracy], "texts": 9, "norm": 1.0} for accuracy in (0.93, 0.95, 0.96)]
    answers = {each: [{**run, "test": [0.5, 0.6]} for run in runs] for each in chosen} | {candidate: runs}
    notes = find_differences("quick", answers).notes
    assert notes[0] == (
        f"20News II, DP, λ = 100: published 94.9, ours 94.7; nearest is “{candidate.name}” with 94.7. "
        f"Excluded: {', '.join(f'“{each.name}”' for each in chosen[1:4])}."
    )
    assert all("unexplained" in note for note in notes[1:])
    assert find_differences("smoke", answers).notes == ()


def test_some_printed_accuracies_are_of_the_dev_texts():
    table = split_table()
    found = {(row.group, row.name): [cell.text for cell in row.cells[:2]] for row in table.rows}
    assert {data for data, _ in found} == {"20News I", "20News II"}
    assert found["20News II", "DP"] == ["7 of 7", "1 of 7"]
    assert found["20News II", "AD"] == ["1 of 7", "7 of 7"]
    for texts in (240, 274):
        shares = {round(100 * k / texts, 1) for k in range(texts + 1)}
        possible = {at / 10 for at in range(1001) if is_possible(at / 10, texts)}
        assert shares <= possible
        assert all(min(abs(100 * k / texts - at) for k in range(texts + 1)) < 0.0501 for at in possible)


def test_training_is_the_same_again_and_another_with_another_seed():
    first = trained()
    assert trained() == first
    assert trained(seed=2) != first
    assert trained(scale=1.0) != first
    json.dumps(first, allow_nan=False)
    assert first["epochs"] == 2
    assert 1 <= first["best"] <= 2


def test_patience_ends_training_and_the_best_epoch_stands():
    steps = []
    order = TrainingJob("polarity", "DP", 10.0, 0, sample=SMALL, recipe=replace(QUICKLY, epochs=30, patience=3))
    found = train_and_score(**order.unit.arguments, device=CPU, report=lambda line: steps.append(line["accuracy"]))
    assert found["epochs"] == len(steps) < 30
    assert found["epochs"] - found["best"] == 3
    assert found["dev"] == max(steps) == steps[found["best"] - 1]
    assert steps.index(max(steps)) == found["best"] - 1


def test_the_regulariser_keeps_v_and_w_apart():
    longer = replace(QUICKLY, epochs=8)
    without, within = (trained(scale=LARGE, coefficient=c, recipe=longer) for c in (0.0, 1.0))
    assert abs(within["dot"]) < abs(without["dot"])


def by_hand() -> tuple[SunLuTexts, torch.nn.Module]:
    """Tokens 4 and 5 positive, 6 negative, 7 neutral; vectors whose scores one can read off."""
    counts = np.array([[0, 0]] * 4 + [[0, 9], [1, 8], [7, 0], [6, 6]])
    split = EncodedSplit.of([[4, 7], [6, 7, 5, 7]], [1, 0])
    words = ("<pad>", "<unk>", "<bos>", "<eos>", "p", "q", "n", "o")
    classes = np.array([NO_CLASS] * 4 + [1, 1, 0, NEUTRAL_CLASS])
    texts = SunLuTexts(("bad", "good"), Vocabulary(words), split, split, split, counts, classes)
    model = build_model(TrainingJob("polarity", "DP", 2.0, 0, recipe=Recipe(width=2)), texts)
    with torch.no_grad():
        model.output.weight[:] = torch.tensor([[1.0, 0.0]])
        model.scorer.context.weight[:] = torch.tensor([[0.0, 2.0]])
        model.embedding.weight[4:] = torch.tensor([[3.0, 1.0], [1.0, 2.0], [-2.0, 5.0], [0.5, 1.5]])
    return texts, model.eval()


def test_scores_by_hand():
    texts, model = by_hand()
    scores = token_scores(model, texts)
    assert scores.towards[4:, 1].tolist() == [3.0, 1.0, -2.0, 0.5]
    assert scores.towards[4:, 0].tolist() == [-3.0, -1.0, 2.0, -0.5]
    assert scores.score[4:].tolist() == [1.0, 2.0, 5.0, 1.5]
    found = summarise(model, texts)
    positive, negative = found["classes"]["positive"], found["classes"]["negative"]
    assert (positive["tokens"], negative["tokens"], found["neutral"]["tokens"]) == (2, 1, 1)
    assert (positive["polarity"], negative["polarity"], found["neutral"]["polarity"]) == (2.0, 2.0, 0.5)
    assert (positive["score_delta"], negative["score_delta"]) == (0.0, 1.0)  # 1 below and 2 above 1.5; 5 above it
    assert (positive["polarity_delta"], negative["polarity_delta"]) == (1.0, 1.0)
    assert found["tokens"]["positive"]["token"] == ["p", "q"]
    assert found["tokens"]["negative"]["association"] == [-1.0]


def test_weights_are_in_units_of_the_uniform_one():
    texts, model = by_hand()
    uniform = build_model(TrainingJob("polarity", "mean", 2.0, 0, recipe=Recipe(width=2)), texts).eval()
    found = summarise(uniform, texts)["weights"]
    assert found["negative"]["alpha"] == [0.25] * 6
    assert found["positive"]["alpha"] == pytest.approx([0.25, 0.3125, 0.375, 0.4375, 0.5, 0.375])  # 1/4 and 1/2
    assert found["positive"]["relative"] == found["neutral"]["relative"] == [1.0] * 6
    alpha = np.exp([1.0, 1.5]) / np.exp([1.0, 1.5]).sum()
    seen = summarise(model, texts)["tokens"]["positive"]
    assert seen["alpha"][0] == pytest.approx(alpha[0], abs=1e-4)
    assert seen["relative"][0] == pytest.approx(2 * alpha[0], abs=1e-4)


def test_an_lstm_has_means_over_training_places():
    texts, _ = by_hand()
    model = build_model(TrainingJob("polarity", "DP-L", 2.0, 0, recipe=Recipe(width=2)), texts).eval()
    scores = token_scores(model, texts)
    assert np.isnan(scores.score[:4]).all()
    assert not np.isnan(scores.score[4:]).any()


def test_effect_size_and_test_over_seeds():
    assert dominance([1.0, 1.0], [1.0]) == 0
    assert dominance([2.0, 3.0], [1.0]) == 1
    assert np.isnan(dominance([], [1.0]))
    assert np.isnan(p_over_seeds([1.0]))
    assert p_over_seeds([0.0, 0.0]) == 1
    order = TrainingJob("a", "DP", 1.0, 0)
    answers = {order: {"test": None, "classes": {"x": {"d": 0.5}, "y": {"d": -0.5}}}}
    assert np.isnan(per_seed(answers, [order], "test")).all()
    assert lowest_class(answers, [order], "d") == [-0.5]


def test_the_closed_form_is_autograd_of_the_model_itself():
    texts = read_texts("polarity", SMALL)
    for scale in (0.1, 10.0, 1000.0):
        model = build_model(TrainingJob("polarity", "DP", scale, 0, recipe=QUICKLY), texts)
        assert terms.autograd_difference(model, texts.train) < 1e-10


def test_terms_are_followed_alike_and_turn_with_the_sign_of_vw():
    sizes = terms.BUDGETS["smoke"]
    arguments = terms.flow_unit(10.0, 0, sizes).arguments
    run = terms.follow_terms(**arguments, device=CPU, report=lambda line: None)
    assert terms.follow_terms(**arguments, device=CPU, report=lambda line: None) == run
    assert run["steps"] == [0, 4, 12]
    assert len(run["foretold"]) == 2
    assert all(-1 <= value <= 1 for pair in run["foretold"] for value in pair)
    assert max(run["off"]) < 1e-10
    turned = {**run, "dot": [-value for value in run["dot"]]}
    for name in terms.TERMS:  # the mirror image of a run: W and the labels turned around
        sign = -1 if name in "ABC" else 1
        swap = {"positive": "negative", "negative": "positive", "neutral": "neutral"}
        turned[name] = {group: [sign * x for x in run[name][swap[group]]] for group in terms.CLASSES}
    for name in terms.TERMS:
        for side in terms.SIDES:
            ours, mirrored = (terms._over([one], name, side) for one in (run, turned))
            assert [e.value for e in ours] == pytest.approx([e.value for e in mirrored])


def test_budgets_train_what_the_tables_need():
    for name, budget in BUDGETS.items():
        units = {unit.file: unit for experiment in EXPERIMENTS for unit in experiment.needs(name).units}
        assert len({unit.name for unit in units.values()}) == len(units), name
        for job in budget.table2():
            assert job.unit.file in units
        json.dumps(content(budget))
    quick = BUDGETS["quick"]
    for data in ("sst", "20news-sport-sklearn"):
        for kind in KINDS:
            assert all(quick.jobs(data, kind, scale) for scale in SCALES)
    assert quick.jobs("imdb", "AD", MODERATE) == []
    assert len(quick.jobs("sst", "mean", 1.0)) == 10
    for kind in ("DP-L", "DP-A", "AD"):
        assert len(quick.jobs("sst", kind, MODERATE)) == len(quick.jobs("sst", kind, SCALES[0])) == 20


def test_scores_at_a_large_scale_are_told_apart_by_the_sign_of_the_dot_product():
    budget = BUDGETS["smoke"]
    (case,) = large_cases(budget)
    up, down = case.jobs
    scores = {"polarity_delta": 1.0, "score_delta": 0.5}
    classes = {"positive": scores | {"score": 3.0}, "negative": scores | {"score": -1.0}}
    shared = {
        "tokens": {
            name: {"frequency": [], "polarity": [], "score": []} for name in ("positive", "negative", "neutral")
        },
        "neutral": {"tokens": 3, "frequent": 1, "polarity": 0.0, "score": 0.0},
        "hits": [1, 0],
        "test": 0.5,
        "best": 1,
    }
    full = {name: dict.fromkeys(COLUMNS, 0.0) | {"tokens": 2} | numbers for name, numbers in classes.items()}
    answers = {up: shared | {"dot": 2.0, "classes": full}, down: shared | {"dot": -2.0, "classes": full}}
    three = budget.jobs(budget.three, "DP", MODERATE)
    answers |= dict.fromkeys(three, answers[up])
    found = find_figure3(budget, answers)
    name = case.name
    assert found.value(f"attention score with VᵀW, {name}").value == pytest.approx((3.0 - 1.0) / 2)
    assert found.value(f"attention score against VᵀW, {name}").value == pytest.approx((-1.0 + 3.0) / 2)


def test_seeds_that_agree_are_not_certain():
    assert p_over_seeds([1.0] * 5) == 2 / 32
    assert p_over_seeds([0.0] * 5) == 1.0
    assert math.isnan(p_over_seeds([1.0]))


def test_statistics_of_generated_data():
    numbers = statistics("topics")
    assert numbers["average_length"] == 12
    assert sum(map(int, numbers["sizes"]["train"].split("/"))) == 3000


def test_every_claim_names_numbers_that_are_measured(reproduced_sunlu: Reproduced):
    names = {experiment.name for experiment in EXPERIMENTS}
    claims = paper_claims("sunlu2020")
    assert [claim.id for claim in claims] == [f"L{k}" for k in range(1, 12)]
    for claim in claims:
        for condition in claim.conditions:
            assert condition.experiment in names
            assert condition.cases(finding(reproduced_sunlu, condition.experiment).values), (claim.id, condition.value)


def test_the_terms_are_exact_in_a_whole_reproduction(reproduced_sunlu: Reproduced):
    assert finding(reproduced_sunlu, "terms").value("largest difference from autograd").value < 1e-10


def test_table_2_prints_the_mean_over_seeds(reproduced_sunlu: Reproduced):
    budget = BUDGETS["smoke"]
    orders = budget.jobs("polarity", "DP-A", MODERATE)
    answers = answers_of(reproduced_sunlu, orders)
    table = finding(reproduced_sunlu, "table2").tables[0]
    row = next(row for row in table.rows if row.name == "λ = 10")
    seen = row.cells[table.columns.index("DP-A")].measured
    assert seen is not None
    assert seen.value == pytest.approx(np.mean([answers[order]["test"] for order in orders]))
    assert seen.n == 2
    printed = {
        (line["dataset"], line["model"], line["lambda"]): line["value"] for line in published_lines("sunlu2020", "2")
    }
    assert printed["20News II", "DP", "0.001"] == "31.8"


def test_a_scatter_has_the_tokens_of_the_first_seed(reproduced_sunlu: Reproduced):
    figure = finding(reproduced_sunlu, "figure2").figures[0]
    order = BUDGETS["smoke"].jobs("polarity", "DP", MODERATE)[0]
    tokens = answers_of(reproduced_sunlu, [order])[order]["tokens"]
    panel = figure.panels[0]
    assert {cloud.label for cloud in panel.points} == {"positive", "negative", "neutral"}
    cloud = next(cloud for cloud in panel.points if cloud.label == "positive")
    assert list(cloud.y) == tokens["positive"]["polarity"]
    assert list(cloud.x) == tokens["positive"]["frequency"]
    whole = finding(reproduced_sunlu, "figure2")
    assert from_mapping(Finding, without_nan(asdict(whole))) == whole


def test_models_are_shared_between_experiments(reproduced_sunlu: Reproduced):
    made = {path.name for path in reproduced_sunlu.workspace.units.glob("*.json")}
    needed = [unit.file for experiment in EXPERIMENTS for unit in experiment.needs("smoke").units]
    assert made == set(needed)
    assert len(needed) > len(made)


def test_weights_of_figure_5_are_those_of_the_models(reproduced_sunlu: Reproduced):
    orders = BUDGETS["smoke"].jobs("polarity", "DP", MODERATE)
    answers = answers_of(reproduced_sunlu, orders)
    table = finding(reproduced_sunlu, "figure5").tables[0]
    row = next(row for row in table.rows if row.name == "neutral" and row.group == "n·α")
    medians = [answers[order]["weights"]["neutral"]["relative"][2] for order in orders]
    assert row.cells[2].measured.value == pytest.approx(np.mean(medians))


def test_a_workspace_that_has_everything_is_only_read(reproduced_sunlu: Reproduced):
    room = reproduced_sunlu.workspace
    before = {path: path.stat().st_mtime_ns for path in room.units.iterdir()}
    events: list[dict] = []
    prepare(EXPERIMENTS, room, device="cpu", on_progress=events.append)
    for experiment in EXPERIMENTS:
        assert isinstance(experiment.find(room), Finding)
    assert events == []
    assert {path: path.stat().st_mtime_ns for path in room.units.iterdir()} == before
