import numpy as np
import pytest
import torch

from heedful.attribution.attention_maps import attention_maps, query_rows, read_attention, rollout
from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import Subject
from tests.audits import tiny
from tests.audits.constructed import in_pieces, stacked


def maps(subject, some, **options):
    reading = read_attention(subject, some)
    return reading, attention_maps(some, reading.attention, reading.rollout, **options)


def test_every_map_has_a_name():
    _, found = maps(stacked(layers=2, heads=3), in_pieces())
    heads = [f"layer {layer} head {head}" for layer in (1, 2) for head in (1, 2, 3)]
    assert sorted(found) == sorted([*heads, "layer 1", "layer 2", "mean", "rollout"])


def test_no_map_is_shown_twice():
    _, found = maps(stacked(layers=1, heads=1), in_pieces())
    assert sorted(found) == ["layer 1", "rollout"]


def test_without_special_words_the_others_are_renormalised():
    some = in_pieces()
    reading, found = maps(stacked(), some)
    _, everything = maps(stacked(), some, include_special=True)
    for i in range(len(some)):
        alpha = reading.attention[i]
        inside = alpha[1].mean(0)[1:-1]
        np.testing.assert_allclose(found["layer 2"][i], inside / inside.sum())
        np.testing.assert_allclose(everything["layer 2 head 3"][i], alpha[1, 2])
        np.testing.assert_allclose(everything["mean"][i], alpha.mean((0, 1)))


@pytest.mark.parametrize("causal", [False, True])
def test_rollout_against_the_formula_written_out(causal):
    draw = torch.Generator().manual_seed(0)
    layers = [torch.randn(2, 3, 5, 5, generator=draw, dtype=torch.float64) for _ in range(3)]
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) & causal
    layers = [scores.masked_fill(mask, -torch.inf).softmax(-1) for scores in layers]
    flow = rollout(layers)
    for b in range(2):
        mixed = [0.5 * alpha[b].mean(0) + 0.5 * torch.eye(5, dtype=torch.float64) for alpha in layers]
        torch.testing.assert_close(flow[b], mixed[2] @ mixed[1] @ mixed[0])
    torch.testing.assert_close(flow.sum(-1), torch.ones(2, 5, dtype=torch.float64))


def test_attention_from_one_place_has_no_rollout():
    assert rollout([torch.ones(2, 1, 1, 5) / 5]) is None


def test_the_rows_that_explain():
    alpha = torch.arange(2.0 * 3 * 5 * 7).view(2, 3, 5, 7)
    torch.testing.assert_close(query_rows(alpha, "first"), alpha[:, :, 0])
    torch.testing.assert_close(query_rows(alpha, "last"), alpha[:, :, 4])
    torch.testing.assert_close(query_rows(alpha, "mean"), alpha.mean(2))


def test_of_a_long_text_only_the_rows_of_the_query_are_kept(monkeypatch):
    """The same as if everything were kept."""
    made = tiny.bert(seed=3)
    with open_model(made.model.double(), made.tokenizer) as (network, reader):
        passages = [reader.read(i, text) for i, text in enumerate(tiny.TEXTS)]
        subject = Subject(network, reader)
        whole = read_attention(subject, passages)
        monkeypatch.setattr("heedful.attribution.attention_maps.LONG", 0)
        monkeypatch.setattr(type(network), "run", lambda *given, **options: pytest.fail("everything was kept"))
        rows = read_attention(subject, passages)
    for name in ("attention", "rollout"):
        for first, second in zip(getattr(whole, name), getattr(rows, name), strict=True):
            np.testing.assert_allclose(first, second, atol=1e-12)
    np.testing.assert_allclose(whole.probabilities, rows.probabilities, atol=1e-12)
