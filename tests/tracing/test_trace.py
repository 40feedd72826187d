import numpy as np
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose

from heedful.config import ModelConfig
from heedful.data.vocabulary import BOS, EOS, EncodedSplit
from heedful.errors import RunError
from heedful.models.classifier import AttentionClassifier, nll
from heedful.models.frozen import FrozenStates
from heedful.tracing.recorder import probe_snapshot, record, saliency_by_word
from heedful.tracing.store import Trace, write_step


@pytest.fixture
def split() -> EncodedSplit:
    rng = np.random.default_rng(0)
    rows = [[BOS, *rng.integers(4, 13, size=n).tolist(), EOS] for n in (7, 2, 11, 2, 5)]
    return EncodedSplit.of(rows, [0, 1, 2, 1, 0])


@pytest.fixture
def model() -> AttentionClassifier:
    torch.manual_seed(0)
    return AttentionClassifier(ModelConfig(embedding=7, hidden=5, scorer_hidden=3, dropout=0.5), 13, 3)


def test_delta_is_the_derivative_of_a_mask(model, split):
    """Δ_l = −∂NLL/∂m_l, by finite differences in float64."""
    model = model.double().eval()
    delta = record(model, split).quantities["delta"]
    step = 1e-6
    for i in range(len(split)):
        tokens = torch.from_numpy(split.text(i)).long()[None]
        mask, label = torch.ones_like(tokens, dtype=torch.bool), torch.tensor([split.labels[i]])
        embedded = model.embedding(tokens).detach()
        for position in range(tokens.shape[1]):
            losses = []
            for m in (1 + step, 1 - step):
                scaled = embedded.clone()
                scaled[0, position] *= m
                losses.append(nll(model.from_embeddings(scaled, mask).logits, label).item())
            assert_allclose(delta[i][position], -(losses[0] - losses[1]) / (2 * step), rtol=1e-5, atol=1e-8)


def test_batched_equals_one_by_one(model, split):
    model = model.double()
    together, alone = record(model, split), record(model, split, max_tokens=1)
    for name in ("alpha", "beta_logit", "delta"):
        assert_allclose(together.quantities[name].values, alone.quantities[name].values, rtol=1e-9, atol=1e-12)
    assert_allclose(together.log_odds, alone.log_odds, rtol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(model, split, training):
    model.train(training)
    model.scorer.requires_grad_(False)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.get_rng_state()
    record(model, split)
    assert model.training is training
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert not any(p.requires_grad for p in model.scorer.parameters())
    assert torch.equal(random, torch.get_rng_state())


def test_what_is_written_is_read(tmp_path, model, split):
    seen = record(model, split)
    write_step(tmp_path, 250, seen)
    write_step(tmp_path, 0, seen)
    trace = Trace(tmp_path)
    assert trace.steps == (0, 250)
    for name in ("alpha", "beta_logit", "delta"):
        stored = trace.quantity(name, 250)
        assert_allclose(stored.values, seen.quantities[name].values)
        assert stored.offsets.tolist() == split.ids.offsets.tolist()
    assert_allclose(
        trace.quantity("beta", 0).values, 1 / (1 + np.exp(-seen.quantities["beta_logit"].values)), rtol=1e-6
    )
    assert trace.correct(0).mean() == seen.accuracy
    assert_allclose(trace.log_odds(0), seen.log_odds)


def test_opens_in_polars_and_pandas(tmp_path, model, split):
    write_step(tmp_path, 0, record(model, split))
    frame = pl.read_parquet(tmp_path / "0.parquet")
    assert frame.columns == [
        "example", "output", "alpha", "beta_logit", "delta", "beta_wrong_logit", "label", "prediction", "log_odds"
    ]  # fmt: skip
    assert frame["alpha"].list.len().to_list() == split.lengths.tolist()
    assert_allclose(frame["alpha"].list.sum(), np.ones(len(split)), rtol=1e-6)
    assert len(frame.to_pandas().loc[0, "delta"]) == split.lengths[0]


def test_errors_say_what_is_there(tmp_path, model, split):
    with pytest.raises(RunError, match="no recorded steps"):
        Trace(tmp_path)
    write_step(tmp_path, 3, record(model, split))
    with pytest.raises(RunError, match=r"step 4 was not recorded; recorded are \[3\]"):
        Trace(tmp_path).quantity("alpha", 4)
    with pytest.raises(RunError, match="'gamma' is not recorded"):
        Trace(tmp_path).quantity("gamma", 3)
    (tmp_path / "3.parquet").write_bytes(b"not parquet")
    with pytest.raises(RunError, match="damaged"):
        Trace(tmp_path).quantity("alpha", 3)


def test_a_bag_of_words_probe_reads_the_labels_column(tmp_path, split):
    table = np.random.default_rng(0).normal(size=(13, 3))
    write_step(tmp_path, 0, probe_snapshot(table, split))
    trace = Trace(tmp_path)
    for i in range(len(split)):
        assert_allclose(trace.quantity("beta_logit", 0)[i], table[split.text(i), split.labels[i]], rtol=1e-6)
    with pytest.raises(RunError, match="this model has no alpha"):
        trace.quantity("alpha", 0)


@pytest.mark.parametrize("encoder", ["bilstm", "lstm"])
def test_saliency_from_the_gates_equals_that_from_embeddings(monkeypatch, split, encoder):
    torch.manual_seed(0)
    model = AttentionClassifier(ModelConfig(7, encoder, hidden=5, scorer_hidden=3), 13, 3).double()
    plain = record(model, split)
    monkeypatch.setattr("heedful.tracing.recorder._MIN_HIDDEN", 1)
    monkeypatch.setattr("heedful.tracing.recorder._MIN_TEXTS", 1)
    assert saliency_by_word(model.encoder, 1)
    by_word = record(model, split)
    for name, rows in plain.quantities.items():
        assert_allclose(by_word.quantities[name].values, rows.values, rtol=1e-11, atol=1e-13)
    assert_allclose(by_word.log_odds, plain.log_odds, rtol=1e-6)


def test_without_saliency_all_else_is_the_same(model, split):
    plain, less = record(model, split), record(model, split, saliency=False)
    known = record(model, split, saliency=False, states=FrozenStates(model, split))
    for other in (less, known):
        assert set(plain.quantities) - set(other.quantities) == {"delta"}
        for name, rows in other.quantities.items():
            assert_allclose(rows.values, plain.quantities[name].values, rtol=1e-6, atol=1e-6)
