"""`heedful report`: which kind of run a folder holds, and the page that kind has."""

from collections.abc import Callable, Sequence
from pathlib import Path

from heedful.audits.followed_run import FollowedRun
from heedful.audits.result import AuditResult
from heedful.errors import RunError
from heedful.files import read_json, usable
from heedful.papers.library import KEYS, paper
from heedful.papers.results import found
from heedful.reports.audit_comparison import command_of, write_audits
from heedful.reports.audit_page import write_audit_page
from heedful.reports.claims import claim_rows
from heedful.reports.page import write_comparison, write_followed, write_report
from heedful.reports.paper_page import write_paper_report
from heedful.reports.sweep_page import write_sweep_page
from heedful.studies.run import Run
from heedful.studies.swept import SWEEP_RESULT, SweepResult, is_sweep


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
    if FollowedRun(run).is_begun():
        return "following"
    if Run(run).config_path.exists():
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
    from heedful.papers.reproduce import claims  # what trains is slow to import

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
