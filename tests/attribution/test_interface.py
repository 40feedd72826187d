from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.attribution.attention_maps import read_attention
from heedful.attribution.interface import Subject
from heedful.attribution.modules import ModuleNetwork
from heedful.attribution.network import Output
from heedful.errors import DataError
from tests.audits.constructed import READER, in_pieces, passages, pooled, stacked


def alone(subject, passage):
    """The network asked directly about one passage."""
    for module in subject.network.modules:
        module.eval()
    with torch.no_grad():
        return subject.network.run(subject.network.embed(torch.tensor([passage.pieces])))


def test_a_prediction_is_the_most_probable_output_by_name():
    subject, some = pooled(), passages(6)
    decided = subject.with_targets(some)
    assert [passage.output for passage in decided] == [passage.label for passage in some]
    assert [subject.reader.labels[passage.target] for passage in decided] == [passage.output for passage in decided]


def test_an_output_that_was_asked_about_stays():
    (decided,) = pooled().with_targets([replace(passages(1)[0], target=1)])
    assert (decided.target, decided.output) == (1, "good")


def test_reading_sums_pieces_into_words_and_takes_the_row_that_predicts():
    subject, some = stacked(), in_pieces()
    reading = read_attention(subject, some)
    for i, passage in enumerate(some):
        direct = alone(subject, passage)
        np.testing.assert_allclose(reading.probabilities[i], direct.probabilities[0], atol=1e-12)
        assert reading.attention[i].shape == (2, 3, len(passage.words))
        row = direct.attention[1][0, 2, 0].numpy()
        summed = [row[np.array(passage.word) == word].sum() for word in range(len(passage.words))]
        np.testing.assert_allclose(reading.attention[i][1, 2], summed, atol=1e-12)
        np.testing.assert_allclose(reading.rollout[i].sum(), 1)


@pytest.mark.parametrize("max_tokens", [1, 40, 10_000])
def test_many_at_once_are_as_one_by_one(max_tokens):
    some = [*passages(7), *in_pieces()]
    together = read_attention(stacked(max_tokens=max_tokens), some)
    for i, passage in enumerate(some):
        single = read_attention(stacked(), [passage])
        np.testing.assert_allclose(together.probabilities[i], single.probabilities[0], atol=1e-12)
        np.testing.assert_allclose(together.attention[i], single.attention[0], atol=1e-12)


def test_deleted_words_are_gone_and_special_words_stay():
    subject = stacked()
    passage = subject.with_targets(in_pieces(1))[0]
    keep = np.zeros(len(passage.words), dtype=bool)
    keep[2] = True
    (y,) = subject.predict([passage], [keep])
    left = [piece for piece, word in zip(passage.pieces, passage.word, strict=True) if word in (0, 2, len(keep) - 1)]
    shorter = replace(
        passage, pieces=tuple(left), word=tuple(range(len(left))), words=("",) * len(left), special=(True,) * len(left)
    )
    np.testing.assert_allclose(y, alone(subject, shorter).probabilities[0, passage.target], atol=1e-12)


def test_where_nothing_is_left_there_is_no_prediction():
    subject = pooled()
    passage = replace(subject.with_targets(passages(1))[0], special=(False,) * 6)
    assert np.isnan(subject.predict([passage], [np.zeros(6, dtype=bool)])).all()


def network(attention, probabilities=((0.5, 0.5),)):
    given = Output(torch.tensor(probabilities), attention, ())
    made = ModuleNetwork((), lambda pieces: pieces[..., None].double(), lambda e, change: given, layers=2, heads=1)
    return Subject(made, READER)


def test_attention_that_is_missing_is_an_error():
    with pytest.raises(DataError, match="it has 2 layers"):
        read_attention(network(()), passages(1))


def test_a_prediction_that_is_no_number_is_an_error():
    alpha = torch.ones(1, 1, 1, 6)
    with pytest.raises(DataError, match=r"text 0: .* not a number"):
        read_attention(network((alpha, alpha), ((float("nan"), 1.0),)), passages(1))


def test_an_output_that_does_not_exist_is_an_error():
    passage = replace(passages(1)[0], target=7)
    with pytest.raises(DataError, match=r"targets \[7\] do not all exist"):
        pooled().predict([passage], [np.ones(6, dtype=bool)])


def test_an_empty_text_is_an_error():
    with pytest.raises(DataError, match="text 0 is empty"):
        read_attention(pooled(), [replace(passages(1)[0], pieces=(), word=())])


def test_a_network_that_cannot_be_changed_is_an_error():
    with pytest.raises(DataError, match="needs a network whose attention can be replaced"):
        pooled(can_change=False).with_attention(passages(1), lambda batch, layer, alpha: alpha)
