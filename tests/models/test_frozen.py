import numpy as np
import pytest
import torch
from torch.testing import assert_close

from heedful.config import ModelConfig, TrainConfig
from heedful.data.batching import training_batches
from heedful.data.vocabulary import BOS, EOS, EncodedSplit
from heedful.errors import ConfigError
from heedful.models.classifier import AttentionClassifier
from heedful.models.frozen import AttentionTraining, FrozenStates
from heedful.models.training import train

V, STEPS = 13, 11  # several epochs of batches


@pytest.fixture
def split() -> EncodedSplit:
    rng = np.random.default_rng(0)
    rows = [[BOS, *rng.integers(4, V, size=n).tolist(), EOS] for n in (7, 2, 11, 2, 5, 3, 3)]
    return EncodedSplit.of(rows, [0, 1, 1, 1, 0, 0, 1])


def classifier(mode="only", dropout=0.0) -> AttentionClassifier:
    torch.manual_seed(0)
    config = ModelConfig(embedding=7, hidden=5, scorer_hidden=3, dropout=dropout)
    return AttentionClassifier(config, V, 2, mode).double()


@pytest.mark.parametrize("max_bytes", [10**6, 0])
@pytest.mark.parametrize("bucketed", [True, False])
def test_training_on_kept_states_is_training_of_the_whole_model(split, max_bytes, bucketed):
    at = (0, STEPS)
    config = TrainConfig(steps=STEPS, batch_size=3, learning_rate=1e-2, evaluate_at=at, bucketed=bucketed)
    whole, kept = classifier(), classifier()
    start = {name: weight.clone() for name, weight in whole.state_dict().items()}
    for trained in (whole, AttentionTraining(kept, split, max_bytes)):
        train(trained, training_batches(split, 3, seed=0, bucketed=bucketed), config, lambda step, loss: None)
    for name, weight in whole.state_dict().items():
        # A bias of all scores cancels in the softmax: its gradient is rounding, which Adam divides by 1e-8.
        tolerance = 1e-10 if name == "scorer.out.bias" else 1e-13
        assert_close(kept.state_dict()[name], weight, rtol=1e-11, atol=tolerance)
        assert weight.equal(start[name]) != name.startswith("scorer")


def test_texts_are_encoded_once(monkeypatch, split):
    model = classifier()
    states, encoded = FrozenStates(model, split), []
    forward = model.encoder.forward
    monkeypatch.setattr(model.encoder, "forward", lambda *given: encoded.append(1) or forward(*given))
    batches = training_batches(split, len(split), seed=0)
    first, second = next(batches), next(batches)
    order = np.argsort(second.index)[np.argsort(np.argsort(first.index))]
    assert_close(states(first)[first.mask], states(second)[order][first.mask])
    assert encoded == [1]


def test_nothing_is_kept_where_states_are_random(split):
    model = classifier(dropout=0.5)
    batch = next(training_batches(split, 3, seed=0))
    states = FrozenStates(model, split)
    states(batch)
    assert not states._kept


def test_only_a_model_whose_attention_alone_is_trained(split):
    with pytest.raises(ConfigError, match="'learned'"):
        AttentionTraining(classifier("learned"), split)
