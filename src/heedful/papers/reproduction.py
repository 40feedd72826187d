"""Run a paper's experiments, or say which stored results no longer stand; what is finished is never repeated."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from heedful.config import BUDGETS
from heedful.errors import ConfigError
from heedful.execution.pool import OnProgress
from heedful.papers.claims import Claim, LedgerEntry, judge
from heedful.papers.experiment import Experiment, Workspace
from heedful.papers.results import Result, found, made_now, place, why_stale

KEYS = ("snell2021", "meister2021", "sunlu2020")


@dataclass(frozen=True)
class Paper:
    """A paper's experiments and claims; `preface` opens its page."""

    key: str
    title: str
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    preface: str

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name; an error that lists them where there is none."""
        for experiment in self.experiments:
            if experiment.name == name:
                return experiment
        known = ", ".join(experiment.name for experiment in self.experiments)
        raise ConfigError(f"{self.key} has no {name!r}; it has {known}, or all")


def paper(key: str) -> Paper:
    """The paper of that key.

    >>> paper("snell2021").experiment("table2").title
    'Table 2: agreement and contextualised agreement'
    """
    if key not in KEYS:
        raise ConfigError(f"there is no paper {key!r}; there are {', '.join(KEYS)}")
    contents = import_module(f"heedful.papers.{key}.contents")
    preface = (files("heedful.papers") / key / "preface.md").read_text(encoding="utf-8")
    return Paper(key, contents.TITLE, contents.EXPERIMENTS, contents.CLAIMS, preface)


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
    lab = Workspace(budget, work / key / budget, jobs, device, on_progress, on_stage)
    return [_result(of, experiment, lab, results, again) for experiment in chosen]


def _result(of: Paper, experiment: Experiment, lab: Workspace, results: Path, again: bool) -> Result:
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


def claims(budget: str | None = None, results: Path = RESULTS) -> list[LedgerEntry]:
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
