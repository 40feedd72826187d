"""What every head attends to in a few texts, recorded through training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.config import ModelConfig, TranslatorConfig
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import DamagedError
from heedful.models.classifier import AttentionClassifier
from heedful.models.transformer import build_translator
from heedful.tracing.heads import read_heads, write_heads
from heedful.tracing.recorder import MOST_EXAMPLES, choose_short, has_heads, record_heads
from tests.models.test_translator import pairs

CONFIG = ModelConfig(embedding=8, encoder="transformer", hidden=12, layers=2, heads=3, scorer_hidden=4)
LENGTHS = (11, 5, 13, 40, 9)


@pytest.fixture
def split():
    return EncodedSplit.of([[2, *range(4, 4 + n - 2), 3] for n in LENGTHS], [0, 1, 0, 1, 0])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return AttentionClassifier(CONFIG, 50, 2)


def test_maps_of_each_short_text_are_those_of_a_batch(model, split):
    maps = record_heads(model, split)
    assert maps.example.tolist() == [0, 2, 4]
    tokens = torch.zeros(3, 13, dtype=torch.long)
    for row, i in enumerate(maps.example):
        tokens[row, : LENGTHS[i]] = torch.tensor(split.text(int(i)))
    with torch.no_grad():
        padded = model.eval()(tokens, tokens != 0).self_attention
    for row, weights in enumerate(maps.weights):
        L = LENGTHS[maps.example[row]]
        assert weights.shape == (2, 3, L, L)
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        for layer in range(2):
            np.testing.assert_allclose(weights[layer], padded[layer][row, :, :L, :L].numpy(), rtol=1e-4, atol=1e-6)


def test_what_is_read_is_what_was_written(model, split, tmp_path):
    maps = record_heads(model, split)
    write_heads(tmp_path, 7, maps)
    read = read_heads(tmp_path / "7.parquet")
    assert read.example.tolist() == maps.example.tolist()
    for there, here in zip(read.weights, maps.weights, strict=True):
        np.testing.assert_array_equal(there, here)


def test_another_file_is_damaged(tmp_path):
    (tmp_path / "0.parquet").write_bytes(b"PAR1 no maps")
    with pytest.raises(DamagedError):
        read_heads(tmp_path / "0.parquet")


def test_few_texts_are_recorded():
    assert len(choose_short(np.full(100, 10))) == MOST_EXAMPLES


@pytest.mark.parametrize(
    ("cell", "layers", "heads", "several"), [("lstm", 2, 1, False), ("lstm", 1, 3, True), ("transformer", 2, 2, True)]
)
def test_translators_have_their_layers_and_heads(cell, layers, heads, several):
    examples = pairs((9, 5), (11, 7))
    model = build_translator(TranslatorConfig(8, 12, layers=layers, heads=heads, cell=cell), 30)
    assert has_heads(model) is several
    maps = record_heads(model, examples)
    first = int(maps.example[0])
    shape = (
        layers if cell == "transformer" else 1,
        heads,
        examples.outputs.lengths[first],
        examples.source.lengths[first],
    )
    assert maps.weights[0].shape == shape


def test_a_recurrent_classifier_has_no_heads():
    assert not has_heads(AttentionClassifier(replace(CONFIG, encoder="lstm", heads=1), 9, 2))
