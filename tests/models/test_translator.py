import numpy as np
import pytest
import torch
from torch.testing import assert_close

from heedful.config import TranslatorConfig
from heedful.data.batching import PairBatch, collate
from heedful.data.parallel import Alignment
from heedful.data.ragged import Ragged, as_ids
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import BOS, EOS, PAD
from heedful.errors import ConfigError
from heedful.models.classifier import log_odds
from heedful.models.transformer import build_translator
from heedful.models.translator import PairModel, Translator, translate, translator_probe

VOCABULARY = 17


def pairs(*lengths: tuple[int, int], seed: int = 0) -> EncodedPairs:
    rng = np.random.default_rng(seed)

    def side(sizes):
        rows = [[BOS, *rng.integers(4, VOCABULARY, size=n).tolist(), EOS] for n in sizes]
        words = np.concatenate([[-1, *range(n), -1] for n in sizes]).astype(np.int32)
        return as_ids(rows), Ragged.from_lengths(words, [n + 2 for n in sizes])

    source, source_words = side([a for a, _ in lengths])
    target, target_words = side([b for _, b in lengths])
    gold = tuple(Alignment.of([(0, 0)]) for _ in lengths)
    return EncodedPairs(source, target, source_words, target_words, gold)


def small(**settings) -> TranslatorConfig:
    return TranslatorConfig(**{"embedding": 5, "hidden": 7, "dropout": 0.0, **settings})


VARIANTS = {
    "snell": small(),
    "copying": small(layers=1, bidirectional=False, attention="bilinear", output="tanh", heads=3),
    "linear": small(layers=1, output="linear"),
    "both ways, bilinear": small(layers=1, attention="bilinear"),
    "transformer": small(cell="transformer", hidden=6, heads=3),
    "transformer without positions": small(cell="transformer", hidden=6, heads=2, layers=1, positions=False),
    "figure 6": small(layers=1, bidirectional=False, output="tanh", heads=3, cell="gru", shared_embedding=False),
}


def fresh(variant: str, mode="learned") -> PairModel:
    torch.manual_seed(0)
    return build_translator(VARIANTS[variant], VOCABULARY, mode).double().eval()


def everything(split: EncodedPairs):
    return collate(split, np.arange(len(split)))


def test_snell_translator_has_the_papers_parameter_counts():
    model = Translator(TranslatorConfig(), 8000)
    total = sum(p.numel() for p in model.parameters())
    assert total == 8_180_544
    assert total - model.embedding.weight.numel() == 6_132_544


def test_snell_translator_is_that_of_the_released_code():
    """Attention of W s_t + b over the encoder's raw states; the context is projected after pooling; then N."""
    model = fresh("snell")
    batch = everything(pairs((4, 3), (6, 2)))
    output = model(batch)
    assert output.hidden.shape[-1] == 2 * output.states.shape[-1] == 14
    (query,), (value,) = model.scorer.weights, model.values
    for b, length in enumerate(batch.source_mask.sum(1).tolist()):
        h, s = output.hidden[b, :length], output.states[b]
        alpha = ((s @ query.weight.T + query.bias) @ h.T).softmax(-1)
        context = (alpha @ h) @ value.weight.T + value.bias
        inner = torch.cat([context, s], -1) @ model.context_in.weight.T + model.context_in.bias
        logits = inner.relu() @ model.output.weight.T + model.output.bias
        assert_close(output.alpha[b, 0, :, :length], alpha)
        assert_close(model.read(output.context, output.states)[b], logits)


def test_the_heads_of_figure_6_are_those_of_the_released_code():
    """Two GRUs with an embedding each; every head projects its own context; the mean of all goes into N."""
    model = fresh("figure 6")
    batch = everything(pairs((4, 3)))
    hidden, last = model.encoder.gru(model.embedding(batch.source))
    states, _ = model.decoder(model.embedding_target(batch.target_in), last)
    contexts = [
        value((query(states) @ hidden.transpose(1, 2)).softmax(-1) @ hidden)
        for query, value in zip(model.scorer.weights, model.values, strict=True)
    ]
    output = model(batch)
    assert_close(output.context, sum(contexts) / 3)
    assert_close(output.states, states)


def test_a_uniform_translator_computes_no_score():
    model, batch = fresh("snell", "uniform"), everything(pairs((4, 3), (2, 5)))
    model.loss(batch).backward()
    assert all(p.grad is None for p in model.scorer.parameters())
    real = batch.source_mask[:, None, None].expand_as(model(batch).alpha)
    assert_close(model(batch).alpha, real / real.sum(-1, keepdim=True, dtype=torch.float64))


@pytest.mark.parametrize("mode", ["learned", "uniform"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_batched_equals_one_by_one(variant, mode):
    model = fresh(variant, mode)
    split = pairs((6, 3), (2, 8), (11, 1))
    batch = everything(split)
    together = model(batch)
    for i in range(len(split)):
        one = collate(split, np.array([i]))
        alone = model(one)
        L, T = one.source.shape[1], one.target_out.shape[1]
        logits, alone_logits = (model.read(out.context, out.states) for out in (together, alone))
        assert_close(logits[i, :T], alone_logits[0])
        assert_close(together.alpha[i, :, :T, :L], alone.alpha[0])
        assert_close(together.hidden[i, :L], alone.hidden[0])
        assert together.alpha[i, :, :, L:].eq(0).all()


def test_decoder_starts_from_the_mean_of_both_directions():
    model = fresh("snell")
    batch = everything(pairs((4, 2)))
    embedded = model.embedding(batch.source)
    peer = torch.nn.LSTM(5, 7, num_layers=2, batch_first=True, bidirectional=True).double()
    for layer in range(2):
        for ours, suffix in ((model.encoder.forwards[layer], ""), (model.encoder.backwards[layer], "_reverse")):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(peer, f"{kind}_l{layer}{suffix}").data.copy_(getattr(ours, f"{kind}_l0").data)
    _, (h, c) = peer(embedded)
    _, start = model.encode(embedded, batch.source_mask)
    assert_close(start[0], h.view(2, 2, 1, 7).mean(1))
    assert_close(start[1], c.view(2, 2, 1, 7).mean(1))


def test_the_last_state_skips_padding():
    """In float32 too, the state after a text's own last token equals that of the text alone."""
    model = fresh("snell").float()
    split = pairs((3, 1), (9, 1))
    batch = everything(split)
    _, together = model.encode(model.embedding(batch.source), batch.source_mask)
    one = collate(split, np.array([0]))
    _, alone = model.encode(model.embedding(one.source), one.source_mask)
    for a, b in zip(together, alone, strict=True):
        assert_close(a[:, :1], b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_probe_is_the_prediction_under_one_hot_attention(variant):
    model = fresh(variant)
    batch = everything(pairs((5, 4), (3, 2)))
    output = model(batch)
    beta = translator_probe(model, output.hidden, output.states, batch.target_out)
    in_chunks = translator_probe(model, output.hidden, output.states, batch.target_out, max_logits=1)
    assert_close(beta, in_chunks)
    for position in range(batch.source.shape[1]):
        alpha = torch.zeros_like(output.alpha)
        alpha[..., position] = 1
        logits = model.read(model.pool(alpha, output.hidden), output.states)
        assert_close(beta[:, :, position], log_odds(logits, batch.target_out))


def test_heads_are_summed():
    torch.manual_seed(0)
    model = Translator(small(layers=1, bidirectional=False, attention="bilinear", heads=2), VOCABULARY).double()
    batch = everything(pairs((4, 3)))
    output = model(batch)
    context, alpha = model.attend(output.states, output.hidden, batch.source_mask)
    expected = sum(torch.einsum("btl,bld->btd", alpha[:, k], output.hidden) for k in range(2))
    assert_close(context, expected)
    with pytest.raises(ConfigError, match=r"translator\.output is 'linear'; it must be 'relu' or 'tanh' with bilinear"):
        small(attention="bilinear", output="linear")
    with pytest.raises(
        ConfigError, match=r"translator\.cell is 'gru'; it must be 'lstm' or 'transformer' unless layers = 1"
    ):
        small(cell="gru")
    with pytest.raises(ConfigError, match="learned or uniform"):
        Translator(small(), VOCABULARY, "only")


def test_loss_counts_each_target_word_once():
    model = fresh("snell")
    split = pairs((3, 2), (4, 5))
    whole = model.loss(everything(split))
    parts = [(model.loss(collate(split, np.array([i]))), int(split.target.lengths[i]) - 1) for i in range(2)]
    assert_close(whole, sum(loss * n for loss, n in parts) / sum(n for _, n in parts))


def greedy(model: PairModel, split: EncodedPairs, i: int) -> list[int]:
    """The obvious loop: feed everything said so far, take the most probable next word."""
    one = collate(split, np.array([i]))
    said = [BOS]
    for _ in range(2 * one.source.shape[1] + 10):
        tokens = torch.tensor([said])
        batch = PairBatch(
            one.source, one.source_mask, tokens, tokens, torch.ones_like(tokens, dtype=torch.bool), one.index
        )
        output = model(batch)
        logits = model.read(output.context, output.states)[0, -1].detach().clone()
        logits[[PAD, BOS]] = -torch.inf
        said.append(int(logits.argmax()))
        if said[-1] == EOS:
            break
    return [w for w in said if w not in (BOS, EOS)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_beam_one_is_greedy_and_batches_do_not_matter(variant):
    model = fresh(variant)
    split = pairs((6, 3), (2, 8), (11, 1), (3, 3))
    together = translate(model, split)
    assert together == [greedy(model, split, i) for i in range(len(split))]
    for beam in (1, 3):
        assert translate(model, split, beam=beam) == translate(model, split, beam=beam, max_tokens=1)


def test_a_wide_beam_finds_the_most_probable_sentence():
    """With a beam as wide as all continuations, two-word outputs are searched exhaustively."""
    torch.manual_seed(1)
    model = Translator(small(embedding_scale=3.0), VOCABULARY).double().eval()
    split = pairs((4, 2))
    found = translate(model, split, beam=VOCABULARY**2, max_length=2)[0]

    def score(words: list[int]) -> float:
        one = collate(split, np.array([0]))
        ids = [BOS, *words] + ([EOS] if len(words) < 2 else [])
        inputs, outputs = torch.tensor([ids[:-1]]), torch.tensor([ids[1:]])
        batch = PairBatch(
            one.source, one.source_mask, inputs, outputs, torch.ones_like(inputs, dtype=torch.bool), one.index
        )
        output = model(batch)
        logits = model.read(output.context, output.states)[0].detach().clone()
        logits[:, [PAD, BOS]] = -torch.inf
        return float(logits.log_softmax(-1).gather(1, outputs[0][:, None]).sum())

    allowed = [w for w in range(VOCABULARY) if w not in (PAD, BOS, EOS)]
    candidates = [[], *([w] for w in allowed), *([a, b] for a in allowed for b in allowed)]
    assert score(found) >= max(score(c) for c in candidates) - 1e-9


def test_decoding_leaves_the_model_as_it_was():
    model = fresh("snell").train()
    random = torch.get_rng_state()
    translate(model, pairs((3, 3)))
    assert model.training
    assert torch.equal(random, torch.get_rng_state())
    with pytest.raises(ConfigError, match="beam is 0"):
        translate(model, pairs((3, 3)), beam=0)
