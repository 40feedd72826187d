"""Examples of an audit as its page shows them: words with their shades, and who ranks which words highest."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.audits.result import AuditResult, Example, Weights
from heedful.files import without_nan
from heedful.measure.rank import kendall_tau_b
from heedful.reports.audit_shades import shade
from heedful.reports.audit_words import decimal
from heedful.reports.numbers import NONE, percent

EVEN = 3  # shades end at the highest weight, but not below so many times an even share: what is flat looks pale
_HIGHEST = 5


@dataclass(frozen=True)
class ShownWord:
    """A word, the class of its colour, and whether people marked it."""

    text: str
    shade: str
    marked: bool


@dataclass(frozen=True)
class Ranking:
    """The highest words by one account, each with its share, and that account's τ with attention."""

    name: str
    tau: str
    highest: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ShownExample:
    """One passage as it is laid into the page."""

    text: int
    output: str
    label: str | None
    probability: str
    words: tuple[ShownWord, ...]
    rankings: tuple[Ranking, ...]


def shown_examples(result: AuditResult) -> list[ShownExample]:
    """All examples, shaded by the headline map."""
    return [_shown(example, result.headline) for example in result.examples]


def example_numbers(result: AuditResult) -> list[dict[str, Any]]:
    """What the page's script needs to shade and to sort them otherwise."""
    return [
        {
            "text": example.text,
            "probability": example.probability,
            "right": None if example.label is None else example.label == example.output,
            "map": _rounded(example.map),
            "importances": {weights.name: _rounded(weights.values) for weights in example.importances},
            "tau": {weights.name: without_nan(_tau(example, weights)) for weights in example.importances},
        }
        for example in result.examples
    ]


def _shown(example: Example, headline: str) -> ShownExample:
    strongest = max((*example.map, EVEN / len(example.words)))
    marks = example.rationale if len(example.rationale) == len(example.words) else (False,) * len(example.words)
    words = zip(example.words, example.map, marks, strict=True)
    own = _ranking(example, Weights(headline, example.map), NONE)
    others = (_ranking(example, weights, decimal(_tau(example, weights), 2)) for weights in example.importances)
    return ShownExample(
        example.text,
        example.output,
        example.label,
        percent(example.probability),
        tuple(ShownWord(word, shade(weight, strongest), marked) for word, weight, marked in words),
        (own, *others),
    )


def _ranking(example: Example, weights: Weights, tau: str) -> Ranking:
    order = sorted(range(len(weights.values)), key=lambda i: -weights.values[i])[:_HIGHEST]
    return Ranking(weights.name, tau, tuple((example.words[i], percent(weights.values[i])) for i in order))


def _tau(example: Example, weights: Weights) -> float:
    return float(kendall_tau_b([np.array(example.map)], [np.array(weights.values)])[0])


def _rounded(values: tuple[float, ...]) -> list[float]:
    return [round(value, 5) for value in values]
