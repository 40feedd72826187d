"""Units of a paper: functions of plain arguments, each answer stored in a file of its own and computed once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.errors import DamagedError
from heedful.execution.pool import Job
from heedful.execution.worker import OnEvent, call
from heedful.models.training import choose_device
from heedful.storage.atomic_files import valid_path, write_atomically
from heedful.storage.checksums import (
    damaged_error,
    quarantine,
    read_checksummed_json,
    verify_checksum,
    write_checksummed_json,
)

UNITS = "units"  # the folder of answers below a workspace


@dataclass(frozen=True)
class Unit:
    """One computation of a paper: `module:function(**arguments, device=…, report=…)`, whose answer JSON can hold.

    The arguments decide the answer and name its file. paths: those arguments that are paths below the workspace. makes:
    those paths that the function writes, with `write_beside`, and that other units read; without them it is not done.
    """

    name: str
    function: str
    arguments: Mapping[str, Any]
    paths: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of the answer's file.

        >>> Unit("a", "m:f", {"x": 1}).file == Unit("a", "m:f", {"x": 2}).file
        False
        """
        content = json.dumps([self.function, self.arguments], sort_keys=True)
        return f"{self.name}-{sha256(content.encode()).hexdigest()[:8]}.json"

    def job(self, workspace: Path, device: str) -> Job:
        """The job that computes it and saves its answer."""
        paths = {name: str(workspace / self.arguments[name]) for name in self.paths}
        arguments = {"function": self.function, "arguments": {**self.arguments, **paths}, "device": device}
        return Job(self.name, f"{__name__}:compute", arguments | {"out": str(workspace / UNITS / self.file)})

    def is_done(self, workspace: Path, tell: Callable[[str], None]) -> bool:
        """Whether its answer and the files that it makes are there and undamaged; `tell` hears of damage."""
        made = [is_beside(name, workspace / self.arguments[name], tell) for name in self.makes]
        return is_there(workspace / UNITS / self.file, tell) and all(made)


def compute(
    *, function: str, arguments: Mapping[str, Any], out: str, device: str, report: OnEvent = lambda event: None
) -> None:
    """A job: compute one unit and save its answer."""
    save(Path(out), call(function, {**arguments, "device": choose_device(device)}, report=report))


def save(path: Path, answer: Mapping[str, Any]) -> None:
    """Write an answer with its checksum, whole or not at all."""
    write_checksummed_json(path, {"answer": answer})


def read(path: Path) -> dict[str, Any]:
    """The answer that was saved; a damaged file is named.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> save(path, {"x": 1}); read(path)
    {'x': 1}
    """
    content = read_checksummed_json(path)
    if not isinstance(content.get("answer"), dict):
        raise damaged_error(path, "it has no answer")
    answer: dict[str, Any] = content["answer"]
    return answer


def write_beside(name: str, path: Path, write: Callable[[Path], object]) -> None:
    """Write the file that a unit makes at the place of that name, and its checksum beside it."""
    write_checksummed_json(_seal(path), {name: write_atomically(path, write)})


def check_beside(name: str, path: Path) -> None:
    """Refuse a file that is not as `write_beside` left it. One from before there were checksums is taken as it is."""
    if not valid_path(path).is_file():
        raise damaged_error(path, "it is gone")
    if _seal(path).exists():
        verify_checksum(path, str(read_checksummed_json(_seal(path)).get(name)))


def is_there(path: Path, tell: Callable[[str], None]) -> bool:
    """Whether an answer was saved and is as it was; a damaged file is told of, and set aside."""
    return valid_path(path).exists() and _is_right(lambda: read(path), tell)


def is_beside(name: str, path: Path, tell: Callable[[str], None]) -> bool:
    """Whether the file that a unit makes is as it was written; a damaged one is told of, and set aside."""
    return valid_path(path).exists() and _is_right(lambda: check_beside(name, path), tell)


def _is_right(look: Callable[[], object], tell: Callable[[str], None]) -> bool:
    try:
        look()
    except DamagedError as error:
        aside = quarantine(Path(str(error.path)))
        tell(f"{error.path} was damaged ({error.why}): set aside as {aside and aside.name}, and computed again")
        return False
    return True


def _seal(path: Path) -> Path:
    return Path(f"{path}.json")
