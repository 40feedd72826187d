import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.config import ModelConfig, TrainConfig
from heedful.data.batching import training_batches
from heedful.data.vocabulary import BOS, EOS, EncodedSplit
from heedful.errors import ConfigError, TrainingError
from heedful.models.classifier import AttentionClassifier
from heedful.models.training import build_optimiser, choose_device, train


def keyword_texts(n: int = 64) -> EncodedSplit:
    """Word 4 means class 0, word 5 class 1; the rest is noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=n)
    rows = [
        [BOS, *rng.permutation([4 + y, *rng.integers(6, 12, size=rng.integers(2, 9))]).tolist(), EOS] for y in labels
    ]
    return EncodedSplit.of(rows, labels.tolist())


def fresh(mode="learned", seed=0) -> AttentionClassifier:
    torch.manual_seed(seed)
    return AttentionClassifier(ModelConfig(embedding=8, hidden=8, scorer_hidden=8), 12, 2, mode)


CONFIG = TrainConfig(steps=60, batch_size=16, learning_rate=2e-2, evaluate_at=(0, 30, 60))


@pytest.mark.parametrize("mode", ["learned", "uniform", "frozen", "only"])
def test_loss_falls_and_frozen_parts_stay(mode):
    model, split = fresh(mode), keyword_texts()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    seen = []
    train(model, training_batches(split, 16, seed=0), CONFIG, lambda step, loss: seen.append((step, loss)))
    assert [step for step, _ in seen] == [0, 30, 60]
    assert math.isnan(seen[0][1])
    assert seen[2][1] < seen[1][1]
    if mode != "only":
        assert seen[2][1] < 0.1
    still = {name for name, p in model.named_parameters() if torch.equal(p, before[name])}
    scorer = {name for name in before if name.startswith("scorer")}
    expected = {"learned": set(), "uniform": scorer, "frozen": scorer, "only": set(before) - scorer}[mode]
    assert still - {"embedding.weight"} == expected - {"embedding.weight"}


def test_same_seed_same_weights():
    weights = []
    for _ in range(2):
        model = fresh()
        train(model, training_batches(keyword_texts(), 16, seed=3), CONFIG, lambda step, loss: None)
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_batches_in_parts_train_as_whole_batches():
    """The same batches whole and part by part, in float64: the same losses and the same weights."""
    split = EncodedSplit.of([[4 + i % 8] * (1 + 7 * (i % 5)) for i in range(24)], [i % 2 for i in range(24)])
    ends = []
    for bucketed in (True, False):
        model, losses = fresh().double(), []
        config = replace(CONFIG, steps=5, evaluate_at=(5,), bucketed=bucketed)
        batches = training_batches(split, 12, seed=0, bucketed=False)
        train(model, batches, config, lambda step, loss, losses=losses: losses.append(loss))
        ends.append((losses, model.state_dict()))
    (whole, weights), (parted, same) = ends
    assert whole == pytest.approx(parted, rel=1e-12)
    for name, tensor in weights.items():
        torch.testing.assert_close(same[name], tensor, rtol=1e-6, atol=1e-9)


def test_evaluation_may_end_training():
    steps = []
    train(fresh(), training_batches(keyword_texts(), 16, seed=0), CONFIG, lambda s, _: steps.append(s) or s == 30)
    assert steps == [0, 30]


def test_a_loss_that_is_not_finite_ends_training():
    model = fresh()
    with torch.no_grad():
        model.output.bias.fill_(math.nan)
    with pytest.raises(TrainingError, match="loss is nan at step 0; lower --learning-rate"):
        train(model, training_batches(keyword_texts(), 16, seed=0), CONFIG, lambda step, loss: None)


def test_nothing_to_train_is_an_error():
    model = fresh()
    model.requires_grad_(False)
    with pytest.raises(ConfigError, match="no parameter"):
        build_optimiser(model, CONFIG)


def test_devices():
    assert choose_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ConfigError, match="cannot be used"):
        choose_device("abacus")


def test_attention_parameters_have_their_own_rate_and_no_decay():
    model = AttentionClassifier(ModelConfig(embedding=3, hidden=2, scorer_hidden=2), vocabulary=7, classes=2)
    config = TrainConfig(learning_rate=1e-3, weight_decay=0.1, attention_rate=10.0, attention_decay=False)
    rest, attention = build_optimiser(model, config).param_groups
    assert {id(p) for p in attention["params"]} == {id(p) for p in model.scorer.parameters()}
    assert (rest["lr"], attention["lr"]) == (1e-3, 1e-2)
    assert (rest["weight_decay"], attention["weight_decay"]) == (0.1, 0.0)


def test_adagrad_takes_its_known_first_step():
    class Line(torch.nn.Linear):
        def loss(self, batch):
            return self(batch).sum()

    model = Line(1, 1, bias=False)
    before = model.weight.item()
    optimiser = build_optimiser(model, TrainConfig(learning_rate=0.02, optimiser="adagrad"))
    model.loss(torch.ones(1, 1)).backward()
    optimiser.step()
    assert model.weight.item() == pytest.approx(before - 0.02)  # g / √(g²) = 1


@pytest.mark.parametrize("optimiser", ["adam", "adagrad"])
@pytest.mark.parametrize("broken_off_at", [1, 7, 10, 19])
def test_a_training_goes_on_bit_for_bit(optimiser, broken_off_at):
    """Weights, losses and what is left of the random numbers are those of a training that was not broken off."""
    config = TrainConfig(steps=20, batch_size=16, learning_rate=2e-2, evaluate_at=(0, 10, 20), optimiser=optimiser)
    split, settings = keyword_texts(), ModelConfig(embedding=8, hidden=8, scorer_hidden=8, dropout=0.5)

    def model():
        torch.manual_seed(0)
        return AttentionClassifier(settings, 12, 2)

    kept, losses = {}, []

    def keep(step, standing):
        if step == broken_off_at:
            now = standing()
            optimiser = {name: tensor.clone() for name, tensor in now.optimiser.items()}
            weights = {name: tensor.clone() for name, tensor in whole.state_dict().items()}
            kept.update(since=replace(now, optimiser=optimiser), weights=weights)

    whole = model()
    train(whole, training_batches(split, 16, seed=3), config, lambda *seen: losses.append(seen), before_step=keep)
    drawn = torch.rand(3)

    resumed, again = model(), []
    resumed.load_state_dict(kept["weights"])
    torch.manual_seed(99)
    rest = training_batches(split, 16, seed=3, start=broken_off_at)
    train(resumed, rest, config, lambda *seen: again.append(seen), since=kept["since"])
    assert again == [seen for seen in losses if seen[0] > broken_off_at]
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name
    assert torch.equal(torch.rand(3), drawn)
