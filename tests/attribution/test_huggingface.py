import copy
import inspect
import json
import logging
import sys
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from heedful.attribution.huggingface import open_model
from heedful.attribution.opened_model import attention_of
from heedful.errors import ConfigError, DataError, MissingExtraError
from tests.audits import tiny

BOTH = ("attention.self", "attention")  # the parts after which one position suffices
architectures = pytest.mark.parametrize("architecture", tiny.CLASSIFIERS)


def plain(made: tiny.Tiny, text: str) -> Any:
    """What anybody would get who asks the model for its attention."""
    model = copy.deepcopy(made.model)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return model(
            **made.tokenizer(text, return_tensors="pt", return_token_type_ids=False),
            output_attentions=True,
            output_hidden_states=True,
        )


def uniform(layer: int, alpha: torch.Tensor) -> torch.Tensor:
    return torch.full_like(alpha, 1 / alpha.shape[-1])


@architectures
def test_same_as_a_plain_call(architecture):
    made = tiny.CLASSIFIERS[architecture](seed=1)
    with open_model(made.model, made.tokenizer) as (network, reader):
        assert (network.layers, network.heads) == (2, 2)
        for number, text in enumerate(tiny.TEXTS):
            output = network.run(network.embed(torch.tensor([reader.read(number, text).pieces])))
            expected = plain(made, text)
            assert_close(output.probabilities, expected.logits.softmax(-1))
            assert_close(output.attention, expected.attentions)
            assert_close(output.hidden, expected.hidden_states[:2])


@architectures
def test_a_batch_is_as_one_by_one(architecture):
    made = tiny.CLASSIFIERS[architecture]()
    with open_model(made.model, made.tokenizer) as (network, reader):
        pieces = torch.tensor([reader.read(0, text).pieces for text in ("the film was bad", "a plot was good")])
        both = network.run(network.embed(pieces))
        for i in range(2):
            alone = network.run(network.embed(pieces[i : i + 1]))
            assert_close(both.probabilities[i], alone.probabilities[0])
            assert_close(both.attention[1][i], alone.attention[1][0])


@architectures
def test_changed_attention(architecture):
    made = tiny.CLASSIFIERS[architecture](seed=2)
    with open_model(made.model, made.tokenizer) as (network, reader):
        assert network.can_change
        embedded = network.embed(torch.tensor([reader.read(0, tiny.TEXTS[1]).pieces]))
        own = network.run(embedded)
        same = network.run(embedded, change=lambda layer, alpha: alpha)
        assert torch.equal(own.probabilities, same.probabilities)
        assert all(map(torch.equal, own.attention, same.attention))
        for changed in range(2):
            other = network.run(
                embedded, change=lambda layer, alpha, k=changed: uniform(layer, alpha) if layer == k else alpha
            )
            assert not torch.allclose(own.probabilities, other.probabilities)
            assert_close(other.attention[changed], uniform(0, own.attention[changed]))
            assert_close(other.attention[1].sum(-1), torch.ones_like(own.attention[1][..., 0]))


def test_uniform_attention_by_hand():
    made = tiny.bert(num_hidden_layers=1)
    with open_model(made.model, made.tokenizer) as (network, reader):
        embedded = network.embed(torch.tensor([reader.read(0, tiny.TEXTS[0]).pieces]))
        found = network.run(embedded, change=uniform)
        h = found.hidden[0]
        layer = made.model.bert.encoder.layer[0]
        mean = layer.attention.self.value(h).mean(1, keepdim=True).expand_as(h)
        h = layer.attention.output(mean, h)
        h = layer.output(layer.intermediate(h), h)
        logits = made.model.classifier(made.model.bert.pooler(h))
        assert_close(found.probabilities, logits.softmax(-1))


@architectures
def test_gradients_reach_embeddings_and_hidden_states(architecture):
    made = tiny.CLASSIFIERS[architecture]()
    with open_model(made.model, made.tokenizer) as (network, reader):
        embedded = network.embed(torch.tensor([reader.read(0, tiny.TEXTS[0]).pieces])).detach().requires_grad_()
        output = network.run(embedded)
        gradients = torch.autograd.grad(output.probabilities[0, 0], [embedded, *output.hidden])
        assert all((gradient.norm(dim=-1) > 0).any() for gradient in gradients)
        assert all(p.grad is None for p in made.model.parameters())


@architectures
def test_a_prediction_alone_is_that_of_a_whole_run(architecture):
    made = tiny.CLASSIFIERS[architecture](seed=3)
    with open_model(made.model, made.tokenizer) as (opened, reader):
        for network in (opened, opened.randomised(5)):
            pieces = torch.tensor([reader.read(0, text).pieces for text in ("the film was bad", "a plot was good")])
            embedded = network.embed(pieces).detach().requires_grad_()
            for change in (None, uniform):
                whole, alone = (
                    network.run(embedded, change=change).probabilities,
                    network.predict(embedded, None, change),
                )
                assert_close(alone, whole)
                gradients = [torch.autograd.grad(p[:, 0].sum(), embedded, retain_graph=True)[0] for p in (whole, alone)]
                assert_close(*gradients)
            if network.pads:
                mask = torch.ones(pieces.shape, dtype=torch.bool)
                mask[0, -2:] = False
                assert_close(network.predict(embedded, mask), network.run_padded(embedded, mask).probabilities)


@pytest.mark.parametrize(
    ("make", "part"),
    [(tiny.bert, BOTH), (tiny.roberta, BOTH), (tiny.gpt2, ()), (tiny.modernbert, ())],
)
def test_the_last_layer_computes_one_position_where_the_head_reads_no_other(make, part):
    made = make(seed=1)
    with open_model(made.model, made.tokenizer) as (network, reader):
        assert network.narrow == part
        lengths = []
        last = network.stack.layers[-1]
        handle = last.register_forward_hook(
            lambda module, given, result: lengths.append((result[0] if isinstance(result, tuple) else result).shape[1])
        )
        embedded = network.embed(torch.tensor([reader.read(0, tiny.TEXTS[0]).pieces]))
        network.predict(embedded)
        network.run(embedded)
        handle.remove()
    assert lengths == [1 if part else embedded.shape[1], embedded.shape[1]]


@architectures
def test_opened_by_its_path(architecture, tmp_path):
    made = tiny.CLASSIFIERS[architecture]()
    made.save(tmp_path)
    with open_model(tmp_path) as (network, reader), open_model(made.model, made.tokenizer) as (other, _):
        assert reader.labels == tiny.LABELS
        passage = reader.read(3, tiny.TEXTS[1], "positive")
        assert (passage.text, passage.label) == (3, "positive")
        pieces = torch.tensor([passage.pieces])
        assert_close(network.run(network.embed(pieces)).probabilities, other.run(other.embed(pieces)).probabilities)


@architectures
def test_random_twin(architecture):
    made = tiny.CLASSIFIERS[architecture]()
    with open_model(made.model, made.tokenizer) as (network, reader):
        pieces = torch.tensor([reader.read(0, tiny.TEXTS[0]).pieces])
        before = torch.get_rng_state()
        outputs = [twin.run(twin.embed(pieces)) for twin in (network.randomised(5), network.randomised(5))]
        other = network.randomised(6)
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.equal(outputs[0].probabilities, outputs[1].probabilities)
        assert not torch.equal(outputs[0].probabilities, other.run(other.embed(pieces)).probabilities)
        assert not torch.equal(outputs[0].probabilities, network.run(network.embed(pieces)).probabilities)
        assert [a.shape for a in outputs[0].attention] == [
            a.shape for a in network.run(network.embed(pieces)).attention
        ]
        other.run(other.embed(pieces), change=uniform)


def test_no_random_twin_of_a_class_that_needs_more_than_a_config():
    class Particular(transformers.BertForSequenceClassification):
        def __init__(self, config, more):
            super().__init__(config)

    with torch.random.fork_rng():
        model = Particular(tiny.bert().model.config, 1)
    with open_model(model, tiny.word_pieces()) as (network, _):
        assert network.randomised(0) is None


@pytest.mark.parametrize(
    ("architecture", "query"),
    [("bert", "first"), ("distilbert", "first"), ("roberta", "first"), ("deberta", "first"), ("gpt2", "last")],
)
def test_whose_attention_explains(architecture, query):
    made = tiny.CLASSIFIERS[architecture]()
    with open_model(made.model, made.tokenizer) as (network, _):
        assert network.query == query
    with open_model(made.model, made.tokenizer, query="mean") as (network, _):
        assert network.query == "mean"


def test_one_logit_is_the_odds_of_one_label():
    made = tiny.bert(id2label={0: "toxic"}, label2id={"toxic": 0})
    with open_model(made.model, made.tokenizer) as (network, reader):
        output = network.run(network.embed(torch.tensor([reader.read(0, tiny.TEXTS[0]).pieces])))
    p = plain(made, tiny.TEXTS[0]).logits.sigmoid()
    assert_close(output.probabilities, torch.cat([1 - p, p], dim=1))
    assert reader.labels == ("not toxic", "toxic")


def test_a_decoder_that_knows_no_padding_reads_two_texts(caplog):
    made = tiny.gpt2(pad_token_id=None)
    logging.getLogger("transformers.models.gpt2.modeling_gpt2").propagate = True
    with open_model(made.model, made.tokenizer) as (network, reader):
        pieces = torch.tensor([reader.read(0, "not bad").pieces] * 2)
        assert network.run(network.embed(pieces)).probabilities.shape == (2, 2)
    assert made.model.config.pad_token_id is None
    assert "padding" not in caplog.text


def test_attention_that_is_mixed_after_its_softmax_cannot_be_changed():
    made = tiny.deberta_v1(talking_head=True)
    with open_model(made.model, made.tokenizer) as (network, reader):
        assert not network.can_change
        embedded = network.embed(torch.tensor([reader.read(0, "not bad").pieces]))
        assert len(network.run(embedded).attention) == 2
        with pytest.raises(DataError, match="computes its attention where it cannot be replaced"):
            network.run(embedded, change=uniform)


@architectures
def test_long_texts_are_cut_to_what_the_model_can_read(architecture):
    made = tiny.CLASSIFIERS[architecture]()
    positions = tiny.POSITIONS - 2 if architecture == "roberta" else tiny.POSITIONS
    with open_model(made.model, made.tokenizer) as (network, reader):
        passage = reader.read(0, "good " * 99)
        whole = len(made.tokenizer("good " * 99)["input_ids"])
        assert len(passage.pieces) == positions
        assert passage.cut == whole - positions
        network.run(network.embed(torch.tensor([passage.pieces])))


def state(model: Any) -> list[Any]:
    """Everything about a model and the random generators that an audit must not change.

    Python's own generator cannot be among it here: the type checks of these tests draw from it.
    """
    parts = [
        (name, part.training, sorted(part.__dict__), hooks(part), part.__dict__.get("config"))
        for name, part in model.named_modules()
    ]
    configs = [config for *_, config in parts if config is not None]
    return [
        [(name, training, keys, hooked) for name, training, keys, hooked, _ in parts],
        [(config._attn_implementation, config.to_dict()) for config in configs],
        [(name, p.requires_grad, p.grad is None, content(p)) for name, p in model.named_parameters()],
        [(name, content(b)) for name, b in model.named_buffers()],
        content(torch.get_rng_state()),
        hash(str(np.random.get_state())),
        torch.is_grad_enabled(),
    ]


def content(tensor: torch.Tensor) -> int:
    return hash(tensor.detach().numpy().tobytes())


def hooks(part: torch.nn.Module) -> list[Any]:
    return [(name, list(value.items())) for name, value in sorted(part.__dict__.items()) if name.endswith("hooks")]


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(tiny.CLASSIFIERS)),
    st.sets(st.integers(0, 40), max_size=8),
    st.sets(st.integers(0, 40), max_size=8),
    st.sampled_from(["eager", "sdpa"]),
    st.booleans(),
    st.booleans(),
)
def test_a_model_is_left_as_it_was_found(architecture, training, frozen, implementation, hooked, fails):
    made = tiny.CLASSIFIERS[architecture]()
    model = made.model
    if "deberta" not in architecture:
        model.set_attn_implementation(implementation)
    for i, part in enumerate(model.modules()):
        part.training = i in training
    for i, parameter in enumerate(model.parameters()):
        parameter.requires_grad_(i not in frozen)
    seen = []
    handle = model.get_input_embeddings().register_forward_hook(lambda *_: seen.append(1)) if hooked else None
    before, settings_of = state(model), made.tokenizer.backend_tokenizer.to_str()

    def audit():
        with open_model(model, made.tokenizer) as (network, reader):
            output = network.run(network.embed(torch.tensor([reader.read(0, "good " * 50).pieces])), change=uniform)
            assert not any(part.training for part in model.modules())
            network.randomised(1)
            torch.rand(3)
            if fails:
                raise KeyError("in the middle of it")
        return output

    if fails:
        with pytest.raises(KeyError):
            audit()
    else:
        audit()
    assert state(model) == before
    assert made.tokenizer.backend_tokenizer.to_str() == settings_of
    if handle is not None:
        assert seen
        handle.remove()
        assert not model.get_input_embeddings()._forward_hooks


def test_a_model_is_left_as_it_was_found_when_it_cannot_be_opened():
    made = tiny.bert()
    with pytest.raises(DataError, match="a bare BertModel without a head"), open_model(made.model.bert, made.tokenizer):
        pass
    made.model.classifier.forward = lambda states: 1 / 0
    before = state(made.model)
    said = r"a first prediction failed \(ZeroDivisionError"
    with pytest.raises(DataError, match=said), open_model(made.model, made.tokenizer):
        pass
    assert state(made.model) == before


@pytest.mark.parametrize(
    ("problem", "says"), [("regression", "predicts numbers"), ("multi_label_classification", "several labels")]
)
def test_what_is_not_one_label_of_several(problem, says):
    made = tiny.bert(problem_type=problem)
    with pytest.raises(ConfigError, match=says), open_model(made.model, made.tokenizer):
        pass


def refuses(model: Any, tokenizer: Any = None) -> str:
    with pytest.raises((DataError, ConfigError)) as error, open_model(model, tokenizer):
        pass
    return str(error.value)


def test_places_where_there_is_no_model(tmp_path):
    assert refuses(tmp_path / "none").endswith("none: there is no such folder")
    assert "there is no such folder" in refuses("./none")
    assert "there is no such folder" in refuses("~/a-folder/that-is/nowhere")
    assert "no config.json" in refuses(tmp_path)
    (tmp_path / "file").write_text("x")
    assert "is a file" in refuses(tmp_path / "file")
    (tmp_path / "config.json").write_text("{")
    assert "config.json: this is not JSON" in refuses(tmp_path)
    tiny.bert().model.config.save_pretrained(tmp_path)
    assert "there is no model.safetensors; save the model with" in refuses(tmp_path)
    tiny.bert().model.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert "cannot be loaded as a model" in refuses(tmp_path)


def test_weights_in_a_pickle_are_not_read(tmp_path, monkeypatch):
    made = tiny.bert()
    made.model.config.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    torch.save(made.model.state_dict(), tmp_path / "pytorch_model.bin")
    monkeypatch.setattr(torch, "load", lambda *arguments, **options: pytest.fail("it was read"))
    said = refuses(tmp_path)
    assert "there is no model.safetensors, and weights in a pickle (pytorch_model.bin) are not read" in said
    assert "model.save_pretrained(folder)" in said


def test_hub_out_of_reach(monkeypatch):
    def unreachable(*_: Any, **__: Any) -> None:
        raise OSError("We couldn't connect to 'https://huggingface.co'\nmore")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", unreachable)
    said = refuses("someone/some-model")
    assert said.startswith(
        "someone/some-model is not a folder, and as a Hub id it could not be fetched (We couldn't connect"
    )
    assert "check the name and the network" in said


CODE = """
from transformers import BertConfig, BertForSequenceClassification

class OwnConfig(BertConfig):
    model_type = "own-bert"

class OwnClassifier(BertForSequenceClassification):
    config_class = OwnConfig
"""


def test_code_that_a_model_brings_is_run_only_where_it_is_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nobody is there to be asked"))
    tiny.bert().save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    own = {"AutoConfig": "own.OwnConfig", "AutoModelForSequenceClassification": "own.OwnClassifier"}
    config |= {"model_type": "own-bert", "auto_map": own}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    (tmp_path / "model" / "own.py").write_text(CODE)
    assert "it comes with its own code" in refuses(tmp_path / "model")
    assert "--trust-remote-code" in refuses(tmp_path / "model")
    assert not (tmp_path / "cache").exists()
    with open_model(tmp_path / "model", trust_remote_code=True) as (network, _):
        assert type(network.model).__name__ == "OwnClassifier"
        assert network.layers == 2
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
    with open_model(tmp_path / "model") as (network, _):
        assert type(network.model) is transformers.BertForSequenceClassification


def test_code_of_a_head_or_a_tokeniser_is_not_run_either(tmp_path):
    marian = tiny.marian().save(tmp_path / "marian")
    config = json.loads((marian / "config.json").read_text())
    config["auto_map"] = {"AutoModelForSequenceClassification": "own.OwnClassifier"}
    (marian / "config.json").write_text(json.dumps(config))
    assert "marian: it comes with its own code" in refuses(marian)
    other = tmp_path / "other"
    other.mkdir()
    own = {"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}}
    (other / "tokenizer_config.json").write_text(json.dumps(own))
    (other / "config.json").write_text('{"model_type": "own-bert"}')
    assert "other: it comes with its own code" in refuses(tiny.bert().model, other)


def test_model_without_a_tokeniser(tmp_path):
    made = tiny.bert()
    made.model.save_pretrained(tmp_path)
    assert "there is no tokeniser" in refuses(tmp_path)
    assert "needs its tokeniser; pass it with the model" in refuses(made.model)
    (tmp_path / "tokenizer.json").write_text("not json")
    assert "tokenizer.json: this is not JSON" in refuses(tmp_path)
    with open_model(tmp_path, made.tokenizer) as (_, reader):
        assert reader.read(0, "bad").words == ("[CLS]", "bad", "[SEP]")


def test_model_without_a_head(tmp_path):
    made = tiny.bert()
    made.model.bert.save_pretrained(tmp_path / "bare")
    made.tokenizer.save_pretrained(tmp_path / "bare")
    assert "this is a bare BertModel without a head" in refuses(tmp_path / "bare")
    config = tmp_path / "bare" / "config.json"
    config.write_text(config.read_text().replace("BertModel", "BertForSequenceClassification"))
    assert "some parameters are missing and so were never trained (classifier.bias" in refuses(tmp_path / "bare")
    tiny.marian().save(tmp_path / "marian")
    assert "the architecture 'marian' has no classification head" in refuses(tmp_path / "marian")
    bart = tiny.bart()
    model = transformers.BartForSequenceClassification(bart.model.config)
    assert "is an encoder–decoder" in refuses(model, bart.tokenizer)
    assert "is not a Hugging Face model" in refuses(torch.nn.Linear(2, 2), made.tokenizer)


def test_model_without_attention():
    tokenizer = tiny.word_pieces()
    config = transformers.FNetConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1)
    model = transformers.FNetForSequenceClassification(config)
    assert "returned no attention; it was called with output_attentions=True" in refuses(model, tokenizer)


@pytest.mark.parametrize("found", [None, (), (None, None), (torch.zeros(1, 2, 0, 0),)])
def test_empty_attention_is_an_error(found):
    with pytest.raises(DataError, match="returned no attention"):
        attention_of(tiny.bert().model, found, 3)


def test_attention_of_some_layers_or_to_some_pieces_is_an_error():
    model, alpha = tiny.bert().model, torch.ones(1, 2, 3, 3)
    with pytest.raises(DataError, match="returned no attention in 1 layers"):
        attention_of(model, (alpha, None), 3)
    with pytest.raises(DataError, match=r"attention of shape \(1, 2, 3, 3\) for 5 pieces"):
        attention_of(model, (alpha,), 5)


def test_embeddings_that_do_not_say_what_the_text_says():
    class Cases(transformers.BertForSequenceClassification):
        def forward(self, input_ids=None, inputs_embeds=None, **rest):
            if inputs_embeds is not None:
                inputs_embeds = 2 * inputs_embeds
            return super().forward(input_ids=input_ids, inputs_embeds=inputs_embeds, **rest)

    made = tiny.bert()
    model = Cases(made.model.config)
    assert "from a text, but" in refuses(model, made.tokenizer)


def test_models_that_cannot_be_asked():
    class Pieces(transformers.BertForSequenceClassification):
        def forward(self, input_ids=None):
            return super().forward(input_ids=input_ids)

    class Silent(transformers.BertForSequenceClassification):
        def forward(self, input_ids=None, inputs_embeds=None):
            return super().forward(input_ids=input_ids, inputs_embeds=inputs_embeds)

    class Stateless(transformers.BertForSequenceClassification):
        def forward(self, **inputs):
            found = super().forward(**inputs)
            found.hidden_states = found.hidden_states[:1]
            return found

        forward.__signature__ = inspect.signature(transformers.BertForSequenceClassification.forward)

    made = tiny.bert()
    config = made.model.config
    assert refuses(Pieces(config), made.tokenizer) == "Pieces does not accept embeddings as input (inputs_embeds)"
    assert "Silent cannot return its attention: " in refuses(Silent(config), made.tokenizer)
    assert refuses(Stateless(config), made.tokenizer) == "Stateless has 2 attentions, but 1 hidden states"


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'heedful\[hf\]'"), open_model("some/model"):
        pass


def test_half_precision_is_read_in_single(tmp_path):
    made = tiny.bert()
    made.model.half()
    with open_model(made.save(tmp_path)) as (network, _):
        assert network.embed(torch.tensor([[2, 3]])).dtype == torch.float32
