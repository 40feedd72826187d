"""Units of a paper: functions of plain arguments, each answer stored in a file of its own and computed once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.execution.pool import Job
from heedful.execution.worker import OnEvent, call
from heedful.models.training import choose_device
from heedful.storage.step_cache import Notify, StepRecord, record_beside, write_answer

UNITS = "units"  # the folder of answers below a workspace


@dataclass(frozen=True)
class Unit:
    """One computation of a paper: `module:function(**arguments, device=…, report=…)`, whose answer JSON can hold.

    The arguments decide the answer and name its file. paths: those arguments that are paths below the workspace. makes:
    those paths that the function writes with `write_with_record` and that other units read; without them it is not
    done.
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

    def is_done(self, workspace: Path, notify: Notify) -> bool:
        """Whether its answer and the files that it makes are there and undamaged; `notify` hears of damage."""
        files = [record_beside(workspace / self.arguments[name]).repair(notify) for name in self.makes]
        return StepRecord(workspace / UNITS / self.file).repair(notify) and all(files)


def compute(
    *, function: str, arguments: Mapping[str, Any], out: str, device: str, report: OnEvent = lambda event: None
) -> None:
    """A job: compute one unit and save its answer."""
    write_answer(Path(out), call(function, {**arguments, "device": choose_device(device)}, report=report))
