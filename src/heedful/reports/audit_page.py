"""The page of an audit: one self-contained HTML file.

Words, tables and pictures are laid into the template, escaped, and can be read without a script; a script chooses heads
and examples, and saves files. A Content-Security-Policy lets nothing else run and nothing be fetched.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from heedful.audits.result import AuditResult, score_row
from heedful.audits.verdict import FAR, MOVES, NEGLIGIBLE_DROP, NEGLIGIBLE_TAU
from heedful.files import without_nan, write_text
from heedful.reports.audit_examples import EVEN, example_numbers, shown_examples
from heedful.reports.audit_grid import head_grids, largest_tau
from heedful.reports.audit_scores import Scores
from heedful.reports.audit_sections import another_section, head_tables, movement_section, order_section, tau_section
from heedful.reports.audit_shades import STEPS, shaded_style
from heedful.reports.audit_words import QUERIES, decimal, p_value, quantity_name, reason, with_ends
from heedful.reports.numbers import interval, percent
from heedful.reports.template import assets, filled

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
