import sys
from inspect import unwrap

import numpy as np
import pytest
import torch
from captum.attr import Saliency
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from heedful.attribution.forward import Forward, States
from heedful.attribution.importance import d_y_h, d_y_x, g_h_x, g_y_h, g_y_x, gradient_input, integrated_gradients
from heedful.errors import DataError, MissingExtraError

TYPES, E = 29, 3
EVERY = (g_y_x, g_y_h, g_h_x, d_y_x, d_y_h)


def share(values):
    values = np.asarray(values, dtype=float)
    return values / values.sum(-1, keepdims=True)


class Bag(nn.Module):
    """h = tanh(Ae), a = vᵀh, α = softmax, p = σ or softmax of Wc: everything differentiable by hand."""

    def __init__(self, classes=1, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(TYPES, E)
        self.inner = nn.Linear(E, 5)
        self.context = nn.Parameter(torch.randn(5))
        self.output = nn.Linear(5, classes)
        self.dropout = nn.Dropout(0.5)
        self.double().eval()

    def forward_parts(self) -> Forward:
        def read(states, alpha):
            logits = self.output(self.dropout(torch.einsum("bl,bld->bd", alpha, states.hidden)))
            return logits.sigmoid() if logits.shape[1] == 1 else logits.softmax(-1)

        return Forward(
            embed=self.embedding,
            encode=lambda embedded, mask, text: States(self.inner(embedded).tanh()),
            score=lambda states: states.hidden @ self.context,
            project=lambda scores, mask: scores.masked_fill(~mask, -torch.inf).softmax(-1),
            read=read,
            modules=(self,),
        )


def ask(forward, tokens, embedded=None):
    """Probabilities (K,) of one text without padding."""
    tokens = torch.as_tensor(tokens)[None]
    embedded = forward.embed(tokens) if embedded is None else embedded[None]
    mask = torch.ones(tokens.shape, dtype=torch.bool)
    return forward.predict(forward.encode(embedded, mask, torch.tensor([0])), mask)[0]


def told(*args):
    return ask(*args).detach()


def batch_of(lengths, seed=0, extra=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths) + extra) < torch.tensor(lengths)[:, None]
    return torch.randint(0, TYPES, mask.shape, generator=generator), mask


def test_with_attention_held_fixed_the_hidden_states_of_a_linear_model_matter_as_much_as_they_are_attended_to():
    """∂ŷ/∂h_i = ŷ(1 − ŷ) α_i w, so that g_ŷ(I) = α."""
    model = Bag()
    forward = model.forward_parts()
    tokens, mask = batch_of([7])
    states = forward.encode(forward.embed(tokens), mask, torch.tensor([0]))
    alpha = forward.project(forward.score(states), mask)[0].detach()
    np.testing.assert_allclose(g_y_h(forward, tokens, mask, attach=False)[0], alpha, rtol=1e-12)


def test_known_gradient_through_attention():
    """∂ŷ/∂h_i = ŷ(1 − ŷ) α_i (w + wᵀ(h_i − c) v)."""
    model = Bag()
    forward = model.forward_parts()
    tokens, mask = batch_of([7])
    states = forward.encode(forward.embed(tokens), mask, torch.tensor([0]))
    alpha = forward.project(forward.score(states), mask)[0]
    h, w, v = states.hidden[0], model.output.weight[0], model.context
    c = alpha @ h
    gradient = alpha[:, None] * (w + ((h - c) @ w)[:, None] * v)
    np.testing.assert_allclose(g_y_h(forward, tokens, mask)[0], share(gradient.detach().norm(dim=1)), rtol=1e-12)


def test_a_closed_model_has_the_importances_of_its_input():
    """ŷ = σ(wᵀΣe): every gradient is the same, and leaving one out is known."""
    torch.manual_seed(0)
    embedding, w = nn.Embedding(TYPES, E).double(), torch.randn(E, dtype=torch.float64)
    forward = Forward.closed(
        embedding, lambda e, mask, text: ((e * mask[..., None]).sum(1) @ w).sigmoid()[:, None], (embedding,)
    )
    tokens, mask = batch_of([5, 3])
    np.testing.assert_allclose(g_y_x(forward, tokens, mask).values, [1 / 5] * 5 + [1 / 3] * 3)
    terms = (embedding(tokens[0]) @ w).detach()
    expected = share((terms.sum().sigmoid() - (terms.sum() - terms).sigmoid()).abs())
    np.testing.assert_allclose(d_y_x(forward, tokens, mask)[0], expected, rtol=1e-12)
    for refused in (g_y_h, g_h_x, d_y_h):
        with pytest.raises(DataError, match="hidden states"):
            refused(forward, tokens, mask)
    for refused in (g_y_x, gradient_input):
        with pytest.raises(DataError, match="attach=False"):
            refused(forward, tokens, mask, attach=False)


@pytest.mark.parametrize("classes", [1, 4])
def test_finite_differences(classes):
    forward = Bag(classes).forward_parts()
    tokens, mask = batch_of([6])
    embedded = forward.embed(tokens)[0].detach()
    chosen = int(ask(forward, tokens[0]).argmax())
    step, gradient = 1e-6, np.zeros((6, E))
    for place in np.ndindex(6, E):
        for sign in (1, -1):
            moved = embedded.clone()
            moved[place] += sign * step
            gradient[place] += sign * float(told(forward, tokens[0], moved)[chosen]) / (2 * step)
    np.testing.assert_allclose(g_y_x(forward, tokens, mask)[0], share(np.linalg.norm(gradient, axis=1)), rtol=1e-6)


def test_captums_saliency():
    forward = Bag(4).forward_parts()
    tokens, mask = batch_of([6, 4])

    def predict(embedded, mask):
        return forward.predict(forward.encode(embedded, mask, torch.arange(2)), mask)

    embedded = forward.embed(tokens).detach().requires_grad_()
    targets = predict(embedded, mask).argmax(1)
    gradients = Saliency(predict).attribute(embedded, target=targets, abs=False, additional_forward_args=(mask,))
    found = g_y_x(forward, tokens, mask)
    for b, n in enumerate((6, 4)):
        np.testing.assert_allclose(found[b], share(gradients[b, :n].detach().norm(dim=1)), rtol=1e-10)


def test_captums_attributions():
    """Integrated gradients sum to ŷ − ŷ(0), gradient · input is what its name says."""
    forward = Bag(4).forward_parts()
    tokens, mask = batch_of([6, 4, 1])
    signed = integrated_gradients(forward, tokens, mask)
    first_order = gradient_input(forward, tokens, mask)
    for b, n in enumerate((6, 4, 1)):
        row = tokens[b, :n]
        embedded = forward.embed(row).detach().requires_grad_()
        p = ask(forward, row, embedded)
        zero = ask(forward, row, torch.zeros_like(embedded))
        np.testing.assert_allclose(signed[b].sum(), float((p.max() - zero[p.argmax()]).detach()), atol=1e-8)
        (gradient,) = torch.autograd.grad(p.max(), embedded)
        np.testing.assert_allclose(first_order[b], (gradient * embedded).sum(-1).detach(), rtol=1e-10)
    in_parts = integrated_gradients(forward, tokens, mask, max_tokens=1)
    np.testing.assert_allclose(in_parts.values, signed.values, rtol=1e-10)


def test_captum_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(MissingExtraError, match=r"needs the package captum.*heedful\[hf\]"):
        integrated_gradients(Bag().forward_parts(), *batch_of([3]))


def test_leave_one_out_one_at_a_time():
    forward = Bag(4).forward_parts()
    tokens, mask = batch_of([7, 2, 5])
    by_token, by_state = d_y_x(forward, tokens, mask), d_y_h(forward, tokens, mask)
    for b, n in enumerate((7, 2, 5)):
        row = tokens[b, :n]
        whole = told(forward, row)
        drops = [
            float((whole - told(forward, torch.cat([row[:i], row[i + 1 :]])))[whole.argmax()].abs()) for i in range(n)
        ]
        np.testing.assert_allclose(by_token[b], share(drops), rtol=1e-9)
        np.testing.assert_allclose(by_state[b], share(drops), rtol=1e-9)  # in a bag they are the same


def test_another_class_can_be_asked_about():
    forward = Bag(4).forward_parts()
    tokens, mask = batch_of([5, 6])
    predicted = torch.stack([ask(forward, tokens[b, :n]).argmax() for b, n in enumerate((5, 6))])
    for measure in (g_y_x, g_y_h, d_y_x, d_y_h):
        usual = measure(forward, tokens, mask)
        np.testing.assert_array_equal(usual.values, measure(forward, tokens, mask, targets=predicted).values)
        other = measure(forward, tokens, mask, targets=(predicted + 1) % 4)
        assert np.abs(usual.values - other.values).max() > 1e-3


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 10**6), st.integers(1, 100))
def test_invariants(lengths, seed, max_tokens):
    """Rows sum to 1; batched = one by one = in chunks; masked = removed; in a bag, permuted = permuted."""
    forward = Bag(seed=seed % 7).forward_parts()
    rng = np.random.default_rng(seed)
    tokens, mask = batch_of([max(lengths)] * len(lengths), seed, extra=2)
    for row, n in zip(mask, lengths, strict=True):
        row[:] = False
        row[torch.from_numpy(rng.permutation(len(row))[:n])] = True
    for measure in EVERY:
        found = measure(forward, tokens, mask)
        assert (found.values >= 0).all()
        np.testing.assert_allclose(np.add.reduceat(found.values, found.offsets[:-1]), 1, rtol=1e-12)
        np.testing.assert_allclose(
            measure(forward, tokens, mask, max_tokens=max_tokens).values, found.values, atol=1e-9
        )
        alone = [
            measure(forward, row[keep][None], torch.ones(1, int(keep.sum()), dtype=torch.bool))
            for row, keep in zip(tokens, mask, strict=True)
        ]
        np.testing.assert_allclose(np.concatenate([one.values for one in alone]), found.values, atol=1e-9)
        np.testing.assert_array_equal(np.concatenate([one.undefined for one in alone]), found.undefined)
        if measure is not g_h_x:
            order = torch.from_numpy(rng.permutation(mask.shape[1]))
            moved = measure(forward, tokens[:, order], mask[:, order])
            for b in range(len(lengths)):
                places = order[mask[b, order]]
                rank = (mask[b].cumsum(0) - 1)[places]
                np.testing.assert_allclose(moved[b], found[b][rank.numpy()], atol=1e-9)


def test_nothing_to_divide_is_an_equal_share_and_counted():
    model = Bag()
    tokens, mask = batch_of([4, 1])
    for measure in (d_y_x, d_y_h):
        found = measure(model.forward_parts(), tokens, mask)
        assert found.undefined.tolist() == [False, True]
        assert found[1].tolist() == [1.0]
    with torch.no_grad():
        model.output.weight.zero_()
    for measure in (g_y_x, g_y_h, d_y_x, d_y_h):
        found = measure(model.forward_parts(), tokens, mask)
        assert found.undefined.tolist() == [True, True]
        np.testing.assert_array_equal(found.values, [0.25] * 4 + [1.0])
    with torch.no_grad():
        model.inner.weight.zero_()
    found = g_h_x(model.forward_parts(), tokens, mask)
    assert found.undefined.tolist() == [True] * 5
    np.testing.assert_array_equal(found.lengths, [4, 4, 4, 4, 1])


def test_a_prediction_that_ignores_its_input():
    torch.manual_seed(0)
    embedding = nn.Embedding(TYPES, E)
    forward = Forward.closed(embedding, lambda e, mask, text: torch.full((len(e), 1), 0.3), (embedding,))
    for measure in (g_y_x, d_y_x):
        assert measure(forward, *batch_of([3, 2])).undefined.all()


@pytest.mark.parametrize("grad", [True, False])
def test_the_model_is_left_as_it_was_found(grad):
    model = Bag()
    model.train()
    model.output.eval()
    model.inner.requires_grad_(False)
    model.output.weight.grad = torch.ones_like(model.output.weight)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    tokens, mask = batch_of([4, 3])
    with torch.set_grad_enabled(grad):
        for measure in (*EVERY, gradient_input, integrated_gradients):
            assert np.isfinite(measure(model.forward_parts(), tokens, mask).values).all()
        assert torch.is_grad_enabled() == grad
    assert [part.training for part in model.modules()] == [True, True, True, False, True]
    assert [p.requires_grad for p in model.parameters()] == [True, True, False, False, True, True]
    assert [p.grad is None for p in model.parameters()] == [True, True, True, True, False, True]
    assert model.output.weight.grad.eq(1).all()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(part._forward_hooks or part._backward_hooks for part in model.modules())
    assert torch.equal(random, torch.get_rng_state())


def test_it_is_left_so_even_when_it_fails():
    model = Bag().train()
    forward = model.forward_parts()
    with torch.no_grad():
        model.output.bias.fill_(torch.nan)
    for measure in (g_y_x, g_y_h, d_y_x, d_y_h):
        with pytest.raises(DataError, match=r"text [01] is not a number"):
            measure(forward, *batch_of([4, 3]))
    assert model.training
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("measure", EVERY)
def test_memory_is_bounded(measure):
    """However long the texts, no more tokens than allowed (or one text) are ever held at once."""
    forward, held = Bag().forward_parts(), []

    def encode(embedded, mask, text):
        held.append(embedded.shape[0] * embedded.shape[1])
        return States(forward.encode(embedded, mask, text).hidden, (mask,))

    def read(states, alpha):
        held.append(states.hidden.shape[0] * states.hidden.shape[1])
        return forward.read(states, alpha)

    watched = Forward(forward.embed, encode, forward.score, forward.project, read, forward.modules)
    tokens, mask = batch_of([40, 13, 2, 1, 17])
    measure(watched, tokens, mask, max_tokens=50)
    assert max(held) <= 50
    assert max(held) > 25


def test_what_cannot_be_asked():
    forward = Bag().forward_parts()
    tokens, mask = batch_of([4, 3])
    with pytest.raises(DataError, match="text 1 has every token masked"):
        g_y_x(forward, tokens, mask & torch.tensor([[True], [False]]))
    with pytest.raises(DataError, match="they must agree"):
        unwrap(d_y_x)(forward, tokens, mask[:, :2])
    wrong = Forward.closed(forward.embed, lambda e, mask, text: e.sum((1, 2)))
    with pytest.raises(DataError, match=r"must be \(texts, classes\)"):
        d_y_x(wrong, tokens, mask)


def test_a_gradient_that_is_no_number_is_named_by_its_row():
    def steep(embedded, mask, text):
        height = embedded.sum((1, 2))
        height[text == 1] += (embedded - embedded.detach())[text == 1].sqrt().sum((1, 2))
        return height.sigmoid()[:, None]

    with pytest.raises(DataError, match="row 1 has a gradient that is not a finite number"):
        g_y_x(Forward.closed(Bag().embedding, steep), *batch_of([4, 3]))
