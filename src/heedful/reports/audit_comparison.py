"""Several audits side by side: their verdicts, what they share, the same measurements on one scale, the same texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.attribution.attention_maps import EVERYWHERE
from heedful.audits.result import AuditResult, score_row
from heedful.metrics.statistics import Estimate
from heedful.reports.audit_page import ShownExample, data_facts, shown_examples, subject_facts
from heedful.reports.audit_sections import HeadGrid, Numbers, Picture, Scores, head_grids, largest_tau
from heedful.reports.charts import STEPS, ChartLine, ChartMark, ChartScale, dots_svg, shaded_style
from heedful.reports.comparison import Compared, check_sides, differing, facts, headline, questions
from heedful.reports.formatting import quantity_name, reason, with_ends
from heedful.reports.html import assets, filled
from heedful.storage.atomic_files import read_json, without_nan, write_text

_ORDERS = ("comprehensiveness", "sufficiency", "token f1", "auprc")
_LETTERS = 18  # of a name that fit before a picture's scale


@dataclass(frozen=True)
class AuditSide:
    """One of the audits that are compared; its name is short and no other's. command: what made it, where known."""

    name: str
    result: AuditResult
    command: str = ""

    def compared(self) -> Compared:
        """What was measured of the map it would show, its verdict and what it was made of."""
        known = dict([*subject_facts(self.result), *data_facts(self.result)])
        return Compared(self.name, self.result.verdict, figures_of(self.result), known)


@dataclass(frozen=True)
class SharedText:
    """A text that all audits have among their examples, as each of them shaded it."""

    text: int
    label: str | None
    seen: tuple[tuple[str, ShownExample], ...]


def open_audits(runs: Sequence[Path]) -> list[AuditSide]:
    """The audits in those folders."""
    return [
        AuditSide(name, AuditResult.load(root / "result.json"), command_of(root))
        for name, root in zip(check_sides(runs), runs, strict=True)
    ]


def command_of(run: Path) -> str:
    """What made an audit, where its manifest says so."""
    manifest = run / "manifest.json"
    return str(read_json(manifest).get("command") or "") if manifest.exists() else ""


def write_audits(runs: Sequence[Path], out: Path) -> Path:
    """Write one page of several audits side by side, whole or not at all, and say where it is."""
    write_text(out, render_audits(open_audits(runs)))
    return out


def figures_of(result: AuditResult) -> dict[str, Estimate]:
    """What can be held against another audit: each measurement of the map shown, by name.

    τ with every importance; what an order by attention is good for; how far changed attention moves predictions.
    """
    scores, shown = Scores(result), result.headline
    found = {f"τ with {against}": scores.score("tau", shown, against) for against in scores.importances}
    found |= {quantity_name(quantity): scores.score(quantity, shown) for quantity in _ORDERS}
    found |= {
        f"movement, {change} attention": scores.score("tvd", change, EVERYWHERE) for change in ("permuted", "uniform")
    }
    found |= {"another map": scores.score("adversary", shown), "alignment error rate": scores.score("aer", shown)}
    found["entropy of attention"] = scores.score("entropy", shown)
    named = {name: estimate for name, estimate in found.items() if estimate is not None}
    return named | ({"accuracy": result.accuracy} if result.accuracy is not None else {})


def render_audits(sides: Sequence[AuditSide]) -> str:
    """The page as text."""
    compared = [side.compared() for side in sides]
    different, shared = facts(compared)
    return filled(
        "audits.html.j2",
        _payload(sides),
        style=shaded_style(),
        script=assets("draw.js", "saving.js"),
        filters={"reason": reason},
        names=[side.name for side in sides],
        sides=sides,
        headline=headline(compared, "measurements"),
        differing=differing(compared, with_ends),
        questions=questions(compared),
        different=different,
        shared=shared,
        pictures=_pictures(compared),
        table=_table(compared),
        grids=[(side.name, side.result.heads, grid) for side in sides for grid in _first_grid(side.result)],
        steps=STEPS,
        examples=shared_texts(sides),
    )


def shared_texts(sides: Sequence[AuditSide]) -> list[SharedText]:
    """The examples that all audits have, found by number and by their words."""
    each: list[Mapping[tuple[int, tuple[str, ...]], ShownExample]] = [
        {(shown.text, tuple(word.text for word in shown.words)): shown for shown in shown_examples(side.result)}
        for side in sides
    ]
    return [
        SharedText(text.text, text.label, tuple((s.name, one[key]) for s, one in zip(sides, each, strict=True)))
        for key, text in each[0].items()
        if all(key in one for one in each)
    ]


def _pictures(sides: Sequence[Compared]) -> tuple[Picture, ...]:
    """A picture for each measurement that two or more have, a row for each audit; τ on one scale."""
    names = dict.fromkeys(name for side in sides for name in side.figures)
    panels = {
        name: [ChartLine(_short(side.name), (ChartMark(side.figures[name]),)) for side in sides if name in side.figures]
        for name in names
    }
    several = {name: lines for name, lines in panels.items() if len(lines) > 1}
    tau = ChartScale.over([line for name, lines in several.items() if _is_tau(name) for line in lines])
    return tuple(
        Picture(f"figure-{i}", dots_svg(_title(name), lines, tau if _is_tau(name) else ChartScale.over(lines)))
        for i, (name, lines) in enumerate(several.items(), 1)
    )


def _is_tau(name: str) -> bool:
    return name.startswith("τ")


def _title(name: str) -> str:
    return name if _is_tau(name) else name[0].upper() + name[1:]


def _table(sides: Sequence[Compared]) -> Numbers:
    """All measurements as numbers, a column for each audit."""
    names = dict.fromkeys(name for side in sides for name in side.figures)
    rows = tuple((name, tuple(with_ends(side.figures.get(name)) for side in sides)) for name in names)
    return Numbers("Measurement", tuple(side.name for side in sides), rows)


def _first_grid(result: AuditResult) -> tuple[HeadGrid, ...]:
    """All heads by their τ with the importance that the verdict rests on."""
    scores = Scores(result)
    return head_grids(scores, result.layers, result.heads)[:1] if largest_tau(scores) else ()


def _payload(sides: Sequence[AuditSide]) -> dict[str, Any]:
    rows = [{"audit": side.name, **score_row(score)} for side in sides for score in side.result.scores]
    content: dict[str, Any] = without_nan({"name": " beside ".join(side.name for side in sides), "scores": rows})
    return content


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"…{name[1 - _LETTERS :]}"
