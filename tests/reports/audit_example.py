"""A made audit: 3 layers of 4 heads, 12 examples, all that can be measured, and words that would like to be markup."""

from dataclasses import replace

import numpy as np

from heedful.attribution.attention_maps import (
    DELETION,
    EVERYWHERE,
    GRADIENT,
    HIDDEN,
    INTEGRATED,
    MEAN,
    PRODUCT,
    RANDOM,
    ROLLOUT,
    layer_name,
)
from heedful.audits.result import (
    AuditExample,
    AuditQuestion,
    AuditResult,
    AuditVerdict,
    Contrast,
    LabelCount,
    Score,
    Weights,
)
from heedful.metrics.statistics import Estimate

LAYERS, HEADS, EXAMPLES = 3, 4, 12
INPUTS = (GRADIENT, PRODUCT, INTEGRATED, DELETION)
LAYER_MAPS = tuple(layer_name(layer) for layer in range(LAYERS))
HEAD_MAPS = tuple(layer_name(layer, head) for layer in range(LAYERS) for head in range(HEADS))
HEADLINE = LAYER_MAPS[-1]
TEXTS = (
    "a film of quiet , stubborn grace that never once begs for your tears",
    "the plot is thin and the jokes are thinner",
    "it is not good , it is not bad , it is merely long",
    "what a performance !",
)
HOSTILE_WORDS = (
    "<script>alert(1)</script>",
    "</script>",
    "<img src=x onerror=alert(2)>",
    '"quotes"\'',
    "{{7*7}}",
    "=1+1",
    "فيلمان",
    "جيدان",
    "👩‍👩‍👦",
    "x" * 10_000,
)


def audit_example(**changes):
    """The result, with any of its parts replaced."""
    result = AuditResult(
        model="models/reviews",
        data="rotten-tomatoes <test>",
        settings={"sample": 40, "seed": 0, "include_special": False, "headline": None, "adversary_steps": 100},
        fingerprint="0123456789abcdef" * 4,
        layers=LAYERS,
        heads=HEADS,
        query="first",
        headline=HEADLINE,
        texts=40,
        passages=40,
        wordless=1,
        cut=2,
        cut_pieces=31,
        labels=(LabelCount("<b>negative</b>", 21, 19), LabelCount("positive", 19, 21)),
        accuracy=Estimate(0.85, 0.725, 0.95, 40),
        random_agreement=0.083,
        rationale_percent=18,
        scores=tuple(_scores()),
        contrasts=(
            Contrast("comprehensiveness", HEADLINE, RANDOM, around(0.081, 0.02), 0.0004, 0.0011),
            Contrast("comprehensiveness", HEADLINE, DELETION, around(-0.142, 0.03), 0.0001, 0.0005),
            Contrast(f"concordance with {DELETION}", "this model", "random models", around(0.093, 0.05), 0.012, 0.02),
            Contrast("auprc", HEADLINE, RANDOM, around(0.02, 0.04), 0.31, 0.31),
        ),
        verdict=AuditVerdict(
            "Show it with a caveat: quite different weights give the same prediction (divergence 0.512 [0.472, 0.552], "
            "threshold 0.347).",
            (
                _question("Does the attention shown move the prediction?", "yes", "reassuring", 0.21, 0.05),
                _question("Does it agree with the importance of words better than chance?", "yes", "reassuring", 0.15),
                _question("Does it agree better than that of random models?", "no", "worrying", -0.01),
                _question("Does the prediction need the words it points to?", "yes", "reassuring", 0.081, 0.01),
                _question("Could another attention give the same prediction?", "yes", "worrying", 0.512, 0.347),
                AuditQuestion(
                    "Does it agree with importance in every layer?", "unclear", "layer 1 0.02 [-0.04, 0.08] < 0"
                ),
            ),
            "show with a caveat",
        ),
        examples=tuple(_example(i) for i in range(EXAMPLES)),
    )
    return replace(result, **changes)


def one_head_example():
    """The same audit for a model of one layer with one head."""
    result, headline = audit_example(), layer_name(0)
    kept = tuple(
        replace(score, of=headline) if score.of == result.headline else score
        for score in result.scores
        if not score.of.startswith("layer ") or score.of == result.headline
    )
    return replace(result, layers=1, heads=1, headline=headline, scores=kept)


def _question(question, answer, sense, value, threshold=0.05):
    estimate = around(value, 0.02)
    because = f"τ {value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}], threshold {threshold}; 8% at random"
    return AuditQuestion(question, answer, because, sense, "τ", estimate, threshold, 1.25)


def around(value, half=0.05, n=40):
    return Estimate(float(value), float(value - half), float(value + half), n)


def _scores():
    draw = np.random.default_rng(3)
    for i, name in enumerate((*HEAD_MAPS, *LAYER_MAPS, MEAN, ROLLOUT)):
        single, several = name in HEAD_MAPS, name in (MEAN, ROLLOUT)
        for against in INPUTS if several else (*INPUTS, HIDDEN):
            yield Score("tau", name, against, around(draw.uniform(-0.35, 0.55) if single else 0.05 + 0.01 * i))
            if not single:
                yield Score("agreement", name, against, around(0.31, 0.1))
                yield Score("shuffled agreement", name, against, around(0.12, 0.03))
                yield Score("excess agreement", name, against, around(0.19, 0.1))
                yield Score("random tau", name, against, around(draw.uniform(-0.05, 0.1)))
        yield Score("entropy", name, "", around(draw.uniform(0.5, 0.9), 0.02))
        yield Score("aer", name, "", around(draw.uniform(0.4, 0.8), 0.03))
    for i, name in enumerate(INPUTS):
        for other in INPUTS[i + 1 :]:
            yield Score("tau", name, other, around(draw.uniform(0.3, 0.5)))
        yield Score("aer", name, "", around(0.5, 0.03))
    yield Score("aer", RANDOM, "", around(0.8, 0.0))
    for name, good in {
        HEADLINE: 0.15,
        GRADIENT: 0.2,
        PRODUCT: 0.22,
        INTEGRATED: 0.25,
        DELETION: 0.3,
        RANDOM: 0.07,
    }.items():
        yield Score("comprehensiveness", name, "", around(good, 0.02))
        yield Score("sufficiency", name, "", around(0.35 - good, 0.02))
        yield Score("token f1", name, "", around(good + 0.1, 0.04))
        yield Score("auprc", name, "", around(good + 0.15, 0.04))
    for where in (EVERYWHERE, *LAYER_MAPS):
        for change in ("permuted", "uniform"):
            yield Score("tvd", change, where, around(draw.uniform(0.04, 0.25), 0.03))
            yield Score("flip", change, where, around(draw.uniform(0.05, 0.2), 0.04))
    yield Score("adversary", HEADLINE, "", around(0.512, 0.04))
    yield Score("tau", "layer 1 head 1", "never measured", Estimate(float("nan"), float("nan"), float("nan"), 0, 40))


def _signed(values):
    """Every third word speaks against the output."""
    return tuple(-value if k % 3 == 2 else value for k, value in enumerate(values))


def _example(i):
    words = tuple(TEXTS[i % 4].split()) if i != 5 else HOSTILE_WORDS
    draw = np.random.default_rng(i)

    def shares():
        return tuple(draw.dirichlet(np.full(len(words), 0.7)).tolist())

    return AuditExample(
        text=3 * i,
        words=words,
        output="positive" if i % 2 else "<b>negative</b>",
        label=None if i == 11 else "positive",
        probability=0.5 + 0.04 * i,
        map=shares() if i != 7 else (1 / len(words),) * len(words),
        importances=tuple(Weights(name, shares() if name == GRADIENT else _signed(shares())) for name in INPUTS),
        rationale=tuple(bool(k % 4 == 1) for k in range(len(words))) if i % 3 else (),
        other=shares(),
        divergence=0.05 * i,
        other_probability=0.5 + 0.04 * i - 0.005,
        maps=tuple(Weights(name, shares()) for name in (*HEAD_MAPS, *LAYER_MAPS)) if i < 3 else (),
    )
