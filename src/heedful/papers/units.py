"""Long work in pieces: each a function of plain arguments, each answer in a file of its own, never computed twice."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.files import read_json
from heedful.studies.pool import OnProgress, work_through


@dataclass(frozen=True)
class Unit:
    """`module:function(**arguments, **places, device=…, report=…)`, which returns what JSON can hold.

    The arguments decide the answer and name its file; `places` say where things lie on this machine.
    """

    name: str
    function: str
    arguments: Mapping[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)

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
    on_progress: OnProgress = lambda line: None,
) -> dict[str, dict[str, Any]]:
    """The answers of all units by name; those that are in `folder` are read, the others computed, one per core."""
    orders = {}
    for unit in units:
        if not (folder / unit.file).exists():
            order = {
                "name": unit.name,
                "function": unit.function,
                "arguments": {**unit.arguments, **unit.places},
                "out": str(folder / unit.file),
            }
            orders[unit.name] = json.dumps(order)
    work_through("heedful.papers.worker", (device,), orders, jobs=jobs, on_progress=on_progress)
    return {unit.name: read_json(folder / unit.file) for unit in units}
