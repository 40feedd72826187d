"""Results on disk: one JSON file per experiment and budget, with its manifest; which of them are stale."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.papers.experiment import Experiment
from heedful.papers.findings import Finding
from heedful.storage.atomic_files import valid_path
from heedful.storage.manifest import MANIFEST, Manifest, source_commit, utc_now, versions
from heedful.storage.serialization import Stored, content


@dataclass(frozen=True)
class Result(Stored):
    """What an experiment found, its settings (seeds among them), and when and with what it was made."""

    paper: str
    experiment: str
    title: str
    budget: str
    version: int
    config_digest: str
    settings: Any
    manifest: Manifest
    finding: Finding

    def keep(self, folder: Path) -> None:
        """Write it below a folder of results."""
        self.save(result_path(folder, self.paper, self.budget, self.experiment))


def write_folder_manifest(folder: Path, paper: str, budget: str) -> None:
    """Mark a folder as one of a paper's results or of its long work; each result has its own manifest inside."""
    if not valid_path(folder / MANIFEST).exists():
        Manifest("paper", started=utc_now(), details={"paper": paper, "budget": budget}).write(folder)


def result_path(folder: Path, paper: str, budget: str, experiment: str) -> Path:
    """The file of a result.

    >>> result_path(Path("results"), "snell2021", "quick", "table2").as_posix()
    'results/snell2021/quick/table2.json'
    """
    return folder / paper / budget / f"{experiment}.json"


def stored_results(folder: Path, paper: str, budget: str, experiments: tuple[Experiment, ...]) -> Iterator[Result]:
    """The stored results of a paper within a budget, in the paper's order."""
    for experiment in experiments:
        path = result_path(folder, paper, budget, experiment.name)
        if valid_path(path).exists():
            yield Result.load(path)


def new_result(paper: str, experiment: Experiment, budget: str, finding: Finding, seconds: float) -> Result:
    """A finding with its settings, and the manifest of this moment."""
    return Result(
        paper=paper,
        experiment=experiment.name,
        title=experiment.title,
        budget=budget,
        version=experiment.version,
        config_digest=experiment.digest(budget),
        settings=content(experiment.settings(budget)),
        manifest=Manifest(
            "paper",
            command=f"heedful reproduce {paper} {experiment.name} --budget {budget}",
            versions=versions(),
            commit=source_commit(),
            finished=utc_now(),
            seconds=round(seconds, 1),
        ),
        finding=finding,
    )


def why_stale(result: Result, experiment: Experiment) -> str | None:
    """Why a stored result is stale; None where it is not."""
    if result.version != experiment.version:
        return f"made by version {result.version} of the experiment, which is now {experiment.version}"
    now = experiment.digest(result.budget)
    if result.config_digest != now:
        return f"its settings have changed (digest {result.config_digest[:12]}, now {now[:12]})"
    return None
