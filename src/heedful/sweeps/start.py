"""A sweep as it is asked for: a grid in a file or a dictionary, and where its studies are to be carried out."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ConfigError
from heedful.studies.grid import grid_of, read_grid
from heedful.studies.swept import SweepResult
from heedful.sweeps.crew import Crew
from heedful.sweeps.local import LocalCrew
from heedful.sweeps.sweep import run_sweep
from heedful.sweeps.watching import watch
from heedful.toml import toml_value

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
