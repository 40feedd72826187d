import numpy as np
import pytest
import torch

from heedful.config import TranslatorConfig
from heedful.data.batching import PairBatch, copying_batches
from heedful.data.ragged import as_ids
from heedful.data.vocabulary import EOS, PAD
from heedful.errors import ConfigError
from heedful.models.guidance import AttentionGuide, HelpedModel
from heedful.models.lexicon import count_table, ibm_model_1
from heedful.models.translator import Translator

TINY = TranslatorConfig(
    embedding=7, hidden=5, layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0, heads=3
)


def guided(steps: int = 10) -> tuple[AttentionGuide, PairBatch]:
    batch = next(copying_batches("copy-dose:43", 3))
    return AttentionGuide(ibm_model_1(list(batch.source.numpy()), list(batch.target_out.numpy())), steps), batch


def test_targets_are_those_of_the_lexicon():
    guide, batch = guided()
    sources, targets = as_ids(list(batch.source.numpy())), as_ids(list(batch.target_out.numpy()))
    expected = guide.lexicon.alpha(sources, targets).values.reshape(3, 41, 41)
    np.testing.assert_allclose(guide.targets(batch).numpy(), expected, rtol=1e-5)


def test_padding_gets_nothing_and_changes_nothing():
    guide, batch = guided()
    more = torch.nn.functional.pad
    padded = PairBatch(
        more(batch.source, (0, 3), value=PAD),
        more(batch.source_mask, (0, 3), value=False),
        more(batch.target_in, (0, 2), value=PAD),
        more(batch.target_out, (0, 2), value=PAD),
        more(batch.target_mask, (0, 2), value=False),
        batch.index,
    )
    targets = guide.targets(padded)
    assert (targets[:, :, 41:] == 0).all()
    torch.testing.assert_close(targets[:, :41, :41], guide.targets(batch))
    torch.manual_seed(0)
    model = Translator(TINY, EOS + 1 + 43)
    torch.testing.assert_close(guide.loss(model, padded, 3), guide.loss(model, batch, 3))


def test_words_that_never_met_are_attended_to_alike():
    lexicon = count_table([[4, 5]], [[4, 5]], source_size=6, target_size=6).lexicon()
    _, batch = guided()
    row = AttentionGuide(lexicon, 1).targets(batch)[0]
    torch.testing.assert_close(row.sum(-1), torch.ones(41))
    strange = [t for t, word in enumerate(batch.target_out[0].tolist()) if word not in (4, 5)]
    torch.testing.assert_close(row[strange[0]], torch.full((41,), 1 / 41))


def test_the_loss_fades_into_the_models_own():
    guide, batch = guided(steps=4)
    torch.manual_seed(0)
    model = Translator(TINY, EOS + 1 + 43)
    own = model.loss(batch)
    extra = [(guide.loss(model, batch, step) - own).item() for step in range(6)]
    assert extra[4:] == [0.0, 0.0]
    np.testing.assert_allclose(extra[:4], [extra[0] * w for w in (1, 0.75, 0.5, 0.25)], rtol=1e-4)


def test_a_step_brings_attention_nearer():
    guide, batch = guided()
    torch.manual_seed(0)
    model = Translator(TINY, EOS + 1 + 43)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)

    def distance() -> float:
        with torch.no_grad():
            return float((model(batch).alpha - guide.targets(batch)[:, None]).abs().sum(-1).mean())

    before = distance()
    for _ in range(5):
        optimiser.zero_grad()
        guide.loss(model, batch, 0).backward()
        optimiser.step()
    assert distance() < before


def test_the_loss_is_finite_where_attention_underflows():
    guide, batch = guided()
    torch.manual_seed(0)
    model = Translator(TINY, EOS + 1 + 43)
    for weight in model.scorer.parameters():
        weight.data.mul_(1e6)
    loss = guide.loss(model, batch, 0)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_no_steps_are_a_clear_error():
    guide, _ = guided()
    with pytest.raises(ConfigError, match="guided for 0 steps; it must be 1 or more"):
        AttentionGuide(guide.lexicon, 0)


@torch.no_grad()
def test_help_ends_and_its_steps_count_from_the_release():
    """Held uniform for two steps, then guided for two, then the model's own loss."""
    guide, batch = guided(steps=2)
    torch.manual_seed(0)
    model = Translator(TINY, int(batch.source.max()) + 1)
    helped = HelpedModel(model, uniform_steps=2, guide=guide)
    losses = {step: float((helped.at(step), helped.loss(batch))[1].detach()) for step in (0, 1, 2, 3, 4)}
    own = float(model.loss(batch).detach())
    assert model.mode == "learned"
    assert losses[0] == losses[1]
    assert losses[2] == pytest.approx(float(guide.loss(model, batch, 0)))
    assert losses[3] == pytest.approx(float(guide.loss(model, batch, 1)))
    assert losses[2] > losses[3] > losses[4] == own
    model.mode = "uniform"
    assert losses[0] == float(model.loss(batch))
    assert set(helped.parameters()) == set(model.parameters())
    assert helped.scorer is model.scorer
