"""Gradients and leave-one-out on a model that can be differentiated by hand, in padded and in same-length batches."""

import sys
from dataclasses import replace
from inspect import unwrap
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from captum.attr import Saliency
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from heedful.attribution.importance import gradient_of, gradients, integrated_gradients, jacobian_h_x
from heedful.attribution.interface import Subject
from heedful.attribution.modules import ModuleNetwork, OpenNetwork, classifier_network
from heedful.attribution.network import ModelParts, Output
from heedful.config import ModelConfig
from heedful.errors import DataError, MissingExtraError
from heedful.models.classifier import AttentionClassifier
from tests.attribution.bag import D_Y_H, D_Y_X, G_H_X, G_Y_H, G_Y_X, METHODS, TYPES, Bag, E, share, texts

BATCHING = pytest.mark.parametrize("padded", [True, False])


def predict(model, pieces, embedded=None):
    """Probabilities (K,) of one text."""
    parts = model.parts()
    pieces = torch.as_tensor(pieces)[None]
    embedded = model.embedding(pieces) if embedded is None else embedded[None]
    mask = torch.ones(pieces.shape, dtype=torch.bool)
    return parts.output(parts.encode(embedded, mask, None), mask).probabilities[0]


def opened(model, passage):
    """Hidden states and α of one text."""
    parts, pieces = model.parts(), torch.tensor([passage.pieces])
    states = parts.encode(model.embedding(pieces), torch.ones_like(pieces, dtype=torch.bool), None)
    return states.hidden[0], parts.project(parts.score(states), torch.ones_like(pieces, dtype=torch.bool))[0, 0, 0]


def closed(predict, embedding):
    """A network that shows nothing of itself but its predictions."""

    def run(embedded, change):
        B, L, _ = embedded.shape
        return Output(predict(embedded), (torch.full((B, 1, 1, L), 1 / L),), ())

    return Subject(ModuleNetwork((embedding,), embedding, run, layers=1, heads=1))


@BATCHING
def test_with_attention_held_fixed_the_hidden_states_of_a_linear_model_matter_as_much_as_they_are_attended_to(padded):
    """∂ŷ/∂h_i = ŷ(1 − ŷ) α_i w, so that g_ŷ(I) = α."""
    model, some = Bag(), texts([7])
    found = G_Y_H(model.subject(padded=padded), some, attach=False)
    np.testing.assert_allclose(found[0], opened(model, some[0])[1].detach(), rtol=1e-12)


def test_the_whole_jacobian_of_hidden_states():
    """h_p = tanh(A e_p + b): ∂h_p/∂e_i is diag(1 − h_p²) A at p = i and 0 elsewhere; an LSTM's is autograd's."""
    model, some = Bag(), texts([5])
    h = opened(model, some[0])[0]
    sizes = ((1 - h**2)[:, :, None] * model.inner.weight).flatten(1).norm(dim=1).detach().numpy()
    np.testing.assert_allclose(jacobian_h_x(model.subject(), some)[0], np.diag(sizes), rtol=1e-12, atol=1e-15)
    torch.manual_seed(0)
    lstm = AttentionClassifier(ModelConfig(embedding=E, hidden=2, scorer_hidden=3), TYPES, 2).double().eval()
    embedded = lstm.embedding(torch.tensor([some[0].pieces]))
    mask = torch.ones(embedded.shape[:2], dtype=torch.bool)
    whole = torch.autograd.functional.jacobian(lambda e: lstm.encoder(e, mask)[0][0], embedded)[:, :, 0]
    found = jacobian_h_x(Subject(classifier_network(lstm)), some)[0]
    np.testing.assert_allclose(found, whole.norm(dim=(1, 3)).numpy(), rtol=1e-10)


@BATCHING
def test_known_gradient_through_attention(padded):
    """∂ŷ/∂h_i = ŷ(1 − ŷ) α_i (w + wᵀ(h_i − c) v)."""
    model, some = Bag(), texts([7])
    h, alpha = opened(model, some[0])
    w, v, c = model.output.weight[0], model.context, alpha @ h
    gradient = alpha[:, None] * (w + ((h - c) @ w)[:, None] * v)
    found = G_Y_H(model.subject(padded=padded), some)
    np.testing.assert_allclose(found[0], share(gradient.detach().norm(dim=1)), rtol=1e-12)


def test_a_closed_model_has_the_importances_of_its_input():
    """ŷ = σ(wᵀΣe): every gradient is the same, and leaving one out is known."""
    torch.manual_seed(0)
    embedding, w = nn.Embedding(TYPES, E).double(), torch.randn(E, dtype=torch.float64)

    def two(embedded):
        y = (embedded.sum(1) @ w).sigmoid()
        return torch.stack([1 - y, y], dim=1)

    subject, some = closed(two, embedding), texts([5, 3])
    np.testing.assert_allclose(G_Y_X(subject, some).values, [1 / 5] * 5 + [1 / 3] * 3)
    terms = (embedding(torch.tensor(some[0].pieces)) @ w).detach()
    expected = share((terms.sum().sigmoid() - (terms.sum() - terms).sigmoid()).abs())
    np.testing.assert_allclose(D_Y_X(subject, some)[0], expected, rtol=1e-9)
    assert [row.shape for row in gradients(subject, some).g_y_h] == [(0, 5), (0, 3)]
    with pytest.raises(DataError, match="gradients of hidden states need a network that returns them"):
        G_H_X(subject, some)
    with pytest.raises(DataError, match="hidden states needs a network whose attention can be replaced"):
        D_Y_H(subject, some)
    with pytest.raises(DataError, match="attach=False needs a network whose attention can be replaced"):
        G_Y_X(subject, some, attach=False)
    with pytest.raises(DataError, match="padded batches need a network with `parts`"):
        Subject(subject.network, padded=True)


@pytest.mark.parametrize("classes", [2, 4])
def test_finite_differences(classes):
    model = Bag(classes)
    (passage,) = model.subject().with_targets(texts([6], target=-1))
    embedded = model.embedding(torch.tensor(passage.pieces)).detach()
    step, gradient = 1e-6, np.zeros((6, E))
    for place in np.ndindex(6, E):
        for sign in (1, -1):
            moved = embedded.clone()
            moved[place] += sign * step
            gradient[place] += sign * float(predict(model, passage.pieces, moved)[passage.target].detach()) / (2 * step)
    found = G_Y_X(model.subject(), [passage])
    np.testing.assert_allclose(found[0], share(np.linalg.norm(gradient, axis=1)), rtol=1e-6)


def test_captums_saliency():
    model = Bag(4)
    some = model.subject().with_targets(texts([6, 4], target=-1))
    found = G_Y_X(model.subject(), some)
    for b, passage in enumerate(some):
        embedded = model.embedding(torch.tensor([passage.pieces])).detach().requires_grad_()
        peer = Saliency(lambda e, passage=passage: predict(model, passage.pieces, e[0])[None])
        gradient = peer.attribute(embedded, target=passage.target, abs=False)
        np.testing.assert_allclose(found[b], share(gradient[0].detach().norm(dim=1)), rtol=1e-10)


@BATCHING
def test_captums_attributions(padded):
    """Integrated gradients sum to ŷ − ŷ(0), gradient × input is what its name says."""
    model = Bag(4)
    subject = model.subject(padded=padded)
    some = subject.with_targets(texts([6, 4, 1], target=-1))
    signed = integrated_gradients(subject, some)
    product = gradients(subject, some).x_product
    for b, passage in enumerate(some):
        embedded = model.embedding(torch.tensor(passage.pieces)).detach().requires_grad_()
        p = predict(model, passage.pieces, embedded)
        zero = predict(model, passage.pieces, torch.zeros_like(embedded))
        np.testing.assert_allclose(signed[b].sum(), float((p.max() - zero[p.argmax()]).detach()), atol=1e-8)
        (gradient,) = torch.autograd.grad(p.max(), embedded)
        np.testing.assert_allclose(product[b], (gradient * embedded).sum(-1).detach(), rtol=1e-10)
    in_parts = integrated_gradients(model.subject(padded=padded, max_tokens=4), some)
    np.testing.assert_allclose(np.concatenate(in_parts), np.concatenate(signed), rtol=1e-10)


def test_captum_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(MissingExtraError, match=r"needs the package captum.*heedful\[hf\]"):
        integrated_gradients(Bag().subject(), texts([3]))


@BATCHING
def test_leave_one_out_one_at_a_time(padded):
    model = Bag(4)
    subject = model.subject(padded=padded)
    some = subject.with_targets(texts([7, 2, 5], target=-1))
    by_token, by_state = D_Y_X(subject, some), D_Y_H(subject, some)
    for b, passage in enumerate(some):
        row, target = torch.tensor(passage.pieces), passage.target
        whole = predict(model, row)[target]
        drops = [(whole - predict(model, torch.cat([row[:i], row[i + 1 :]]))[target]) for i in range(len(row))]
        expected = share([abs(float(drop.detach())) for drop in drops])
        np.testing.assert_allclose(by_token[b], expected, rtol=1e-9)
        np.testing.assert_allclose(by_state[b], expected, rtol=1e-9)  # in a bag they are the same


@BATCHING
def test_words_are_left_out_with_all_their_pieces_and_special_words_stay(padded):
    model = Bag()
    (plain,) = texts([6])
    words, word = ("<s>", "two", "one", "three"), (0, 1, 1, 2, 3, 3)
    passage = replace(plain, words=words, special=(True, False, False, False), word=word)
    row = torch.tensor(passage.pieces)
    whole = float(predict(model, row)[1].detach())
    left = [row[[i for i in range(6) if word[i] != w]] for w in (1, 2, 3)]
    drops = [abs(whole - float(predict(model, rest)[1].detach())) for rest in left]
    for method in (D_Y_X, D_Y_H):
        np.testing.assert_allclose(method(model.subject(padded=padded), [passage])[0], share(drops), rtol=1e-9)


def test_another_class_can_be_explained():
    subject = Bag(4).subject()
    some = subject.with_targets(texts([5, 6], target=-1))
    others = [replace(passage, target=(passage.target + 1) % 4) for passage in some]
    for method in (G_Y_X, G_Y_H, D_Y_X, D_Y_H):
        assert np.abs(method(subject, some).values - method(subject, others).values).max() > 1e-3


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 10**6), st.integers(4, 100))
def test_invariants(lengths, seed, max_tokens):
    """Rows sum to 1; padded = same length = one by one = in chunks; in a bag, permuted = permuted."""
    model, some = Bag(seed=seed % 7), texts(lengths, seed)
    order = [np.random.default_rng(seed + i).permutation(n) for i, n in enumerate(lengths)]
    moved = [replace(p, pieces=tuple(p.pieces[i] for i in by)) for p, by in zip(some, order, strict=True)]
    for name, method in METHODS.items():
        found = method(model.subject(), some)
        assert (found.values >= 0).all()
        np.testing.assert_allclose(np.add.reduceat(found.values, found.offsets[:-1]), 1, rtol=1e-12)
        for padded in (True, False):
            in_chunks = method(model.subject(padded=padded, max_tokens=max_tokens), some)
            np.testing.assert_allclose(in_chunks.values, found.values, atol=1e-9)
        alone = [method(model.subject(), [passage]) for passage in some]
        np.testing.assert_allclose(np.concatenate([one.values for one in alone]), found.values, atol=1e-9)
        np.testing.assert_array_equal(np.concatenate([one.undefined for one in alone]), found.undefined)
        if name != "g_h_x":
            permuted = method(model.subject(), moved)
            for b, by in enumerate(order):
                np.testing.assert_allclose(permuted[b], found[b][by], atol=1e-9)


@BATCHING
def test_nothing_to_divide_is_an_equal_share_and_counted(padded):
    model, some = Bag(), texts([4, 1])
    for method in (D_Y_X, D_Y_H):
        found = method(model.subject(padded=padded), some)
        assert found.undefined.tolist() == [False, True]
        assert found[1].tolist() == [1.0]
    with torch.no_grad():
        model.output.weight.zero_()
    for method in (G_Y_X, G_Y_H, D_Y_X, D_Y_H):
        found = method(model.subject(padded=padded), some)
        assert found.undefined.tolist() == [True, True]
        np.testing.assert_array_equal(found.values, [0.25] * 4 + [1.0])
    with torch.no_grad():
        model.inner.weight.zero_()
    found = G_H_X(model.subject(padded=padded), some)
    assert found.undefined.tolist() == [True] * 5
    np.testing.assert_array_equal(found.lengths, [4, 4, 4, 4, 1])


def test_a_prediction_that_ignores_its_input():
    torch.manual_seed(0)
    subject = closed(lambda e: torch.full((len(e), 2), 0.5), nn.Embedding(TYPES, E))
    for method in (G_Y_X, D_Y_X):
        assert method(subject, texts([3, 2])).undefined.all()
    unused = torch.ones(2, requires_grad=True)
    (gradient,) = gradient_of(torch.ones(1), (unused,))
    assert gradient.tolist() == [0, 0]


@pytest.mark.parametrize("grad", [True, False])
@BATCHING
def test_the_model_is_left_as_it_was_found(grad, padded):
    model = Bag()
    model.train()
    model.output.eval()
    model.inner.requires_grad_(False)
    model.output.weight.grad = torch.ones_like(model.output.weight)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random, some = torch.get_rng_state(), texts([4, 3])
    with torch.set_grad_enabled(grad):
        for method in METHODS.values():
            assert np.isfinite(method(model.subject(padded=padded), some).values).all()
        assert np.isfinite(np.concatenate(integrated_gradients(model.subject(padded=padded), some))).all()
        assert torch.is_grad_enabled() == grad
    assert [part.training for part in model.modules()] == [True, True, True, False, True]
    assert [p.requires_grad for p in model.parameters()] == [True, True, False, False, True, True]
    assert [p.grad is None for p in model.parameters()] == [True, True, True, True, False, True]
    assert model.output.weight.grad.eq(1).all()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(part._forward_hooks or part._backward_hooks for part in model.modules())
    assert torch.equal(random, torch.get_rng_state())


@BATCHING
def test_it_is_left_so_even_when_it_fails(padded):
    model = Bag().train()
    with torch.no_grad():
        model.output.bias.fill_(torch.nan)
    for method in (G_Y_X, G_Y_H, D_Y_X, D_Y_H):
        with pytest.raises(DataError, match=r"text [01]: the model's prediction is not a number"):
            method(model.subject(padded=padded), texts([4, 3]))
    assert model.training
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("name", METHODS)
def test_memory_is_bounded(name):
    """However long the texts, no more tokens than allowed (or one text) are ever held at once."""
    model, held = Bag(), []
    parts = model.parts()

    def encode(embedded, mask, before):
        held.append(embedded.shape[0] * embedded.shape[1])
        return parts.encode(embedded, mask, before)

    def read(states, alpha):
        held.append(states.hidden.shape[0] * states.hidden.shape[1])
        return parts.read(states, alpha)

    watched = OpenNetwork(model, model.embedding, ModelParts(encode, parts.score, parts.project, read))
    limit = 50 if name.startswith("d") else 200  # where gradients are taken, a quarter
    METHODS[name](Subject(watched, max_tokens=limit, padded=True), texts([40, 13, 2, 1, 17]))
    assert 25 < max(held) <= 50


def test_what_cannot_be_explained():
    with pytest.raises(DataError, match="text 1 is empty"):
        G_Y_X(Bag().subject(), texts([4, 0]))
    subject = Bag().subject()
    wrong = SimpleNamespace(attention=(torch.ones(1, 1, 1, 4),), probabilities=torch.ones(1))
    with pytest.raises(DataError, match=r"probabilities of shape \(1,\); they must be \(1, labels\)"):
        unwrap(Subject._check)(subject, wrong, subject._batch(texts([4])), finite=True)


def test_a_gradient_that_is_no_number_is_named_by_its_row():
    def steep(embedded):
        height = embedded.sum((1, 2))
        if embedded.shape[1] == 3:
            height = height + (embedded - embedded.detach()).sqrt().sum((1, 2))
        return torch.stack([-height, height], dim=1).softmax(-1)

    with pytest.raises(DataError, match="row 1 has a gradient that is not a finite number"):
        G_Y_X(closed(steep, Bag().embedding), texts([4, 3]))
