"""The page: one self-contained HTML file of a finished run.

Words are laid into the template by jinja2, which escapes them; numbers are embedded (`payload`) and drawn by the
scripts in `templates/`, which write text with `textContent` alone. A Content-Security-Policy lets nothing else run
and nothing be fetched.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from heedful.audits.followed_run import FollowedRun
from heedful.files import write_text
from heedful.markup import answers, dots_and_whiskers
from heedful.reports import comparison, followed_sides, following, summary
from heedful.reports.equations import equations
from heedful.reports.payload import Payload, study_payload
from heedful.reports.sides import Compared, differing, facts, headline, questions
from heedful.reports.template import assets, filled
from heedful.studies.run import Run

_FIRST = ("data.js", "draw.js", "dots.js", "lines.js", "shades.js", "film.js", "examples.js")
_TEXTS, _PAIRS = ("strips.js", "texts.js", "tokens.js"), ("pairs.js", "matrices.js", "translations.js")
_EXAMPLES = {"classification": _TEXTS, "following": _TEXTS, "translation": _PAIRS}


def write_report(run: Path, *, out: Path | None = None) -> Path:
    """Write the page of a finished study or of a followed training, whole or not at all, and say where it is."""
    source, followed = Run(run), FollowedRun(run)
    target = out if out is not None else source.report_path
    write_text(target, render_following(followed) if followed.is_begun() else render_report(source))
    return target


def write_comparison(runs: Sequence[Path], out: Path) -> Path:
    """Write one page of several studies side by side, whole or not at all, and say where it is."""
    write_text(out, render_comparison(comparison.open_sides(runs)))
    return out


def write_followed(runs: Sequence[Path], out: Path) -> Path:
    """Write one page of several followed trainings side by side, whole or not at all, and say where it is."""
    write_text(out, render_followed(followed_sides.open_followed(runs)))
    return out


def render_report(run: Run) -> str:
    """A study's page as text."""
    run.config()
    result = run.result()
    payload = study_payload(run, result)
    command, about_command = summary.rerun(run)
    return _laid_out(
        "page.html.j2",
        payload,
        result=result,
        decisions=result.data.get("decisions"),
        agreements=summary.agreement_lines(result),
        terms=summary.terms(result),
        alignment=summary.alignment_sentences(result),
        has_paper=bool(payload.content["paper"]),
        models=summary.model_lines(result),
        data_facts=summary.data_facts(result),
        training_facts=summary.training_facts(run, result),
        provenance=summary.provenance(run, result),
        command=command,
        about_command=about_command,
    )


def render_following(run: FollowedRun) -> str:
    """The page of a followed training as text."""
    probe, result = run.probe(), run.result()
    return _laid_out(
        "following.html.j2",
        following.following_payload(run),
        result=result,
        labelled=bool(probe.right),
        decisions=probe.decisions,
        agreements=following.agreement_lines(result),
        terms=summary.TERMS["classification"],
        alignment=[],
        has_paper=False,
        data_facts=following.data_facts(probe),
        training_facts=following.training_facts(result),
        provenance=following.provenance(run),
    )


def render_comparison(sides: Sequence[comparison.Side]) -> str:
    """The page of several studies as text."""
    return _laid_out(
        "comparison.html.j2",
        comparison.comparison_payload(sides),
        **_beside([side.compared() for side in sides], "studies"),
        agreements=_by_agreement([(side.name, summary.agreement_lines(side.result)) for side in sides]),
        same=comparison.same_examples(sides),
        terms=summary.terms(sides[0].result),
        wide_curve=sides[0].result.task != "translation",
        commands=[(side.name, *summary.rerun(side.run)) for side in sides],
    )


def render_followed(sides: Sequence[followed_sides.FollowedSide]) -> str:
    """The page of several followed trainings as text."""
    labelled = all(side.probe.right for side in sides)
    return _laid_out(
        "comparison-following.html.j2",
        followed_sides.followed_payload(sides),
        **_beside([side.compared() for side in sides], "followed trainings"),
        agreements=_by_agreement([(side.name, following.agreement_lines(side.result)) for side in sides]),
        same=followed_sides.same_texts(sides),
        terms=summary.TERMS["classification"],
        labelled=labelled,
        wide_curve=not labelled,
    )


def _beside(sides: Sequence[Compared], what: str) -> dict[str, Any]:
    """The words that any comparison has."""
    different, shared = facts(sides)
    return {
        "what": what,
        "sides": sides,
        "names": [side.name for side in sides],
        "headline": headline(sides),
        "differing": differing(sides),
        "questions": questions(sides),
        "different": different,
        "shared": shared,
        "alignment": [],
        "has_paper": False,
    }


def _by_agreement(lines: Sequence[tuple[str, Sequence[Any]]]) -> list[tuple[str, Any]]:
    """The rows of all runs' tables, those of one agreement together."""
    every = [(name, row) for name, rows in lines for row in rows]
    names = [row.name for _, row in every]
    return sorted(every, key=lambda line: names.index(line[1].name))


def _laid_out(template: str, payload: Payload, **words: Any) -> str:
    """A template filled with its words, its numbers, and the scripts of its task."""
    task, charts = payload.content["task"], "comparison.js" if "runs" in payload.content else "charts.js"
    return filled(
        template,
        payload.content,
        style=assets("page.css"),
        script=assets(*_FIRST, charts, *_EXAMPLES[task], "page.js"),
        task=task,
        equations=equations(task),
        answers=answers,
        dots=Markup() if "runs" in payload.content else _dots(payload),
        counted="lexicon/counting" in payload.arrays.directory,
        arrays=payload.arrays.packed(),
        **words,
    )


def _dots(payload: Payload) -> Markup:
    """The agreements drawn without a script, which draws them anew to the width there is."""
    return dots_and_whiskers(payload.content["agreements"], payload.content["random"])
