import copy

import pytest
import torch
import transformers
from torch.testing import assert_close

from heedful.attribution.huggingface_translator import open_translator, output_passages
from heedful.errors import ConfigError, DataError
from tests.attribution.test_huggingface import state, uniform
from tests.audits import tiny

architectures = pytest.mark.parametrize("architecture", tiny.SEQUENCES)
SOURCE, TARGET = tiny.PAIRS[1]


@architectures
def test_same_as_a_plain_call(architecture):
    made = tiny.SEQUENCES[architecture](seed=1)
    model = copy.deepcopy(made.model)
    model.set_attn_implementation("eager")
    with open_translator(made.model, made.tokenizer) as (network, reader):
        assert (network.query, network.layers, network.heads, network.can_change) == ("last", 2, 2, True)
        passages = output_passages(network, reader, 0, SOURCE, TARGET)
        labels = made.tokenizer(text_target=TARGET, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            plain = model(
                **made.tokenizer(SOURCE, return_tensors="pt", return_token_type_ids=False),
                labels=labels,
                output_attentions=True,
            )
        for passage in passages:
            output = network.run(network.embed(torch.tensor([passage.pieces])), torch.tensor([passage.before]))
            at = len(passage.before) - 1
            assert_close(output.probabilities, plain.logits[:, at].softmax(-1))
            assert_close(output.attention, tuple(alpha[:, :, : at + 1] for alpha in plain.cross_attentions))
            assert_close(output.hidden, (plain.encoder_last_hidden_state,) * 2)
            assert labels[0, at] == passage.target


@architectures
def test_changed_attention(architecture):
    made = tiny.SEQUENCES[architecture]()
    with open_translator(made.model, made.tokenizer) as (network, reader):
        passage = output_passages(network, reader, 0, SOURCE, TARGET)[-1]
        embedded, before = network.embed(torch.tensor([passage.pieces])), torch.tensor([passage.before])
        own = network.run(embedded, before)
        same = network.run(embedded, before, change=lambda layer, alpha: alpha)
        assert torch.equal(own.probabilities, same.probabilities)
        other = network.run(embedded, before, change=uniform)
        assert not torch.allclose(own.probabilities, other.probabilities)
        assert_close(other.attention, tuple(uniform(0, alpha) for alpha in own.attention))


@architectures
def test_gradients_and_batches(architecture):
    made = tiny.SEQUENCES[architecture]()
    with open_translator(made.model, made.tokenizer) as (network, reader):
        pieces = torch.tensor([reader.read(0, text).pieces for text in ("a film was bad", "the plot was good")])
        embedded = network.embed(pieces).detach().requires_grad_()
        output = network.run(embedded)
        assert_close(output.probabilities.sum(-1), torch.ones(2))
        gradients = torch.autograd.grad(output.probabilities[1, 5], [embedded, output.hidden[0]])
        for gradient in gradients:
            assert gradient[1].norm() > 0
            assert not gradient[0].any()
        alone = network.run(network.embed(pieces[:1]))
        assert_close(output.probabilities[:1], alone.probabilities)


@architectures
def test_given_translation(architecture):
    made = tiny.SEQUENCES[architecture]()
    with open_translator(made.model, made.tokenizer) as (network, reader):
        passages = output_passages(network, reader, 4, SOURCE, TARGET)
        short = output_passages(network, reader, 4, SOURCE, TARGET, max_pieces=2)
    labels = tuple(made.tokenizer(text_target=TARGET)["input_ids"])
    assert [passage.output for passage in passages] == TARGET.split()
    assert {passage.text for passage in passages} == {4}
    assert {passage.words for passage in passages} == {passages[0].words}
    start = made.model.config.decoder_start_token_id
    for passage in passages:
        assert (*passage.before, passage.target) == (start, *labels[: len(passage.before)])
    assert all(len(passage.before) <= 2 for passage in short)
    assert 0 < len(short) < len(passages)
    assert {passage.cut for passage in short} == {len(labels) - 2}


@architectures
def test_own_translation_is_the_likeliest_at_every_step(architecture):
    made = tiny.SEQUENCES[architecture](seed=3)
    with open_translator(made.model, made.tokenizer) as (network, reader):
        made.model.generation_config.bad_words_ids = [[i] for i in made.tokenizer.all_special_ids]
        passages = output_passages(network, reader, 0, SOURCE, max_pieces=5)
        assert passages
        for passage in passages:
            output = network.run(network.embed(torch.tensor([passage.pieces])), torch.tensor([passage.before]))
            allowed = output.probabilities[0].clone()
            allowed[made.tokenizer.all_special_ids] = 0
            assert passage.target == int(allowed.argmax())
            assert passage.output


@architectures
def test_opened_by_its_path(architecture, tmp_path):
    made = tiny.SEQUENCES[architecture]()
    made.save(tmp_path)
    with open_translator(str(tmp_path)) as (network, reader), open_translator(made.model, made.tokenizer) as (other, _):
        assert reader.labels == ()
        pieces = torch.tensor([reader.read(0, SOURCE).pieces])
        assert_close(network.run(network.embed(pieces)).probabilities, other.run(other.embed(pieces)).probabilities)


@architectures
@pytest.mark.parametrize("fails", [False, True])
def test_a_model_is_left_as_it_was_found(architecture, fails):
    made = tiny.SEQUENCES[architecture]()
    made.model.get_encoder().train()
    before, generation = state(made.model), made.model.generation_config.to_dict()

    def audit():
        with open_translator(made.model, made.tokenizer) as (network, reader):
            output_passages(network, reader, 0, SOURCE, max_pieces=3)
            twin = network.randomised(7)
            pieces = torch.tensor([reader.read(0, SOURCE).pieces])
            assert not torch.equal(
                twin.run(twin.embed(pieces)).probabilities, network.run(network.embed(pieces)).probabilities
            )
            if fails:
                raise KeyError("in the middle of it")

    if fails:
        with pytest.raises(KeyError):
            audit()
    else:
        audit()
    assert state(made.model) == before
    assert made.model.generation_config.to_dict() == generation


def test_embeddings_are_scaled_as_the_encoder_does():
    made = tiny.marian()
    with open_translator(made.model, made.tokenizer) as (network, _):
        assert network.scale == 4.0
    made = tiny.bart(scale_embedding=True)
    with open_translator(made.model, made.tokenizer) as (network, _):
        assert network.scale == 1.0


def test_errors(tmp_path):
    made = tiny.bert()
    with (
        pytest.raises(DataError, match="its decoder, which translation needs, was never trained"),
        open_translator(made.model, made.tokenizer),
    ):
        pass
    made.save(tmp_path)
    with pytest.raises(DataError, match="the architecture 'bert' has no decoder"), open_translator(tmp_path):
        pass
    made = tiny.t5()
    with pytest.raises(ConfigError, match="needs its tokeniser; pass it with the model"), open_translator(made.model):
        pass
    with (
        open_translator(made.model, made.tokenizer) as (network, reader),
        pytest.raises(DataError, match="text 9 is empty"),
    ):
        output_passages(network, reader, 9, SOURCE, " ")


def test_a_model_that_does_not_say_how_its_output_starts():
    made = tiny.t5(decoder_start_token_id=None)
    made.model.generation_config = transformers.GenerationConfig()
    with (
        pytest.raises(DataError, match="does not define the first piece of its output"),
        open_translator(made.model, made.tokenizer),
    ):
        pass
