import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution.attention_maps import read_attention
from heedful.attribution.interventions import (
    equalise,
    permute,
    permuted,
    prediction_changes,
    uniform,
    visible_places,
)
from tests.audits import zoo
from tests.audits.constructed import in_pieces, passages, pooled, stacked


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_permuted_row_has_the_same_weights_and_masked_places_stay_empty(seed):
    draw = torch.Generator().manual_seed(seed)
    visible = torch.rand(2, 3, 5, 7, generator=draw) > 0.4
    alpha = torch.rand(2, 3, 5, 7, generator=draw) * visible * (torch.rand(2, 3, 5, 7, generator=draw) > 0.4)
    moved, level = permute(alpha, torch.rand(2, 3, 5, 7, generator=draw), visible), equalise(alpha, visible)
    assert not moved[~visible].any()
    assert torch.equal(moved.sort(-1).values, alpha.sort(-1).values)
    torch.testing.assert_close(level.sum(-1), alpha.sum(-1) * visible.any(-1))
    assert torch.equal(level > 0, visible & (alpha.sum(-1, keepdim=True) > 0))


def test_every_order_is_as_likely_as_any_and_zeros_take_part():
    keys = torch.rand(6000, 4, generator=torch.Generator().manual_seed(0))
    visible = torch.tensor([True, False, True, True]).expand(6000, 4)
    moved = permute(torch.tensor([1.0, 0.0, 0.0, 0.0]).expand(6000, 4), keys, visible)
    assert (moved == 1).float().mean(0).tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.02)


@pytest.mark.parametrize(("causal", "lowest"), [(False, 1.0), (True, 0.0)])
def test_only_masked_places_are_not_visible(causal, lowest):
    """The model's attention is made one-hot: what it could see is known from its architecture alone."""
    subject, some = stacked(causal=causal), passages(2, lengths=(5,))
    places = visible_places(subject)

    def of_batch(batch):
        alpha = torch.eye(6, dtype=torch.float64).expand(len(batch.passages), 3, 6, 6)
        return [places(batch, 1, alpha).double().numpy()[i] for i in range(len(batch.passages))]

    for row in subject.map(some, of_batch):
        expected = np.tril(np.ones((6, 6))) if causal else np.ones((6, 6))
        np.testing.assert_array_equal(row, np.broadcast_to(expected, (3, 6, 6)))
        assert row[0, 0, -1] == lowest


def test_a_saturated_softmax_is_moved_like_any_other():
    subject, some = zoo.saturated(), zoo.passages(30)
    found = prediction_changes(subject, some, read_attention(subject, some).probabilities, seed=0)
    assert found["tvd/permuted/layer 1"].mean() > 0.3
    assert found["tvd/uniform/layer 1"].mean() > 0.3


def test_one_head_is_changed_alone():
    subject, some = zoo.one_head(), zoo.passages(12)
    moved = [
        prediction_changes(subject, some, read_attention(subject, some).probabilities, 0, f"layer 1 head {head}")
        for head in (1, 2)
    ]
    assert (moved[0]["tvd/permuted/layer 1 head 1"] == 0).all()
    assert moved[1]["tvd/permuted/layer 1 head 2"].mean() > 0.2


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
            f"{what}/{kind}/{where}"
            for what in ("flip", "tvd")
            for kind in ("permuted", "uniform")
            for where in ("all layers", "layer 1")
        ]
        tvd = found["tvd/permuted/all layers"]
        assert tvd.mean() > 0.2 if listens else (tvd == 0).all()


def test_layers_are_changed_one_by_one_where_there_are_several():
    subject, some = stacked(), passages(3)
    found = prediction_changes(subject, some, read_attention(subject, some).probabilities, seed=0)
    assert {name.split("/")[2] for name in found} == {"all layers", "layer 1", "layer 2"}
    assert all(values.shape == (3,) and (values >= 0).all() for values in found.values())
