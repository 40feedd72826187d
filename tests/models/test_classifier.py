import inspect
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from heedful.config import ModelConfig
from heedful.data.batching import collate
from heedful.data.vocabulary import BOS, EOS, EncodedSplit
from heedful.errors import ConfigError
from heedful.models.attention import SCORERS
from heedful.models.classifier import AttentionClassifier, lexical_probe, log_odds, nll, predict
from heedful.models.encoders import build_encoder

VOCABULARY, CLASSES = 23, 3
ENCODERS = ("embedding", "affine", "lstm", "bilstm", "transformer")


def texts(*lengths: int, seed: int = 0) -> EncodedSplit:
    rng = np.random.default_rng(seed)
    rows = [[BOS, *rng.integers(4, VOCABULARY, size=n).tolist(), EOS] for n in lengths]
    return EncodedSplit.of(rows, [i % CLASSES for i in range(len(rows))])


def small(**settings) -> ModelConfig:
    return ModelConfig(**{"embedding": 7, "hidden": 5, "scorer_hidden": 3, **settings})


def everything(split: EncodedSplit):
    return collate(split, np.arange(len(split)))


def test_snell_classifier_has_the_papers_parameter_count():
    model = AttentionClassifier(ModelConfig(), VOCABULARY, classes=2)
    outside = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("embedding"))
    assert outside == 1_274_882


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_batched_equals_one_by_one(encoder, scorer):
    torch.manual_seed(0)
    model = AttentionClassifier(small(encoder=encoder, scorer=scorer), VOCABULARY, CLASSES).double().eval()
    split = texts(11, 1, 5, 2)
    batch = everything(split)
    together = model(batch.tokens, batch.mask)
    for i in range(len(split)):
        alone_batch = collate(split, np.array([i]))
        alone = model(alone_batch.tokens, alone_batch.mask)
        n = int(split.lengths[i])
        assert_close(together.logits[i], alone.logits[0])
        assert_close(together.alpha[i, :n], alone.alpha[0])
        assert_close(together.hidden[i, :n], alone.hidden[0])
        assert together.alpha[i, n:].eq(0).all()


@pytest.mark.parametrize("layers", [1, 2])
def test_bilstm_equals_torchs_packed_one(layers):
    torch.manual_seed(0)
    config = small(layers=layers)
    model = AttentionClassifier(config, VOCABULARY, 2).double().eval()
    peer = torch.nn.LSTM(7, 5, num_layers=layers, batch_first=True, bidirectional=True).double()
    for layer in range(layers):
        for ours, suffix in ((model.encoder.forwards[layer], ""), (model.encoder.backwards[layer], "_reverse")):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(peer, f"{kind}_l{layer}{suffix}").data.copy_(getattr(ours, f"{kind}_l0").data)
    batch = everything(texts(4, 9, 2))
    embedded = model.embedding(batch.tokens)
    packed = torch.nn.utils.rnn.pack_padded_sequence(embedded, batch.lengths, batch_first=True, enforce_sorted=False)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(peer(packed)[0], batch_first=True)
    actual, _ = model.encoder(embedded, batch.mask)
    assert_close(actual * batch.mask[..., None], expected)


def test_transformer_returns_weights_that_are_distributions():
    model = AttentionClassifier(small(encoder="transformer", layers=2), VOCABULARY, 2).eval()
    batch = everything(texts(4, 9))
    weights = model(batch.tokens, batch.mask).self_attention
    assert len(weights) == 2
    assert weights[0].shape == (2, 1, 11, 11)
    assert_close(weights[1].sum(-1)[batch.mask[:, None]], torch.ones(17))
    assert weights[1].masked_select(~batch.mask[:, None, None, :]).eq(0).all()


def test_equation_12_links_probe_and_prediction():
    """p_correct = σ(Σ α_l σ⁻¹(β_l)): the logit is the attention-weighted mean of the probes' log-odds."""
    torch.manual_seed(0)
    model = AttentionClassifier(small(), VOCABULARY, 2).double().eval()
    split = texts(6, 3)
    batch = everything(EncodedSplit(split.ids, np.array([0, 1])))
    output = model(batch.tokens, batch.mask)
    beta = lexical_probe(model, output.hidden, batch.labels)
    assert_close((output.alpha * beta).sum(-1), log_odds(output.logits, batch.labels))


def test_uniform_mode_is_one_over_length_and_leaves_the_scorer_untrained():
    model = AttentionClassifier(small(), VOCABULARY, 2, mode="uniform")
    batch = everything(texts(3, 1))
    output = model(batch.tokens, batch.mask)
    assert_close(output.alpha[0], torch.full((5,), 1 / 5))
    assert_close(output.alpha[1], torch.tensor([1 / 3] * 3 + [0.0] * 2))
    output.logits.sum().backward()
    assert all(p.grad is None for p in model.scorer.parameters())


@pytest.mark.parametrize(("mode", "trained"), [("frozen", "other"), ("only", "scorer"), ("learned", "all")])
def test_modes_freeze_what_they_say(mode, trained):
    model = AttentionClassifier(small(), VOCABULARY, 2, mode=mode)
    scorer = {p.requires_grad for p in model.scorer.parameters()}
    other = {p.requires_grad for name, p in model.named_parameters() if not name.startswith("scorer")}
    assert (scorer, other) == {"other": ({False}, {True}), "scorer": ({True}, {False}), "all": ({True}, {True})}[
        trained
    ]


def test_two_logits_and_one_say_the_same():
    z = torch.tensor([1.7, -0.4], dtype=torch.float64)
    labels = torch.tensor([1, 0])
    pair = torch.stack([torch.zeros(2, dtype=torch.float64), z], dim=-1)
    assert_close(nll(z[:, None], labels), nll(pair, labels))
    assert_close(nll(pair, labels), torch.nn.functional.cross_entropy(pair, labels, reduction="none"))
    assert predict(z[:, None]).tolist() == predict(pair).tolist() == [1, 0]


def test_log_odds_do_not_saturate():
    assert log_odds(torch.tensor([[60.0]]), torch.tensor([1])).item() == 60.0
    three = log_odds(torch.tensor([[60.0, 0.0, 0.0]]), torch.tensor([0]))
    assert math.isclose(three.item(), 60 - math.log(2), rel_tol=1e-6)


def test_parts_that_there_are_not_are_refused():
    with pytest.raises(ConfigError, match=rf"model\.scorer 'cosine' is not one of {', '.join(SCORERS)}"):
        AttentionClassifier(small(scorer="cosine"), 30, 2)
    with pytest.raises(ConfigError, match="encoder 'gru' is not one of embedding, affine, lstm, bilstm, transformer"):
        inspect.unwrap(build_encoder)(SimpleNamespace(encoder="gru"))  # under pytest jaxtyping would speak first


def test_one_class_is_refused():
    with pytest.raises(ConfigError, match="two classes"):
        AttentionClassifier(small(), VOCABULARY, 1)


def test_the_regulariser_adds_the_overlap_of_context_and_output():
    config = ModelConfig(embedding=3, encoder="embedding", scorer="dot", output_bias=False, embedding_range=0.1)
    torch.manual_seed(0)
    plain = AttentionClassifier(config, vocabulary=7, classes=2)
    assert plain.embedding.weight.abs().max() <= 0.1
    torch.manual_seed(0)
    regularised = AttentionClassifier(replace(config, orthogonality=0.5), vocabulary=7, classes=2)
    batch = collate(EncodedSplit.of([[2, 4, 5, 3]], [1]), np.array([0]))
    overlap = abs((plain.output.weight[0] @ plain.scorer.context.weight[0]).item())
    assert (regularised.loss(batch) - plain.loss(batch)).item() == pytest.approx(0.5 * overlap, rel=1e-5)
    with pytest.raises(ConfigError, match="orthogonality"):
        ModelConfig(orthogonality=0.1)
