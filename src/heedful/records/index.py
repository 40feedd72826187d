"""List of the runs below a folder: studies, sweeps, audits, followed trainings and results of papers."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from heedful.audits.result import AuditResult
from heedful.config import StudyConfig
from heedful.errors import DamagedError, HeedfulError, RunError
from heedful.followed.result import FollowedDirectory, FollowedTraining
from heedful.papers.experiment import Result
from heedful.storage.atomic_files import valid_path
from heedful.storage.locks import lock_holder
from heedful.storage.manifest import MANIFEST, RESULT, Manifest, RunKind, run_kind
from heedful.storage.serialization import Stored, digest
from heedful.storage.tables import Tabular, arrow_table
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.result import SweepResult

Kind = RunKind | Literal["unknown"]  # unknown: the manifest is damaged
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
    """One run: its folder, kind, state and main figures.

    when: the end of a finished run, else the last time anything was written (UTC). accuracy, entropy: of the standard
    models at the end, of an audited model, or at the last step of a followed training. agreement: A(α, β) of the
    model's own quantities; an audit has none. said: the verdict, or what is wrong.
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
    records = [entry.record for entry in find_runs(Path(folder))]
    return RunList(str(folder), tuple(sorted(records, key=lambda record: (record.when, record.run))))


def find_runs(folder: Path) -> list[RunEntry]:
    """Every run below a folder, with what can be read of it; links are not followed."""
    if not valid_path(folder).is_dir():
        raise RunError(f"{folder}: no such folder; runs are below runs/ unless --out named another folder")
    entries = []
    for root, folders, files in os.walk(folder):
        kind = _kind(Path(root)) if MANIFEST in files else None
        if kind is not None:
            entries += _entries(Path(root), kind, Path(root).relative_to(folder).as_posix())
        inside = kind in ("study", "audit", "followed")
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not (inside and name in _WITHIN))
    return entries


def _kind(root: Path) -> Kind | None:
    """The kind of run that a manifest names; None where it is not a manifest of heedful."""
    try:
        return run_kind(root)
    except DamagedError:
        return "unknown"
    except RunError:
        return None


def _entries(root: Path, kind: Kind, name: str) -> list[RunEntry]:
    """The run in a folder; of a paper's folder, every result in it."""
    try:
        manifest = Manifest.read(root)
        if kind == "paper":
            paths = sorted(path for path in root.glob("*.json") if path.name != MANIFEST)
            return [_paper(path, f"{name}/{path.name}", manifest) for path in paths]
        if (process := lock_holder(root)) is not None:
            return [_unfinished(root, name, kind, "running", f"held by {process}")]
        if manifest.finished is None or not (root / RESULT).exists():
            return [_unfinished(root, name, kind, "broken off", _progress(root) if kind == "study" else "")]
        return [_READERS[kind](root, name, manifest)]
    except (HeedfulError, OSError) as error:
        record = RunRecord(name, kind, "damaged", _last_write(root), root.name, said=str(error))
        return [RunEntry(root, record)]


def _unfinished(root: Path, name: str, kind: Kind, state: State, said: str) -> RunEntry:
    config: StudyConfig | None = None
    about: dict[str, Any] = {"what": root.name}
    if kind == "study" and RunDirectory(root).config_path.exists():
        config = RunDirectory(root).config()
        about = _about(config)
    elif kind == "followed" and FollowedDirectory(root).is_begun():
        about = {"what": FollowedDirectory(root).probe().name}
    return RunEntry(root, RunRecord(name, kind, state, _last_write(root), said=said, **about), config)


def _about(config: StudyConfig) -> dict[str, Any]:
    return {
        "what": config.data,
        "budget": config.budget,
        "seeds": len(config.seeds),
        "config_digest": digest(config),
    }


def _study(root: Path, name: str, manifest: Manifest) -> RunEntry:
    run = RunDirectory(root)
    config, result = run.config(), run.result()
    record = RunRecord(
        name,
        "study",
        "finished",
        manifest.finished or _last_write(root),
        seconds=manifest.seconds,
        accuracy=result.xi_final.value,
        agreement=next((a.estimate.value for a in result.agreements if a.name == "A(alpha,beta)"), None),
        entropy=result.entropy_final.value,
        said=result.verdict.sentence,
        **_about(config),
    )
    return RunEntry(root, record, config, result)


def _sweep(root: Path, name: str, manifest: Manifest) -> RunEntry:
    result = SweepResult.load(root / RESULT)
    done = len(result.studies) - len(result.failed)
    record = RunRecord(
        name,
        "sweep",
        "failed" if result.failed else "finished",
        manifest.finished or _last_write(root),
        " × ".join(f"{axis.name} ({len(axis.values)})" for axis in result.axes) or root.name,
        seconds=manifest.seconds,
        said=f"{done} of {len(result.studies)} studies finished",
    )
    return RunEntry(root, record, result=result)


def _audit(root: Path, name: str, manifest: Manifest) -> RunEntry:
    result = AuditResult.load(root / RESULT)
    entropies = (s.estimate.value for s in result.scores if (s.quantity, s.of) == ("entropy", result.headline))
    record = RunRecord(
        name,
        "audit",
        "finished",
        manifest.finished or _last_write(root),
        " on ".join(part for part in (result.model, result.data) if part) or root.name,
        seconds=manifest.seconds,
        accuracy=result.accuracy.value if result.accuracy else None,
        entropy=next(entropies, None),
        said=result.verdict.sentence,
    )
    return RunEntry(root, record, result=result)


def _followed(root: Path, name: str, manifest: Manifest) -> RunEntry:
    run = FollowedDirectory(root)
    data, result = run.probe().name, run.result()
    last = result.steps[-1]
    record = RunRecord(
        name,
        "followed",
        "finished",
        manifest.finished or _last_write(root),
        f"{result.model} on {data}",
        seconds=manifest.seconds,
        accuracy=last.accuracy,
        agreement=next((a.estimate.value for a in last.agreements if a.name == "A(alpha,beta)"), None),
        entropy=last.entropy.value,
        said=result.verdict.sentence,
    )
    return RunEntry(root, record, result=result)


def _paper(path: Path, name: str, manifest: Manifest) -> RunEntry:
    try:
        result = Result.load(path)
    except (HeedfulError, OSError) as error:
        what, budget = f"{manifest.details.get('paper')} {path.stem}", manifest.details.get("budget")
        record = RunRecord(name, "paper", "damaged", _last_write(path), what, budget, said=str(error))
        return RunEntry(path, record)
    made, what = result.manifest, f"{result.paper} {result.title}"
    record = RunRecord(name, "paper", "finished", made.finished or "", what, result.budget, seconds=made.seconds)
    return RunEntry(path, record, result=result)


_READERS: dict[Kind, Callable[[Path, str, Manifest], RunEntry]] = {
    "study": _study,
    "sweep": _sweep,
    "audit": _audit,
    "followed": _followed,
}


def _progress(root: Path) -> str:
    models = root / "models"
    begun = [path for path in models.iterdir() if path.is_dir()] if models.is_dir() else []
    done = sum((path / "done.json").exists() for path in begun)
    return f"{done} of {len(begun)} begun models are trained" if begun else "no model was begun"


def _last_write(root: Path) -> str:
    """When anything was last written in a run."""
    places = [root, *root.glob("*"), *root.glob("models/*"), *root.glob("models/*/*"), *root.glob("parts/*")]
    times = []
    for place in places:
        with suppress(OSError):
            times.append(place.stat().st_mtime)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(times))) if times else ""
