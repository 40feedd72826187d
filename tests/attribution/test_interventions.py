import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution.attention_maps import read_attention
from heedful.attribution.interventions import equalise, permute, permuted, prediction_changes, uniform
from tests.audits.constructed import in_pieces, passages, pooled, stacked


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_permuted_row_has_the_same_weights_and_the_same_zeros(seed):
    draw = torch.Generator().manual_seed(seed)
    alpha = torch.rand(2, 3, 5, 7, generator=draw) * (torch.rand(2, 3, 5, 7, generator=draw) > 0.4)
    moved = permute(alpha, torch.rand(2, 3, 5, 7, generator=draw))
    assert torch.equal(moved == 0, alpha == 0)
    assert torch.equal(moved.sort(-1).values, alpha.sort(-1).values)
    torch.testing.assert_close(equalise(alpha).sum(-1), alpha.sum(-1))
    assert torch.equal(equalise(alpha) == 0, alpha == 0)


def test_every_order_is_as_likely_as_any():
    keys = torch.rand(6000, 4, generator=torch.Generator().manual_seed(0))
    moved = permute(torch.tensor([0.6, 0.0, 0.3, 0.1]).expand(6000, 4), keys)
    assert (moved == 0.6).float().mean(0).tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.02)


@pytest.mark.parametrize("change", [permuted(3), permuted(3, 1), uniform(), uniform(0)])
def test_a_changed_prediction_does_not_depend_on_the_batch(change):
    some = [*passages(7), *in_pieces(3)]
    together = stacked().with_attention(some, change)
    for i, passage in enumerate(some):
        np.testing.assert_allclose(together[i], stacked().with_attention([passage], change)[0], atol=1e-12)


def test_a_seed_is_an_order():
    some = passages(4)
    first, again, other = (stacked().with_attention(some, permuted(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_one_layer_is_changed_or_all_are():
    seen = []

    def watch(batch, layer, alpha):
        result = permuted(0, 1)(batch, layer, alpha)
        seen.append((layer, torch.equal(result, alpha)))
        return result

    stacked().with_attention(passages(1), watch)
    assert seen == [(0, True), (1, False)]


def test_predictions_move_where_attention_decides_and_only_there():
    for listens in (True, False):
        subject = pooled(listens=listens)
        some = passages(9)
        found = prediction_changes(subject, some, read_attention(subject, some).probabilities, seed=0)
        assert sorted(found) == [
            f"{what}/{kind}/all layers" for what in ("flip", "tvd") for kind in ("permuted", "uniform")
        ]
        tvd = found["tvd/permuted/all layers"]
        assert tvd.mean() > 0.2 if listens else (tvd == 0).all()


def test_layers_are_changed_one_by_one_where_there_are_several():
    subject, some = stacked(), passages(3)
    found = prediction_changes(subject, some, read_attention(subject, some).probabilities, seed=0)
    assert {name.split("/")[2] for name in found} == {"all layers", "layer 1", "layer 2"}
    assert all(values.shape == (3,) and (values >= 0).all() for values in found.values())
