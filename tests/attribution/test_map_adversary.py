import math

import numpy as np
import pytest
import torch

from heedful.attribution.attention_maps import attention_maps, read_attention
from heedful.attribution.interventions import other_maps, reweighted
from heedful.errors import DataError
from heedful.metrics.entropy import jensen_shannon
from tests.audits import zoo
from tests.audits.constructed import in_pieces, passages, pooled, stacked


def adversarial_divergence(subject, some, **options):
    return np.array([other.divergence for other in other_maps(subject, some, **options)])


def test_another_attention_exists_where_attention_is_ignored_and_not_where_it_decides():
    some = passages(6)
    ignored = adversarial_divergence(pooled(listens=False), some, steps=60)
    decides = adversarial_divergence(pooled(), some, steps=60)
    assert (ignored > 0.5).all()
    assert (ignored <= math.log(2)).all()
    assert (decides < 0.2).all()


def test_without_steps_nothing_is_found():
    np.testing.assert_array_equal(adversarial_divergence(pooled(), passages(2), steps=0), [0, 0])


@pytest.mark.parametrize("causal", [False, True])
def test_an_adversary_is_the_same_in_any_batch_and_again(causal):
    some = [*passages(4), *in_pieces(2)]
    together = adversarial_divergence(stacked(causal=causal), some, steps=7)
    alone = [adversarial_divergence(stacked(causal=causal), [passage], steps=7)[0] for passage in some]
    np.testing.assert_allclose(together, alone, atol=1e-9)
    np.testing.assert_array_equal(together, adversarial_divergence(stacked(causal=causal), some, steps=7))
    assert (together > 0).any()


def test_more_steps_find_no_less():
    some = passages(4)
    few, many = (adversarial_divergence(stacked(), some, steps=steps) for steps in (5, 25))
    assert (many >= few).all()


def test_the_map_of_one_head_is_freer_than_that_of_all():
    """Of a network of one head both are the same search."""
    some, three, one = passages(3), stacked(), stacked(heads=1)
    np.testing.assert_array_equal(
        adversarial_divergence(one, some, steps=7, head=0), adversarial_divergence(one, some, steps=7)
    )
    alone = [adversarial_divergence(three, some, steps=15, head=head).mean() for head in range(3)]
    assert max(alone) > adversarial_divergence(three, some, steps=15).mean()
    assert len(set(alone)) == 3


def test_scores_move_weight_and_zeros_stay():
    alpha = torch.tensor([[0.2, 0.8, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    scores = torch.zeros_like(alpha, requires_grad=True)
    moved = reweighted(alpha, scores, alpha > 0)
    torch.testing.assert_close(moved.detach(), alpha)
    (gradient,) = torch.autograd.grad(moved[0, 0], scores)
    torch.testing.assert_close(gradient[0], torch.tensor([0.16, -0.16, 0.0], dtype=torch.float64))


def test_a_weight_of_zero_can_be_raised():
    alpha, visible = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64), torch.tensor([True, True, False])
    scores = torch.tensor([0.0, 20.0, 20.0], dtype=torch.float64)
    moved = reweighted(alpha, scores, visible)
    assert moved[1] > 0.99
    assert moved[2] == 0


def test_the_other_map_has_the_prediction_and_the_divergence_that_it_says():
    subject = zoo.twins()
    some = subject.with_targets(zoo.passages(4))
    own = attention_maps(some, read_attention(subject, some).attention, [None] * 4)["layer 1"]
    found = other_maps(subject, some, steps=40)
    full = subject.predict(some, [np.ones(len(p.words), dtype=bool) for p in some])
    for i, other in enumerate(found):
        assert other.weights.sum() == pytest.approx(1)
        assert other.divergence > 0.4
        assert other.divergence == pytest.approx(float(jensen_shannon(other.weights[None], own[i][None])[0]), abs=1e-6)
        assert other.probability == pytest.approx(full[i], abs=0.01)


def test_only_the_map_shown_is_changed():
    """The second layer takes away what the first adds: changing both would keep the prediction, but one is shown."""
    assert (adversarial_divergence(zoo.undoing(), zoo.passages(4), steps=60) < 0.2).all()


def test_a_network_that_cannot_be_changed_has_no_adversary():
    with pytest.raises(DataError, match="another attention needs a network whose attention can be replaced"):
        adversarial_divergence(pooled(can_change=False), passages(1))
