import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from heedful.config import TrainConfig, TranslatorConfig
from heedful.data.batching import PairBatch
from heedful.data.vocabulary import PAD
from heedful.models.recurrence import is_faster_by_word, read_words
from heedful.models.training import build_optimiser
from heedful.models.translator import Translator

V, E, H, B, L = 11, 5, 7, 3, 13


def layer(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Embedding(V, E, padding_idx=PAD).to(dtype), nn.LSTM(E, H, batch_first=True).to(dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_equals_torchs_lstm_there_and_back(dtype, tolerance):
    embedding, lstm = layer(dtype)
    words = torch.randint(0, V, (B, L))  # padding too: its embedding must not learn
    h, c = (torch.randn(B, H, dtype=dtype, requires_grad=True) for _ in range(2))
    outputs, (h_last, c_last) = lstm(embedding(words), (h[None], c[None]))
    ours, last = read_words(lstm, embedding, words, start=(h, c))
    assert_close(ours, outputs, rtol=tolerance, atol=tolerance)
    assert_close(last, (h_last[0], c_last[0]), rtol=tolerance, atol=tolerance)
    weights = [torch.randn_like(x) for x in (ours, *last)]
    inputs = [*lstm.parameters(), embedding.weight, h, c]
    wanted = torch.autograd.grad(
        sum((w * x).sum() for w, x in zip(weights, (outputs, h_last[0], c_last[0]), strict=True)), inputs
    )
    found = torch.autograd.grad(sum((w * x).sum() for w, x in zip(weights, (ours, *last), strict=True)), inputs)
    for a, b in zip(found, wanted, strict=True):
        assert_close(a, b, rtol=10 * tolerance, atol=10 * tolerance)
    assert found[4][PAD].eq(0).all()


def test_without_a_padding_word_every_embedding_learns():
    embedding, lstm = nn.Embedding(V, E).double(), layer()[1]
    words = torch.arange(V)[None]
    wanted, found = (
        torch.autograd.grad(outputs.square().sum(), embedding.weight)[0]
        for outputs in (lstm(embedding(words))[0], read_words(lstm, embedding, words)[0])
    )
    assert_close(found, wanted)
    assert found.ne(0).all()


def test_gradients():
    embedding, lstm = layer()
    words = torch.randint(0, V, (2, 4))
    state = [torch.randn(2, H, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    parameters = tuple(lstm.parameters())
    start = tuple(state)

    def run(h, c, *_):
        outputs, (last, cell) = read_words(lstm, embedding, words, start=(h, c))
        return outputs, last, cell

    assert torch.autograd.gradcheck(run, (*start, *parameters))


def test_the_last_state_skips_padding():
    embedding, lstm = layer()
    lengths = [4, L, 1]
    mask = torch.arange(L) < torch.tensor(lengths)[:, None]
    words = torch.randint(1, V, (B, L)) * mask
    outputs, (h, c) = read_words(lstm, embedding, words, mask)
    for b, n in enumerate(lengths):
        alone, (h_alone, c_alone) = lstm(embedding(words[b : b + 1, :n]))
        assert_close(outputs[b, :n], alone[0])
        assert_close(h[b], h_alone[0, 0])
        assert_close(c[b], c_alone[0, 0])


def test_when_it_pays():
    many, few = torch.zeros(64, 5, dtype=torch.long), torch.zeros(8, 5, dtype=torch.long)
    small, large = nn.Embedding(50, 4), nn.Embedding(5000, 4)
    assert is_faster_by_word(nn.LSTM(4, 4), small, many)
    assert not is_faster_by_word(nn.LSTM(4, 4), small, few)
    assert not is_faster_by_word(nn.LSTM(4, 4), large, many)
    assert not is_faster_by_word(nn.LSTM(4, 4, num_layers=2), small, many)


def copying_batch(seed=0, size=64):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, L, (size,), generator=generator)
    mask = torch.arange(L) < lengths[:, None]
    source, told, said = (torch.randint(4, V, (size, L), generator=generator) * mask for _ in range(3))
    return PairBatch(source, mask, told, said, mask, np.arange(size))


def copying_model(dtype):
    torch.manual_seed(0)
    config = TranslatorConfig(embedding=E, hidden=H, layers=1, bidirectional=False, attention="bilinear", dropout=0.0)
    return Translator(config, V).to(dtype)


def test_a_translator_reads_words_and_embeddings_alike():
    model, batch = copying_model(torch.float64), copying_batch()
    assert is_faster_by_word(model.decoder, model.embedding, batch.source)
    words, embeddings = model(batch), model.from_embeddings(model.embedding(batch.source), batch)
    assert_close(words.alpha, embeddings.alpha)
    assert_close(words.hidden[batch.source_mask], embeddings.hidden[batch.source_mask])
    assert_close(words.context[batch.target_mask], embeddings.context[batch.target_mask])
    assert_close(words.states[batch.target_mask], embeddings.states[batch.target_mask])


def test_training_is_the_same_each_time():
    """To the last bit, so that a run taken up again ends where one never stopped would have."""

    def trained():
        model = copying_model(torch.float32)
        optimiser = build_optimiser(model, TrainConfig())
        for seed in range(3):
            optimiser.zero_grad()
            model.loss(copying_batch(seed)).backward()
            optimiser.step()
        return model.state_dict()

    once, again = trained(), trained()
    assert all(torch.equal(once[name], again[name]) for name in once)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_a_gru_equals_torchs_there_and_back(dtype, tolerance):
    torch.manual_seed(0)
    embedding, gru = nn.Embedding(V, E, padding_idx=PAD).to(dtype), nn.GRU(E, H, batch_first=True).to(dtype)
    words = torch.randint(0, V, (B, L))
    h = torch.randn(B, H, dtype=dtype, requires_grad=True)
    outputs, last = gru(embedding(words), h[None])
    ours, (h_last,) = read_words(gru, embedding, words, start=(h,))
    assert_close(ours, outputs, rtol=tolerance, atol=tolerance)
    assert_close(h_last, last[0], rtol=tolerance, atol=tolerance)
    weights, inputs = torch.randn_like(ours), [*gru.parameters(), embedding.weight, h]
    wanted, found = (torch.autograd.grad((weights * x).sum(), inputs) for x in (outputs, ours))
    for a, b in zip(found, wanted, strict=True):
        assert_close(a, b, rtol=10 * tolerance, atol=10 * tolerance)
    assert found[4][PAD].eq(0).all()


def test_a_gru_with_an_embedding_for_each_side_reads_words_and_embeddings_alike():
    torch.manual_seed(0)
    config = TranslatorConfig(
        embedding=E,
        hidden=H,
        layers=1,
        bidirectional=False,
        attention="affine",
        dropout=0.0,
        cell="gru",
        shared_embedding=False,
        heads=2,
    )
    model, batch = Translator(config, V).double(), copying_batch()
    assert is_faster_by_word(model.decoder, model.embedding, batch.source)
    words, embeddings = model(batch), model.from_embeddings(model.embedding(batch.source), batch)
    assert_close(words.alpha, embeddings.alpha)
    assert_close(words.context[batch.target_mask], embeddings.context[batch.target_mask])
    assert_close(words.states[batch.target_mask], embeddings.states[batch.target_mask])
