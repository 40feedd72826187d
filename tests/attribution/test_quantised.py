"""Models in 8 and 4 bits: audited with their rounded weights, and given back as they were.

The libraries are not among the pinned packages: a test of one that is not installed is skipped. torch's own dynamic
quantisation is always there.
"""

import json
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import Subject
from heedful.attribution.quantised import UnpackedLinear, unpacked, unpacking
from heedful.audits.audit import AuditSettings, fingerprint, run_audit
from heedful.errors import DataError
from tests.audits import tiny
from tests.command import heedful

QUICK = AuditSettings(measures=("tau", "random", "changes"), integrated_steps=2, resamples=9, random_models=2)
SIZES = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 2, "initializer_range": 0.2}
pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, about kernels and processors


def needs(library):
    return pytest.mark.skipif(find_spec(library) is None, reason=f"{library} is not installed: pip install {library}")


def bitsandbytes(**settings):
    return lambda: transformers.BitsAndBytesConfig(**settings)


def torchao(name, **settings):
    def config():
        from torchao import quantization

        return transformers.TorchAoConfig(getattr(quantization, name)(**settings))

    return config


SAVED = [  # quantised folders that can be saved and opened
    pytest.param(bitsandbytes(load_in_8bit=True), id="bitsandbytes-8", marks=needs("bitsandbytes")),
    pytest.param(bitsandbytes(load_in_4bit=True), id="bitsandbytes-4", marks=needs("bitsandbytes")),
    pytest.param(
        bitsandbytes(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True),
        id="bitsandbytes-nf4-twice",
        marks=needs("bitsandbytes"),
    ),
    pytest.param(torchao("Int8WeightOnlyConfig"), id="torchao-8", marks=needs("torchao")),
    pytest.param(torchao("Int8DynamicActivationInt8WeightConfig"), id="torchao-8-inputs-too", marks=needs("torchao")),
    pytest.param(torchao("IntxWeightOnlyConfig", weight_dtype=torch.int4), id="torchao-4", marks=needs("torchao")),
]
LOADED = ["int8", "int4"]  # of quanto, whose models cannot be saved as they are


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    made = {"bert": tiny.bert(**SIZES), "llama": tiny.llama(**SIZES)}
    return {name: model.save(tmp_path_factory.mktemp("whole") / name) for name, model in made.items()}


def quantised(folder, config):
    opens = transformers.AutoModelForSequenceClassification
    return opens.from_pretrained(folder, quantization_config=config(), attn_implementation="eager")


def audited(model, tokenizer, out):
    with open_model(model, tokenizer) as (network, reader):
        passages = [reader.read(i, text, tiny.LABELS[i % 2]) for i, text in enumerate(tiny.TEXTS[:2])]
        return run_audit(Subject(network, reader), passages, out=out, settings=QUICK)


def dynamic(folder):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


def own_weights(model):
    """The model in full precision with the weights that the quantised one has."""
    with unpacked(model):
        layers = {name: part.unpack() for name, part in model.named_modules() if isinstance(part, UnpackedLinear)}
        config, state = (
            model.config,
            {n: p for n, p in model.state_dict().items() if n.rpartition(".")[0] not in layers},
        )
    plain = type(model)(transformers.AutoConfig.for_model(config.model_type, **_plain(config)))
    state |= {f"{name}.weight": weight.float() for name, (weight, _) in layers.items()}
    state |= {f"{name}.bias": bias for name, (_, bias) in layers.items() if bias is not None}
    plain.load_state_dict(state)
    return plain


def _plain(config):
    return {k: v for k, v in config.to_dict().items() if k not in ("quantization_config", "model_type")}


def compare(model, folder, tmp_path):
    """A quantised model is audited as the full model with the same weights is, and computes the same afterwards."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    parts = dict(model.named_modules())
    assert any(unpacking(part) for part in parts.values())
    found = audited(model, tokenizer, tmp_path / "quantised")
    assert {name: type(part) for name, part in model.named_modules()} == {n: type(p) for n, p in parts.items()}
    assert all(model.get_submodule(name) is part for name, part in parts.items())
    expected = audited(own_weights(model), tokenizer, tmp_path / "plain")
    assert [(s.quantity, s.of, s.against) for s in found.scores] == [
        (s.quantity, s.of, s.against) for s in expected.scores
    ]
    values, others = ([s.estimate.value for s in result.scores] for result in (found, expected))
    np.testing.assert_allclose(values, others, atol=1e-5)
    assert found.score("random tau", found.headline, "leave one out").n > 0  # random models of its shape
    return found


@pytest.mark.parametrize("name", ["bert", "llama"])
@pytest.mark.parametrize("config", SAVED)
def test_an_object_and_its_folder(whole, name, config, tmp_path):
    model = quantised(whole[name], config)
    found = compare(model, whole[name], tmp_path)
    model.save_pretrained(tmp_path / "model")
    transformers.AutoTokenizer.from_pretrained(whole[name]).save_pretrained(tmp_path / "model")
    from_folder = audited(tmp_path / "model", None, tmp_path / "folder")
    assert from_folder.fingerprint == found.fingerprint
    assert [s.estimate for s in from_folder.scores] == [s.estimate for s in found.scores]


@needs("optimum")
@pytest.mark.parametrize("bits", LOADED)
def test_an_object_that_cannot_be_saved(whole, bits, tmp_path):
    compare(quantised(whole["bert"], lambda: transformers.QuantoConfig(weights=bits)), whole["bert"], tmp_path)


@needs("bitsandbytes")
def test_an_adapter_on_4_bits(whole, tmp_path):
    import peft

    base = quantised(whole["bert"], bitsandbytes(load_in_4bit=True, llm_int8_skip_modules=["classifier"]))
    settings = peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query", "value"], init_lora_weights=False)
    adapted = peft.get_peft_model(base, settings)
    tokenizer = transformers.AutoTokenizer.from_pretrained(whole["bert"])
    found, plain = audited(adapted, tokenizer, tmp_path / "adapted"), audited(base, tokenizer, tmp_path / "again")
    assert found.fingerprint == plain.fingerprint  # the model inside has the adapter's weights in its layers
    with adapted.disable_adapter():
        without = audited(adapted, tokenizer, tmp_path / "without")
    assert [s.estimate for s in without.scores] != [s.estimate for s in found.scores]


@needs("hqq")
def test_layers_of_hqq(whole, tmp_path):
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

    model = transformers.AutoModelForSequenceClassification.from_pretrained(whole["bert"], attn_implementation="eager")
    for layer in model.bert.encoder.layer:
        config = BaseQuantizeConfig(nbits=4, group_size=64)
        layer.output.dense = HQQLinear(layer.output.dense, config, compute_dtype=torch.float32, device="cpu")
    compare(model, whole["bert"], tmp_path)


def test_dynamic_quantisation_of_torch(whole, tmp_path):
    compare(dynamic(whole["bert"]), whole["bert"], tmp_path)


def test_the_gradient_of_an_unpacked_layer():
    layer = nn.Linear(3, 5, dtype=torch.float64)
    rounded = UnpackedLinear(lambda: (layer.weight.detach(), layer.bias.detach()))
    inputs = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(rounded(inputs), layer(inputs))
    assert torch.autograd.gradcheck(rounded, (inputs,))


def test_two_quantised_models_have_their_own_fingerprints(whole, tmp_path):
    models = [dynamic(whole["bert"]), dynamic(whole["bert"]), dynamic(tiny.bert(seed=1, **SIZES).save(tmp_path))]
    tokenizer = transformers.AutoTokenizer.from_pretrained(whole["bert"])
    marks = []
    for model in models:
        with open_model(model, tokenizer) as (network, _):
            marks.append(fingerprint(network))
    assert marks[0] == marks[1] != marks[2]


def test_layers_of_an_unknown_library_are_refused(whole):
    class PackedLinear(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("qweight", torch.zeros(3, 5, dtype=torch.int32))

    made = tiny.bert()
    made.model.classifier = PackedLinear()
    with (
        pytest.raises(DataError, match=r"quantised layers of the class .*PackedLinear, whose weights cannot"),
        open_model(made.model, made.tokenizer),
    ):
        pass


def settings_of(folder, **entries):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": entries}))
    return folder


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"quant_method": "gptq"}, "the weights are quantised by 'gptq', whose files are not read"),
        ({"quant_method": "quanto"}, "those of bitsandbytes and torchao are"),
        ({"x": 1}, "quantised by 'None'"),
    ],
)
def test_folders_of_other_libraries_are_refused(tmp_path, entries, words):
    with pytest.raises(DataError, match=words), open_model(settings_of(tiny.bert().save(tmp_path), **entries)):
        pass


@pytest.mark.parametrize("entries", [{"quant_method": "bitsandbytes"}, {"load_in_4bit": True}])
def test_a_library_that_is_missing_is_named(tmp_path, entries, monkeypatch):
    monkeypatch.setattr("heedful.attribution.model_files.find_spec", lambda name: None)
    words = "quantised by bitsandbytes, a package that is not installed; install it with: pip install bitsandbytes"
    with pytest.raises(DataError, match=words), open_model(settings_of(tiny.bert().save(tmp_path), **entries)):
        pass


@needs("bitsandbytes")
def test_a_folder_from_the_command_line(whole, tmp_path, monkeypatch, capsys):
    model = quantised(whole["bert"], bitsandbytes(load_in_4bit=True))
    model.save_pretrained(tmp_path / "model")
    transformers.AutoTokenizer.from_pretrained(whole["bert"]).save_pretrained(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(tiny.TEXTS))
    places = [str(tmp_path / name) for name in ("model", "texts.txt", "audit")]
    code, _, err = heedful(monkeypatch, capsys, "audit", *places[:2], "--out", places[2], "--only", "tau")
    assert code == 0, err
    assert (tmp_path / "audit" / "report.html").is_file()
