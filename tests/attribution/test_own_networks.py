"""Attribution of our own models: every encoder, every projection, both tasks; the fast path against obvious loops."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution import lstm_fast_path
from heedful.attribution.importance import gradients
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import classifier_network, translator_network
from heedful.config import ModelConfig, TranslatorConfig
from heedful.data.batching import PairBatch
from heedful.errors import ConfigError, DataError
from heedful.models.classifier import AttentionClassifier
from heedful.models.translator import Translator
from tests.attribution.bag import D_Y_H, D_Y_X, G_H_X, G_Y_H, G_Y_X, MAX_TOKENS, share

TYPES = 23
SIZES = {"embedding": 5, "hidden": 6, "scorer_hidden": 4}
CLASSIFIERS = {
    "bilstm": ModelConfig(**SIZES),
    "lstm": ModelConfig(**SIZES, encoder="lstm", scorer="additive", projection="sparsemax"),
    "two-layers": ModelConfig(**SIZES, layers=2, projection="entmax15"),
    "transformer": ModelConfig(**SIZES, encoder="transformer", scorer="dot"),
    "affine": ModelConfig(**SIZES, encoder="affine", projection="sparsegen", projection_parameter=0.5),
    "embedding": ModelConfig(**SIZES, encoder="embedding", projection="uniform"),
}
SMALL = {"embedding": 5, "hidden": 6, "dropout": 0.0}
TRANSLATORS = {
    "snell": TranslatorConfig(**SMALL),
    "copying": TranslatorConfig(**SMALL, layers=1, bidirectional=False, attention="bilinear", output="tanh", heads=3),
    "linear": TranslatorConfig(**SMALL, layers=1, output="linear"),
}


def classifier(name, classes=2, seed=0, memory=1.0):
    torch.manual_seed(seed)
    model = AttentionClassifier(CLASSIFIERS[name], TYPES, classes).double().eval()
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter *= memory
    return model


def texts(lengths, seed=0, target=1):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, TYPES, (len(lengths), max(lengths)), generator=generator).tolist()
    return [Passage.of_pieces(i, row[:n], target=target) for i, (row, n) in enumerate(zip(ids, lengths, strict=True))]


def subject_of(model, *, fast=True, max_tokens=MAX_TOKENS):
    network = (translator_network if isinstance(model, Translator) else classifier_network)(model)
    if not fast:
        network.parts = replace(network.parts, lstm=None)
    return Subject(network, max_tokens=max_tokens, padded=True)


def row_of(passage):
    return torch.tensor(passage.pieces)


def probabilities(model, row):
    logits = model(row[None], torch.ones(1, len(row), dtype=torch.bool)).logits[0].detach()
    return torch.stack([1 - logits.sigmoid()[0], logits.sigmoid()[0]]) if len(logits) == 1 else logits.softmax(0)


def without(row, i):
    return torch.cat([row[:i], row[i + 1 :]])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_deletion_at_a_time(name, classes):
    model = classifier(name, classes, memory=3.0)
    subject = subject_of(model)
    some = subject.with_targets(texts([7, 1, 4, 2], target=-1))
    found = D_Y_X(subject, some)
    assert found.undefined.tolist() == [False, True, False, False]
    for b in (0, 2, 3):
        row, target = row_of(some[b]), some[b].target
        whole = probabilities(model, row)
        assert int(whole.argmax()) == target
        drops = [(whole - probabilities(model, without(row, i)))[target].abs() for i in range(len(row))]
        np.testing.assert_allclose(found[b], share(drops), rtol=1e-8)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_backward_pass_per_state(name):
    model = classifier(name, memory=3.0)
    some = texts([7, 1, 4])
    found = G_H_X(subject_of(model), some)
    expected = []
    for passage in some:
        embedded = model.embedding(row_of(passage)[None]).detach().requires_grad_()
        hidden, _ = model.encoder(embedded, torch.ones(embedded.shape[:2], dtype=torch.bool))
        for p in range(len(passage.pieces)):
            (gradient,) = torch.autograd.grad(hidden[0, p].norm(), embedded, retain_graph=True)
            expected.append(share(gradient[0].norm(dim=1)))
    for row, wanted in enumerate(expected):
        np.testing.assert_allclose(found[row], wanted, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("attach", [True, False])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_gradients_of_a_classifier(name, attach):
    model = classifier(name, 3)
    subject = subject_of(model)
    some = subject.with_targets(texts([6], target=-1))
    embedded = model.embedding(row_of(some[0])[None]).detach().requires_grad_()
    output = model.from_embeddings(embedded, torch.ones(1, 6, dtype=torch.bool))
    alpha = output.alpha if attach else output.alpha.detach()
    top = model.from_attention(alpha, output.hidden).softmax(-1).max()
    by_token, by_state = torch.autograd.grad(top, (embedded, output.hidden))
    found = G_Y_X(subject, some, attach=attach)
    np.testing.assert_allclose(found[0], share(by_token[0].norm(dim=1)), rtol=1e-9)
    found = G_Y_H(subject, some, attach=attach)
    np.testing.assert_allclose(found[0], share(by_state[0].norm(dim=1)), rtol=1e-9, atol=1e-15)
    signed = gradients(subject, some, attach=attach).x_product
    np.testing.assert_allclose(signed[0], (by_token * embedded)[0].sum(1).detach(), rtol=1e-9)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_state_left_out_is_projected_around(name):
    model = classifier(name)
    subject, some = subject_of(model), texts([6])
    found = D_Y_H(subject, some)
    states, _ = model.encoder(model.embedding(row_of(some[0])[None]), torch.ones(1, 6, dtype=torch.bool))

    def predict(h):
        scores = model.scorer(h)
        alpha = subject.parts.project(scores, torch.ones_like(scores, dtype=torch.bool))
        return model.from_attention(alpha[:, 0, 0], h).sigmoid()[0, 0].detach()

    drops = [(predict(states) - predict(torch.cat([states[:, :i], states[:, i + 1 :]], dim=1))).abs() for i in range(6)]
    np.testing.assert_allclose(found[0], share(drops), rtol=1e-8, atol=1e-13)


@settings(deadline=None, max_examples=12)
@given(
    st.sampled_from(["bilstm", "lstm"]),
    st.lists(st.integers(1, 24), min_size=1, max_size=4),
    st.integers(30, 2000),
    st.floats(0.2, 4.0),
    st.integers(0, 10**6),
)
def test_the_fast_path_equals_the_general_way(name, lengths, max_tokens, memory, seed):
    model, some = classifier(name, seed=seed % 5, memory=memory), texts(lengths, seed)
    for method in (D_Y_X, G_H_X):
        fast, other = (method(subject_of(model, fast=fast, max_tokens=max_tokens), some) for fast in (True, False))
        np.testing.assert_array_equal(fast.undefined, other.undefined)
        np.testing.assert_allclose(fast.values, other.values, atol=1e-9)


@pytest.mark.parametrize("memory", [1.0, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_forgotten_is_not_followed(monkeypatch, dtype, memory):
    """A long text: variants that have converged and adjoints that have vanished are dropped, to no effect."""
    subject, some = subject_of(classifier("bilstm", memory=memory).to(dtype)), texts([250, 243])
    counted = []
    monkeypatch.setattr(lstm_fast_path, "_converged", count(lstm_fast_path._converged, counted))
    monkeypatch.setattr(lstm_fast_path, "_vanished", count(lstm_fast_path._vanished, counted))
    found = [method(subject, some) for method in (D_Y_X, G_H_X)]
    assert sum(counted) > 0 or memory > 1
    monkeypatch.setattr(lstm_fast_path, "CHECK_EVERY", 10**9)
    for method, short in zip((D_Y_X, G_H_X), found, strict=True):
        np.testing.assert_allclose(
            short.values, method(subject, some).values, atol=1e-12 if dtype.itemsize == 8 else 2e-5
        )


def test_states_whose_adjoints_have_all_vanished_are_left_at_once(monkeypatch):
    lstm = torch.nn.LSTM(3, 4, batch_first=True).double()
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter *= 1e-40
        lstm.bias_ih_l0[4:8] = -1000.0  # nothing of a cell is kept
    embedded, start = torch.randn(2, 60, 3, dtype=torch.float64), torch.randn(60, 2, 4, dtype=torch.float64)
    read = lstm_fast_path.run(lstm, embedded, torch.ones(2, 60, dtype=torch.bool), keep_gates=True)
    followed = [i for i, _, _ in lstm_fast_path._adjoints(read, start, 50, 54)]
    assert followed == list(range(53, 53 - len(followed), -1))
    assert len(followed) < 54
    whole, part = (lstm_fast_path.adjoint_norms([read], start, *span) for span in ((0, 60), (50, 54)))
    torch.testing.assert_close(part, whole[50:54])
    monkeypatch.setattr(lstm_fast_path, "CHECK_EVERY", 10**9)
    torch.testing.assert_close(part, lstm_fast_path.adjoint_norms([read], start, 50, 54), rtol=1e-12, atol=1e-300)


def test_what_is_no_number_has_neither_vanished_nor_converged():
    nan, nothing = torch.full((2, 1, 3), torch.nan), torch.zeros(2, 1, 3)
    assert lstm_fast_path._vanished(nothing, nothing, from_end=True) == 2
    assert lstm_fast_path._vanished(nan, nothing, from_end=True) == 0
    assert lstm_fast_path._converged((nothing, nothing), (nothing[0], nothing[0]), from_end=True) == 2
    assert lstm_fast_path._converged((nan, nothing), (nothing[0], nothing[0]), from_end=True) == 0


def count(function, counted):
    def counting(*args, **kwargs):
        counted.append(function(*args, **kwargs))
        return counted[-1]

    return counting


def test_the_memory_of_the_fast_path_is_bounded():
    """However long the texts, no more hidden states than allowed are held at once."""
    network, held = classifier_network(classifier("bilstm")), []
    layer = network.parts.lstm

    def finish(hidden, last, before):
        held.append(hidden.shape[0] * hidden.shape[1])
        return layer.finish(hidden, last, before)

    network.parts = replace(network.parts, lstm=replace(layer, finish=finish))
    some = texts([90, 13, 2, 1, 17])
    D_Y_X(Subject(network, max_tokens=200, padded=True), some)
    assert 100 < max(held) <= 200
    held.clear()
    G_H_X(Subject(network, max_tokens=MAX_TOKENS, padded=True), some)
    assert max(held) <= 512


def test_only_one_plain_layer_is_read_here():
    with pytest.raises(ConfigError, match="only one layer"):
        lstm_fast_path.run(
            torch.nn.LSTM(3, 4, bidirectional=True), torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool)
        )


def test_an_lstm_without_bias():
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(3, 4, bias=False, batch_first=True).double()
    embedded = torch.randn(2, 5, 3, dtype=torch.float64)
    read = lstm_fast_path.run(lstm, embedded, torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(read.after[0].transpose(0, 1), lstm(embedded)[0])


def pair_batch(pairs, seed=0):
    generator = torch.Generator().manual_seed(seed)
    source_mask = torch.arange(max(n for n, _ in pairs)) < torch.tensor([n for n, _ in pairs])[:, None]
    source = torch.randint(4, TYPES, source_mask.shape, generator=generator) * source_mask
    target_mask = torch.arange(max(m for _, m in pairs)) < torch.tensor([m for _, m in pairs])[:, None]
    told, said = (torch.randint(4, TYPES, target_mask.shape, generator=generator) * target_mask for _ in range(2))
    return PairBatch(source, source_mask, told, said, target_mask, np.arange(len(pairs)))


def one_pair(batch, b, keep):
    """Pair b alone, with the source tokens kept."""
    m = int(batch.target_mask[b].sum())
    source = batch.source[b][keep][None]
    mask = torch.ones(1, m, dtype=torch.bool)
    return PairBatch(
        source, torch.ones_like(source, dtype=torch.bool), batch.target_in[b : b + 1, :m],
        batch.target_out[b : b + 1, :m], mask, np.arange(1),
    )  # fmt: skip


def word_probability(model, pair, output, t):
    logits = model.read(output.context, output.states)[0, t]
    return logits.softmax(0)[pair.target_out[0, t]]


@pytest.mark.parametrize("mode", ["learned", "uniform"])
@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_translators_chosen_word(name, mode):
    torch.manual_seed(0)
    model = Translator(TRANSLATORS[name], TYPES, mode).double().eval()
    batch = pair_batch([(7, 3), (1, 5), (4, 2)])
    position = torch.tensor([2, 3, 0])
    some = [
        Passage.of_pieces(
            b,
            batch.source[b][batch.source_mask[b]].tolist(),
            target=int(batch.target_out[b, t]),
            before=tuple(batch.target_in[b, : t + 1].tolist()),
        )
        for b, t in enumerate(position.tolist())
    ]
    by_token, by_state, by_deletion, by_masking, by_hidden = (
        method(subject_of(model), some) for method in (G_Y_X, G_Y_H, D_Y_X, D_Y_H, G_H_X)
    )
    first = 0
    for b, t in enumerate(position.tolist()):
        n = int(batch.source_mask[b].sum())
        everything = batch.source_mask[b].clone()
        pair = one_pair(batch, b, everything)
        embedded = model.embedding(pair.source).detach().requires_grad_()
        output = model.from_embeddings(embedded, pair)
        p = word_probability(model, pair, output, t)
        gradient = torch.autograd.grad(p, embedded, retain_graph=True)[0][0]
        np.testing.assert_allclose(by_token[b], share(gradient.norm(dim=1)), rtol=1e-8)
        for k in range(n):
            (row,) = torch.autograd.grad(output.hidden[0, k].norm(), embedded, retain_graph=True)
            np.testing.assert_allclose(by_hidden[first + k], share(row[0].norm(dim=1)), rtol=1e-8, atol=1e-12)
        first += n
        if n == 1:
            assert by_deletion.undefined[b]
            assert by_masking.undefined[b]
            continue
        hidden, s = output.hidden.detach().requires_grad_(), output.states.detach()

        def from_hidden(h, s=s, t=t, pair=pair):
            context, _ = model.attend(s, h, torch.ones(h.shape[:2], dtype=torch.bool))
            return model.read(context, s)[0, t].softmax(0)[pair.target_out[0, t]]

        (gradient,) = torch.autograd.grad(from_hidden(hidden), hidden)
        np.testing.assert_allclose(by_state[b], share(gradient[0].norm(dim=1)), rtol=1e-8)
        left = [[j for j in range(n) if j != i] for i in range(n)]
        masked = [from_hidden(hidden[:, keep]).detach() for keep in left]
        np.testing.assert_allclose(by_masking[b], share([(p.detach() - q).abs() for q in masked]), rtol=1e-6)
        deleted = []
        for i in range(n):
            keep = everything.clone()
            keep[i] = False
            shorter = one_pair(batch, b, keep)
            deleted.append((p - word_probability(model, shorter, model(shorter), t)).abs().detach())
        np.testing.assert_allclose(by_deletion[b], share(deleted), rtol=1e-6)


def test_a_classifier_has_no_output_before_and_a_translator_needs_it():
    (passage,) = texts([3])
    with pytest.raises(DataError, match="a translator predicts an output word"):
        G_Y_X(subject_of(Translator(TRANSLATORS["linear"], TYPES)), [passage])
    with pytest.raises(DataError, match="this network is a classifier"):
        G_Y_X(subject_of(classifier("bilstm")), [replace(passage, before=(2,))])
