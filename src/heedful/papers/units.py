"""Long work in pieces: each a function of plain arguments, each answer in a file of its own, never computed twice."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.errors import DamagedError
from heedful.execution.pool import Job, run_jobs
from heedful.execution.worker import OnEvent, call
from heedful.models.training import choose_device
from heedful.storage.atomic_files import read_json, usable, write_atomically
from heedful.storage.checksums import check, damaged, read_sealed, set_aside, write_sealed


@dataclass(frozen=True)
class Unit:
    """`module:function(**arguments, **places, device=…, report=…)`, which returns what JSON can hold.

    The arguments decide the answer and name its file; `places` say where things lie on this machine. `makes` are those
    of its places that are files which it writes with `write_beside` and that others need: without them it is not done.
    """

    name: str
    function: str
    arguments: Mapping[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)
    makes: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The answer's file.

        >>> Unit("a", "m:f", {"x": 1}).file == Unit("a", "m:f", {"x": 2}).file
        False
        """
        content = json.dumps([self.function, self.arguments], sort_keys=True)
        return f"{self.name}-{sha256(content.encode()).hexdigest()[:8]}.json"


def compute(
    units: Sequence[Unit],
    folder: Path,
    *,
    jobs: int | None = None,
    device: str = "auto",
    on_progress: OnEvent = lambda line: None,
) -> dict[str, dict[str, Any]]:
    """The answers of all units by name; those that are in `folder` are read, the others computed, one per core."""
    missing = []
    for unit in units:
        tell = partial(_tell, on_progress, unit.name)
        made = [is_beside(name, Path(unit.places[name]), tell) for name in unit.makes]
        if not is_there(folder / unit.file, tell) or not all(made):
            missing.append(_job(unit, folder, device))
    run_jobs(missing, workers=jobs, on_event=on_progress)
    return {unit.name: read(folder / unit.file) for unit in units}


def compute_unit(
    *, function: str, arguments: Mapping[str, Any], out: str, device: str, report: OnEvent = lambda event: None
) -> None:
    """Compute one unit and save its answer."""
    save(Path(out), call(function, {**arguments, "device": choose_device(device)}, report=report))


def save(path: Path, answer: Mapping[str, Any]) -> None:
    """Write an answer with its checksum, whole or not at all."""
    write_sealed(path, {"answer": answer})


def read(path: Path) -> dict[str, Any]:
    """The answer that was saved; a damaged file is named. Those saved before there were checksums are read as they are.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> save(path, {"x": 1}); read(path)
    {'x': 1}
    """
    if not {"sha256", "answer"} & read_json(path).keys():
        return read_json(path)
    content = read_sealed(path)
    if not isinstance(content.get("answer"), dict):
        raise damaged(path, "it has no answer")
    answer: dict[str, Any] = content["answer"]
    return answer


def write_beside(name: str, path: Path, write: Callable[[Path], object]) -> None:
    """Write the file that a unit makes at the place of that name, and its checksum beside it."""
    write_sealed(_seal(path), {name: write_atomically(path, write)})


def check_beside(name: str, path: Path) -> None:
    """Refuse a file that is not as `write_beside` left it. One from before there were checksums is taken as it is."""
    if not usable(path).is_file():
        raise damaged(path, "it is gone")
    if _seal(path).exists():
        check(path, str(read_sealed(_seal(path)).get(name)))


def is_there(path: Path, tell: Callable[[str], None]) -> bool:
    """Whether an answer was saved and is as it was; a damaged file is told of, and set aside."""
    return usable(path).exists() and _is_right(lambda: read(path), tell)


def is_beside(name: str, path: Path, tell: Callable[[str], None]) -> bool:
    """Whether the file that a unit makes is as it was written; a damaged one is told of, and set aside."""
    return usable(path).exists() and _is_right(lambda: check_beside(name, path), tell)


def _is_right(look: Callable[[], object], tell: Callable[[str], None]) -> bool:
    try:
        look()
    except DamagedError as error:
        aside = set_aside(Path(str(error.path)))
        tell(f"{error.path} was damaged ({error.why}): set aside as {aside and aside.name}, and computed again")
        return False
    return True


def _job(unit: Unit, folder: Path, device: str) -> Job:
    arguments = {"function": unit.function, "arguments": {**unit.arguments, **unit.places}}
    return Job(
        unit.name, "heedful.papers.units:compute_unit", arguments | {"out": str(folder / unit.file), "device": device}
    )


def _seal(path: Path) -> Path:
    return Path(f"{path}.json")


def _tell(on_progress: OnEvent, name: str, notice: str) -> None:
    on_progress({"model": name, "notice": notice})
