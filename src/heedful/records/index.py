"""List of the runs below a folder: studies, sweeps, audits, followed trainings and results of papers."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from heedful.audits.result import AuditResult
from heedful.config import StudyConfig
from heedful.errors import DamagedError, HeedfulError, RunError
from heedful.followed.result import FollowedDirectory, FollowedTraining, StepAgreement
from heedful.papers.experiment import Result
from heedful.storage.atomic_files import valid_path
from heedful.storage.locks import lock_holder
from heedful.storage.manifest import MANIFEST, RESULT, Manifest, RunKind, run_kind, verified_result
from heedful.storage.run_files import MAX_ENTRIES, entries_of, listed, refuse_irregular
from heedful.storage.serialization import Stored, digest
from heedful.storage.tables import Tabular, arrow_table
from heedful.studies.result import AgreementResult, StudyResult
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.result import SweepResult

MAX_VISITED = 1_000_000  # files and folders that are looked at for runs
Kind = RunKind | Literal["unknown"]  # unknown: the manifest is damaged
RunResult = StudyResult | SweepResult | AuditResult | FollowedTraining | Result
Row = dict[str, Any]
State = Literal["running", "finished", "failed", "broken off", "damaged"]
_WITHIN = {
    "models",
    "data",
    "trace",
    "trace-train",
    "trace-heads",
    "checkpoints",
    "parts",
    "units",
}  # folders of a run, not runs


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


_NUMBERS = {"seeds": pa.int64(), **dict.fromkeys(("seconds", "accuracy", "agreement", "entropy"), pa.float64())}
SCHEMA = {each.name: _NUMBERS.get(each.name, pa.string()) for each in fields(RunRecord)}


@dataclass(frozen=True)
class RunEntry:
    """A run with what could be read of it."""

    root: Path
    record: RunRecord
    config: StudyConfig | None = None
    result: RunResult | None = None
    notes: list[str] = field(default_factory=list)  # on files that a query left out or could not check


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
    entries: list[RunEntry] = []
    waiting, visited = [folder], 0
    while waiting:
        root = waiting.pop()
        inner, is_run = [], False
        with suppress(OSError), os.scandir(root) as listing:
            for entry in listing:
                visited += 1
                if visited > MAX_VISITED:
                    raise RunError(
                        f"{folder}: more than {MAX_VISITED:,} files and folders below it; name one with fewer"
                    )
                is_run = is_run or entry.name == MANIFEST
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
        kind = _kind(root) if is_run else None
        if kind is not None:
            entries += _entries(root, kind, root.relative_to(folder).as_posix())
        inside = kind in ("study", "audit", "followed")
        waiting += [root / name for name in sorted(inner, reverse=True) if not (inside and name in _WITHIN)]
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
        refuse_irregular(root)
        manifest = Manifest.read(root)
        if kind == "paper":
            names = [entry.name for entry in entries_of(root)]
            paths = [root / name for name in names if name.endswith(".json") and name != MANIFEST]
            return [_paper(path, f"{name}/{path.name}", manifest) for path in paths]
        if (process := lock_holder(root)) is not None:
            return [_unfinished(root, name, kind, "running", f"held by {process}")]
        if manifest.finished is None or not (root / RESULT).exists():
            return [_unfinished(root, name, kind, "broken off", _progress(root, kind))]
        facts, config, result = _READERS[kind](root)
        known: Row = {"state": "finished", "when": manifest.finished or _last_write(root), "seconds": manifest.seconds}
        return [RunEntry(root, RunRecord(name, kind, **(known | facts)), config, result)]
    except (HeedfulError, OSError) as error:
        record = RunRecord(name, kind, "damaged", _last_write(root), root.name, said=str(error))
        return [RunEntry(root, record)]


def _unfinished(root: Path, name: str, kind: Kind, state: State, said: str) -> RunEntry:
    config: StudyConfig | None = None
    about: Row = {"what": root.name}
    if kind == "study" and RunDirectory(root).config_path.exists():
        config = RunDirectory(root).config()
        about = _about(config)
    elif kind == "followed" and FollowedDirectory(root).is_begun():
        about = {"what": FollowedDirectory(root).probe().name}
    return RunEntry(root, RunRecord(name, kind, state, _last_write(root), said=said, **about), config)


def _about(config: StudyConfig) -> Row:
    about = {"what": config.data, "budget": config.budget, "seeds": len(config.seeds)}
    return about | {"config_digest": digest(config)}


def _study(root: Path) -> tuple[Row, StudyConfig, RunResult]:
    run = RunDirectory(root)
    config, result = run.config(), run.result()
    facts = {
        "accuracy": result.xi_final.value,
        "agreement": _alpha_beta(result.agreements),
        "entropy": result.entropy_final.value,
        "said": result.verdict.sentence,
    }
    return facts | _about(config), config, result


def _sweep(root: Path) -> tuple[Row, None, RunResult]:
    result = SweepResult.load(verified_result(root))
    facts = {
        "state": "failed" if result.failed else "finished",
        "what": " × ".join(f"{axis.name} ({len(axis.values)})" for axis in result.axes) or root.name,
        "said": f"{len(result.studies) - len(result.failed)} of {len(result.studies)} studies finished",
    }
    return facts, None, result


def _audit(root: Path) -> tuple[Row, None, RunResult]:
    result = AuditResult.load(verified_result(root))
    entropies = (s.estimate.value for s in result.scores if (s.quantity, s.of) == ("entropy", result.headline))
    facts = {
        "what": " on ".join(part for part in (result.model, result.data) if part) or root.name,
        "accuracy": result.accuracy.value if result.accuracy else None,
        "entropy": next(entropies, None),
        "said": result.verdict.sentence,
    }
    return facts, None, result


def _followed(root: Path) -> tuple[Row, None, RunResult]:
    run = FollowedDirectory(root)
    data, result = run.probe().name, run.result()
    last = result.steps[-1]
    facts = {
        "what": f"{result.model} on {data}",
        "accuracy": last.accuracy,
        "agreement": _alpha_beta(last.agreements),
        "entropy": last.entropy.value,
        "said": result.verdict.sentence,
    }
    return facts, None, result


def _alpha_beta(agreements: Sequence[AgreementResult | StepAgreement]) -> float | None:
    return next((each.estimate.value for each in agreements if each.name == "A(alpha,beta)"), None)


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


_Reader = Callable[[Path], tuple[Row, StudyConfig | None, RunResult]]
_READERS: dict[Kind, _Reader] = {"study": _study, "sweep": _sweep, "audit": _audit, "followed": _followed}


def _progress(root: Path, kind: Kind) -> str:
    """How far a run came that was broken off."""
    if kind == "followed" and (root / RESULT).exists() and RESULT in Manifest.read(root).files:
        return f"recorded up to step {FollowedDirectory(root).result().steps[-1].step:,}, and not closed"
    if kind != "study":
        return ""
    models = root / "models"
    begun = [path for path in listed(models, "*") if path.is_dir()]
    done = sum((path / "done.json").exists() for path in begun)
    return f"{done} of {len(begun)} begun models are trained" if begun else "no model was begun"


def _some_entries(folder: Path) -> "Iterator[os.DirEntry[str]]":
    """The entries of a folder, up to a bound; none of what is not a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        yield from islice(entries, MAX_ENTRIES)


def _last_write(root: Path) -> str:
    """When anything was last written in a run."""
    times = []
    with suppress(OSError):
        times.append(root.lstat().st_mtime)
    models = [Path(entry.path) for entry in _some_entries(root / "models")]
    for folder in (root, root / "models", *models, root / "parts"):
        for entry in _some_entries(folder):
            with suppress(OSError):
                times.append(entry.stat(follow_symlinks=False).st_mtime)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(times))) if times else ""
