import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.data.batching import Batch, copying_batches
from heedful.data.synthetic.tasks import stream_numbers
from heedful.data.vocabulary import BOS, EOS
from heedful.errors import ConfigError, DamagedError
from heedful.metrics.agreement import agreement, maximum_over_steps
from heedful.models.classifier import AttentionClassifier
from heedful.papers.experiment import Result, Workspace, result_path
from heedful.papers.published import published_table
from heedful.papers.reproduction import paper, prepare
from heedful.papers.snell2021 import figures, models, study_numbers, tables, theory
from heedful.papers.snell2021.config import (
    COPYING_BUDGETS,
    KEYWORD_BUDGETS,
    LINEAR_BUDGETS,
    SnellCorpus,
    corpora,
    study_of,
)
from heedful.papers.snell2021.study_numbers import numbers_of, study_unit
from heedful.papers.snell2021.tables import FORMS, statistics
from heedful.storage.serialization import digest
from heedful.studies.analysis import Recordings, pairing
from heedful.studies.result import StudyResult
from tests.papers.conftest import Reproduced

CPU = torch.device("cpu")
ANYWHERE = Workspace("smoke", Path("nowhere"), Path("nowhere"))


def test_figure_1_from_its_own_table():
    finding = theory.find_figure1(ANYWHERE)
    assert finding.value("Trans(movie|Film)").value == pytest.approx(20 / 53)
    others = 13 / 358 + 8 / 202 + 3 / 84
    assert finding.value("alpha(movie, Film)").value == pytest.approx((20 / 53) / (20 / 53 + others))
    one_pair = finding.figures[0].panels[1].matrix
    assert one_pair[0] == (0.0, 0.25, 0.25, 0.25, 0.25)  # the paper's table of the first pair
    assert finding.figures[0].panels[2].matrix[0] == (0.25, 0.25, 0.5, 0.5, 0.5)


def test_figures_4_5_and_8():
    for find in (theory.find_figure4, theory.find_figure8):
        finding = find(ANYWHERE)
        assert finding.value("spread of alpha").value == 0
        assert set(np.unique(finding.figures[0].panels[3].matrix)) == {0.25}
    polarity = theory.find_figure5(ANYWHERE).figures[0].panels[2].matrix
    assert polarity == ((0.0, 1.0), (1.0, 0.0), (0.5, 0.5))


def test_copying_batches_are_the_stream_with_its_ends():
    batch = next(copying_batches("permute", 3, seed=5))
    sources, targets = next(stream_numbers("permute", seed=5))
    assert np.array_equal(batch.source[:, :-1].numpy(), sources[:3] + EOS)
    assert np.array_equal(batch.target_out[:, :-1].numpy(), targets[:3] + EOS)
    assert (batch.target_in[:, 0] == BOS).all()
    assert (batch.source[:, -1] == EOS).all()


def test_a_learning_curve_is_the_same_again_and_ends_where_it_is_learned(monkeypatch: pytest.MonkeyPatch):
    sizes = COPYING_BUDGETS["smoke"]
    arguments = models.curve_unit("copy-vocab", 1, sizes).arguments

    def curve():
        return models.learning_curve(**arguments, device=CPU, report=lambda line: None)

    first = curve()
    assert curve() == first
    assert first["steps"] == [0, 2, 4]
    assert first["learned"] is None
    monkeypatch.setattr(models, "LEARNED", first["accuracy"][0])
    assert curve() == {"steps": [0], "accuracy": first["accuracy"][:1], "learned": 0}


@pytest.mark.parametrize("variant", ["text", "released"])
def test_heads_differ_and_the_rest_does_not(variant):
    config = COPYING_BUDGETS["smoke"].variants[variant]
    one, two = models.build_model(config, 44, 3, [7]), models.build_model(config, 44, 3, [8, 7])
    weights = {name: (dict(one.state_dict())[name], dict(two.state_dict())[name]) for name in one.state_dict()}
    for name, (a, b) in weights.items():
        assert torch.equal(a, b) != name.startswith(("scorer.", "values.")), name
    assert torch.equal(one.scorer.weights[0].weight, two.scorer.weights[1].weight)
    if variant == "released":
        assert torch.equal(one.values[0].weight, two.values[1].weight)


def test_censored_times():
    fast, slow = [{"learned": t} for t in (40, 50, 50, 60, 60)], [{"learned": t} for t in (200, None, None, None, 300)]
    assert models.median_time(fast) == 50
    assert np.isnan(models.median_time(slow))
    assert models.share_learned(slow).value == 0.4
    z, p = models.slower(slow, fast, 350)
    assert z > 0
    assert p < 0.01
    assert models.slower(fast, slow, 350)[1] > 0.99
    assert all(np.isnan(models.slower([{"learned": None}], [{"learned": None}], 350)))


def test_gamma_is_read_at_the_keyword_and_after_it():
    class Model(AttentionClassifier):
        """Hidden state l of a text is the number l; γ_l = l."""

        def __init__(self):
            torch.nn.Module.__init__(self)
            self.embedding = torch.nn.Identity()

        def from_embeddings(self, embedded, mask):
            places = torch.arange(embedded.shape[1], dtype=torch.float).expand(embedded.shape)
            return type("Output", (), {"hidden": places[..., None]})()

        def output(self, hidden):
            return hidden

    key = EOS + 1
    tokens = torch.tensor([[9, key, 9, 9, 9], [9, 9, key, 9, 9], [9, 9, 9, 9, key], [9, 9, 9, 9, 9]])
    batch = Batch(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.tensor([1, 1, 1, 0]), np.arange(4))
    seen = models.gamma_by_place(Model(), batch)  # the keyword of the third text is its last word
    assert seen == {"keyword": 1.5, "next": 2.5, "mean": 2.0, "last": 4.0}


def test_keyword_steps_are_dense_at_first():
    sizes = KEYWORD_BUDGETS["quick"]
    assert sizes.evaluate_at[:4] == (0, 2, 4, 6)
    assert sizes.evaluate_at[-2:] == (110, 120)
    assert sizes.early in sizes.evaluate_at


def test_a_table_prints_what_the_study_measured(reproduced: Reproduced):
    run = reproduced.study(study_of("rotten-tomatoes", "smoke"))
    study = StudyResult.load(run.result_path)
    table = Result.load(result_path(reproduced.results, "snell2021", "smoke", "table2")).finding.tables[0]
    row = next(row for row in table.rows if row.name == "rotten-tomatoes, cross")
    at = FORMS["2"].columns.index("A(alpha,beta)")
    measured = study.agreement("A(alpha,beta)", "cross").estimate
    assert asdict(row.cells[at].measured) == pytest.approx(asdict(measured), rel=1e-6)
    final = row.cells[FORMS["2"].columns.index("xi_final")].measured
    assert asdict(final) == pytest.approx(asdict(study.xi_final), rel=1e-6)


def test_training_texts_and_kendall_are_measured_too(reproduced: Reproduced):
    room = reproduced.workspace
    run, stored = reproduced.study(study_of("rotten-tomatoes", "smoke")), numbers_of(room, "rotten-tomatoes")
    assert len(run.split("train_sample")) == 8
    seen = stored.measured("train")
    A, B = Recordings(run, "train").seeds
    recordings = Recordings(run, "train")
    alpha = recordings.quantity("standard", A, "alpha", recordings.steps("standard", A)[-1])
    beta = recordings.quantity("standard", A, "beta_logit", recordings.steps("standard", A)[-1])
    assert seen.agreement("A(alpha,beta)", "own").per_seed[0] == pytest.approx(agreement(alpha, beta).mean())
    tau = stored.measured("validation", "kendall")
    assert tau.random == 0
    assert all(-1 <= row.estimate.value <= 1 for row in tau.agreements)
    assert B != A


def test_damaged_numbers_are_set_aside_and_read_again_from_the_study(reproduced: Reproduced, tmp_path: Path):
    whole, study = numbers_of(reproduced.workspace, "polarity"), study_of("polarity", "smoke")
    room = replace(reproduced.workspace, units=tmp_path / "units")
    shutil.copytree(reproduced.workspace.units, room.units)
    path = room.units / study_unit(study).file
    path.write_text(path.read_text().replace("0.", "1.", 1))
    with pytest.raises(DamagedError):
        numbers_of(room, "polarity")
    events: list[dict] = []
    prepare([paper("snell2021").experiment("table7")], room, jobs=1, device="cpu", on_progress=events.append)
    assert digest(numbers_of(room, "polarity")) == digest(whole)
    notices = [event["notice"] for event in events if "notice" in event]
    assert len(notices) == 1
    assert f"{path} was damaged" in notices[0]
    assert path.with_name(f"{path.name}.damaged-1").exists()


def test_a_corpus_that_we_have_no_copy_of(reproduced: Reproduced, monkeypatch: pytest.MonkeyPatch):
    lines = (*corpora("smoke", "classification"), SnellCorpus("Yelp", None))
    for module in (tables, figures):
        monkeypatch.setattr(module, "corpora", lambda budget, task=None: lines)
    finding = tables.find_table(reproduced.workspace, "5")
    names = [row.name for row in finding.tables[0].rows]
    assert names[-1] == "Yelp (not measured: we have no copy)"
    assert sum("Yelp" in name for name in names) == 1
    printed = finding.tables[0].rows[-1].cells
    assert all(cell.measured is None for cell in printed)
    table = published_table("snell2021", "5")
    assert [cell.published for cell in printed] == [
        table.get(("Yelp", column), (None, False))[0] for column in FORMS["5"].columns
    ]
    for find in (figures.find_rise_and_fall, figures.find_between_seeds):
        assert [row.name for row in find(reproduced.workspace).tables[0].rows] == ["rotten-tomatoes", "polarity"]


class Canned(Workspace):
    """A room in which every second head, and every second run, is good; and none of the first two candidates is bad."""

    def answers(self, units):
        def answer(unit):
            number = int(unit.name.split("-")[-1])
            if unit.function.endswith(":head_kind"):
                return {"kind": "good" if number % 2 == 0 else "bad" if number > 101 else None, "accuracy": [0.1]}
            learned = number % 2 == 0
            steps, accuracy = ([0, 2], [0.1, 1.0]) if learned else ([0, 2, 4], [0.1, 0.2, 0.3])
            return {"steps": steps, "accuracy": accuracy, "learned": 2 if learned else None}

        return [answer(unit) for unit in units]


def test_heads_are_tried_round_by_round_until_there_are_enough(monkeypatch: pytest.MonkeyPatch):
    sizes = replace(COPYING_BUDGETS["smoke"], head_candidates=20)
    monkeypatch.setitem(figures.COPYING_BUDGETS, "smoke", sizes)
    needs, rounds = figures.figure6_needs("smoke"), []
    while needs.then:
        rounds.append([unit.name for unit in needs.units])
        needs = needs.then(Canned("smoke", Path("nowhere"), Path("nowhere")))
    names = [f"head-{variant}-{head}" for variant in ("text", "released") for head in (100, 101)]
    assert rounds[0] == names
    assert len(rounds) == 3  # 103 and 105 are the first two bad heads
    assert len({unit.file for unit in needs.units}) == len(needs.units) == 2 * 3 * 2


def test_good_and_bad_heads_are_combined_and_a_line_goes_on_where_it_learned(monkeypatch: pytest.MonkeyPatch):
    sizes = replace(COPYING_BUDGETS["smoke"], head_candidates=20)
    monkeypatch.setitem(figures.COPYING_BUDGETS, "smoke", sizes)
    finding = figures.find_figure6(Canned("smoke", Path("nowhere"), Path("nowhere")))
    assert any(
        note.startswith("as the paper's text: of 6 single heads the first 2 good and 2 bad") for note in finding.notes
    )
    lines = {line.label: line for line in finding.figures[0].panels[0].lines}
    assert (lines["one good 0"].x, lines["one good 0"].y) == ((0.0, 2.0, 4.0), (0.1, 1.0, 1.0))
    assert (lines["one good 1"].x, lines["one good 1"].y) == ((0.0, 2.0, 4.0), (0.1, 0.2, 0.3))
    assert finding.value("share learned, one good").value == 0.5
    assert finding.value("released, share learned, all bad").value == 0.5
    drawn = figures._combinations([100, 102], [103, 105, 107], sizes)
    assert all(len(set(heads)) == 2 and set(heads) <= {103, 105, 107} for heads in drawn["all-bad"])
    assert all(first in (100, 102) and rest in (103, 105, 107) for first, rest in drawn["one-good"])


def test_no_head_is_used_twice_where_there_are_too_few():
    """With one bad head there is no all-bad model of two."""
    assert set(figures._combinations([100], [101], COPYING_BUDGETS["smoke"])) == {"one-good", "random"}
    finding = figures.find_figure6(Canned("smoke", Path("nowhere"), Path("nowhere")))
    missing = "as the paper's text: too few heads for all-bad, which was not run; no head is used twice."
    assert missing in finding.notes
    assert not finding.values


def test_a_head_has_a_kind_if_every_order_says_so(monkeypatch: pytest.MonkeyPatch):
    def canned(accuracy):
        def curve(**arguments):
            last = accuracy[arguments["order"]]
            return {"accuracy": [0.1, last], "learned": 10 if last >= arguments["enough"] else None}

        return curve

    for accuracy, kind, tried in (
        ((0.96, 0.95, 1.0), "good", 3),
        ((0.1, 0.59, 0.3), "bad", 3),
        ((0.96, 0.94, 1.0), None, 2),
        ((0.6, 0.1, 0.1), None, 1),
        ((0.1, 0.97, 0.1), None, 2),
    ):
        monkeypatch.setattr(models, "learning_curve", canned(accuracy))
        answer = models.head_kind(head=7, orders=[0, 1, 2])
        assert (answer["kind"], len(answer["accuracy"])) == (kind, tried)


def test_a_budget_that_there_is_not():
    with pytest.raises(ConfigError, match="budget 'huge' is not one of smoke, quick, paper"):
        study_of("sst", "huge")


def test_a_probe_stands_first_under_cross(reproduced: Reproduced):
    seen = numbers_of(reproduced.workspace, "polarity").validation
    assert seen.agreement("A(beta_uf,beta_px)", "own").name == "A(beta_uf,beta_px)"
    assert seen.agreement("A(beta_uf,beta_px)", "cross").name == "A(beta_px,beta_uf)"
    with pytest.raises(KeyError, match="was not measured"):
        seen.agreement("A(beta,gamma)", "own").name  # noqa: B018


def test_a_peak_is_read_where_it_was_not_chosen():
    up_and_down = np.array([[0.0] * 4, [1.0] * 4, [0.5] * 4])
    assert study_numbers.from_peak(up_and_down, 0).tolist() == [1.0] * 4
    assert study_numbers.from_peak(up_and_down, -1).tolist() == [0.5] * 4
    noise = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])  # each half has its own best step
    assert study_numbers.from_peak(noise, -1).mean() < 0


def test_agreement_is_read_at_a_step_chosen_on_other_texts(reproduced: Reproduced):
    recordings = Recordings(reproduced.study(study_of("polarity", "smoke")))
    rows = study_numbers.held_out_rows(recordings, "A(alpha,beta_uf)", "cross", 0)
    read = pairing(recordings, "A(alpha,beta_uf)", "cross", 0)
    table = np.stack([agreement(*read.pair(step)) for step in read.steps])
    assert len(rows) == table.shape[1]
    assert rows.mean() == pytest.approx(maximum_over_steps(table, list(read.steps)).split_half)
    assert rows.mean() <= table.mean(axis=1).max()
    last = study_numbers.held_out_rows(recordings, "A(alpha,beta)", "own", 0)
    assert last.mean() == pytest.approx(
        numbers_of(reproduced.workspace, "polarity").validation.agreement("A(alpha,beta)", "own").per_seed[0]
    )


def test_xi_counts_only_above_both_baselines(reproduced: Reproduced):
    recordings = Recordings(reproduced.study(study_of("polarity", "smoke")))
    low, high = (study_numbers.xi_above_baselines(recordings, "cross", majority) for majority in (0.0, 1.0))
    assert len(low) == len(recordings.seeds)
    assert all(np.isnan(a) or a >= b for a, b in zip(low, high, strict=True))
    assert all(np.isnan(b) or b <= 0 for b in high)


def test_all_pairs_of_seeds_have_a_jackknife():
    rng = np.random.default_rng(0)
    attends = rng.random((7, 101)) < 0.6  # seven seeds on 101 texts
    pairs = {(a, b): (attends[a] == attends[b]).astype(float) for a in range(7) for b in range(7) if a != b}
    value = study_numbers.over_pairs(study_numbers.seed_pairs(pairs), chance=0.1)
    assert value.estimate.value == pytest.approx(np.mean([rows.mean() for rows in pairs.values()]) - 0.1)
    assert value.estimate.low < value.estimate.value < value.estimate.high
    assert (value.seeds, value.texts) == (7, 101)
    same = figures._apart("x", value, value)
    assert same.estimate.value == 0
    assert same.estimate.high == pytest.approx(2**0.5 * (value.estimate.high - value.estimate.value), rel=0.05)


def test_the_unigram_is_what_a_proxy_of_permutations_tends_to():
    runs = {
        task: theory.train_proxy(task=task, seed=0, steps=300, device=torch.device("cpu"), report=str)
        for task in ("copy-permutation", "copy-vocab")
    }
    assert min(runs["copy-permutation"]["loss"]) > runs["copy-permutation"]["unigram"] - 1e-6
    assert min(runs["copy-vocab"]["loss"]) < runs["copy-vocab"]["unigram"] - 0.005


def test_controls_of_optimal_attention(reproduced: Reproduced):
    answer = reproduced.workspace.answers(
        [models.linear_unit(0, study_of("toy-de-en", "smoke"), LINEAR_BUDGETS["smoke"])]
    )
    for name in ("untrained", "random_logits"):
        assert len(answer[0][name]) == len(answer[0]["agreement"])
    by_seed = {name: np.array([[0.9, 0.7, 0.5]]) for name in ("agreement", "shuffle", "untrained", "random_logits")}
    by_seed["random_logits"] = np.array([[0.8, 0.8, 0.8]])
    assert theory._above_controls(by_seed, 0.1, np.array([0, 0, 1])).tolist() == [pytest.approx([0.0, -0.3])]


def test_the_linear_translator_is_certified(reproduced: Reproduced):
    room = reproduced.workspace
    study = study_of("toy-de-en", "smoke")
    sizes = LINEAR_BUDGETS["smoke"]
    answer = room.answers([models.linear_unit(0, study, sizes)])[0]
    assert answer["gap"] < 1e-6
    assert len(answer["agreement"]) == len(answer["text"])
    assert set(answer["text"]) == {0, 1, 2}


def test_table_9_counts_the_corpus():
    seen = statistics("keyword")
    assert seen["train median length"] == 40
    assert seen["vocabulary"] == 44
    assert seen["train size"] == 10_000
