"""Models inside other objects: the same predictions and attention as the model itself gives."""

import sys

import pytest
import torch
import transformers
from torch.testing import assert_close

from heedful.attribution.network import Layout
from heedful.attribution.task_passages import open_task
from heedful.attribution.wrappers import unwrapped
from heedful.errors import ConfigError, DataError, MissingExtraError
from tests.audits import tiny

peft = pytest.importorskip("peft")
LORA = {"r": 2, "target_modules": ["query", "value"], "init_lora_weights": False}


def predicted(model, tokenizer=None, **options):
    with open_task(model, tokenizer, **options) as opened:
        (passage,) = opened.passages(0, tiny.TEXTS[0])
        output = opened.network.run(opened.network.embed(torch.tensor([passage.pieces])))
        assert opened.network.can_change
        return output.probabilities, opened.reader.labels


def plainly(model, tokenizer):
    with torch.no_grad():
        return model(**tokenizer(tiny.TEXTS[0], return_tensors="pt")).logits.softmax(-1)


def adapted(**settings):
    made = tiny.bert(**settings)
    torch.manual_seed(0)
    lora = peft.get_peft_model(made.model, peft.LoraConfig(task_type="SEQ_CLS", **LORA)).eval()
    return made, lora


def test_a_model_with_an_adapter():
    made, lora = adapted()
    own, _ = predicted(tiny.bert().model, made.tokenizer)
    found, _ = predicted(lora, made.tokenizer)
    assert_close(found, plainly(lora, made.tokenizer))
    assert not torch.allclose(found, own)
    assert any("lora_A" in name for name, _ in lora.named_parameters())


def test_the_folder_of_an_adapter(tmp_path):
    pieces = tiny.byte_pieces(template=False)
    base = tiny.for_task(transformers.GPT2Config, "text-generation", pieces).save(tmp_path / "base")
    head = transformers.AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    torch.manual_seed(0)
    settings = LORA | {"target_modules": ["c_attn"], "fan_in_fan_out": True}
    lora = peft.get_peft_model(head, peft.LoraConfig(task_type="SEQ_CLS", **settings)).eval()
    lora.save_pretrained(tmp_path / "adapter")
    found, labels = predicted(tmp_path / "adapter")
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    assert labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert_close(found, plainly(lora, tokenizer))
    bert = tiny.for_task(transformers.BertConfig, "fill-mask").save(tmp_path / "bert")
    _, other = adapted()
    other.peft_config["default"].base_model_name_or_path = str(bert)
    other.save_pretrained(tmp_path / "other")
    with pytest.raises(DataError, match=r"neither the adapter nor \S+ has the trained parameters bert.pooler"):
        predicted(tmp_path / "other")
    (tmp_path / "adapter" / "adapter_model.safetensors").unlink()
    with pytest.raises(DataError, match=r"there is no adapter_model.safetensors"):
        predicted(tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    with pytest.raises(DataError, match="does not say which model it is for"):
        predicted(tmp_path / "adapter")


def test_positions_that_an_adapter_adds_are_refused():
    made = tiny.bert()
    tuned = peft.get_peft_model(made.model, peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2))
    with pytest.raises(DataError, match="adds positions to the input"):
        predicted(tuned, made.tokenizer)


def test_a_compiled_model():
    made = tiny.bert()
    expected = plainly(made.model, made.tokenizer)
    wrapped = torch.compile(made.model, backend="eager")
    found, _ = predicted(wrapped, made.tokenizer)
    assert_close(found, expected)
    made.model.compile(backend="eager")  # in place
    compiled = made.model._compiled_call_impl
    found, _ = predicted(made.model, made.tokenizer)
    assert_close(found, expected)
    assert made.model._compiled_call_impl is compiled


def test_a_cross_encoder(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    made = tiny.for_task(transformers.BertConfig, "classification", id2label={0: "relevant"}, label2id={"relevant": 0})
    encoder = sentence_transformers.CrossEncoder(str(made.save(tmp_path)), device="cpu")
    pair = ("was it good", "the film was not bad")
    with open_task(encoder) as opened:
        (passage,) = opened.passages(0, pair)
        network = opened.network.with_layout(Layout(torch.tensor([passage.segments])))
        found = network.run(network.embed(torch.tensor([passage.pieces]))).probabilities[0, 1]
        assert opened.reader.labels == ("not relevant", "relevant")
    assert found.item() == pytest.approx(float(encoder.predict([pair])[0]), abs=1e-6)


def test_what_only_makes_vectors_and_what_is_not_in_memory():
    made = tiny.bert()
    with pytest.raises(ConfigError, match="makes vectors of texts"):
        unwrapped(type("SentenceTransformer", (), {})(), None)
    with torch.device("meta"):
        empty = type(made.model)(made.model.config)
    with pytest.raises(DataError, match="weights that are not in memory"):
        unwrapped(empty, None)


def test_a_device_map():
    accelerate = pytest.importorskip("accelerate")
    made = tiny.bert()
    expected = plainly(made.model, made.tokenizer)
    mapped = accelerate.dispatch_model(
        made.model, {"bert": "cpu", "dropout": "cpu", "classifier": "cpu"}, force_hooks=True
    )
    found, _ = predicted(mapped, made.tokenizer)
    assert_close(found, expected)
    assert_close(plainly(mapped, made.tokenizer), expected)  # its hooks are still there


def test_an_adapter_needs_peft(tmp_path, monkeypatch):
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "x"}')
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match="needs the package peft"):
        predicted(tmp_path)


SINKS = {"num_key_value_heads": 1, "head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1}


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        ("GptOssConfig", {**SINKS, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 3}),
        ("LlamaConfig", {"num_key_value_heads": 1}),
        ("MistralConfig", {"num_key_value_heads": 1, "sliding_window": 3}),
    ],
)
def test_sinks_grouped_queries_and_windows(config, settings):
    """Attention is what the model returns, and can be replaced; a sink keeps its own weight."""
    tokenizer = tiny.byte_pieces(template=False)
    made = tiny.for_task(getattr(transformers, config), "text-generation", tokenizer, **settings)
    for name, parameter in made.model.named_parameters():
        if name.endswith("sinks"):
            parameter.data.fill_(20.0)
    with open_task(made.model, made.tokenizer) as opened:
        network = opened.network
        (passage, *_) = opened.passages(0, "a very good film and a bad plot", "was")
        embedded = network.embed(torch.tensor([passage.pieces]))
        own = network.run(embedded)
        seen = {}
        network.run(embedded, change=lambda layer, alpha: seen.setdefault(layer, alpha))
        for layer in range(2):
            assert_close(seen[layer], own.attention[layer])
        assert own.attention[0].shape[1] == 2
        total = own.attention[1][0, :, -1].sum(-1)
        assert (total < 0.999).all() if "Oss" in config else torch.allclose(total, torch.ones(2))
        if "sliding_window" in settings:
            assert (own.attention[0][0, :, -1] > 0).sum(-1).max() <= 3
        changed = network.run(embedded, change=lambda layer, alpha: alpha.flip(-1))
        assert not torch.allclose(changed.probabilities, own.probabilities)
