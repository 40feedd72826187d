"""An experiment of a paper, and the room it works in: where long work lies, how many cores it has, who hears of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.config import BUDGETS, StudyConfig
from heedful.errors import ConfigError
from heedful.execution.pool import OnProgress
from heedful.papers.findings import Finding
from heedful.papers.units import Unit, compute
from heedful.storage.serialization import content, digest
from heedful.studies.repair import is_whole
from heedful.studies.run_directory import RunDirectory
from heedful.studies.study import run_study


@dataclass(frozen=True)
class Workspace:
    """Where an experiment works. What lies in `work` is found again, whole or not at all, whenever it is asked for."""

    budget: str
    work: Path
    jobs: int | None = None
    device: str = "auto"
    on_progress: OnProgress = field(default=lambda line: None)
    on_stage: Callable[[str], None] = field(default=lambda stage: None)

    def study(self, config: StudyConfig) -> RunDirectory:
        """The run of a study, trained first where it is not there yet; its folder's name carries its settings."""
        run = RunDirectory(self.work / f"{config.data.replace(':', '-')}-{digest(config)[:8]}")
        if not _is_whole(run.root, tuple(p.stat().st_mtime_ns for p in _ends(run) if p.exists())):
            self.on_stage(f"studying {config.data}")
            run_study(config, run.root, jobs=self.jobs, device=self.device, on_progress=self.on_progress)
        return run

    def compute(self, units: Sequence[Unit]) -> dict[str, dict[str, Any]]:
        """The answers of all units by name, computed where they are not there yet."""
        folder = self.work / "units"
        missing = sum(not (folder / unit.file).exists() for unit in units)
        if missing:
            self.on_stage(f"{missing} of {len(units)} pieces to compute")
        return compute(units, folder, jobs=self.jobs, device=self.device, on_progress=self.on_progress)


@lru_cache(maxsize=256)
def _is_whole(root: Path, written: tuple[int, ...]) -> bool:
    """Whether a run is finished and undamaged; every cell of every table asks, so it is looked at once."""
    return is_whole(RunDirectory(root))


def _ends(run: RunDirectory) -> tuple[Path, ...]:
    return run.result_path, run.manifest_path


@dataclass(frozen=True)
class Experiment:
    """A table, a figure or a section: what decides its result, and the function that finds it.

    settings: everything that decides the result within a budget, dataclasses and plain values. version: raised by hand
    when the function comes to mean something else; results of an older version are stale.
    """

    name: str
    title: str
    settings: Callable[[str], Any]
    find: Callable[[Workspace], Finding]
    version: int = 1

    def digest(self, budget: str) -> str:
        """SHA-256 of the settings within a budget."""
        if budget not in BUDGETS:
            raise ConfigError(f"budget {budget!r} is not one of {', '.join(BUDGETS)}")
        plain = json.dumps(content(self.settings(budget)), sort_keys=True, ensure_ascii=False)
        return sha256(plain.encode()).hexdigest()
