"""Run a paper's experiments, or say which stored results no longer stand; what is finished is never repeated."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import ConfigError
from heedful.papers.experiment import BUDGETS, Experiment, Lab
from heedful.papers.ledger import Entry, judge
from heedful.papers.library import KEYS, Paper, paper
from heedful.papers.results import Result, found, made_now, place, why_stale
from heedful.studies.pool import OnProgress

RESULTS = Path("results")
WORK = Path("runs") / "reproduce"


@dataclass(frozen=True)
class Stale:
    """A stored result that no longer stands, and why."""

    path: Path
    reason: str


def reproduce(
    key: str,
    names: Sequence[str] = ("all",),
    *,
    budget: str = "quick",
    results: Path = RESULTS,
    work: Path = WORK,
    jobs: int | None = None,
    device: str = "auto",
    again: bool = False,
    on_progress: OnProgress = lambda line: None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> list[Result]:
    """The results of these experiments, found in `results` where they stand there and are not stale, or made now.

    work: the folder of trained models and other long work, which is kept. again: make the results anew from it.
    """
    of = paper(key)
    chosen = of.experiments if list(names) == ["all"] else tuple(of.experiment(name) for name in names)
    lab = Lab(budget, work / key / budget, jobs, device, on_progress, on_stage)
    return [_result(of, experiment, lab, results, again) for experiment in chosen]


def _result(of: Paper, experiment: Experiment, lab: Lab, results: Path, again: bool) -> Result:
    path = place(results, of.key, lab.budget, experiment.name)
    experiment.digest(lab.budget)  # refuses a budget that does not exist before anything is done
    stored = Result.load(path) if path.exists() else None
    if stored and why_stale(stored, experiment):
        stored = None
    if stored and not again:
        return stored
    lab.on_stage(experiment.title)
    started = time.perf_counter()
    finding = experiment.find(lab)
    seconds = time.perf_counter() - started + (stored.seconds if stored else 0.0)  # what it measured anew was kept
    result = made_now(of.key, experiment, lab.budget, finding, seconds)
    result.keep(results)
    return result


def stale_results(results: Path = RESULTS) -> list[Stale]:
    """Every stored result that no longer stands: its experiment's settings or version have changed, or it is gone."""
    stale = []
    for key in KEYS:
        of = {experiment.name: experiment for experiment in paper(key).experiments}
        for path in sorted((results / key).glob("*/*.json")):
            result = Result.load(path)
            known = of.get(result.experiment)
            reason = "there is no such experiment any more" if known is None else why_stale(result, known)
            if reason:
                stale.append(Stale(path, reason))
    return stale


def claims(budget: str | None = None, results: Path = RESULTS) -> list[Entry]:
    """The ledger: every claim of every paper against the stored results; the largest budget there is, unless said."""
    if budget is not None and budget not in BUDGETS:
        raise ConfigError(f"budget {budget!r} is not one of {', '.join(BUDGETS)}")
    entries = []
    for key in KEYS:
        of = paper(key)
        have = [b for b in BUDGETS if any(found(results, key, b, of.experiments))]
        chosen = budget or (have[-1] if have else "quick")
        stored = {(key, result.experiment): result for result in found(results, key, chosen, of.experiments)}
        entries += judge(of.claims, stored, chosen)
    return entries
