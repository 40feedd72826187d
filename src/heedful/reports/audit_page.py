"""The page of an audit: one self-contained HTML file.

Words, tables and pictures are laid into the template, escaped, and can be read without a script; a script chooses heads
and examples, and saves files. A Content-Security-Policy lets nothing else run and nothing be fetched.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heedful.audits.result import AuditExample, AuditResult, Weights, score_row
from heedful.audits.verdict import FAR, MOVES, NEGLIGIBLE_DROP, NEGLIGIBLE_TAU
from heedful.metrics.rank import kendall_tau_b
from heedful.reports.audit_sections import (
    Scores,
    another_section,
    head_grids,
    head_tables,
    largest_tau,
    movement_section,
    order_section,
    tau_section,
)
from heedful.reports.charts import STEPS, shade, shaded_style
from heedful.reports.formatting import (
    NONE,
    QUERIES,
    decimal,
    interval,
    p_value,
    percent,
    quantity_name,
    reason,
    with_ends,
)
from heedful.reports.html import assets, filled
from heedful.storage.atomic_files import without_nan, write_text

EVEN = 3  # shades end at the highest weight, but not below so many times an even share: what is flat looks pale
_HIGHEST = 5


@dataclass(frozen=True)
class ShownWord:
    """A word, the class of its colour, and whether people marked it."""

    text: str
    shade: str
    marked: bool


@dataclass(frozen=True)
class WordRanking:
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
    rankings: tuple[WordRanking, ...]


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


def _shown(example: AuditExample, headline: str) -> ShownExample:
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


def _ranking(example: AuditExample, weights: Weights, tau: str) -> WordRanking:
    order = sorted(range(len(weights.values)), key=lambda i: -weights.values[i])[:_HIGHEST]
    return WordRanking(weights.name, tau, tuple((example.words[i], percent(weights.values[i])) for i in order))


def _tau(example: AuditExample, weights: Weights) -> float:
    return float(kendall_tau_b([np.array(example.map)], [np.array(weights.values)])[0])


def _rounded(values: tuple[float, ...]) -> list[float]:
    return [round(value, 5) for value in values]


_MANY_LABELS = 12


def write_audit_page(result: AuditResult, out: Path, command: str = "") -> Path:
    """Write the page, whole or not at all, and say where it is; command: what runs the audit again."""
    write_text(out, render_audit(result, command))
    return out


def render_audit(result: AuditResult, command: str = "") -> str:
    """The page as text."""
    scores = Scores(result)
    return filled(
        "audit.html.j2",
        _payload(result),
        style=shaded_style(),
        script=assets("draw.js", "audit.js"),
        filters={
            "reason": reason,
            "with_ends": with_ends,
            "decimal": decimal,
            "p_value": p_value,
            "quantity": quantity_name,
        },
        result=result,
        command=command,
        subject_facts=subject_facts(result),
        data_facts=data_facts(result),
        settings=[(name.replace("_", " "), _said(value)) for name, value in result.settings.items()],
        many_labels=_MANY_LABELS,
        tau=tau_section(scores),
        grids=head_grids(scores, result.layers, result.heads),
        largest=largest_tau(scores),
        steps=STEPS,
        heads=head_tables(scores),
        erasure=order_section(scores, "comprehensiveness", "sufficiency"),
        movement=movement_section(scores, result.layers),
        another=another_section(scores),
        people=order_section(scores, "token f1", "auprc"),
        alignment=order_section(scores, "aer", maps=scores.maps),
        examples=shown_examples(result),
        limits={"moves": MOVES, "far": FAR, "tau": NEGLIGIBLE_TAU, "drop": NEGLIGIBLE_DROP},
    )


def _payload(result: AuditResult) -> dict[str, Any]:
    """What the script knows: every score, every comparison, and the weights of the examples."""
    content: dict[str, Any] = without_nan(
        {
            "name": f"{result.model} {result.data}".strip()[:80],
            "steps": STEPS,
            "even": EVEN,
            "scores": [score_row(score) for score in result.scores],
            "contrasts": [_contrast_row(asdict(contrast)) for contrast in result.contrasts],
            "examples": example_numbers(result),
        }
    )
    return content


def _contrast_row(contrast: dict[str, Any]) -> dict[str, Any]:
    difference = contrast.pop("difference")
    return {**contrast, "difference": difference.pop("value"), **difference}


def subject_facts(result: AuditResult) -> list[tuple[str, str]]:
    """The model in pairs of word and value."""
    accuracy = result.accuracy
    facts = [
        ("model", result.model),
        ("attention", f"{_count(result.layers, 'layer')} of {_count(result.heads, 'head')}, {QUERIES[result.query]}"),
        ("map shown", f"{result.headline}; the verdict is about this one"),
        ("fingerprint", result.fingerprint),
    ]
    facts += [("not measured", sentence) for sentence in result.left_out]
    if accuracy is not None:
        facts.insert(1, ("accuracy", f"{percent(accuracy.value)} ({interval(accuracy)})"))
    return [(name, value) for name, value in facts if value]


def data_facts(result: AuditResult) -> list[tuple[str, str]]:
    """The data in pairs of word and value."""
    special = result.settings.get("include_special", False)
    cut = f"{result.cut:,} of {result.passages:,} passages lost {_count(result.cut_pieces, 'piece')} at the end"
    facts = [
        ("data", result.data),
        ("texts", f"{result.texts:,}"),
        ("predictions", f"{result.passages:,} explained"),
        ("left out", f"{_count(result.wordless, 'passage')} without a word to explain" if result.wordless else "none"),
        ("truncation", cut if result.cut else "nothing was cut"),
        ("special words", "explained like any other" if special else "left out; the other words’ shares add up to 1"),
    ]
    if result.rationale_percent is not None:
        facts.append(("rationales", f"people marked {result.rationale_percent}\N{NO-BREAK SPACE}% of the words"))
    return [(name, value) for name, value in facts if value]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
