"""Several audits on one page: what they share, and where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.attribution.attention_maps import EVERYWHERE
from heedful.audits.result import AuditResult, score_row
from heedful.metrics.statistics import Estimate
from heedful.reports.audit_page import (
    HeadGrid,
    Scores,
    command_of,
    data_facts,
    head_grids,
    largest_tau,
    shaded_example,
    subject_facts,
)
from heedful.reports.charts import ChartLine, ChartMark, ChartScale, Picture, dots_svg, shaded_style
from heedful.reports.comparison import RunSummary, comparison_names, comparison_words
from heedful.reports.html import assets, fill, quantity_name, with_ends
from heedful.storage.atomic_files import without_nan
from heedful.storage.manifest import verified_result

_ORDERS = ("comprehensiveness", "sufficiency", "token f1", "iou f1", "auprc")
_LETTERS = 18  # of a name that fit before a picture's scale


@dataclass(frozen=True)
class ComparedAudit:
    """One of the audits that are compared; command: what made it, where known."""

    name: str
    result: AuditResult
    command: str = ""

    def summary(self) -> RunSummary:
        """The scores of the map it would show, its verdict and how it was made."""
        known = dict([*subject_facts(self.result), *data_facts(self.result)])
        return RunSummary(self.name, self.result.verdict, figures_of(self.result), known)


def open_audits(runs: Sequence[Path]) -> list[ComparedAudit]:
    """The audits in those folders."""
    return [
        ComparedAudit(name, AuditResult.load(verified_result(root)), command_of(root))
        for name, root in zip(comparison_names(runs), runs, strict=True)
    ]


def figures_of(result: AuditResult) -> dict[str, Estimate]:
    """Every score of the map shown that can be compared with another audit's, by name.

    τ with every importance; erasure and plausibility of the order by attention; how far changed attention moves
    predictions.
    """
    scores, headline = Scores(result), result.headline
    figures = {f"τ with {against}": scores.score("tau", headline, against) for against in scores.importances}
    figures |= {quantity_name(quantity): scores.score(quantity, headline) for quantity in _ORDERS}
    figures |= {
        f"movement, {change} attention": scores.score("tvd", change, EVERYWHERE) for change in ("permuted", "uniform")
    }
    others = {"another map": "adversary", "alignment error rate": "aer", "entropy of attention": "entropy"}
    figures |= {name: scores.score(quantity, headline) for name, quantity in others.items()}
    named = {name: estimate for name, estimate in figures.items() if estimate is not None}
    return named | ({"accuracy": result.accuracy} if result.accuracy is not None else {})


def render_audits(runs: Sequence[Path]) -> str:
    """The page of several audits as text."""
    audits = open_audits(runs)
    summaries = [audit.summary() for audit in audits]
    names = [audit.name for audit in audits]
    figures = list(dict.fromkeys(name for run in summaries for name in run.figures))
    rows = [{"audit": audit.name, **score_row(score)} for audit in audits for score in audit.result.scores]
    return fill(
        "audits.html.j2",
        without_nan({"name": " beside ".join(names), "scores": rows}),
        style=shaded_style(),
        script=assets("draw.js", "saving.js"),
        **comparison_words(summaries, "measurements", spell=with_ends),
        charts=_pictures(summaries, figures),
        figures=figures,
        grids=[(audit.name, audit.result.heads, grid) for audit in audits for grid in _first_grid(audit.result)],
        examples=_shared_examples(audits),
        commands=[(audit.name, audit.command) for audit in audits],
    )


def _pictures(runs: Sequence[RunSummary], figures: Sequence[str]) -> list[Picture]:
    """A picture for each measurement that two or more have, a row for each audit; τ on one scale."""
    panels = {
        name: [ChartLine(_short(run.name), (ChartMark(run.figures[name]),)) for run in runs if name in run.figures]
        for name in figures
    }
    several = {name: lines for name, lines in panels.items() if len(lines) > 1}
    tau = ChartScale.over([line for name, lines in several.items() if name.startswith("τ") for line in lines])
    pictures = []
    for i, (name, lines) in enumerate(several.items(), 1):
        title, scale = (name, tau) if name.startswith("τ") else (name[0].upper() + name[1:], ChartScale.over(lines))
        pictures.append(Picture(f"figure-{i}", dots_svg(title, lines, scale)))
    return pictures


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"…{name[1 - _LETTERS :]}"


def _first_grid(result: AuditResult) -> tuple[HeadGrid, ...]:
    """All heads by their τ with the importance that the verdict rests on."""
    scores = Scores(result)
    return head_grids(scores, result.layers, result.heads)[:1] if largest_tau(scores) else ()


def _shared_examples(audits: Sequence[ComparedAudit]) -> list[list[tuple[str, dict[str, Any]]]]:
    """The examples that all audits have, found by number and by their words, with the name of each audit."""
    each = [{(example.text, example.words): example for example in audit.result.examples} for audit in audits]
    return [
        [(a.name, shaded_example(one[key], a.result.headline)) for a, one in zip(audits, each, strict=True)]
        for key in each[0]
        if all(key in one for one in each)
    ]
