"""The closed form against autograd of the classifier itself, in float64."""

import numpy as np
import pytest
import torch

from heedful.config import ModelConfig
from heedful.data.batching import collate
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import DataError
from heedful.models.classifier import AttentionClassifier, nll
from heedful.theory.polarity import DotModel, terms
from heedful.theory.score_dynamics import AffineMap, ScoreModel, score_terms

VOCABULARY, D, H, C, TEXTS = 11, 3, 5, 7, 13


def texts(classes: int) -> EncodedSplit:
    rng = np.random.default_rng(classes)
    rows = [rng.integers(1, VOCABULARY, size=rng.integers(1, 6)).tolist() for _ in range(TEXTS)]
    return EncodedSplit.of(rows, rng.integers(0, classes, size=TEXTS).tolist())


def classifier(scorer: str, encoder: str, classes: int) -> AttentionClassifier:
    torch.manual_seed(0)
    config = ModelConfig(D, encoder, H, scorer=scorer, scorer_hidden=C, scale=2.5, output_bias=False)
    model = AttentionClassifier(config, VOCABULARY, classes).double()
    model.embedding.padding_idx = None
    return model


def closed_form(model: AttentionClassifier) -> ScoreModel:
    def arrays(linear):
        return AffineMap(linear.weight.detach().numpy(), linear.bias.detach().numpy())

    additive = model.config.scorer == "additive"
    return ScoreModel(
        model.embedding.weight.detach().numpy(),
        model.output.weight.detach().numpy(),
        (model.scorer.out if additive else model.scorer.context).weight[0].detach().numpy(),
        model.scorer.scale,
        arrays(model.encoder.affine) if model.config.encoder == "affine" else None,
        arrays(model.scorer.hidden) if additive else None,
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("encoder", ["embedding", "affine"])
@pytest.mark.parametrize("scorer", ["dot", "additive"])
def test_terms_are_the_derivatives_of_the_scores(scorer, encoder, classes):
    """dx/dτ of every score is its gradient times the negative gradient of the loss, over all parameters."""
    model, split = classifier(scorer, encoder, classes), texts(classes)
    batch = collate(split, np.arange(TEXTS))
    loss = nll(model(batch.tokens, batch.mask).logits, batch.labels).mean()
    parameters = list(model.parameters())
    down = [-g for g in torch.autograd.grad(loss, parameters)]
    every = torch.arange(VOCABULARY)[:, None]
    output = model(every, torch.ones_like(every, dtype=torch.bool))
    polarity, score = model.output(output.hidden[:, 0]), output.scores[:, 0]

    def rate(value):
        slopes = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        return sum(float((a * b).sum()) for a, b in zip(slopes, down, strict=True) if a is not None)

    moved = score_terms(split.ids, split.labels, closed_form(model))
    expected = [[rate(polarity[e, k]) for k in range(polarity.shape[1])] for e in range(VOCABULARY)]
    np.testing.assert_allclose(moved.polarity, expected, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(moved.score, [rate(score[e]) for e in range(VOCABULARY)], rtol=1e-9, atol=1e-14)
    known = closed_form(model)
    np.testing.assert_allclose(known.polarity, polarity.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(known.score, score.detach().numpy(), rtol=1e-12)


def test_without_extras_it_is_the_papers_model():
    model, split = classifier("dot", "embedding", 2), texts(2)
    known = closed_form(model)
    plain = terms(split.ids, split.labels, DotModel(known.embedding, known.output[0], known.context, known.scale))
    ours = score_terms(split.ids, split.labels, known)
    for name in "ABC":
        np.testing.assert_allclose(getattr(ours, name)[:, 0], getattr(plain, name), rtol=1e-12, atol=1e-16)
    for name in "DEF":
        np.testing.assert_allclose(getattr(ours, name), getattr(plain, name), rtol=1e-12, atol=1e-16)
    assert not ours.G.any()
    assert not ours.H.any()


def test_refusals():
    known = closed_form(classifier("dot", "embedding", 3))
    with pytest.raises(DataError, match="labels must be 0 to 2; they are"):
        score_terms([[1]], [3], known)
    with pytest.raises(DataError, match="1 texts but 2 labels"):
        score_terms([[1]], [0, 1], known)
    with pytest.raises(DataError, match="does not fit a vocabulary"):
        score_terms([[VOCABULARY]], [0], known)
    with pytest.raises(DataError, match="no token"):
        score_terms([[]], [0], known)
    with pytest.raises(DataError, match="do not go with"):
        ScoreModel(known.embedding, known.output, np.zeros(D + 1), 1.0)
    with pytest.raises(DataError, match="scale is 0"):
        ScoreModel(known.embedding, known.output, known.context, 0.0)
