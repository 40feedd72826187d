"""A sweep small enough for tests, and those who carry it out."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig
from heedful.execution.pool import Job, WorkerDiedError
from heedful.storage.manifest import RunClock
from heedful.storage.serialization import digest
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory


def write_reviews(folder: Path) -> Path:
    """A file of eighty texts in which one word gives the label away."""
    draw = random.Random(0)
    filler = ["the", "a", "film", "plot", "with", "some", "actors", "of", "it", "was", "very", "long"]
    rows = ["text,label"]
    for i in range(80):
        words = [*draw.choices(filler, k=draw.randint(3, 8)), ("bad", "good")[i % 2], *draw.choices(filler, k=2)]
        rows.append(f"{' '.join(words)},{('down', 'up')[i % 2]}")
    path = folder / "reviews.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def tiny_grid(data: Path | str, **axes: list[Any]) -> dict[str, Any]:
    """Studies of a few steps; the axes as given."""
    base = {
        "data": str(data),
        "budget": "smoke",
        "min_count": 1,
        "train.steps": 4,
        "proxy.train.steps": 20,
        "model.hidden": 4,
        "model.embedding": 4,
    }
    return {"base": base, "grid": axes or {"model.projection": ["softmax", "sparsemax"]}}


class FakeBackend:
    """A backend without workers.

    It gives every study the result of one that is finished; `failing` studies fail that often first.
    """

    remote = False

    def __init__(self, like: Path, failing: dict[str, int] | None = None, width: int = 2) -> None:
        self.width = width
        self.result = StudyResult.load(like / "result.json")
        self.failing = dict(failing or {})
        self.attempts: list[str] = []
        self.stopped = False

    def run(self, job: Job, on_event: Any) -> None:
        self.attempts.append(job.name)
        on_event({"model": "standard-0", "step": 1, "steps": 2, "accuracy": 0.5})
        if self.failing.get(job.name, 0):
            self.failing[job.name] -= 1
            raise WorkerDiedError("it <b>broke</b>", killed=True)
        write_study(Path(job.folder), job.arguments["config"], self.result)

    def stop(self) -> None:
        self.stopped = True

    def about(self) -> dict[str, Any]:
        return {"on": "nowhere"}


def write_study(folder: Path, config: StudyConfig, result: StudyResult) -> None:
    """As much of a finished study as a sweep looks at."""
    clock = RunClock("study")
    clock.begin(folder)
    RunDirectory(folder).claim(config)
    clock.finish(folder, replace(result, config_digest=digest(config)))
