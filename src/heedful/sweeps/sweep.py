"""A sweep from beginning to end: a grid becomes studies, carried out by a crew, and one table of what they came to.

runs/<sweep>/grid.toml              what was asked
             studies/<name>-<id>/   one run for each study, named by the digest of its settings
             manifest.json          where, when, how often tried
             result.json            every study's figures
             summary.parquet, .csv  the same as a table
             report.html            the page
"""

import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import ConfigError, HeedfulError, RunError
from heedful.files import usable, write_json, write_text
from heedful.reports.sweep_page import write_sweep_page
from heedful.studies.grid import Grid, GridPoint
from heedful.studies.lock import LOCK, held
from heedful.studies.mending import mend
from heedful.studies.result import StudyResult
from heedful.studies.run import Run
from heedful.studies.study import source_commit
from heedful.studies.swept import GRID, STUDIES, SWEEP_RESULT, SweepResult, SweptStudy, main_figures
from heedful.sweeps.crew import AttemptError, Crew
from heedful.sweeps.events import Event, EventKind, OnEvent
from heedful.sweeps.order import Order, finished
from heedful.typed import digest

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Tried:
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
    tried: dict[str, Tried] = {}
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

    if usable(Run(folder).config_path).exists():
        with suppress(HeedfulError), held(folder):
            mend(Run(folder), point.config, tell)


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
) -> dict[str, Tried]:
    tried: dict[str, Tried] = {}
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
) -> Tried:
    """Attempt a study until it is finished or was retried as often as asked."""
    order = Order(os.path.abspath(folder), point.config, device)
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
            return Tried(attempt, seconds)
        reason = reason or f"{folder} has no result"
        if stopped.is_set():
            break
        kind: EventKind = "retry" if attempt <= retries else "failed"
        on_event(Event(kind, point.folder, point.place, attempt, error=reason))
    return Tried(attempt, seconds, reason)


def _swept(out: Path, point: GridPoint, tried: Tried | None) -> SweptStudy:
    result, name = finished(_folder(out, point), point.config), f"{STUDIES}/{point.folder}"
    if result is None:
        error = (tried and tried.error) or "not finished"
        return SweptStudy(name, point.place, digest(point.config), "failed", error)
    return SweptStudy(
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


def _manifest(grid: Grid, tried: dict[str, Tried], about: dict[str, Any], seconds: float) -> dict[str, Any]:
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
