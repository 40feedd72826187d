"""The page of the docs about audits: a preface, and kept audits told with pictures; every number is read from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.audits.result import Contrast
from heedful.files import write_text
from heedful.measure.uncertainty import Estimate
from heedful.papers.finding import Cell, Row, Table
from heedful.reports.audit_grid import head_grids
from heedful.reports.audit_kept import KeptAudit
from heedful.reports.audit_pictures import course_figure, grid_picture, side_by_side
from heedful.reports.audit_scores import Scores
from heedful.reports.audit_sections import Picture, movement_section, order_section, tau_section
from heedful.reports.audit_words import p_value, quantity_name, reason, with_ends
from heedful.reports.numbers import duration, interval, percent
from heedful.reports.paper_figures import draw_figure
from heedful.reports.paper_tables import markdown_table, markdown_text
from heedful.reports.template import assets

_FACTS = {
    "data": "trained on",
    "encoder": "encoder",
    "texts": "training texts",
    "steps": "updates",
    "batch": "texts to an update",
    "longest": "longest text",
    "rate": "step size of Adam",
    "cpu_seconds": "CPU time of training",
}


_ASKED = ("sample", "seed", "integrated_steps", "adversary_steps", "random_orders")


@dataclass(frozen=True)
class Story:
    """An audit to be told: under which name its pictures lie, the title, and words of our own (Markdown) before it."""

    name: str
    title: str
    words: str
    kept: KeptAudit


def write_audit_docs(stories: Sequence[Story], page: Path) -> Path:
    """Write the page and, beside it in `figures/audit`, its pictures."""
    figures = page.parent / "figures" / "audit"
    blocks = [
        "<!-- Written by `python examples/audit_docs.py write`; do not edit. -->",
        assets("audit_docs.md").strip(),
        *(block for story in stories for block in _story(story, figures)),
    ]
    write_text(page, "\n\n".join(block for block in blocks if block) + "\n")
    return page


def _story(story: Story, figures: Path) -> Iterator[str]:
    kept, result = story.kept, story.kept.result
    scores = Scores(result)
    yield f"## {markdown_text(story.title)}"
    yield story.words.strip()
    yield _plain_table(("", ""), _facts(kept))
    if kept.following is not None:
        svg, _ = draw_figure(course_figure(f"{story.name}-course", kept.following), figures)
        yield "### While it was trained"
        yield f"![Accuracy, attention and agreements at each recorded step](figures/audit/{svg.name})"
        yield f"On {kept.following.texts:,} texts of validation. {markdown_text(kept.following.verdict.sentence)}"
    yield "### The verdict"
    yield f"> **{markdown_text(result.verdict.sentence)}**"
    yield _plain_table(
        ("question", "answer", "because"),
        [(q.question, q.answer, "; ".join(reason(q.because))) for q in result.verdict.questions],
    )
    yield "### What it rests on"
    tau = tau_section(scores).pictures
    yield _drawn(figures, f"{story.name}-tau", "Kendall’s τ of maps of attention with importance", tau[:3])
    yield (
        "Blue dots: this model; hollow: a random model of the same shape; squares: what one importance reaches with "
        "another. Whiskers are 95\N{NO-BREAK SPACE}% intervals over texts."
    )
    yield _states(result.contrasts)
    grids = head_grids(scores, result.layers, result.heads)
    if grids:
        write_text(figures / f"{story.name}-heads.svg", grid_picture(grids[0]))
        yield f"![τ of every head with {grids[0].against}](figures/audit/{story.name}-heads.svg)"
    erasure = order_section(scores, "comprehensiveness", "sufficiency").pictures
    yield _drawn(figures, f"{story.name}-erasure", "What is lost without the first words, and with them alone", erasure)
    moved = movement_section(scores, result.layers).pictures
    yield _drawn(
        figures, f"{story.name}-moved", "Predictions under permuted (dots) and uniform (hollow) attention", moved
    )
    if result.rationale_percent is not None:
        yield from _people(scores, result.rationale_percent)
    yield _made(kept)


def _facts(kept: KeptAudit) -> list[tuple[str, str]]:
    result = kept.result
    facts = [(_FACTS[name], _fact(name, kept.training[name])) for name in _FACTS if name in kept.training]
    facts.append(("audited on", f"{result.texts:,} texts of {result.data}"))
    if result.cut:
        facts.append(("cut", f"{result.cut:,} of {result.passages:,} texts, by {result.cut_pieces:,} pieces in all"))
    if result.accuracy is not None:
        facts.append(("accuracy", f"{percent(result.accuracy.value)} ({interval(result.accuracy)})"))
    facts.append(
        ("attention", f"{result.layers} × {result.heads} (layers × heads); a reader is shown {result.headline}")
    )
    return facts


def _fact(name: str, value: Any) -> str:
    if name == "cpu_seconds":
        return duration(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _states(contrasts: Sequence[Contrast]) -> str:
    """τ with importances of hidden states beside those of inputs (M1 of meister2021)."""
    found = [c for c in contrasts if c.quantity == "tau" and c.first.startswith("hidden ")]
    if not found:
        return ""
    rows = [(c.first, c.second, with_ends(c.difference), p_value(c.corrected)) for c in found]
    table = _plain_table(("τ with", "less τ with", "difference", "p, corrected"), rows)
    return f"Attention beside the importance of hidden states and of inputs (claim M1 of meister2021):\n\n{table}"


def _people(scores: Scores, share: int) -> Iterator[str]:
    """How well each order of words finds those that people marked."""
    quantities = ("token f1", "auprc")
    names = [scores.headline, *scores.importances, "random order"]
    found: dict[str, list[Estimate | None]] = {n: [scores.score(q, n) for q in quantities] for n in names}
    rows = tuple(
        Row(name, tuple(Cell(estimate, digits=3) for estimate in estimates))
        for name, estimates in found.items()
        if any(estimates)
    )
    yield "### And people?"
    yield (
        f"People marked {share}\N{NO-BREAK SPACE}% of the words; as many are taken from the top of each order "
        "(token F1), or the whole order is read (AUPRC)."
    )
    yield markdown_table(Table("", tuple(map(quantity_name, quantities)), rows))


def _drawn(figures: Path, name: str, words: str, pictures: Sequence[Picture]) -> str:
    if not pictures:
        return ""
    write_text(figures / f"{name}.svg", side_by_side(pictures))
    return f"![{markdown_text(words)}](figures/audit/{name}.svg)"


def _made(kept: KeptAudit) -> str:
    made = kept.provenance
    settings: Mapping[str, Any] = kept.result.settings
    asked = ", ".join(f"{name.replace('_', ' ')} {settings[name]}" for name in _ASKED if settings.get(name) is not None)
    parts = [
        asked,
        f"CPU time {duration(made.cpu_seconds)}",
        f"commit {made.commit[:8]}" if made.commit else "no commit",
        ", ".join(f"{name} {version}" for name, version in made.versions.items()),
        made.finished[:10],
        f"model {kept.result.fingerprint[:12]}",
    ]
    commands = [str(kept.training["command"])] if "command" in kept.training else []
    said = "<br>".join(f"<code>{markdown_text(command)}</code>" for command in [*commands, made.command])
    return f"<sub>{said}<br>{' · '.join(markdown_text(part) for part in parts)}</sub>"


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([markdown_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
