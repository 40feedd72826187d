"""Which positions explain a prediction: those whose final states the model's head reads."""

from types import SimpleNamespace

import pytest
import torch
import transformers
from torch import nn
from torch.testing import assert_close

from heedful.attribution.attention_maps import query_rows, read_attention
from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import Subject
from heedful.errors import DataError
from tests.audits import tiny

READS = {
    "bert": (tiny.bert, {}, "first"),
    "distilbert": (tiny.distilbert, {}, "first"),
    "roberta": (tiny.roberta, {}, "first"),
    "deberta": (tiny.deberta, {}, "first"),
    "gpt2": (tiny.gpt2, {}, "last"),
    "llama": (tiny.llama, {}, "last"),
    "xlnet": (tiny.xlnet, {}, "last"),
    "modernbert": (tiny.modernbert, {"classifier_pooling": "cls"}, "first"),
    "modernbert by mean": (tiny.modernbert, {"classifier_pooling": "mean"}, "mean"),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_query_comes_from_the_model(name, dtype):
    make, settings, expected = READS[name]
    made = make(**settings)
    with open_model(made.model.to(dtype), made.tokenizer) as (network, _):
        assert network.query == expected
    with open_model(made.model, made.tokenizer, query="mean") as (network, _):
        assert network.query == "mean"


class Pooled(transformers.BertPreTrainedModel):
    """A head over chosen positions of BERT's final states."""

    def __init__(self, config, shares):
        super().__init__(config)
        self.bert, self.output, self.shares = transformers.BertModel(config), nn.Linear(config.hidden_size, 2), shares
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **options):
        returned = self.bert(input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **options)
        states = returned.last_hidden_state
        logits = self.output(torch.einsum("bl,bld->bd", self.shares(states), states))
        return SimpleNamespace(logits=logits, attentions=returned.attentions, hidden_states=returned.hidden_states)


def pooled(shares):
    made = tiny.bert()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Pooled(made.model.config, shares).eval(), made.tokenizer


def first_and_last(states):
    shares = torch.zeros(states.shape[:2])
    shares[:, 0], shares[:, -1] = 0.75, 0.25
    return shares


def test_a_head_that_reads_several_places_is_explained_by_their_shares():
    model, tokenizer = pooled(first_and_last)
    with open_model(model, tokenizer) as (network, reader):
        assert network.query == "weighted"
        passages = [reader.read(i, text) for i, text in enumerate(tiny.TEXTS)]
        pieces = torch.tensor([passages[0].pieces])
        shares = network.reading(network.embed(pieces), torch.ones_like(pieces, dtype=torch.bool))
        assert_close(shares, first_and_last(network.embed(pieces)))
        alpha = network.run(network.embed(pieces)).attention[1]
        assert_close(query_rows(alpha, "weighted", shares), 0.75 * alpha[:, :, 0] + 0.25 * alpha[:, :, -1])
        together = read_attention(Subject(network, reader), passages)
        for i, passage in enumerate(passages):
            (alone,) = read_attention(Subject(network, reader), [passage]).attention
            assert_close(together.attention[i], alone, rtol=0, atol=1e-6)


def test_a_head_that_reads_nothing_is_refused():
    model, tokenizer = pooled(lambda states: torch.zeros(states.shape[:2]))
    message = "which positions its head reads; name them with --query"
    with pytest.raises(DataError, match=message), open_model(model, tokenizer):
        pass
    with open_model(model, tokenizer, query="first") as (network, _):
        assert network.query == "first"


@pytest.mark.parametrize("name", ["bert", "modernbert by mean", "deberta", "roberta"])
def test_padded_texts_are_as_alone(name):
    make, settings, _ = READS[name]
    made = make(seed=3, **settings)
    with open_model(made.model.double(), made.tokenizer) as (network, reader):
        assert network.pads
        passages = [reader.read(i, text) for i, text in enumerate(tiny.TEXTS)]
        together, alone = (read_attention(Subject(network, reader, max_tokens=size), passages) for size in (9999, 1))
        assert_close(together.probabilities, alone.probabilities, rtol=0, atol=1e-10)
        for first, second in zip(together.attention, alone.attention, strict=True):
            assert_close(first, second, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["gpt2", "llama", "xlnet"])
def test_a_model_that_reads_its_last_place_is_not_padded(name):
    made = READS[name][0]()
    with open_model(made.model, made.tokenizer) as (network, _):
        assert not network.pads


@pytest.mark.parametrize("name", ["bert", "distilbert", "roberta", "gpt2", "llama", "modernbert by mean"])
def test_a_run_from_a_layer_on_is_as_the_whole(name):
    make, settings, _ = READS[name]
    made = make(seed=5, **settings)
    with open_model(made.model.double(), made.tokenizer) as (network, reader):
        assert network.resumes_at(1)
        assert not network.resumes_at(0)
        embedded = network.embed(torch.tensor([reader.read(0, tiny.TEXTS[1]).pieces] * 2))
        output = network.run(embedded)
        assert_close(network.resume(1, output.hidden[1]), output.probabilities)

        def uniform(layer, alpha):
            return torch.full_like(alpha, 1 / alpha.shape[-1]) if layer == 1 else alpha

        changed = network.resume(1, output.hidden[1], change=uniform)
        assert_close(changed, network.run(embedded, change=uniform).probabilities)
        states = output.hidden[1].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(network.resume(1, states)[:, 0].sum(), states)
        embedded = embedded.detach().requires_grad_()
        whole = network.run(embedded)
        (expected,) = torch.autograd.grad(whole.probabilities[:, 0].sum(), whole.hidden[1])
        assert_close(gradient, expected)
    assert not any("forward" in vars(part) for part in made.model.modules())
