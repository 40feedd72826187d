import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from heedful.attribution.taps import Tap, Taps, find_taps
from heedful.errors import DataError

B, H, Q, L = 2, 3, 5, 7
SCORES = torch.randn(B, H, Q, L, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
WAYS = {
    "functional": lambda x: F.softmax(x, dim=-1),
    "torch": lambda x: torch.softmax(x, -1),
    "method": lambda x: x.softmax(-1),
    "special": lambda x: torch.special.softmax(x, -1),
    "module": torch.nn.Softmax(dim=-1),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_call_softmax_is_seen_once(way):
    seen = []
    with Tap(lambda k, alpha: seen.append((k, alpha)) or alpha) as tap:
        first, second = WAYS[way](SCORES), WAYS[way](2 * SCORES)
    assert tap.count == 2
    assert [k for k, _ in seen] == [0, 1]
    assert seen[0][1] is first
    assert torch.equal(first, WAYS[way](SCORES))
    assert torch.equal(second, WAYS[way](2 * SCORES))


def test_other_softmaxes_and_other_functions_pass():
    with Tap(lambda k, alpha: torch.zeros_like(alpha)) as tap:
        assert_close(torch.zeros(4, 5, 2).softmax(-1), torch.full((4, 5, 2), 0.5))
        assert (SCORES.exp() > 0).all()
        F.log_softmax(SCORES, dim=-1)
    assert tap.count == 0


def test_nothing_is_left_when_it_closes_even_by_an_exception():
    def fail(k, alpha):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"), Tap(fail):
        SCORES.softmax(-1)
    assert_close(SCORES.softmax(-1).sum(-1), torch.ones(B, H, Q, dtype=torch.float64))


def test_gradient_flows_through_what_is_put_in():
    put = torch.rand(B, H, Q, L, dtype=torch.float64, requires_grad=True)
    with Tap(lambda k, alpha: put):
        (SCORES.softmax(-1) * SCORES).sum().backward()
    assert_close(put.grad, SCORES)


def test_an_attention_of_another_shape_is_refused():
    says = r"shape \(2, 3, 5, 6\) cannot replace attention of shape \(2, 3, 5, 7\)"
    with pytest.raises(DataError, match=says), Tap(lambda k, alpha: alpha[..., 1:]):
        SCORES.softmax(-1)


def test_what_is_put_in_takes_the_precision_of_the_model():
    with Tap(lambda k, alpha: alpha.float()):
        assert SCORES.softmax(-1).dtype == torch.float64


def model(*, own: bool = False):
    """Two layers of attention, between them a softmax of four axes that is none."""
    first = SCORES.softmax(-1)
    gate = SCORES.transpose(1, 2).softmax(-1)
    scores = SCORES * first + gate.transpose(1, 2)
    return first, scores.exp() / scores.exp().sum(-1, keepdim=True) if own else scores.softmax(-1)


def test_softmaxes_that_are_no_attention_are_told_apart():
    taps = find_taps(model)
    assert taps == Taps({0: 0, 2: 1}, 3)
    uniform = taps.run(model, lambda layer, alpha: torch.full_like(alpha, 1 / L) if layer == 1 else alpha)
    assert torch.equal(uniform[0], model()[0])
    assert torch.equal(uniform[1], torch.full_like(SCORES, 1 / L))


def test_change_in_one_layer_reaches_the_next():
    taps = find_taps(model)
    changed = taps.run(model, lambda layer, alpha: torch.full_like(alpha, 1 / L) if layer == 0 else alpha)
    gate = SCORES.transpose(1, 2).softmax(-1).transpose(1, 2)
    assert_close(changed[1], (SCORES / L + gate).softmax(-1))


def test_attention_made_by_other_means_is_not_found():
    assert find_taps(lambda: model(own=True)) is None


def test_attention_that_is_a_copy_and_not_what_is_used_is_not_found():
    fixed = SCORES.softmax(-1)

    def returns_what_it_does_not_use():
        SCORES.softmax(-1)
        return (fixed,)

    assert find_taps(returns_what_it_does_not_use) is None


def test_equal_attentions_of_several_layers_are_taken_in_order():
    zeros = torch.zeros(B, H, Q, L)
    assert find_taps(lambda: tuple(zeros.softmax(-1) for _ in range(3))).layer == {0: 0, 1: 1, 2: 2}


def test_another_number_of_softmaxes_than_before_is_an_error():
    taps = Taps({0: 0}, 2)
    with pytest.raises(DataError, match="computed 1 softmaxes for this input, but 2"):
        taps.run(lambda: SCORES.softmax(-1), lambda layer, alpha: alpha)


def test_known_value():
    with Tap(lambda k, alpha: alpha.flip(-1)):
        found = torch.tensor([0.0, math.log(3)]).view(1, 1, 1, 2).softmax(-1)
    assert_close(found.flatten(), torch.tensor([0.75, 0.25]))
