import numpy as np
import pytest
import torch

from heedful.audits.arrays import audit_arrays
from heedful.config import AuditSettings
from heedful.errors import DataError
from heedful.metrics.agreement import agreement
from heedful.metrics.entropy import normalised_entropy
from heedful.metrics.rank import kendall_tau_b

QUICK = AuditSettings(resamples=50)


def made(n=9, layers=2, heads=3, seed=0):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(4, 7, n)
    attention = [draw.dirichlet(np.ones(L), (layers, heads)) for L in lengths]
    return attention, [draw.normal(size=L) for L in lengths]


def test_numbers_are_those_of_measure():
    attention, gradient = made()
    result = audit_arrays(attention, {"gradient": gradient}, settings=QUICK)
    favoured = [i for i, row in enumerate(gradient) if row.max() > 0]  # where none is, importance is undefined
    maps = [attention[i][1].mean(0) for i in favoured]
    size = [np.maximum(gradient[i], 0) for i in favoured]  # words that speak against the output count as 0
    assert 0 < len(favoured) < len(gradient)
    assert result.headline == "layer 2"
    assert result.score("tau", "layer 2", "gradient").value == pytest.approx(kendall_tau_b(maps, size).mean())
    assert result.score("agreement", "layer 2", "gradient").value == pytest.approx(agreement(maps, size).mean())
    heads = [alpha[0, 2] for alpha in attention]
    assert result.score("entropy", "layer 1 head 3").value == pytest.approx(normalised_entropy(heads).mean())


def test_questions_that_need_a_model_stay_open():
    attention, deletion = made()
    result = audit_arrays(attention, {"leave one out": deletion}, settings=QUICK)
    unasked = [question.because.startswith("not asked") for question in result.verdict.questions]
    assert unasked == [True, False, True, True, True, False]


def test_tensors_of_one_layer_or_one_head_will_do():
    alpha = torch.rand(4, 5, requires_grad=True).softmax(-1)
    result = audit_arrays(list(alpha), {"gradient": list(alpha)}, settings=QUICK)
    assert (result.layers, result.heads) == (1, 1)
    assert result.score("tau", "layer 1", "gradient").value == 1


def test_predictions_and_words_are_shown():
    result = audit_arrays(
        [[0.2, 0.8], [0.4, 0.6]],
        {"gradient": [[1.0, 2.0], [2.0, 1.0]]},
        predictions=[[0.1, 0.9], [0.7, 0.3]],
        words=[["not", "bad"], ["so", "so"]],
        settings=QUICK,
    )
    assert [(label.name, label.predicted) for label in result.labels] == [("0", 1), ("1", 1)]
    first = result.examples[0]
    assert (first.words, first.output, first.probability) == (("not", "bad"), "1", 0.9)


def test_attention_to_long_states_weighs_more():
    hidden = [[[3.0, 4.0], [0.0, 0.5]]]
    result = audit_arrays([[0.2, 0.8]], {"gradient": [[2.0, 1.0]]}, hidden=hidden, settings=QUICK)
    assert result.score("tau", "layer 1", "gradient").value == -1
    assert result.score("tau", "layer 1 × norm", "gradient").value == 1


@pytest.mark.parametrize(
    ("attention", "importances", "options", "message"),
    [
        ([], {}, {}, "give at least one text"),
        ([[0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]], {}, {}, "the same for all texts"),
        ([[[[[1.0]]]]], {}, {}, "it must be"),
        ([[-0.5, 1.5]], {}, {}, "text 0: attention has values that are negative"),
        ([[0.5, 0.5]], {"gradient": []}, {}, "'gradient' has 0 texts, attention 1"),
        ([[0.5, 0.5]], {"gradient": [[1.0]]}, {}, "'gradient' has 1 values for 2 words"),
        ([[0.5, 0.5]], {}, {"words": [["a"]]}, "text 0 has 1 words, but attention for 2"),
        ([[0.5, 0.5]], {}, {"predictions": [0.5]}, "predictions have shape"),
        ([[0.5, 0.5]], {}, {"hidden": [[[1.0, 2.0]]]}, "differ in the lengths"),
        ([[0.5, 0.5]], {}, {"settings": AuditSettings(headline="mean")}, "there is no map 'mean'; there are layer 1"),
    ],
)
def test_what_does_not_fit_is_an_error(attention, importances, options, message):
    with pytest.raises(DataError, match=message):
        audit_arrays(attention, importances, **options)
