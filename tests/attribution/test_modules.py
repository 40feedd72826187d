import pytest
import torch
from torch import nn

from heedful.attribution.interface import Reader
from heedful.attribution.modules import ModuleNetwork, WordReader
from heedful.attribution.network import Network, Output
from heedful.errors import ConfigError, DataError
from tests.audits.constructed import READER, pooled


def test_a_module_is_a_network_and_a_word_reader_a_reader():
    assert isinstance(pooled().network, Network)
    assert isinstance(READER, Reader)


def test_a_classifier_takes_no_output_before():
    network = pooled().network
    with pytest.raises(DataError, match="this network is a classifier"):
        network.run(network.embed(torch.tensor([[0, 1]])), torch.tensor([[1]]))


def test_a_network_needs_a_layer_and_a_head():
    with pytest.raises(ConfigError, match="0 layers of 1 heads"):
        ModuleNetwork((), nn.Identity(), lambda e, c: Output(e, (), ()), layers=0, heads=1)


def test_nobody_knows_how_to_make_another_unless_told():
    network = pooled(fresh=False).network
    assert network.randomised(0) is None
    assert pooled().network.randomised(0) is not None


def test_reading_marks_special_words_and_counts_cuts():
    reader = WordReader({"a": 5, "b": 6}, ("no", "yes"), unknown=9, first=("<s>", 1), last=("</s>", 2), longest=3)
    passage = reader.read(4, "a c b a a", "yes")
    assert passage.words == ("<s>", "a", "c", "b", "</s>")
    assert passage.special == (True, False, False, False, True)
    assert passage.pieces == (1, 5, 9, 6, 2)
    assert (passage.text, passage.label, passage.cut) == (4, "yes", 2)


def test_an_unknown_word_is_an_error_unless_it_has_a_number():
    with pytest.raises(DataError, match="text 2: 'c' is not in the vocabulary"):
        WordReader({"a": 5}, ()).read(2, "a c")
