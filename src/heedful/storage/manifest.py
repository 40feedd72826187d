"""The manifest of a run: its kind, and when, where and with what it was made.

`manifest.json` is written when a run begins, and completed when it ends with the checksum of `result.json`.
"""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from heedful.errors import ConfigError, DamagedError, HeedfulError, RunError
from heedful.storage.atomic_files import (
    TEMPORARY,
    damaged_error,
    json_text,
    quarantine,
    read_json,
    sha256,
    valid_path,
    without_nan,
    write_text,
)
from heedful.storage.locks import HEARTBEAT, LOCK
from heedful.storage.run_files import entries_of, read_bounded, refuse_irregular
from heedful.storage.serialization import Stored, from_mapping
from heedful.storage.step_cache import StepRecord

MANIFEST, RESULT = "manifest.json", "result.json"
RunKind = Literal["study", "sweep", "audit", "followed", "paper"]
KIND_NAMES: Mapping[RunKind, str] = {
    "study": "a study",
    "sweep": "a sweep",
    "audit": "an audit",
    "followed": "a followed training",
    "paper": "a paper’s results",
}
PACKAGES = (
    "heedful",
    "torch",
    "transformers",
    "captum",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "polars",
    "pyarrow",
)


@dataclass(frozen=True)
class Manifest:
    """Everything that may differ between two runs that give the same result.

    started, finished: UTC. seconds, cpu_seconds: added up over the processes that finished the run, so that measuring a
    study anew does not hide how long its training took; a process that was killed is not counted, nor are workers in
    cpu_seconds.
    details: what only this kind of run has. files: checksums of finished files, `result.json` among them.
    """

    kind: RunKind
    command: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    machine: dict[str, Any] = field(default_factory=dict)
    started: str | None = None
    finished: str | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def now(cls, kind: RunKind, command: str | None = None) -> "Manifest":
        """The manifest of a run that begins now.

        >>> Manifest.now("audit", "heedful audit MODEL DATA").command
        'heedful audit MODEL DATA'
        """
        machine = {"system": platform.platform(), "cores": os.cpu_count()}
        return cls(kind, command or current_command(), versions(), source_commit(), machine, utc_now())

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """The manifest in a folder; an error where there is none, or it is damaged."""
        path = folder / MANIFEST
        try:
            return from_mapping(cls, StepRecord(path).load(), where=str(path))
        except ConfigError as error:
            raise damaged_error(path, str(error).removeprefix(f"{path}: ")) from None

    def write(self, folder: Path) -> None:
        """Write it into a folder, with its own checksum."""
        plain = asdict(self)
        StepRecord(folder / MANIFEST).save(plain, plain.pop("files"))


class RunClock:
    """Times a run, and writes its manifest when it begins and when it ends.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> clock = RunClock("sweep"); clock.begin(folder)
    >>> Manifest.read(folder).finished is None, run_kind(folder)
    (True, 'sweep')
    """

    def __init__(self, kind: RunKind, command: str | None = None) -> None:
        self.manifest = Manifest.now(kind, command)
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def begin(self, folder: Path) -> None:
        """Write the manifest, unless one is there; a run that is resumed keeps its start and the time it has taken."""
        with suppress(DamagedError):
            if (folder / MANIFEST).exists():
                known = Manifest.read(folder)
                self.manifest = replace(
                    self.manifest, started=known.started, seconds=known.seconds, cpu_seconds=known.cpu_seconds
                )
                return
        quarantine(folder / MANIFEST)
        self.manifest.write(folder)

    def finish(self, folder: Path, result: Stored, files: Iterable[str] = (), **details: Any) -> None:
        """Write the result, then the manifest that vouches for it; at no instant does one vouch for another result.

        files: names of other files of the run that the manifest vouches for. A manifest that vouches for the same files
        already stays as it is, unless damaged files were set aside.
        """
        checksums = self._write_result(folder, result, files)
        with suppress(RunError):
            known = Manifest.read(folder)
            if known.finished is not None and known.files == checksums and not details.get("set_aside"):
                return
        finished = replace(
            self.manifest,
            finished=max(utc_now(), self.manifest.started or ""),  # the machine's clock may have been set back
            seconds=round((self.manifest.seconds or 0.0) + time.monotonic() - self._wall, 1),
            cpu_seconds=round((self.manifest.cpu_seconds or 0.0) + time.process_time() - self._cpu, 1),
            details=without_nan(details),
            files=checksums,
        )
        finished.write(folder)

    def keep(self, folder: Path, result: Stored, files: Iterable[str] = (), **details: Any) -> None:
        """Write the result of a run that goes on, and a manifest that vouches for it and does not call it finished."""
        checksums = self._write_result(folder, result, files)
        replace(self.manifest, finished=None, details=without_nan(details), files=checksums).write(folder)

    def _write_result(self, folder: Path, result: Stored, files: Iterable[str]) -> dict[str, str]:
        path, text = folder / RESULT, json_text(result.to_dict())
        if not (path.is_file() and read_bounded(path) == text.encode()):
            replace(self.manifest, finished=None, files={}).write(folder)
            write_text(path, text)
        return {name: sha256(folder / name, follow=False) for name in (RESULT, *files)}


def verified_result(folder: Path, unfinished: str = "the same command finishes it") -> Path:
    """The path of a run's `result.json`, once the manifest is known to vouch for it.

    unfinished: what to do where there is no result yet.
    """
    refuse_irregular(folder)
    path = folder / RESULT
    if not valid_path(path).exists():
        raise RunError(f"{folder}: not finished (it has no {RESULT}); {unfinished}")
    record = StepRecord(folder / MANIFEST)
    if not record.is_done():
        raise damaged_error(record.path, "it is gone")
    if RESULT not in record.files():
        raise damaged_error(path, f"{MANIFEST} does not vouch for it")
    return record.verified(RESULT)


def run_kind(folder: Path) -> RunKind:
    """The kind of the run in a folder, from its manifest; an error where it is not a run."""
    if not valid_path(folder).is_dir():
        raise RunError(f"{folder}: there is no such folder")
    if not (folder / MANIFEST).exists():
        raise RunError(f"{folder}: not a run of heedful (it has no {MANIFEST})")
    named = read_json(folder / MANIFEST).get("kind")
    for kind in KIND_NAMES:
        if kind == named:
            return kind
    raise RunError(f"{folder}: not a run of heedful ({MANIFEST} has no kind such as {', '.join(KIND_NAMES)})")


def refuse_other(folder: Path, kind: RunKind, first: str, remedy: str = "choose another --out") -> None:
    """Refuse a folder that holds something other than a run of this kind.

    first: the file that a run of this kind always has, which makes up for a lost manifest.
    """
    if not valid_path(folder).exists():
        return
    if not folder.is_dir():
        raise RunError(f"{folder} is a file; {remedy}")
    try:
        other = run_kind(folder)
    except HeedfulError:
        ours = valid_path(folder / first).exists() or all(
            path.name in (LOCK, HEARTBEAT) or (path.name.startswith(".") and path.name.endswith(TEMPORARY))
            for path in entries_of(folder)
        )
        if not ours:
            raise RunError(f"{folder} is not empty and not {KIND_NAMES[kind]} of heedful; {remedy}") from None
    else:
        if other != kind:
            raise RunError(f"{folder} holds {KIND_NAMES[other]}; {remedy}")


def current_command() -> str | None:
    """The command that this process was started with; None where it is neither `heedful` nor `python -m heedful`."""
    program = Path(sys.argv[0])
    ours = program.name == "heedful" or program.parts[-2:] == ("heedful", "__main__.py")
    return shlex.join(["heedful", *sys.argv[1:]]) if ours else None


def versions() -> dict[str, str]:
    """The versions of Python and of the installed packages that results depend on.

    >>> list(versions())[:3]
    ['python', 'heedful', 'torch']
    """
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def utc_now() -> str:
    """The time in UTC.

    >>> utc_now().endswith("Z")
    True
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def source_commit() -> str | None:
    """The commit of this source tree, where it is one; a package installed within another repository has none."""
    here = Path(__file__)
    try:
        for arguments in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            command = ["git", "-C", str(here.parent), *arguments]
            answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()
