"""A sweep as it is asked for: a grid in a file or a dictionary, and where its studies are to be carried out."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import ConfigError, HeedfulError, RunError
from heedful.reports.sweep_page import write_sweep_page
from heedful.storage.atomic_files import usable, write_json, write_text
from heedful.storage.locks import LOCK, held
from heedful.storage.manifest import source_commit
from heedful.storage.serialization import digest, toml_value
from heedful.studies.repair import mend
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.board import Event, EventKind, OnEvent, watch
from heedful.sweeps.crew import AttemptError, Crew
from heedful.sweeps.grid import Grid, GridPoint, grid_of, read_grid
from heedful.sweeps.local import LocalCrew
from heedful.sweeps.result import GRID, STUDIES, SWEEP_RESULT, SweepResult, SweepStudy, main_figures
from heedful.sweeps.study_job import StudyJob, finished

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Attempt:
    """How often a study was tried, how long that took, and why it failed if it did."""

    attempts: int
    seconds: float
    error: str | None = None


def run_sweep(
    grid: Grid,
    out: Path,
    crew: Callable[[int], Crew],
    *,
    said: str,
    retries: int = 1,
    device: str = "cpu",
    on_event: OnEvent = lambda event: None,
) -> SweepResult:
    """Carry out every study of a grid that is not finished, and write the sweep's table and page.

    crew: makes whoever does the work, told how many studies there are; not called where there are none. said: the grid
    as it was written down. retries: how often a study that failed is tried again. A failure does not stop the others.
    One process at a time works in `out`.
    """
    if retries < 0:
        raise ConfigError(f"retries is {retries}; it must be 0 or more")
    _refuse_foreign(out)
    with held(out):
        return _sweep(grid, out, crew, said, retries, device, on_event)


def _sweep(
    grid: Grid, out: Path, crew: Callable[[int], Crew], said: str, retries: int, device: str, on_event: OnEvent
) -> SweepResult:
    write_text(out / GRID, said)
    _clear_arrivals(out / STUDIES)
    started = time.time()
    waiting = []
    for point in grid.points:
        result = finished(_folder(out, point), point.config)
        kind: EventKind = "waiting" if result is None else "kept"
        on_event(Event(kind, point.folder, point.place, figures=_in_short(result)))
        if result is None:
            _mend(_folder(out, point), point, on_event)
            waiting.append(point)
    tried: dict[str, Attempt] = {}
    about: dict[str, Any] = {}
    if waiting:
        team = crew(len(waiting))
        about = team.about()
        tried = _carry_out(waiting, out, team, retries, device, on_event)
    swept = SweepResult(grid.axes, tuple(_swept(out, point, tried.get(point.folder)) for point in grid.points))
    _write(swept, out)
    write_json(out / MANIFEST, _manifest(grid, tried, about, time.time() - started))
    return swept


def _mend(folder: Path, point: GridPoint, on_event: OnEvent) -> None:
    """Set aside what is damaged in a study that goes on, here, where its files are: a node may never see them."""

    def tell(notice: str) -> None:
        on_event(Event("progress", point.folder, point.place, 1, line={"notice": notice}))

    if usable(RunDirectory(folder).config_path).exists():
        with suppress(HeedfulError), held(folder):
            mend(RunDirectory(folder), point.config, tell)


def _refuse_foreign(out: Path) -> None:
    """A folder with something else in it is left alone; a grid that grew or shrank keeps the studies it still has."""
    if usable(out).exists() and not out.is_dir():
        raise RunError(f"{out} is a file; choose another --out")
    foreign = out.exists() and not (out / GRID).exists() and any(path.name != LOCK for path in out.iterdir())
    if foreign:
        raise RunError(f"{out} is not empty and not a sweep of heedful; choose another --out")


def _clear_arrivals(studies: Path) -> None:
    """Remove what was on its way home to a driver that was killed; only for who holds the sweep's lock."""
    for path in studies.glob(".*"):
        shutil.rmtree(path, ignore_errors=True)


def _carry_out(
    points: list[GridPoint], out: Path, crew: Crew, retries: int, device: str, on_event: OnEvent
) -> dict[str, Attempt]:
    tried: dict[str, Attempt] = {}
    stopped = threading.Event()

    def work(point: GridPoint) -> None:
        if stopped.is_set():
            return
        try:
            tried[point.folder] = _try(point, _folder(out, point), crew, retries, device, on_event, stopped)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(max(1, min(crew.width, len(points)))) as threads:
        futures = [threads.submit(work, point) for point in points]
        try:
            ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in ended:
                future.result()
        finally:
            stopped.set()
            for future in futures:
                future.cancel()
            crew.stop()
    return tried


def _try(
    point: GridPoint,
    folder: Path,
    crew: Crew,
    retries: int,
    device: str,
    on_event: OnEvent,
    stopped: threading.Event,
) -> Attempt:
    """Attempt a study until it is finished or was retried as often as asked."""
    order = StudyJob(os.path.abspath(folder), point.config, device)
    started = time.monotonic()
    for attempt in range(1, retries + 2):

        def report(line: dict[str, Any], attempt: int = attempt) -> None:
            on_event(Event("progress", point.folder, point.place, attempt, line=line))

        on_event(Event("started", point.folder, point.place, attempt))
        reason = ""
        try:
            crew.attempt(order, report)
        except AttemptError as error:
            reason = str(error)
        seconds = round(time.monotonic() - started, 1)
        result = finished(folder, point.config)
        if result is not None:
            on_event(Event("finished", point.folder, point.place, attempt, figures=_in_short(result)))
            return Attempt(attempt, seconds)
        reason = reason or f"{folder} has no result"
        if stopped.is_set():
            break
        kind: EventKind = "retry" if attempt <= retries else "failed"
        on_event(Event(kind, point.folder, point.place, attempt, error=reason))
    return Attempt(attempt, seconds, reason)


def _swept(out: Path, point: GridPoint, tried: Attempt | None) -> SweepStudy:
    result, name = finished(_folder(out, point), point.config), f"{STUDIES}/{point.folder}"
    if result is None:
        error = (tried and tried.error) or "not finished"
        return SweepStudy(name, point.place, digest(point.config), "failed", error)
    return SweepStudy(
        name,
        point.place,
        result.config_digest,
        "finished",
        verdict=result.verdict.sentence,
        figures=main_figures(result),
    )


def _write(swept: SweepResult, out: Path) -> None:
    swept.save(out / SWEEP_RESULT)
    swept.save_table(out / "summary.parquet")
    swept.save_table(out / "summary.csv")
    write_sweep_page(swept, out)


def _folder(out: Path, point: GridPoint) -> Path:
    return out / STUDIES / point.folder


def _in_short(result: StudyResult | None) -> str:
    """The figures that are said while a sweep goes on."""
    if result is None:
        return ""
    agreement = ""
    with suppress(KeyError):
        agreement = f", A(α, β) {result.agreement('A(alpha,beta)').estimate.value:.1%}"
    return f"accuracy {result.xi_final.value:.1%}{agreement}"


def _manifest(grid: Grid, tried: dict[str, Attempt], about: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Where, when and how often: all that may differ between two executions of the same sweep."""
    return {
        "studies": len(grid.points),
        "kept": len(grid.points) - len(tried),
        "tried": {
            name: {"attempts": each.attempts, "seconds": each.seconds, "error": each.error}
            for name, each in sorted(tried.items())
        },
        **about,
        "commit": source_commit(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 1),
    }


PLACES = ("local", "ray")


def start_sweep(
    asked: Any,
    out: Path,
    *,
    on: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    retries: int = 1,
    cpus: int | float = 1,
    gpus: int | float = 0,
    shared: bool | None = None,
    device: str = "auto",
    progress: bool = True,
) -> SweepResult:
    """Read the grid, check what goes together, and carry out the sweep; see `heedful.sweep`."""
    grid = grid_of(asked) if isinstance(asked, Mapping) else read_grid(asked)
    said = _written(asked) if isinstance(asked, Mapping) else Path(asked).read_text(encoding="utf-8")
    _check(on, address, jobs, gpus, shared)

    def crew(studies: int) -> Crew:
        if on == "local":
            cores = max(1, int((os.cpu_count() or 1) // max(cpus, 1)))
            return LocalCrew(min(jobs or cores, studies))
        from heedful.sweeps.cluster import RayCrew

        return RayCrew(out, address=address, jobs=jobs, cpus=cpus, gpus=gpus, shared=shared)

    if on == "ray" and device == "auto" and not gpus:
        device = "cpu"
    with watch([axis.name for axis in grid.axes], enabled=progress) as on_event:
        return run_sweep(grid, out, crew, said=said, retries=retries, device=device, on_event=on_event)


def _check(on: str, address: str | None, jobs: int | None, gpus: int | float, shared: bool | None) -> None:
    if on not in PLACES:
        raise ConfigError(f"--on {on!r} is not one of {', '.join(PLACES)}")
    if jobs is not None and jobs < 1:
        raise ConfigError(f"jobs is {jobs}; it must be 1 or more")
    if on == "local":
        for name, given in (("address", address), ("shared", shared), ("gpus", gpus or None)):
            if given is not None:
                raise ConfigError(f"--{name} is for --on ray; on this machine, --jobs and --device say what is used")


def _written(grid: Mapping[str, Any]) -> str:
    """A grid that came as a dictionary, as TOML."""
    lines = []
    for table in ("base", "grid"):
        lines.append(f"[{table}]")
        lines += [f"{toml_value(str(name))} = {_value(value)}" for name, value in grid.get(table, {}).items()]
        lines.append("")
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(str(k))} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(v) for v in value)}]"
    return toml_value(value)
