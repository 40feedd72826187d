"""Polarity and attention scores of every token, its average weight, and how far the classes of tokens lie apart.

Each token that goes with a label has a polarity *towards* it: s_e = h_eᵀW, turned around for the negative label; with
more than two labels, the label's logit less the mean of the others'. Without context (DP, DP-A, AD) a token's scores
are those of its vector. DP-L has no scores of a token alone: they are averaged over its places in the training texts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.files import without_nan
from heedful.measure.association import COUNT, association, dominance
from heedful.model.classifier import AttentionClassifier
from heedful.papers.sunlu2020.data import NEUTRAL_CLASS, Texts, class_names
from heedful.studies.tokens import WordMeans, alone, over_occurrences, towards

LISTED = 300  # tokens of each class that are kept for pictures
QUARTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TokenScores:
    """Of every token of the vocabulary: its polarity towards each label (V, K) and its attention score (V,)."""

    towards: Numbers
    score: Numbers


def summarise(model: AttentionClassifier, texts: Texts) -> dict[str, Any]:
    """What the tokens of a trained model come to, as JSON: `classes`, `neutral`, `weights` and a sample of `tokens`."""
    of = token_scores(model, texts)
    seen = over_occurrences(model, texts.test, len(texts.vocabulary))
    names = class_names(texts)
    neutral = texts.token_class == NEUTRAL_CLASS
    frequent = neutral & (texts.frequency > COUNT)
    classes = {}
    for label, name in enumerate(names):
        mine, speaks = texts.token_class == label, of.towards[:, label]
        classes[name] = {
            "tokens": int(mine.sum()),
            "polarity": _mean(speaks[mine]),
            "score": _mean(of.score[mine]),
            "polarity_delta": dominance(speaks[mine], speaks[neutral]),
            "score_delta": dominance(of.score[mine], of.score[neutral]),
            "score_delta_frequent": dominance(of.score[mine], of.score[frequent]),
            "score_gap": _standardised(of.score[mine], of.score[neutral]),
            "alpha_delta": dominance(*(_defined(seen.alpha[which]) for which in (mine, neutral))),
            "relative_delta": dominance(*(_defined(seen.relative[which]) for which in (mine, neutral))),
        }
    groups = {name: texts.token_class == label for label, name in enumerate(names)} | {"neutral": neutral}
    summary = {
        "vocabulary": len(texts.vocabulary),
        "classes": classes,
        "neutral": {
            "tokens": int(neutral.sum()),
            "frequent": int(frequent.sum()),
            "polarity": _mean(of.towards[neutral, -1]),
            "score": _mean(of.score[neutral]),
        },
        "weights": {
            name: {"alpha": _five(seen.alpha[which]), "relative": _five(seen.relative[which])}
            for name, which in groups.items()
        },
        "tokens": {name: _listed(which, texts, of, seen) for name, which in groups.items()},
    }
    plain: dict[str, Any] = without_nan(summary)
    return plain


def token_scores(model: AttentionClassifier, texts: Texts) -> TokenScores:
    """Scores of every token: of its vector where there is no context, averaged over training texts where there is."""
    single = alone(model)
    if single is not None:
        return TokenScores(towards(single[0]), single[1])
    seen = over_occurrences(model, texts.train, len(texts.vocabulary))
    return TokenScores(towards(seen.logits), seen.score)


def _listed(which: NDArray[np.bool_], texts: Texts, of: TokenScores, seen: WordMeans) -> dict[str, list[Any]]:
    """Some of these tokens with all that is known of them, drawn under a fixed seed; the most frequent first."""
    all_of_them = np.flatnonzero(which)
    chosen = np.sort(np.random.default_rng(0).permutation(all_of_them)[:LISTED])
    own = texts.counts.argmax(axis=1)[chosen]
    two = len(texts.labels) == 2
    polarity = of.towards[chosen, 1] if two else of.towards[chosen, own]
    gamma = association(texts.counts[chosen]) if two else texts.counts[chosen].max(axis=1) / texts.frequency[chosen]
    return {
        "token": [texts.vocabulary.words[i] for i in chosen],
        "frequency": texts.frequency[chosen].tolist(),
        "association": _short(gamma),
        "polarity": _short(polarity),
        "score": _short(of.score[chosen]),
        "alpha": _short(seen.alpha[chosen]),
        "relative": _short(seen.relative[chosen]),
    }


def _standardised(a: Numbers, b: Numbers) -> float:
    """The difference of means in units of the pooled standard deviation (Cohen's d)."""
    if min(len(a), len(b)) < 2:
        return float("nan")
    pooled = np.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2))
    return float((a.mean() - b.mean()) / pooled) if pooled > 0 else float("nan")


def _five(values: Numbers) -> list[float]:
    """Minimum, quartiles, maximum and mean, as the paper's Figure 5 draws them; empty where there is nothing."""
    defined = _defined(values)
    return [*np.quantile(defined, QUARTILES).tolist(), float(defined.mean())] if len(defined) else []


def _defined(values: Numbers) -> Numbers:
    return values[~np.isnan(values)]


def _mean(values: Numbers) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _short(values: Numbers) -> list[float]:
    return [float(f"{value:.4g}") for value in values.tolist()]
