"""Write the page of a run: one self-contained HTML file, whatever the kind of the run.

jinja2 fills words into a template and escapes them. Numbers are embedded and drawn by the scripts in `templates/`,
which write text with `textContent` alone. A Content-Security-Policy lets nothing else run and nothing be fetched.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import RunError
from heedful.storage.atomic_files import write_text
from heedful.storage.manifest import KIND_NAMES, RESULT, Manifest, RunKind, run_kind
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.result import SweepResult

if TYPE_CHECKING:
    from heedful.papers.experiment import Result
    from heedful.papers.published import LedgerEntry
    from heedful.papers.reproduction import Paper


def write_page(runs: Sequence[Path], *, out: Path | None = None, results: Path = Path("results")) -> Path:
    """Write the page of a run of any kind, or of several of one kind side by side; returns its path.

    results: where the results of papers are stored, for a folder that holds a paper's trained models.
    """
    if not runs:
        raise RunError("no run was named; a run is the folder that heedful study, audit or reproduce wrote")
    kinds = {str(run): run_kind(run) for run in runs}
    kind, *others = dict.fromkeys(kinds.values())
    if len(runs) == 1:
        return _PAGES[kind](runs[0], out if out is not None else runs[0] / "report.html", results)
    if others or kind not in _SEVERAL:
        each = ", ".join(f"{run} is {KIND_NAMES[one]}" for run, one in kinds.items())
        raise RunError(f"one page sets studies, audits or followed trainings side by side, each with its like; {each}")
    return _SEVERAL[kind](runs, out if out is not None else Path("comparison.html"))


def write_report(run: Path, *, out: Path | None = None) -> Path:
    """Write the page of a finished study or of a followed training; returns its path."""
    from heedful.reports.followed_page import render_following
    from heedful.reports.study_page import render_study

    target = out if out is not None else run / "report.html"
    followed = run_kind(run) == "followed"
    write_text(target, render_following(run) if followed else render_study(RunDirectory(run)))
    return target


def write_comparison(runs: Sequence[Path], out: Path) -> Path:
    """Write one page of several studies side by side; returns its path."""
    from heedful.reports.comparison import open_studies, render_comparison

    write_text(out, render_comparison(open_studies(runs)))
    return out


def write_followed(runs: Sequence[Path], out: Path) -> Path:
    """Write one page of several followed trainings side by side; returns its path."""
    from heedful.reports.followed_page import render_followed

    write_text(out, render_followed(runs))
    return out


def write_paper(key: str, budget: str, results: Path, out: Path) -> Path:
    """Write the page of a paper's stored results; returns its path."""
    from heedful.reports.paper_page import claim_rows, write_paper_report

    paper, stored, ledger = _paper_results(key, budget, results)
    return write_paper_report(stored, claim_rows(ledger), out, paper.title)


def write_paper_docs(key: str, budget: str, results: Path, docs: Path) -> Path:
    """Write a paper's page in Markdown and its figures into a folder of docs; returns the page's path."""
    from heedful.reports.paper_page import claims_markdown, write_docs_page

    (paper, stored, ledger), folder = _paper_results(key, budget, results), docs / "papers"
    figures = folder / "figures" / key
    return write_docs_page(stored, claims_markdown(ledger), paper.preface, folder / f"{key}.md", figures)


def _paper_results(key: str, budget: str, results: Path) -> "tuple[Paper, list[Result], list[LedgerEntry]]":
    """A paper, its stored results and its claims."""
    from heedful.papers.experiment import stored_results
    from heedful.papers.reproduction import claims, paper

    stored = list(stored_results(results, key, budget, paper(key).experiments))
    return paper(key), stored, [entry for entry in claims(budget, results) if entry.claim.paper == key]


def _study_page(run: Path, out: Path, results: Path) -> Path:
    return write_report(run, out=out)


def _audit_page(run: Path, out: Path, results: Path) -> Path:
    from heedful.audits.result import AuditResult
    from heedful.reports.audit_page import command_of, write_audit_page

    return write_audit_page(AuditResult.load(run / RESULT), out, command_of(run))


def _sweep_page(run: Path, out: Path, results: Path) -> Path:
    from heedful.reports.sweep_page import write_sweep_page

    return write_sweep_page(SweepResult.load(run / RESULT), run, out)


def _paper_page(run: Path, out: Path, results: Path) -> Path:
    """The page of a paper's folder, be it that of its results or that of its trained models."""
    made = Manifest.read(run).details
    key, budget = made["paper"], made["budget"]
    for folder in (run.resolve().parent.parent, results):
        if _paper_results(key, budget, folder)[1]:
            return write_paper(key, budget, folder, out)
    raise RunError(
        f"{run}: neither it nor {results / key / budget} has results; heedful reproduce {key} all makes them"
    )


def _audits_page(runs: Sequence[Path], out: Path) -> Path:
    from heedful.reports.audit_page import write_audits

    return write_audits(runs, out)


_PAGES: dict[RunKind, Callable[[Path, Path, Path], Path]] = {
    "study": _study_page,
    "followed": _study_page,
    "audit": _audit_page,
    "sweep": _sweep_page,
    "paper": _paper_page,
}
_SEVERAL: dict[RunKind, Callable[[Sequence[Path], Path], Path]] = {
    "study": write_comparison,
    "followed": write_followed,
    "audit": _audits_page,
}
