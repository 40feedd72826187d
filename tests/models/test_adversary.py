import copy
import math

import numpy as np
import pytest
import torch
from scipy import special
from torch.autograd import gradcheck
from torch.testing import assert_close

from heedful.config import ModelConfig, TrainConfig
from heedful.data.batching import collate, training_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import ConfigError
from heedful.metrics import entropy as divergence
from heedful.models.adversary import (
    Adversary,
    Goal,
    attack_instances,
    compare,
    frozen_adversary,
    highest_divergence,
    jensen_shannon,
    kullback_leibler,
    probabilities,
    total_variation,
)
from heedful.models.attention import project
from heedful.models.classifier import AttentionClassifier
from heedful.models.training import train

B, L, V = 3, 5, 11
SPARSE = torch.tensor([[0.7, 0.3, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.2, 0.2, 0.2, 0.2, 0.2]])
OTHER = torch.tensor([[0.0, 0.3, 0.7, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.2, 0.2, 0.2, 0.2, 0.2]])


def model(projection: str = "sparsemax", seed: int = 0, classes: int = 2) -> AttentionClassifier:
    torch.manual_seed(seed)
    return AttentionClassifier(
        ModelConfig(7, hidden=5, scorer="additive", scorer_hidden=3, projection=projection), V, classes
    )


def split(classes: int = 2) -> EncodedSplit:
    rng = np.random.default_rng(1)
    return EncodedSplit.of(
        [rng.integers(4, V, n, dtype=np.int32) for n in (3, 7, 2, 5, 6, 4)], [i % classes for i in range(6)]
    )


def weights(of: torch.nn.Module) -> dict[str, torch.Tensor]:
    return copy.deepcopy(of.state_dict())


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


def test_the_same_numbers_as_metrics():
    for ours, theirs in (
        (jensen_shannon, divergence.jensen_shannon),
        (total_variation, divergence.total_variation),
    ):
        for p, q in ((SPARSE, OTHER), (OTHER, SPARSE), (SPARSE, SPARSE)):
            assert_close(
                ours(p.double(), q.double()), torch.from_numpy(theirs(p.numpy(), q.numpy())), atol=1e-7, rtol=0
            )
    p, q = (torch.rand(B, L, dtype=torch.float64).softmax(-1) for _ in range(2))
    assert_close(kullback_leibler(p, q), torch.from_numpy(special.rel_entr(p.numpy(), q.numpy()).sum(-1)))


def test_limits():
    assert_close(jensen_shannon(SPARSE, OTHER)[1:], torch.tensor([math.log(2), 0.0]))
    assert_close(total_variation(SPARSE, OTHER), torch.tensor([0.7, 1.0, 0.0]))
    assert_close(kullback_leibler(SPARSE, OTHER, floor=1e-3)[1:], torch.tensor([math.log(1e3), 0.0]))
    tiny = torch.tensor([torch.finfo(torch.float32).smallest_normal / 4, 1.0])
    assert torch.isfinite(jensen_shannon(tiny, tiny.flip(0)))


def test_no_attention_diverges_more_than_the_highest():
    torch.manual_seed(0)
    q, mask = torch.randn(B, L).softmax(-1), torch.tensor([[True] * L, [True] * 2 + [False] * 3, [True] + [False] * 4])
    q = q * mask / (q * mask).sum(-1, keepdim=True)
    highest = highest_divergence(q, mask)
    for _ in range(200):
        p = (5 * torch.randn(B, L)).masked_fill(~mask, -torch.inf).softmax(-1)
        assert (jensen_shannon(p, q) <= highest + 1e-6).all()
    assert highest[2] == 0  # one position leaves no choice
    assert_close(highest_divergence(SPARSE, mask)[0], torch.tensor(math.log(2)))


@pytest.mark.parametrize("function", [jensen_shannon, kullback_leibler, total_variation])
def test_gradients(function):
    torch.manual_seed(0)
    p, q = (torch.randn(B, L, dtype=torch.float64).softmax(-1).requires_grad_() for _ in range(2))
    assert gradcheck(function, (p, q))


@pytest.mark.parametrize("function", [jensen_shannon, kullback_leibler])
@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
def test_gradients_through_a_projection_are_finite_where_weights_are_0(function, projection):
    scores = torch.tensor([[900.0, 0.0, -900.0, 0.0, 0.0]] * B, requires_grad=True)  # softmax underflows to exact 0
    alpha = project(projection, scores, torch.tensor([[True] * 4 + [False]] * B))
    assert (alpha == 0).any()
    function(alpha, OTHER).sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_one_logit_is_two_classes():
    logits = torch.tensor([[-3.0], [0.5]])
    assert_close(probabilities(logits), torch.cat([torch.zeros_like(logits), logits], dim=1).softmax(-1))
    assert probabilities(torch.zeros(2, 3)).shape == (2, 3)


def test_the_loss_is_that_of_wiegreffe_and_pinter():
    base, adversary = model(seed=0), model(seed=1)
    batch = collate(split(), np.arange(6))
    seen, wanted = adversary(batch.tokens, batch.mask), base(batch.tokens, batch.mask)
    tvd = (seen.logits.sigmoid() - wanted.logits.sigmoid()).abs().mean()
    jsd = jensen_shannon(seen.alpha, wanted.alpha).mean()
    assert_close(Adversary(adversary, base, "jsd", 0.3).loss(batch), tvd - 0.3 * jsd)
    assert_close(Adversary(adversary, base, "jsd", None).loss(batch), -jsd)


def test_a_negative_penalty_is_a_clear_error():
    with pytest.raises(ConfigError, match="penalty is -1"):
        Goal("jsd", -1.0)


@pytest.mark.parametrize("kind", ["frozen", "unfrozen"])
@pytest.mark.parametrize("divergence_name", ["jsd", "kl"])
def test_training_diverges_and_leaves_the_base_alone(kind, divergence_name):
    base, texts = model(), split()
    before = weights(base)
    adversary = frozen_adversary(base, V, 3) if kind == "frozen" else model(seed=4)
    start = compare(adversary, base, texts).jsd.mean()
    settings = TrainConfig(steps=60, batch_size=4, learning_rate=0.05, evaluate_at=(60,))
    train(
        Adversary(adversary, base, divergence_name, 1.0), training_batches(texts, 4, 0), settings, lambda s, loss: None
    )
    attack = compare(adversary, base, texts)
    assert attack.jsd.mean() > max(0.7 * attack.highest.mean(), start)
    assert (attack.jsd <= attack.highest + 1e-9).all()
    assert np.isfinite(attack.tvd).all()
    assert same(weights(base), before)
    assert base.training
    changed = {
        name.split(".")[0] for name, tensor in adversary.state_dict().items() if not torch.equal(tensor, before[name])
    }
    assert changed == ({"scorer"} if kind == "frozen" else {"embedding", "encoder", "scorer", "output"})


def test_a_frozen_adversary_reads_the_hidden_states_of_its_base():
    base, batch = model("softmax"), collate(split(), np.arange(6))
    adversary = frozen_adversary(base, V, 3)
    shared = Adversary(adversary, base, "jsd", 1.0).loss(batch)
    adversary.mode = "learned"
    assert_close(Adversary(adversary, base, "jsd", 1.0).loss(batch), shared)


def test_a_frozen_adversary_starts_anew_under_its_seed():
    base = model()
    one, two, other = (frozen_adversary(base, V, seed) for seed in (3, 3, 5))
    assert same(one.state_dict(), two.state_dict())
    assert not same(one.state_dict(), other.state_dict())
    assert same(one.encoder.state_dict(), base.encoder.state_dict())


@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
def test_instances_diverge_more_and_the_model_is_left_alone(projection):
    base, texts = model(projection), split()
    before = weights(base)

    def attack(steps: int):
        return attack_instances(base, texts, "jsd", 1.0, steps=steps, learning_rate=0.3, seed=2)

    start, end = attack(0), attack(60)
    assert (end.jsd >= start.jsd - 1e-6).all()
    assert end.jsd.mean() > 0.8 * end.highest.mean()
    assert np.array_equal(attack(60).jsd, end.jsd)
    assert same(weights(base), before)
    assert all(parameter.requires_grad for parameter in base.parameters())


def test_an_instance_attack_keeps_predictions_when_divergence_is_worth_nothing():
    base, texts = model("softmax"), split()
    attack = attack_instances(base, texts, "jsd", 0.0, steps=200, learning_rate=0.05, seed=2)
    start = attack_instances(base, texts, "jsd", 0.0, steps=0, learning_rate=0.05, seed=2)
    assert attack.tvd.mean() < 0.5 * start.tvd.mean()


def test_several_classes():
    base, adversary, texts = model(classes=3), model(seed=1, classes=3), split(3)
    attack = compare(adversary, base, texts)
    batch = collate(texts, np.arange(6))
    with torch.no_grad():
        both = [m(batch.tokens, batch.mask).logits.softmax(-1) for m in (adversary, base)]
    assert_close(torch.from_numpy(attack.tvd).float(), total_variation(*both))
    assert np.array_equal(attack.correct, (both[0].argmax(-1) == batch.labels).numpy())


def test_a_model_does_not_diverge_from_itself():
    base = model()
    attack = compare(base, base, split())
    assert attack.jsd.max() == attack.tvd.max() == 0
    assert np.array_equal(attack.correct, attack.base_correct)
