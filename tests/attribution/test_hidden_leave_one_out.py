import numpy as np
import torch
from torch.testing import assert_close

from heedful.attribution.attention_maps import read_attention
from heedful.attribution.leave_one_out import d_y_h, hide_pieces
from tests.audits.constructed import in_pieces, passages, pooled, stacked


def test_a_row_keeps_its_weight_unless_all_of_it_was_hidden():
    alpha = torch.tensor([[[[0.5, 0.2, 0.1, 0.2], [0.0, 0.0, 1.0, 0.0]]]])
    left = hide_pieces(alpha, torch.tensor([[True, False, True, False]]))
    assert_close(left, torch.tensor([[[[0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0]]]]))


def test_where_attention_is_ignored_nothing_is_lost_by_hiding():
    ignored, heeded = pooled(listens=False), pooled()
    assert all((row < 1e-12).all() for row in d_y_h(ignored, ignored.with_targets(passages(3)), 0))
    assert all(row.max() > 0.01 for row in d_y_h(heeded, heeded.with_targets(passages(3)), 0))


def test_each_word_is_hidden_from_one_layer_with_all_its_pieces():
    subject = stacked()
    some = subject.with_targets(in_pieces())
    for passage, row in zip(some, d_y_h(subject, some, 1), strict=True):
        assert row[0] == row[-1] == 0
        (whole,) = read_attention(subject, [passage]).probabilities[:, passage.target]
        for word in range(1, len(row) - 1):
            seen = torch.tensor([[float(of != word) for of in passage.word]])

            def change(layer, alpha, seen=seen):
                kept = alpha * seen
                return alpha if layer == 0 else kept / kept.sum(-1, keepdim=True)

            (without,) = subject.with_attention([passage], lambda batch, change=change: change)[:, passage.target]
            np.testing.assert_allclose(row[word], abs(whole - without), atol=1e-9)
