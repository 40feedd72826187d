import numpy as np
import pytest
import torch
from torch.testing import assert_close

from heedful.attribution.attention_maps import read_attention
from heedful.attribution.importance import d_y_h, hide_pieces
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import ModuleNetwork, OpenNetwork
from heedful.attribution.network import ModelParts, Output, States
from heedful.models.attention import sparsemax
from tests.audits.constructed import in_pieces, passages, pooled, stacked


def test_a_row_keeps_its_weight_unless_all_of_it_was_hidden():
    alpha = torch.tensor([[[[0.5, 0.2, 0.1, 0.2], [0.0, 0.0, 1.0, 0.0]]]])
    left = hide_pieces(alpha, torch.tensor([[True, False, True, False]]))
    assert_close(left, torch.tensor([[[[0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0]]]]))


def test_where_attention_is_ignored_nothing_is_lost_by_hiding():
    ignored, heeded = pooled(listens=False), pooled()
    assert all((np.abs(row) < 1e-12).all() for row in d_y_h(ignored, ignored.with_targets(passages(3)), 0))
    assert all(row.max() > 0.01 for row in d_y_h(heeded, heeded.with_targets(passages(3)), 0))


def test_each_word_is_hidden_from_one_layer_with_all_its_pieces():
    subject = stacked()
    some = subject.with_targets(in_pieces())
    for passage, row in zip(some, d_y_h(subject, some, 1), strict=True):
        assert row[0] == row[-1] == 0
        (whole,) = read_attention(subject, [passage]).probabilities[:, passage.target]
        for word in range(1, len(row) - 1):
            seen = torch.tensor([[float(of != word) for of in passage.word]])

            def change(batch, layer, alpha, seen=seen):
                kept = alpha * seen
                return alpha if layer == 0 else kept / kept.sum(-1, keepdim=True)

            (without,) = subject.with_attention([passage], change)[:, passage.target]
            np.testing.assert_allclose(row[word], whole - without, atol=1e-9)


def sparse_run(embedded, change=None):
    """Scores and values are the two columns of an embedding; ŷ = Σ α v, α by sparsemax."""
    alpha = sparsemax(embedded[..., 0])[:, None, None]
    alpha = alpha if change is None else change(0, alpha)
    return Output(sparse_read(States(embedded), alpha), (alpha,), (embedded,))


def sparse_read(states, alpha):
    y = (alpha[:, 0, 0] * states.hidden[..., 1]).sum(-1)
    return torch.stack([1 - y, y], dim=1)


SPARSE = ModelParts(
    encode=lambda embedded, mask, before: States(embedded),
    score=lambda states: states.hidden[..., 0],
    project=lambda scores, mask: sparsemax(scores, mask)[:, None, None],
    read=sparse_read,
)


@pytest.mark.parametrize("padded", [True, False])
def test_the_scores_that_are_left_are_projected_anew_by_sparsemax(padded):
    """Scores 1, 0.8, 0.1: α = 0.6, 0.4, 0. Without the first, 0.85 and 0.15; without the second, 0.95 and 0.05.

    Scores 3, 1, 1: α = 1, 0, 0. Without the first, ½ and ½.
    """
    table = torch.tensor([[1.0, 1.0], [0.8, 0.0], [0.1, 0.5], [3.0, 0.2], [1.0, 0.4], [1.0, 1.0]], dtype=torch.float64)
    model = torch.nn.Embedding.from_pretrained(table)
    some = [Passage.of_pieces(0, [0, 1, 2], target=1), Passage.of_pieces(1, [3, 4, 5], target=1)]
    found = d_y_h(Subject(OpenNetwork(model, model, SPARSE), padded=padded), some)
    np.testing.assert_allclose(found, [[0.6 - 0.075, 0.6 - 0.975, 0.0], [-0.5, 0.0, 0.0]], atol=1e-12)
    by_shares = d_y_h(
        Subject(ModuleNetwork((model,), model, sparse_run, layers=1, heads=1, can_change=True)), some
    )  # without scores, the weights that are left are divided by their sum; nothing is left of the second text
    np.testing.assert_allclose(by_shares, [[0.6, -0.4, 0.0], [0.2, 0.0, 0.0]], atol=1e-12)
