import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from heedful.config import TranslatorConfig
from heedful.data.batching import collate
from heedful.data.ragged import Ragged, as_ids
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import BOS, EOS
from heedful.models.classifier import BagOfWordsProxy, log_odds
from heedful.models.lexicon import count_table
from heedful.models.translator import Translator
from heedful.tracing.recorder import record_lexicon, record_pairs, record_proxy
from heedful.tracing.store import Trace, write_step

VOCABULARY = 13


@pytest.fixture
def pairs() -> EncodedPairs:
    rng = np.random.default_rng(0)

    def side(sizes):
        rows = [[BOS, *rng.integers(4, VOCABULARY, size=n).tolist(), EOS] for n in sizes]
        words = np.concatenate([[-1, *range(n), -1] for n in sizes]).astype(np.int32)
        return as_ids(rows), Ragged.from_lengths(words, [n + 2 for n in sizes])

    (source, source_words), (target, target_words) = side([5, 2, 7]), side([3, 6, 1])
    return EncodedPairs(source, target, source_words, target_words)


@pytest.fixture(params=["snell", "copying", "linear"])
def model(request) -> Translator:
    torch.manual_seed(0)
    settings = {
        "snell": {},
        "copying": {"layers": 1, "bidirectional": False, "attention": "bilinear", "output": "tanh", "heads": 2},
        "linear": {"output": "linear"},
    }[request.param]
    return Translator(TranslatorConfig(embedding=5, hidden=7, dropout=0.0, **settings), VOCABULARY).double()


def test_delta_is_the_derivative_of_a_mask(model, pairs):
    """Δ_{t,l} = −∂NLL_t/∂m_l, by finite differences in float64."""
    delta = record_pairs(model, pairs).quantities["delta"]
    step, row = 1e-6, 0
    model.eval()
    for i in range(len(pairs)):
        batch = collate(pairs, np.array([i]))
        embedded = model.embedding(batch.source).detach()
        T, L = batch.target_out.shape[1], batch.source.shape[1]
        for position in range(L):
            losses = []
            for m in (1 + step, 1 - step):
                scaled = embedded.clone()
                scaled[0, position] *= m
                output = model.from_embeddings(scaled, batch)
                odds = log_odds(model.read(output.context, output.states), batch.target_out)
                losses.append(torch.nn.functional.softplus(-odds)[0].detach().numpy())
            expected = -(losses[0] - losses[1]) / (2 * step)
            actual = [delta[row + t][position] for t in range(T)]
            assert_allclose(actual, expected, rtol=1e-4, atol=1e-7)
        row += T


def test_batched_equals_one_by_one_and_the_model_is_left_alone(model, pairs):
    model.train()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.get_rng_state()
    together, alone = record_pairs(model, pairs), record_pairs(model, pairs, max_tokens=1)
    for name in ("alpha", "beta_logit", "delta"):
        assert_allclose(together.quantities[name].values, alone.quantities[name].values, rtol=1e-8, atol=1e-12)
    assert together.prediction.tolist() == alone.prediction.tolist()
    assert model.training
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(random, torch.get_rng_state())


def test_rows_are_output_words_in_order(model, pairs, tmp_path):
    seen = record_pairs(model, pairs)
    write_step(tmp_path, 0, seen)
    trace = Trace(tmp_path)
    assert trace.example().tolist() == [0] * 4 + [1] * 7 + [2] * 2
    assert trace.output().tolist() == [*range(4), *range(7), *range(2)]
    assert seen.label.tolist() == [w for target in pairs.target for w in target[1:]]
    alpha = trace.quantity("alpha", 0)
    assert alpha.lengths.tolist() == [7] * 4 + [4] * 7 + [9] * 2
    assert_allclose(np.add.reduceat(alpha.values, alpha.offsets[:-1]), np.ones(13), rtol=1e-6)


def test_the_proxys_probe_is_that_of_single_words(pairs):
    torch.manual_seed(0)
    proxy = BagOfWordsProxy(VOCABULARY, VOCABULARY, width=5)
    beta = record_proxy(proxy, pairs).quantities["beta_logit"]
    p = proxy.output(proxy.embedding.weight).softmax(-1).detach().numpy().astype(np.float64)
    row = 0
    for i in range(len(pairs)):
        for word in pairs.target[i][1:]:
            share = p[pairs.source[i], word]
            assert_allclose(beta[row], np.log(share / (1 - share)), rtol=1e-4, atol=1e-5)
            row += 1


def test_the_lexicon_is_recorded_without_infinities(pairs):
    lexicon = count_table(pairs.source, pairs.outputs, source_size=VOCABULARY, target_size=VOCABULARY).lexicon()
    seen = record_lexicon(lexicon, pairs)
    alpha = seen.quantities["alpha"]
    assert_allclose(np.add.reduceat(alpha.values, alpha.offsets[:-1]), np.ones(len(alpha)))
    assert np.isfinite(seen.quantities["beta_logit"].values).all()
    assert seen.prediction is None


def test_without_saliency_all_else_is_the_same(model, pairs):
    plain, less = record_pairs(model, pairs), record_pairs(model, pairs, saliency=False)
    assert set(plain.quantities) - set(less.quantities) == {"delta"}
    for name, rows in less.quantities.items():
        assert_allclose(rows.values, plain.quantities[name].values, rtol=1e-12)
    assert_allclose(less.log_odds, plain.log_odds)
    assert less.prediction.tolist() == plain.prediction.tolist()
