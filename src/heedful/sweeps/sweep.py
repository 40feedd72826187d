"""Run every study of a grid, on this machine or a Ray cluster, and sum them up in one table.

A finished study is never run again, a failed one is retried, and no failure stops the others.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig
from heedful.data.loading import open_data
from heedful.errors import ConfigError, DataError, HeedfulError, RunError
from heedful.execution.pool import (
    Backend,
    Event,
    Job,
    JobState,
    OnEvent,
    ProcessPool,
    Shared,
    StoppedError,
    cores,
    in_threads,
    place_named,
)
from heedful.execution.progress import show_sweep
from heedful.execution.ray_backend import RayPool, clear_incoming
from heedful.storage.atomic_files import valid_path, write_text
from heedful.storage.locks import directory_lock
from heedful.storage.manifest import MANIFEST, RESULT, RunClock, refuse_other
from heedful.storage.run_files import read_bounded
from heedful.storage.serialization import MAX_BYTES, digest, to_toml
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory, repair_run
from heedful.studies.study import run_study
from heedful.studies.training import train_model
from heedful.sweeps.grid import Grid, GridPoint, grid_of, read_grid
from heedful.sweeps.result import GRID, STUDIES, SweepResult, SweepStudy, main_figures


def run_one_study(
    *,
    folder: str,
    config: StudyConfig,
    device: str = "cpu",
    shared: Callable[[], Any] | None = None,
    report: OnEvent = lambda event: None,
) -> None:
    """Train, record and measure one study on one thread of this process; a finished study is left alone.

    shared: returns the data, and is called only where this machine does not have the file.
    """
    if finished_result(folder, config) is not None:
        return
    single_threaded()
    run_study(
        config,
        folder,
        corpus=None if shared is None or valid_path(Path(config.data), DataError).exists() else shared(),
        device=device,
        train=_train_here,
        on_progress=report,
    )


def finished_result(folder: Path | str, config: StudyConfig) -> StudyResult | None:
    """The result of a study that is finished and undamaged, with these settings; else None."""
    run = RunDirectory(folder)
    try:
        result = run.result() if RESULT in run.manifest().files else None
    except (HeedfulError, OSError):
        return None
    return result if result and result.config_digest == digest(config) else None


def single_threaded() -> None:
    """Let this thread's arithmetic use one core: sums are in one order, whatever the machine."""
    import torch
    from threadpoolctl import threadpool_limits

    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    threadpool_limits(1)
    torch.set_num_threads(1)


def _train_here(
    run: RunDirectory, specs: Sequence[ModelSpec], *, device: str, on_progress: OnEvent, **of_processes: Any
) -> None:
    """What `studies.training.train_all` does, without processes of its own."""
    for spec in specs:
        train_model(run, spec, device=device, report=on_progress)
        on_progress({"model": spec.name, "done": True})


SUMMARIES = ("summary.parquet", "summary.csv")  # tables of the result, in the sweep's folder
STUDY_FUNCTION = "heedful.sweeps.sweep:run_one_study"


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """Where and how the studies of a sweep are run; none of it changes their results. See `heedful.sweep`."""

    on: str = "local"
    address: str | None = None
    jobs: int | None = None
    retries: int = 1
    cpus: int | float = 1
    gpus: int | float = 0
    shared: bool | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        place_named(self.on)
        if self.jobs is not None and self.jobs < 1:
            raise ConfigError(f"jobs is {self.jobs}; it must be 1 or more")
        if self.on == "local":
            for name, given in (("address", self.address), ("shared", self.shared), ("gpus", self.gpus or None)):
                if given is not None:
                    raise ConfigError(
                        f"--{name} is for --on ray; on this machine, --jobs and --device say what is used"
                    )

    def backend(self, studies: int, out: Path) -> Backend:
        """Start the backend for a number of studies."""
        if self.on == "local":
            return ProcessPool(min(self.jobs or max(1, int(cores() // max(self.cpus, 1))), studies))
        return RayPool(
            address=self.address, width=self.jobs, cpus=self.cpus, gpus=self.gpus, store=out, shared=self.shared
        )


def start_sweep(
    grid: Any, out: Path, settings: SweepSettings, *, study_function: str = STUDY_FUNCTION, progress: bool = True
) -> SweepResult:
    """Read the grid and run the sweep; see `heedful.sweep`."""
    as_mapping = isinstance(grid, Mapping)
    parsed = grid_of(grid) if as_mapping else read_grid(grid)
    text = grid_toml(grid) if as_mapping else read_bounded(Path(grid), MAX_BYTES, follow=True).decode("utf-8")
    on_cpus = settings.on == "ray" and settings.device == "auto" and not settings.gpus
    with show_sweep([axis.name for axis in parsed.axes], enabled=progress) as on_event:
        return run_sweep(
            parsed,
            out,
            lambda studies: settings.backend(studies, out),
            text=text,
            retries=settings.retries,
            device="cpu" if on_cpus else settings.device,
            study_function=study_function,
            on_event=on_event,
        )


def run_sweep(
    grid: Grid,
    out: Path,
    backend: Callable[[int], Backend],
    *,
    text: str,
    retries: int = 1,
    device: str = "cpu",
    study_function: str = STUDY_FUNCTION,
    on_event: OnEvent = lambda event: None,
) -> SweepResult:
    """Run every study of a grid that is not finished, and write the sweep's result and table.

    backend: starts the backend for a number of studies; not called where there are none. text: the grid as it was
    written. retries: how often a failed study is tried again. study_function: `module:function` that runs one study,
    called as `run_one_study` is. One process at a time works in `out`.
    """
    if retries < 0:
        raise ConfigError(f"retries is {retries}; it must be 0 or more")
    refuse_other(out, "sweep", GRID)  # a grid that grew or shrank keeps the studies it still has
    clock = RunClock("sweep")
    with directory_lock(out):
        _refuse_other_grid(out, text)
        clock.begin(out)
        write_text(out / GRID, text)
        clear_incoming(out)
        waiting = [point for point in grid.points if not _is_finished(out, point, on_event)]
        attempts: dict[str, StudyAttempts] = {}
        about: dict[str, Any] = {}
        if waiting:
            runner = _Runner(out, backend(len(waiting)), retries, device, study_function, on_event)
            about = runner.backend.about()
            attempts = runner.run(waiting)
        studies = (_sweep_study(out, point, attempts.get(point.folder)) for point in grid.points)
        result = SweepResult(grid.axes, tuple(studies))
        for name in SUMMARIES:
            result.save_table(out / name)
        kept = len(grid.points) - len(attempts)
        tried = {name: asdict(each) for name, each in sorted(attempts.items())}
        clock.finish(out, result, SUMMARIES, studies=len(grid.points), kept=kept, tried=tried, **about)
    return result


def _refuse_other_grid(out: Path, text: str) -> None:
    """Refuse a folder that no sweep was run in yet, but that has another file by the name of the grid."""
    path = out / GRID
    if path.exists() and not (out / MANIFEST).exists() and read_bounded(path) != text.encode():
        raise RunError(f"{path} is another grid, and no sweep was run in {out} yet; choose another --out")


@dataclass(frozen=True)
class StudyAttempts:
    """How often a study was tried, how long that took, and why it failed if it did."""

    attempts: int
    seconds: float
    error: str | None = None


class _Runner:
    """Runs studies on a backend, each until it is finished or was retried often enough."""

    def __init__(
        self, out: Path, backend: Backend, retries: int, device: str, study_function: str, on_event: OnEvent
    ) -> None:
        self.out, self.backend, self.retries, self.device = out, backend, retries, device
        self.study_function, self.on_event = study_function, on_event
        self._corpora: dict[tuple[Any, ...], Shared] = {}
        self._lock = threading.Lock()

    def run(self, points: list[GridPoint]) -> dict[str, StudyAttempts]:
        try:
            attempts = in_threads(self._try, points, self.backend)
        finally:
            self.backend.stop()
            clear_incoming(self.out)
        return {point.folder: each for point, each in zip(points, attempts, strict=True)}

    def _try(self, point: GridPoint) -> StudyAttempts:
        started, folder = time.monotonic(), _folder(self.out, point)
        for attempt in range(1, self.retries + 2):
            self.on_event(_event(point, "started", attempt))

            def report(event: Event, attempt: int = attempt) -> None:
                event.update({"study": point.folder, "place": point.place, "attempt": attempt})
                self.on_event(event)

            error = ""
            try:
                self.backend.run(self._job(point, folder), report)
            except StoppedError:
                raise
            except HeedfulError as failure:
                error = " ".join(str(failure).split())
            seconds = round(time.monotonic() - started, 1)
            result = finished_result(folder, point.config)
            if result is not None:
                self.on_event(_event(point, "finished", attempt, figures=_in_short(result)))
                return StudyAttempts(attempt, seconds)
            error = error or f"{folder} has no result"
            self.on_event(_event(point, "retry" if attempt <= self.retries else "failed", attempt, error=error))
        return StudyAttempts(attempt, seconds, error)

    def _job(self, point: GridPoint, folder: Path) -> Job:
        shared = self._corpus(point.config) if self.backend.remote else None
        arguments = {"config": point.config, "device": self.device}
        return Job(point.folder, self.study_function, arguments, folder=os.path.abspath(folder), shared=shared)

    def _corpus(self, config: StudyConfig) -> Shared | None:
        """A user's own file, read here and sent along, since not every node has it; None for data with a name."""
        if not valid_path(Path(config.data), DataError).exists():
            return None
        key = (config.data, config.target, *config.reading().values())
        with self._lock:
            if key not in self._corpora:
                self._corpora[key] = Shared(open_data(config.data, config.target, **config.reading()))
            return self._corpora[key]


def _event(point: GridPoint, state: JobState, attempt: int = 1, *, figures: str = "", error: str = "") -> Event:
    return {
        "study": point.folder,
        "place": point.place,
        "state": state,
        "attempt": attempt,
        "figures": figures,
        "error": error,
    }


def _is_finished(out: Path, point: GridPoint, on_event: OnEvent) -> bool:
    """Whether a study is finished; one that is not has its damaged files set aside, here: a node may not see them."""
    folder = _folder(out, point)
    result = finished_result(folder, point.config)
    on_event(_event(point, "waiting" if result is None else "kept", figures=_in_short(result)))
    if result is None and valid_path(RunDirectory(folder).config_path).exists():

        def tell(notice: str) -> None:
            on_event({"study": point.folder, "place": point.place, "attempt": 1, "notice": notice})

        with suppress(HeedfulError), directory_lock(folder):
            repair_run(RunDirectory(folder), point.config, tell)
    return result is not None


def _sweep_study(out: Path, point: GridPoint, attempts: StudyAttempts | None) -> SweepStudy:
    result, name = finished_result(_folder(out, point), point.config), f"{STUDIES}/{point.folder}"
    if result is None:
        error = (attempts and attempts.error) or "not finished"
        return SweepStudy(name, point.place, digest(point.config), "failed", error)
    return SweepStudy(
        name,
        point.place,
        result.config_digest,
        "finished",
        verdict=result.verdict.sentence,
        status=result.verdict.status,
        figures=main_figures(result),
    )


def _folder(out: Path, point: GridPoint) -> Path:
    return out / STUDIES / point.folder


def _in_short(result: StudyResult | None) -> str:
    """The figures of a study that are shown while the sweep runs."""
    if result is None:
        return ""
    agreement = ""
    with suppress(KeyError):
        agreement = f", A(α, β) {result.agreement('A(alpha,beta)').estimate.value:.1%}"
    return f"accuracy {result.xi_final.value:.1%}{agreement}"


def grid_toml(grid: Mapping[str, Any]) -> str:
    """A grid that came as a dictionary, as TOML.

    >>> print(grid_toml({"base": {"data": "sst"}, "grid": {"model.scale": [1, 10]}}))
    [base]
    data = "sst"
    <BLANKLINE>
    [grid]
    "model.scale" = [
        1,
        10,
    ]
    <BLANKLINE>
    """
    return to_toml({table: grid.get(table, {}) for table in ("base", "grid")})
