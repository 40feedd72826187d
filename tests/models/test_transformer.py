"""What is particular to the Transformer; what all models of sentence pairs share is tested in test_translator."""

import pytest
import torch
from torch.testing import assert_close

from heedful.attribution.modules import translator_network
from heedful.errors import ConfigError
from heedful.tracing.recorder import record_pairs
from tests.models.test_translator import everything, fresh, pairs, small


def test_alpha_is_that_of_the_last_layer_and_the_layers_below_have_theirs():
    model, batch = fresh("transformer"), everything(pairs((4, 3), (6, 2)))
    maps = model.cross_attention(batch)
    assert [alpha.shape for alpha in maps] == [(2, 3, 4, 8)] * 2
    assert_close(maps[-1], model(batch).alpha)
    for alpha in maps:
        assert_close(alpha.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))
        assert alpha[0, :, :, 6:].eq(0).all()


def test_the_uniform_twin_is_uniform_in_every_layer_and_trains_no_scorer():
    model, batch = fresh("transformer", "uniform"), everything(pairs((4, 3)))
    for alpha in model.cross_attention(batch):
        assert_close(alpha, torch.full_like(alpha, 1 / 6))
    model.loss(batch).backward()
    scorers = [p for name, p in model.named_parameters() if ".scorer." in name]
    assert len(scorers) == 8
    assert all(p.grad is None for p in scorers)


def test_a_state_does_not_depend_on_later_words():
    model, batch = fresh("transformer"), everything(pairs((4, 5)))
    before = model(batch).states
    batch.target_in[0, 3] += 1
    after = model(batch).states
    assert_close(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])


def test_without_positions_the_order_of_the_source_does_not_matter():
    """α follows each word to its new place; with positions it does not."""
    batch = everything(pairs((5, 3)))
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    turned = everything(pairs((5, 3)))
    turned.source[:] = batch.source[:, order]
    plain, placed = fresh("transformer without positions"), fresh("transformer")
    assert_close(plain(turned).alpha, plain(batch).alpha[..., order])
    assert not torch.allclose(placed(turned).alpha, placed(batch).alpha[..., order])


@pytest.mark.parametrize("variant", ["transformer", "transformer without positions"])
def test_saliency_is_the_slope_of_the_loss(variant):
    """Δ by finite differences of a mask on one source word, for every output word."""
    model, split = fresh(variant), pairs((4, 2))
    batch, step = everything(split), 1e-6
    seen = record_pairs(model, split)

    def losses(mask):
        output = model.from_embeddings(model.embedding(batch.source) * mask[None, :, None], batch)
        logits = model.read(output.context, output.states)
        return torch.nn.functional.cross_entropy(logits[0], batch.target_out[0], reduction="none")

    for place in range(6):
        up, down = torch.ones(6, dtype=torch.float64), torch.ones(6, dtype=torch.float64)
        up[place], down[place] = 1 + step, 1 - step
        slope = -(losses(up) - losses(down)) / (2 * step)
        found = torch.tensor([seen.quantities["delta"][t][place] for t in range(3)])
        assert_close(found.double(), slope.detach(), rtol=1e-4, atol=1e-6)


def test_a_transformer_can_be_audited():
    model = fresh("transformer")
    network = translator_network(model)
    batch = everything(pairs((4, 3)))
    output = network.run(network.embed(batch.source), batch.target_in)
    expected = model.read(model(batch).context, model(batch).states)[:, -1].softmax(-1)
    assert_close(output.probabilities, expected)


def test_heads_share_the_width():
    with pytest.raises(ConfigError, match=r"translator\.heads is 4; it must be a divisor of the width 6"):
        small(cell="transformer", hidden=6, heads=4)
