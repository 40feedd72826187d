"""Write the page of a run: one self-contained HTML file, whatever the kind of the run.

jinja2 fills words into a template and escapes them. Numbers are embedded and drawn by the scripts in `templates/`,
which write text with `textContent` alone. A Content-Security-Policy lets nothing else run and nothing be fetched.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import HeedfulError, RunError
from heedful.storage.atomic_files import write_text
from heedful.storage.manifest import KIND_NAMES, Manifest, run_kind, verified_result

if TYPE_CHECKING:
    from heedful.papers.claims import LedgerEntry
    from heedful.papers.experiment import Result
    from heedful.papers.reproduction import Paper


def write_page(runs: Sequence[Path], *, out: Path | None = None, results: Path = Path("results")) -> Path:
    """Write the page of a run of any kind, or of several of one kind side by side; returns its path.

    results: where the results of papers are stored, for a folder that holds a paper's trained models.
    """
    if not runs:
        raise RunError("no run was named; a run is the folder that heedful study, audit or reproduce wrote")
    if len(runs) > 1:
        target = out if out is not None else Path("comparison.html")
        write_text(target, _compared(runs))
        return target
    (run,) = runs
    target = out if out is not None else run / "report.html"
    kind = run_kind(run)
    if kind == "audit":
        from heedful.audits.result import AuditResult
        from heedful.reports.audit_page import command_of, write_audit_page

        return write_audit_page(AuditResult.load(verified_result(run)), target, command_of(run))
    if kind == "sweep":
        from heedful.reports.sweep_page import write_sweep_page
        from heedful.sweeps.result import SweepResult

        return write_sweep_page(SweepResult.load(verified_result(run)), run, target)
    return _write_paper_of(run, target, results) if kind == "paper" else write_report(run, out=target)


def write_report(run: Path, *, out: Path | None = None) -> Path:
    """Write the page of a finished study or of a followed training; returns its path."""
    target = out if out is not None else run / "report.html"
    if run_kind(run) == "followed":
        from heedful.reports.followed_page import render_following

        write_text(target, render_following(run))
    else:
        from heedful.reports.study_page import render_study
        from heedful.studies.run_directory import RunDirectory

        write_text(target, render_study(RunDirectory(run)))
    return target


def renew_audited_study(model: str) -> Path | None:
    """Write the page of a study anew after an audit of it, since its first screen names the audit's grade.

    Returns its path; None where the model is not the folder of a study with a page. The audit is complete without it:
    a folder that cannot be read or written is left as it is.
    """
    study = Path(model)
    try:
        if run_kind(study) != "study" or not (study / "report.html").exists():
            return None
        return write_report(study)
    except (HeedfulError, OSError):
        return None


def _compared(runs: Sequence[Path]) -> str:
    """The page of several runs of one kind."""
    kinds = {str(run): run_kind(run) for run in runs}
    if set(kinds.values()) == {"audit"}:
        from heedful.reports.audit_comparison import render_audits

        return render_audits(runs)
    from heedful.reports.comparison import open_studies, render_comparison, render_trainings

    if set(kinds.values()) == {"study"}:
        return render_comparison(open_studies(runs))
    if set(kinds.values()) == {"followed"}:
        return render_trainings(runs)
    each = ", ".join(f"{run} is {KIND_NAMES[kind]}" for run, kind in kinds.items())
    raise RunError(f"one page sets studies, audits or followed trainings side by side, each with its like; {each}")


def write_paper(key: str, budget: str, results: Path, out: Path) -> Path:
    """Write the page of a paper's stored results; returns its path."""
    from heedful.reports.paper_page import claim_rows, write_paper_report

    paper, stored, ledger, earlier, behind = _paper_results(key, budget, results)
    return write_paper_report(stored, claim_rows(ledger), out, paper.title, earlier, behind)


def write_paper_docs(key: str, budget: str, results: Path, docs: Path) -> Path:
    """Write a paper's page in Markdown and its figures into a folder of docs; returns the page's path."""
    from heedful.reports.paper_page import claims_markdown, write_docs_page

    paper, stored, ledger, earlier, behind = _paper_results(key, budget, results)
    folder, figures = docs / "papers", docs / "papers" / "figures" / key
    page = folder / f"{key}.md"
    return write_docs_page(stored, claims_markdown(ledger), paper.preface, page, figures, earlier, behind)


def _paper_results(
    key: str, budget: str, results: Path
) -> "tuple[Paper, list[Result], list[LedgerEntry], list[str], list[Result]]":
    """A paper, its results, its claims, the experiments made with earlier settings, and results to fold behind."""
    from heedful.papers.experiment import result_path
    from heedful.papers.reproduction import claims, paper, results_to_renew

    stored, behind = shown_results(key, budget, results)
    renew = set(results_to_renew(results))
    earlier = [each.experiment for each in stored if result_path(results, key, each.budget, each.experiment) in renew]
    ledger = [entry for entry in claims(budget, results) if entry.claim.paper == key]
    return paper(key), stored, ledger, earlier, behind


def shown_results(key: str, budget: str, results: Path) -> "tuple[list[Result], list[Result]]":
    """The results that a paper's page shows, and those that it folds behind them.

    A result at the paper's own size is shown where there is one; that of the budget asked for is then folded behind it.
    """
    from heedful.papers.experiment import stored_results
    from heedful.papers.reproduction import paper

    own, full = (
        {each.experiment: each for each in stored_results(results, key, name, paper(key).experiments)}
        for name in (budget, budget if budget == "smoke" else "paper")
    )
    names = [experiment.name for experiment in paper(key).experiments]
    shown = [full.get(name) or own[name] for name in names if name in full or name in own]
    behind = [own[name] for name in names if name in own and name in full and own[name].budget != full[name].budget]
    return shown, behind


def _write_paper_of(run: Path, out: Path, results: Path) -> Path:
    """The page of a paper's folder, be it that of its results or that of its trained models."""
    made = Manifest.read(run).details
    key, budget = made["paper"], made["budget"]
    for folder in (run.resolve().parent.parent, results):
        if _paper_results(key, budget, folder)[1]:
            return write_paper(key, budget, folder, out)
    raise RunError(
        f"{run}: neither it nor {results / key / budget} has results; heedful reproduce {key} all makes them"
    )
