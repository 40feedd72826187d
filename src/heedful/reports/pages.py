"""The page: one self-contained HTML file of a finished run.

Words are laid into the template by jinja2, which escapes them; numbers are embedded (`payload`) and drawn by the
scripts in `templates/`, which write text with `textContent` alone. A Content-Security-Policy lets nothing else run
and nothing be fetched.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from heedful.audits.result import AuditResult
from heedful.errors import RunError
from heedful.followed.result import FollowedDirectory
from heedful.html import answers, dots_and_whiskers
from heedful.papers.reproduction import KEYS, paper
from heedful.papers.results import found
from heedful.reports import comparison
from heedful.reports import comparison as followed_sides
from heedful.reports import followed_page as following
from heedful.reports import study_page as summary
from heedful.reports.audit_comparison import command_of, write_audits
from heedful.reports.audit_page import write_audit_page
from heedful.reports.comparison import Compared, differing, facts, headline, questions
from heedful.reports.equations import equations
from heedful.reports.html import assets, filled
from heedful.reports.paper_page import claim_rows, write_paper_report
from heedful.reports.study_payload import Payload, study_payload
from heedful.reports.sweep_page import write_sweep_page
from heedful.storage.atomic_files import read_json, usable, write_text
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.result import SWEEP_RESULT, SweepResult, is_sweep

_FIRST = ("data.js", "draw.js", "dots.js", "lines.js", "shades.js", "film.js", "examples.js")
_TEXTS, _PAIRS = ("strips.js", "texts.js", "tokens.js"), ("pairs.js", "matrices.js", "translations.js")
_EXAMPLES = {"classification": _TEXTS, "following": _TEXTS, "translation": _PAIRS}


def write_report(run: Path, *, out: Path | None = None) -> Path:
    """Write the page of a finished study or of a followed training, whole or not at all, and say where it is."""
    source, followed = RunDirectory(run), FollowedDirectory(run)
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


def render_report(run: RunDirectory) -> str:
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


def render_following(run: FollowedDirectory) -> str:
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


def write_page(runs: Sequence[Path], *, out: Path | None = None, results: Path = Path("results")) -> Path:
    """Write the page of a run of any kind, or of several of one kind side by side, and say where it is.

    results: where the results of papers are stored, for a folder that holds a paper's long work.
    """
    if not runs:
        raise RunError("no run was named; a run is the folder that heedful study, audit or reproduce wrote")
    if len(runs) == 1:
        return _PAGES[kind_of(runs[0])](runs[0], out, results)
    kinds = {str(run): kind_of(run) for run in runs}
    kind, *others = dict.fromkeys(kinds.values())
    if others or kind not in _SEVERAL:
        said = ", ".join(f"{run} is {_SAID[one]}" for run, one in kinds.items())
        raise RunError(f"one page sets studies, audits or followed trainings side by side, each with its like; {said}")
    return _SEVERAL[kind](runs, out if out is not None else Path("comparison.html"))


def kind_of(run: Path) -> str:
    """`study`, `following`, `audit`, `sweep` or `paper`; an error that says what would do where it is none of them."""
    if not usable(run).is_dir():
        raise RunError(f"{run}: there is no such folder")
    if FollowedDirectory(run).is_begun():
        return "following"
    if RunDirectory(run).config_path.exists():
        return "study"
    if is_sweep(run):
        return "sweep"
    if run.resolve().parent.name in KEYS:
        return "paper"
    if (run / "result.json").exists() and "passages" in read_json(run / "result.json"):
        return "audit"
    papers = f"results/{KEYS[0]}/quick"
    raise RunError(
        f"{run}: not a run of heedful; it has neither config.toml (a study), following.json (a followed training), "
        f"grid.toml (a sweep) nor an audit's result.json, and is not a paper's folder such as {papers}"
    )


def _audit_page(run: Path, out: Path | None, results: Path) -> Path:
    result = AuditResult.load(run / "result.json")
    return write_audit_page(result, out if out is not None else run / "report.html", command_of(run))


def _paper_page(run: Path, out: Path | None, results: Path) -> Path:
    """The page of a paper's folder, be it that of its results or that of its long work."""
    from heedful.papers.reproduction import claims  # what trains is slow to import

    root = run.resolve()
    key, budget = root.parent.name, root.name
    for folder in (root.parent.parent, results):
        if stored := list(found(folder, key, budget, paper(key).experiments)):
            entries = [entry for entry in claims(budget, folder) if entry.claim.paper == key]
            target = out if out is not None else run / "report.html"
            return write_paper_report(stored, claim_rows(entries), target, paper(key).title)
    raise RunError(
        f"{run}: neither it nor {results / key / budget} has results; heedful reproduce {key} all makes them"
    )


def _run_page(run: Path, out: Path | None, results: Path) -> Path:
    return write_report(run, out=out)


def _sweep_page(run: Path, out: Path | None, results: Path) -> Path:
    return write_sweep_page(SweepResult.load(run / SWEEP_RESULT), run, out)


_PAGES: dict[str, Callable[[Path, Path | None, Path], Path]] = {
    "study": _run_page,
    "following": _run_page,
    "audit": _audit_page,
    "sweep": _sweep_page,
    "paper": _paper_page,
}
_SEVERAL: dict[str, Callable[[Sequence[Path], Path], Path]] = {
    "study": write_comparison,
    "following": write_followed,
    "audit": write_audits,
}
_SAID = {
    "study": "a study",
    "following": "a followed training",
    "audit": "an audit",
    "sweep": "a sweep",
    "paper": "a paper’s results",
}
