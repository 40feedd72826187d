"""Every run below a folder: studies, sweeps, audits, followed trainings and results of papers, whatever their state."""

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from heedful.audits.result import AuditResult
from heedful.config import BUDGETS, StudyConfig
from heedful.errors import HeedfulError, RunError
from heedful.followed.result import FollowedDirectory, FollowedTraining
from heedful.papers.reproduction import KEYS
from heedful.papers.results import Result
from heedful.storage.atomic_files import read_json, usable
from heedful.storage.locks import LOCK, holder
from heedful.storage.serialization import Stored, digest
from heedful.storage.tables import Tabular, arrow_table
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.result import SweepResult

Kind = Literal["study", "sweep", "audit", "followed", "paper"]
State = Literal["running", "finished", "failed", "broken off", "damaged"]
_WITHIN = {"models", "data", "trace", "trace-train", "checkpoints", "parts", "units"}  # folders of a run, not runs

SCHEMA = {
    "run": pa.string(),
    "kind": pa.string(),
    "state": pa.string(),
    "when": pa.string(),
    "what": pa.string(),
    "budget": pa.string(),
    "seeds": pa.int64(),
    "seconds": pa.float64(),
    "accuracy": pa.float64(),
    "agreement": pa.float64(),
    "entropy": pa.float64(),
    "said": pa.string(),
    "config_digest": pa.string(),
}


@dataclass(frozen=True)
class RunRecord:
    """One run: where, of what kind, in what state, and its main figures.

    when: the end of a finished run, else the last time anything was written (UTC). accuracy, entropy: of the standard
    models at the end, of an audited model, or at the last step of a followed training. agreement: A(α, β) of the
    model's own, which an audit has not. said: the verdict, or what is wrong.
    """

    run: str
    kind: Kind
    state: State
    when: str
    what: str
    budget: str | None = None
    seeds: int | None = None
    seconds: float | None = None
    accuracy: float | None = None
    agreement: float | None = None
    entropy: float | None = None
    said: str = ""
    config_digest: str | None = None


@dataclass(frozen=True)
class RunEntry:
    """A run with what could be read of it."""

    root: Path
    record: RunRecord
    config: StudyConfig | None = None
    result: StudyResult | SweepResult | AuditResult | FollowedTraining | Result | None = None


@dataclass(frozen=True)
class RunList(Stored, Tabular):
    """Every run below a folder, the latest last."""

    folder: str
    runs: tuple[RunRecord, ...]

    def to_arrow(self) -> pa.Table:
        """One row per run."""
        return arrow_table([asdict(run) for run in self.runs], SCHEMA)


def list_runs(folder: Path | str) -> RunList:
    """Every run below a folder, sorted by time."""
    found = find_runs(Path(folder))
    return RunList(str(folder), tuple(sorted((each.record for each in found), key=lambda r: (r.when, r.run))))


def find_runs(folder: Path) -> list[RunEntry]:
    """Every run below a folder, with what can be read of it; links are not followed."""
    if not usable(folder).is_dir():
        raise RunError(f"{folder}: no such folder; runs lie below runs/ unless --out said otherwise")
    found = []
    for root, folders, files in os.walk(folder):
        place = Path(root)
        here = list(_runs_of(place, folder, set(folders), files))
        found += here
        inside = bool(here) and here[0].record.kind in ("study", "audit", "followed")
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not (inside and name in _WITHIN))
    return found


def _runs_of(root: Path, folder: Path, folders: set[str], files: list[str]) -> Iterator[RunEntry]:
    """The runs that a folder is, or holds as files."""
    name = root.relative_to(folder).as_posix()
    if "following.json" in files:
        yield _followed(root, name)
    elif "grid.toml" in files and "studies" in folders:
        yield _sweep(root, name)
    elif "config.toml" in files:
        if (study := _study(root, name, folders)) is not None:
            yield study
    elif (audit := _audit(root, name, folders, files)) is not None:
        yield audit
    if root.name in BUDGETS and root.parent.name in KEYS:
        for file in sorted(files):
            if file.endswith(".json"):
                yield _paper(root / file, root.parent.name, root.name, f"{name}/{file}")


def _study(root: Path, name: str, folders: set[str]) -> RunEntry | None:
    run = RunDirectory(root)
    try:
        config = run.config()
    except (HeedfulError, OSError) as error:
        if not folders & {"models", "data"}:
            return None  # somebody else's config.toml
        return RunEntry(root, _damaged(name, "study", root, root.name, error))
    about: dict[str, Any] = {
        "what": config.data,
        "budget": config.budget,
        "seeds": len(config.seeds),
        "config_digest": digest(config),
    }
    if (who := holder(root)) is not None:
        return RunEntry(
            root, RunRecord(name, "study", "running", _touched(root), said=f"held by {who}", **about), config
        )
    if not run.result_path.exists():
        return RunEntry(
            root, RunRecord(name, "study", "broken off", _touched(root), said=_progress(root), **about), config
        )
    try:
        result = StudyResult.load(run.result_path)
    except (HeedfulError, OSError) as error:
        return RunEntry(root, _damaged(name, "study", root, config.data, error), config)
    manifest = _manifest(run.manifest_path)
    record = RunRecord(
        name,
        "study",
        "finished",
        manifest.get("finished") or _touched(root),
        seconds=manifest.get("seconds"),
        accuracy=result.xi_final.value,
        agreement=next((a.estimate.value for a in result.agreements if a.name == "A(alpha,beta)"), None),
        entropy=result.entropy_final.value,
        said=result.verdict.sentence,
        **about,
    )
    return RunEntry(root, record, config, result)


def _sweep(root: Path, name: str) -> RunEntry:
    manifest = _manifest(root / "manifest.json")
    if (who := holder(root)) is not None:
        return RunEntry(root, RunRecord(name, "sweep", "running", _touched(root), root.name, said=f"held by {who}"))
    if not (root / "result.json").exists():
        return RunEntry(root, RunRecord(name, "sweep", "broken off", _touched(root), root.name))
    try:
        result = SweepResult.load(root / "result.json")
    except (HeedfulError, OSError) as error:
        return RunEntry(root, _damaged(name, "sweep", root, root.name, error))
    done = len(result.studies) - len(result.failed)
    record = RunRecord(
        name,
        "sweep",
        "failed" if result.failed else "finished",
        manifest.get("finished") or _touched(root),
        " × ".join(f"{axis.name} ({len(axis.values)})" for axis in result.axes) or root.name,
        seconds=manifest.get("seconds"),
        said=f"{done} of {len(result.studies)} studies finished",
    )
    return RunEntry(root, record, result=result)


def _audit(root: Path, name: str, folders: set[str], files: list[str]) -> RunEntry | None:
    path = root / "result.json"
    if LOCK in files and (who := holder(root)) is not None:
        return RunEntry(root, RunRecord(name, "audit", "running", _touched(root), root.name, said=f"held by {who}"))
    if "result.json" not in files:
        if not any((root / "parts").glob("*.json")):
            return None
        return RunEntry(root, RunRecord(name, "audit", "broken off", _touched(root), root.name))
    try:
        plain = read_json(path)
    except (HeedfulError, OSError) as error:
        return RunEntry(root, _damaged(name, "audit", root, root.name, error)) if "parts" in folders else None
    if not {"fingerprint", "headline", "scores"} <= plain.keys():
        return None
    try:
        result = AuditResult.load(path)
    except (HeedfulError, OSError) as error:
        return RunEntry(root, _damaged(name, "audit", root, root.name, error))
    manifest = _manifest(root / "manifest.json")
    record = RunRecord(
        name,
        "audit",
        "finished",
        manifest.get("finished") or _when(path),
        " on ".join(part for part in (result.model, result.data) if part) or root.name,
        seconds=manifest.get("seconds"),
        accuracy=result.accuracy.value if result.accuracy else None,
        entropy=next(
            (s.estimate.value for s in result.scores if (s.quantity, s.of) == ("entropy", result.headline)), None
        ),
        said=result.verdict.sentence,
    )
    return RunEntry(root, record, result=result)


def _followed(root: Path, name: str) -> RunEntry:
    run = FollowedDirectory(root)
    try:
        what = run.probe().name
        if not run.result_path.exists():
            return RunEntry(root, RunRecord(name, "followed", "broken off", _touched(root), what))
        result = run.result()
    except (HeedfulError, OSError) as error:
        return RunEntry(root, _damaged(name, "followed", root, root.name, error))
    last = result.steps[-1]
    record = RunRecord(
        name,
        "followed",
        "finished",
        _when(run.result_path),
        f"{result.model} on {what}",
        accuracy=last.accuracy,
        agreement=next((a.estimate.value for a in last.agreements if a.name == "A(alpha,beta)"), None),
        entropy=last.entropy.value,
        said=result.verdict.sentence,
    )
    return RunEntry(root, record, result=result)


def _paper(path: Path, paper: str, budget: str, name: str) -> RunEntry:
    try:
        result = Result.load(path)
    except (HeedfulError, OSError) as error:
        record = RunRecord(name, "paper", "damaged", _when(path), f"{paper} {path.stem}", budget, said=str(error))
        return RunEntry(path, record)
    record = RunRecord(
        name, "paper", "finished", result.finished, f"{paper} {result.title}", budget, seconds=result.seconds
    )
    return RunEntry(path, record, result=result)


def _damaged(name: str, kind: Kind, root: Path, what: str, error: Exception) -> RunRecord:
    return RunRecord(name, kind, "damaged", _touched(root), what, said=str(error))


def _progress(root: Path) -> str:
    models = root / "models"
    begun = [path for path in models.iterdir() if path.is_dir()] if models.is_dir() else []
    done = sum((path / "done.json").exists() for path in begun)
    if not begun:
        return "no model was begun"
    return f"{done} of {len(begun)} begun models are trained"


def _manifest(path: Path) -> dict[str, Any]:
    """What is known of when and how, as far as it can be believed."""
    try:
        plain = read_json(path)
    except (HeedfulError, OSError):
        return {}
    wanted: dict[str, Callable[[Any], bool]] = {
        "finished": lambda value: isinstance(value, str),
        "seconds": lambda value: isinstance(value, int | float) and math.isfinite(value),
    }
    return {name: plain[name] for name, right in wanted.items() if right(plain.get(name))}


def _touched(root: Path) -> str:
    """When anything was last written in a run."""
    places = [root, *root.glob("*"), *root.glob("models/*"), *root.glob("models/*/*"), *root.glob("parts/*")]
    times = []
    for place in places:
        try:
            times.append(place.stat().st_mtime)
        except OSError:
            continue
    return _stamp(max(times, default=0.0))


def _when(path: Path) -> str:
    try:
        return _stamp(path.stat().st_mtime)
    except OSError:
        return ""


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
