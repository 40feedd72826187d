import csv
import json
import math
import shutil
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.config import ModelConfig
from heedful.data.batching import collate
from heedful.data.vocabulary import EncodedSplit, Vocabulary
from heedful.errors import RunError
from heedful.models.adversary import Adversary
from heedful.models.classifier import AttentionClassifier
from heedful.papers.claims import judge_paper
from heedful.papers.experiment import Needs, Result, Unit, Workspace, result_path
from heedful.papers.meister2021 import models, open_questions
from heedful.papers.meister2021.adversaries import MeisterAttack, attack, validation_loss
from heedful.papers.meister2021.config import ARCHITECTURES, BUDGETS, GRID, SOFTMAX, SPARSEMAX, sparsegen
from heedful.papers.meister2021.contents import EXPERIMENTS
from heedful.papers.meister2021.data import encode_corpus
from heedful.papers.meister2021.figures import over_ceiling
from heedful.papers.meister2021.models import (
    IMPORTANCES,
    MeisterModel,
    build,
    chosen_texts,
    importances,
    load_base,
    measure,
    train_and_measure,
)
from heedful.papers.meister2021.tables import (
    numbers,
    on_axis,
    over_seeds,
    per_text,
    rank_correlation,
    trend,
)
from heedful.papers.reproduction import prepare
from tests.papers.conftest import Reproduced

CPU = torch.device("cpu")
POLARITY = next(corpus for corpus in BUDGETS["smoke"].corpora if corpus.data == "polarity")


def silent(line: dict[str, Any]) -> None:
    pass


def refuse(constant: str) -> None:
    pytest.fail(f"{constant} in JSON")


def arguments(unit: Unit, root: Path) -> dict[str, Any]:
    """The arguments as a worker gets them."""
    return {**unit.arguments, **{name: str(root / unit.arguments[name]) for name in unit.paths}}


def text_values(answer: dict[str, Any]) -> dict[str, list[float | None]]:
    return {name: answer[name] for name in answer if name.startswith(("tau", "entropy", "own", "ceiling", "length"))}


@pytest.mark.parametrize("name", [experiment.name for experiment in EXPERIMENTS])
def test_every_experiment_is_found_and_stored(reproduced_meister: Reproduced, name: str):
    path = result_path(reproduced_meister.results, "meister2021", "smoke", name)
    json.loads(path.read_text(), parse_constant=refuse)
    finding = Result.load(path).finding
    assert finding.tables or finding.figures
    for table in finding.tables:
        assert {len(row.cells) for row in table.rows} == {len(table.columns)}


def test_no_unit_holds_nan(reproduced_meister: Reproduced):
    units = list(reproduced_meister.workspace.units.glob("*.json"))
    assert units
    for path in units:
        json.loads(path.read_text(), parse_constant=refuse)


def test_every_claim_is_measured(reproduced_meister: Reproduced):
    paths = [result_path(reproduced_meister.results, "meister2021", "smoke", e.name) for e in EXPERIMENTS]
    entries = judge_paper("meister2021", map(Result.load, paths), "smoke")
    assert [entry.claim.id for entry in entries] == [f"M{k}" for k in range(1, 8)]
    for entry in entries:
        for condition in entry.claim.conditions:
            assert entry.cases_of(condition), (entry.claim.id, condition.value)


def test_a_table_prints_what_the_units_measured(reproduced_meister: Reproduced):
    room, kind = reproduced_meister.workspace, MeisterModel(POLARITY, "transformer", SPARSEMAX)
    seeds = room.answers(kind.units("smoke"))
    table = Result.load(result_path(reproduced_meister.results, "meister2021", "smoke", "table1")).finding.tables[0]
    row = next(row for row in table.rows if row.name == "Transformer sparsemax")
    expected = np.mean([np.mean(answer["entropy g_h_x"]) for answer in seeds])
    assert row.cells[table.columns.index("polarity")].measured.value == pytest.approx(expected)


def test_sparse_bases_have_exact_zeros_and_their_adversaries_are_finite(reproduced_meister: Reproduced):
    room, kind = reproduced_meister.workspace, MeisterModel(POLARITY, "transformer", SPARSEMAX)
    first = room.answers(kind.units("smoke"))[0]
    assert min(np.subtract(first["length"], first["support"])) >= 0
    assert min(first["support"]) < max(first["length"])
    table = Result.load(result_path(reproduced_meister.results, "meister2021", "smoke", "table5")).finding.tables[1]
    cells = [cell.measured for row in table.rows for cell in row.cells]
    assert all(math.isfinite(estimate.value) for estimate in cells)


def test_attention_held_fixed_is_the_importance_of_hidden_states(reproduced_meister: Reproduced):
    for model in (MeisterModel(POLARITY, a, p) for a in ARCHITECTURES for p in (SOFTMAX, SPARSEMAX)):
        for answer in reproduced_meister.workspace.answers(model.units("smoke")):
            assert numbers(answer["tau g_y_h detached"]) == pytest.approx(1.0, abs=0.02)  # float32 may tie or swap


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_unit_is_the_same_again_and_keeps_the_weights_it_measured(tmp_path: Path, architecture):
    kind = MeisterModel(POLARITY, architecture, SPARSEMAX)
    unit = kind.unit(1, "smoke")
    first, second = (
        train_and_measure(**arguments(unit, tmp_path / name), device=CPU, report=silent) for name in ("a", "b")
    )
    assert first == second
    encoded = encode_corpus("polarity", POLARITY.max_train, POLARITY.max_test)
    config = BUDGETS["smoke"].model(architecture, SPARSEMAX)
    model = load_base(config, encoded.vocabulary, str(tmp_path / "a" / unit.arguments["weights"]))
    texts = chosen_texts(encoded.test, POLARITY.examples[0])
    again = measure(model, texts, POLARITY.matrices[0], encoded.vocabulary.words)
    assert again == {name: first[name] for name in again}


def test_texts_one_by_one_are_as_in_a_batch():
    torch.manual_seed(0)
    model = AttentionClassifier(
        ModelConfig(5, "transformer", 6, layers=2, scorer="dot", projection="sparsemax"), 17, 2
    ).double()
    rng = np.random.default_rng(0)
    # No word twice: leaving out either of two equal neighbours is the same text, a tie that rounding may break.
    texts = EncodedSplit.of(
        [rng.choice(np.arange(4, 17, dtype=np.int32), n, replace=False) for n in (7, 2, 5)], [0, 1, 1]
    )
    words = [f"w{i}" for i in range(17)]
    together = measure(model, texts, 3, words)
    apart = [measure(model, texts.take(np.array([i])), 1, words) for i in range(3)]
    for name, values in text_values(together).items():
        assert numbers(values) == pytest.approx(numbers([a[name][0] for a in apart]), abs=2e-6, nan_ok=True), name
    for layer, found in enumerate(together["layers"]):
        for name, values in found.items():
            alone = numbers([a["layers"][layer][name][0] for a in apart])
            assert numbers(values) == pytest.approx(alone, abs=2e-6, nan_ok=True)


def test_what_does_not_matter_has_no_entropy_and_no_order():
    torch.manual_seed(0)
    model = AttentionClassifier(ModelConfig(5, hidden=3, scorer="additive", scorer_hidden=3), 17, 2)
    torch.nn.init.zeros_(model.output.weight)  # the prediction is the same whatever is read
    texts = EncodedSplit.of([[4, 5, 6, 7], [8, 9]], [0, 1])
    seen = measure(model, texts, 2, [f"w{i}" for i in range(17)])
    for name in IMPORTANCES:
        assert seen[f"tau {name}"] == seen[f"entropy {name}"] == [None, None]
    assert all(value is not None for value in seen["entropy g_h_x"])


def test_measuring_leaves_the_model_as_it_was():
    torch.manual_seed(0)
    model = AttentionClassifier(ModelConfig(5, hidden=3, scorer="additive", scorer_hidden=3), 17, 2).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    texts = EncodedSplit.of([[4, 5, 6, 7], [8, 9]], [0, 1])
    seen = measure(model, texts, 1, [f"w{i}" for i in range(17)])
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert len(seen["entropy g_h_x"]) == 1
    assert len(seen["example"]["words"]) == 4
    assert all(rows.lengths.tolist() == seen["length"] for rows in importances(model, texts).values())


def test_an_adversary_is_the_same_again_and_leaves_the_weights_alone(reproduced_meister: Reproduced):
    room = reproduced_meister.workspace
    for kind in ("frozen", "instance", "unfrozen"):
        unit = MeisterAttack(MeisterModel(POLARITY, "bilstm", SPARSEMAX), kind, "kl", 0.5, 1).unit(0, "smoke")
        path = room.root / unit.arguments["weights"]
        before = path.read_bytes()
        first, second = (attack(**arguments(unit, room.root), device=CPU, report=silent) for _ in range(2))
        assert first == second
        assert path.read_bytes() == before
        assert all(math.isfinite(value) for value in first.values())


def test_lost_weights_are_a_clear_error(tmp_path: Path):
    unit = MeisterAttack(MeisterModel(POLARITY, "bilstm", SOFTMAX), "frozen", "jsd", 1.0, 1).unit(0, "smoke")
    with pytest.raises(RunError, match=r"\.safetensors: damaged \(it is gone\)"):
        attack(**arguments(unit, tmp_path), device=CPU, report=silent)


def test_damaged_weights_are_set_aside_and_trained_again(reproduced_meister: Reproduced, tmp_path: Path):
    base = MeisterModel(replace(POLARITY, seeds=1), "bilstm", SOFTMAX)
    kind, events = MeisterAttack(base, "instance", "jsd", 1.0, 1), []
    shutil.copytree(reproduced_meister.workspace.root, tmp_path / "work")
    room = replace(reproduced_meister.workspace, root=tmp_path / "work", units=tmp_path / "units")
    shutil.copytree(reproduced_meister.workspace.units, room.units)
    before, weights = room.answers(kind.units("smoke")), room.root / base.unit(0, "smoke").arguments["weights"]
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (room.units / kind.units("smoke")[0].file).unlink()
    experiment = replace(EXPERIMENTS[0], needs=lambda budget: Needs(tuple(kind.units("smoke"))))
    prepare([experiment], room, jobs=1, device="cpu", on_progress=events.append)
    assert room.answers(kind.units("smoke")) == before
    assert weights.read_bytes() == whole
    assert weights.with_name(f"{weights.name}.damaged-1").exists()
    notices = [event["notice"] for event in events if "notice" in event]
    assert notices == [
        f"{weights} was damaged (its checksum is another): set aside as {weights.name}.damaged-1, and computed again"
    ]


def test_the_models_are_those_of_the_appendix():
    for name in ("quick", "paper"):
        budget = BUDGETS[name]
        bilstm = AttentionClassifier(budget.model("bilstm", SOFTMAX), 10, 2)
        assert bilstm.encoder.width == 256
        assert bilstm.scorer.hidden.weight.shape == (128, 256)
        transformer = AttentionClassifier(budget.model("transformer", sparsegen(0.9)), 10, 2)
        assert len(transformer.encoder.layers) == 2
        assert transformer.encoder.layers[0].attend.num_heads == 1
        assert transformer.scorer.scale == pytest.approx(math.sqrt(128))
        assert transformer.config.projection_parameter == 0.9
    assert (BUDGETS["paper"].rates, BUDGETS["paper"].attention_rate) == ((1e-4, 1e-5), 10.0)
    quick = {corpus.data: corpus for corpus in BUDGETS["quick"].corpora}
    assert set(quick["sst"].grid) <= set(GRID) == set(BUDGETS["paper"].corpora[0].grid)
    assert all(corpus.is_complete and corpus.seeds >= 5 for corpus in BUDGETS["quick"].in_full)
    for corpus in quick.values():
        assert corpus.seeds >= 10
        assert min(*corpus.examples, *corpus.matrices) >= 100


def test_an_adversary_is_that_of_its_best_epoch(reproduced_meister: Reproduced):
    room = reproduced_meister.workspace
    for kind in ("frozen", "unfrozen"):
        attack = MeisterAttack(MeisterModel(POLARITY, "bilstm", SOFTMAX), kind, "jsd", 1.0, 2)
        for answer in room.answers(attack.units("smoke")):
            assert answer["epoch"] == 1


def test_the_loss_on_validation_texts_is_the_mean_over_texts():
    encoded = encode_corpus("polarity", 40, 20)
    torch.manual_seed(0)
    base, other = (
        AttentionClassifier(ModelConfig(5, hidden=3, scorer_hidden=2), len(encoded.vocabulary), 2) for _ in "ab"
    )
    rival = Adversary(other, base, "jsd", 1.0)
    other.train()
    whole = validation_loss(rival, encoded.validation)
    assert other.training
    parts = [validation_loss(rival, encoded.validation.take(np.array([i]))) for i in range(len(encoded.validation))]
    assert whole == pytest.approx(np.mean(parts), rel=1e-5)


@torch.no_grad()
def test_hidden_states_can_be_left_out_in_other_ways():
    """Without a weight, and as the last layer on fewer states."""
    encoded = encode_corpus("polarity", 40, 20)
    torch.manual_seed(0)
    model = AttentionClassifier(BUDGETS["smoke"].model("transformer", SOFTMAX), len(encoded.vocabulary), 2).eval()
    texts = chosen_texts(encoded.test, 3)
    batch = collate(texts, np.array([0]))
    output = model(batch.tokens, batch.mask)
    n, y = int(batch.mask.sum()), float(output.logits.detach().sigmoid())
    zeroed, unseen = models.without_states(model, batch), models.without_keys(model, texts)
    states = model.encoder.states(model.embedding(batch.tokens), batch.mask)
    torch.testing.assert_close(states[-1], output.hidden)
    for i in range(n):
        alpha = output.alpha.clone()
        alpha[0, i] = 0.0
        expected = abs(y - float(model.from_attention(alpha, output.hidden).sigmoid()))
        assert zeroed[0][i] == pytest.approx(expected, abs=1e-6)
        kept = torch.arange(n) != i
        fewer, _ = model.encoder.layers[-1](states[-2][:, kept], batch.mask[:, kept])
        weights = model.scorer(fewer).softmax(-1)
        assert unseen[0][i] == pytest.approx(abs(y - float(model.from_attention(weights, fewer).sigmoid())), abs=1e-6)


def test_a_position_that_nothing_sees_is_a_word_deleted():
    torch.manual_seed(3)
    config = ModelConfig(5, "transformer", 6, layers=2, scorer="dot", positions=False)
    model = AttentionClassifier(config, 11, 2).eval()
    text, alone = [4, 7, 10, 5, 9], [6]
    found = open_questions.left_out_below(model, EncodedSplit.of([text, alone], [0, 1]))
    assert tuple(found) == (open_questions.BEFORE_SCORER, *open_questions.BELOW)

    def y(ids: list[int]) -> float:
        tokens = torch.tensor([ids])
        return float(model(tokens, torch.ones_like(tokens, dtype=torch.bool)).logits.sigmoid())

    with torch.no_grad():
        for i in range(len(text)):
            deleted = abs(y(text) - y(text[:i] + text[i + 1 :]))
            assert found["every layer and the pooling"][0][i] == pytest.approx(deleted, abs=1e-6)
    assert all(len(row[1]) == 1 and row[1][0] == 0 for row in found.values())
    assert len({tuple(row[0]) for row in found.values()}) == len(found)


def test_the_reading_nearest_to_the_published_numbers_is_named():
    away = {("pooling", 1e-5): [0.3, 0.2], ("layer 1", 1e-3): [0.05, 0.08]}
    assert "“layer 1” at learning rate 0.001" in open_questions._nearest(away)
    assert "fits within 0.1" in open_questions._nearest(away)
    assert "unexplained" in open_questions._nearest({("pooling", 1e-5): [0.3, 0.2]})


def test_words_that_have_a_vector_start_there(monkeypatch: pytest.MonkeyPatch):
    config, vocabulary = ModelConfig(3, hidden=4, scorer_hidden=2), Vocabulary.build([["so", "good", "so"]], 1)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    monkeypatch.setattr(models, "word_vectors", lambda words: (np.array([5, 4]), values))
    plain, drawn = (build(config, vocabulary, vectors, 7).embedding.weight for vectors in (False, True))
    assert drawn[[5, 4]].tolist() == values.tolist()
    assert torch.equal(drawn[:4], plain[:4])


def answer_of(entropy: float) -> dict[str, Any]:
    return {
        "entropy g_y_x": [entropy, entropy + 0.1, None],
        "ceiling": [0.5, 1.0, None],
        "tau g_y_x": [0.25, 0.5, None],
    }


def test_the_sign_of_a_trend_is_that_of_the_means_seed_by_seed():
    grid = (-1.0, 0.0, 0.5)
    falling, rising = [0.9, 0.8, 0.7], [0.1, 0.2, 0.3]
    seeds = [[answer_of(a), answer_of(b)] for a, b in zip(falling, rising, strict=True)]
    assert trend("t", grid, [[first] for first, _ in seeds], per_text("entropy g_y_x")).estimate.value == -1
    both = trend("t", grid, seeds, per_text("entropy g_y_x"))
    assert (both.estimate.value, both.seeds, both.texts, both.per_seed) == (0.0, 2, 2, (-1.0, 1.0))
    assert -1 <= both.estimate.low < -0.9  # two seeds that contradict each other settle nothing
    assert 0.9 < both.estimate.high <= 1


def test_texts_without_a_value_are_left_out():
    assert over_seeds([answer_of(0.5)], per_text("entropy g_y_x")).value == pytest.approx(0.55)
    assert over_ceiling("g_y_x")(answer_of(0.5))[:2] == pytest.approx([0.5, 0.5])
    assert math.isnan(rank_correlation([1.0, 2.0], [3.0, 3.0]))
    assert math.isnan(rank_correlation([1.0], [math.nan]))
    assert [round(on_axis(lam), 2) for lam in GRID] == [-2.0, -1.04, -0.6, -0.3, 0.0, 0.3, 1.0, 2.0]


class Canned(Workspace):
    """A room with answers of `smoke` in place of its own."""

    def answers(self, units):
        room = Workspace("smoke", self.root, self.units)
        first = units[0]
        if first.function.endswith(":attack"):
            return [
                {"jsd": 0.6, "tvd": 0.1, "accuracy": 0.8, "base_accuracy": 0.82, "highest jsd": 0.65} | {"texts": 24}
            ] * 2
        if first.function.endswith(":compare_jacobian"):
            return room.answers(open_questions.jacobian_units("smoke")["BiLSTM"])
        if first.function.endswith(":leave_out_below"):
            return room.answers(next(iter(open_questions.below_units("smoke").values())))
        return room.answers(MeisterModel(POLARITY, first.arguments["model"]["encoder"], SOFTMAX).units("smoke"))


def test_every_published_number_has_its_place(reproduced_meister: Reproduced):
    """At `quick`, with answers of `smoke` in place of its own: as many published cells as the paper has numbers."""
    quick = Canned("quick", reproduced_meister.workspace.root, reproduced_meister.workspace.units)
    text = (files("heedful.papers") / "published" / "meister2021.csv").read_text(encoding="utf-8")
    expected = Counter(f"table{line['table']}" for line in csv.DictReader(text.splitlines()))
    found = {experiment.name: experiment.find(quick) for experiment in EXPERIMENTS}
    for name, count in expected.items():
        cells = [cell for table in found[name].tables for row in table.rows for cell in row.cells]
        assert sum(cell.published is not None for cell in cells) == count, name
    first = found["table6"].tables[0]
    assert first.columns[:2] == ("IMDb: g_y(x)", "IMDb: D_y(x)")
    assert first.rows[0].cells[0].published == 0.36
    assert "(± 0.12)" in first.rows[0].cells[0].text
