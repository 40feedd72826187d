"""`heedful doctor`: is everything here?"""

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from packaging.requirements import Requirement

from heedful.cli.options import print_json


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the examination as JSON, and nothing else.")] = False,
) -> None:
    """Say what is here and what is missing: versions, device, cores, memory, data, extras."""

    found = examine()
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    if not found.healthy:
        raise typer.Exit(1)


def _print(found: "DoctorReport") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from heedful.reports.terminal import size

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")

    def say(name: str, words: str) -> None:
        table.add_row(Text(name), Text(words))

    for name, version in found.versions.items():
        say(name, version)
    say("system", found.machine["system"])
    say("device", f"{found.machine['device']}, {found.machine['cores']} cores")
    if "memory" in found.machine:
        say("memory", size(found.machine["memory"]))
    say("disk free", size(found.machine["disk_free"]))
    say("needed", _listed(found, None))
    for extra, whole in found.extras.items():
        say(f"[{extra}]", f"{'✓' if whole else '✗'} {PURPOSES[extra]}: {_listed(found, extra)}")
    say("data", f"{found.data['directory']}{'' if found.data['exists'] else ' (not there)'}")
    say("corpora", ", ".join(found.data["found"]) or "none found")
    say("generated", ", ".join(found.data["generated"]))
    for name, path in found.browser.items():
        say(name, path or "✗ not on the path")
    console = Console(highlight=False)
    console.print(table)
    console.print("[bold]missing[/bold]" if found.advice else "[bold]nothing is missing[/bold]")
    for sentence in found.advice:
        console.print(Text(f"  {sentence}"), soft_wrap=True)


def _listed(found: "DoctorReport", extra: str | None) -> str:
    return ", ".join(f"{p.name} {p.version or '✗'}" for p in found.packages if p.extra == extra)


PURPOSES = {
    "demo": "the film reviews rotten-tomatoes and imdb-reviews, and pandas",
    "hf": "auditing Hugging Face models, fetching corpora, integrated gradients",
    "ray": "sweeps on a cluster",
    "examples": "the weights that an example fine-tunes",
    "track": "metrics to TensorBoard and MLflow",
    "bench": "the peers that benchmarks compare with",
    "docs": "building these docs",
    "dev": "tests and linters",
}
BROWSERS = ("chromium", "chromedriver")


@dataclass(frozen=True)
class Package:
    """A package that heedful needs, or that an extra brings; `version` is `None` where it is not installed."""

    name: str
    version: str | None
    extra: str | None = None


@dataclass(frozen=True)
class DoctorReport:
    """Everything `heedful doctor` says; `advice` holds one sentence for each thing that is missing."""

    versions: dict[str, str]
    machine: dict[str, Any]
    data: dict[str, Any]
    packages: tuple[Package, ...]
    extras: dict[str, bool]
    browser: dict[str, str | None]
    advice: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether everything is here that heedful cannot do without."""
        return all(package.version for package in self.packages if package.extra is None)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "healthy": self.healthy}


def examine() -> DoctorReport:
    """Look at this installation and this machine.

    >>> examine().machine["cores"] >= 1
    True
    """
    packages = _packages()
    here = {extra: all(p.version for p in packages if p.extra == extra) for extra in PURPOSES}
    extras = {extra: whole for extra, whole in here.items() if any(p.extra == extra for p in packages)}
    data = _data()
    browser = {name: shutil.which(name) for name in BROWSERS}
    return DoctorReport(
        versions={"heedful": metadata.version("heedful"), "python": platform.python_version()},
        machine=_machine(),
        data=data,
        packages=packages,
        extras=extras,
        browser=browser,
        advice=tuple(_advice(packages, extras, data, browser)),
    )


def _packages() -> tuple[Package, ...]:
    """What the installed heedful itself says it needs, with this Python."""
    found = []
    for needs in map(Requirement, metadata.requires("heedful") or ()):
        always = needs.marker is None or needs.marker.evaluate({"extra": ""})
        for extra in (None,) if always else PURPOSES:
            if needs.marker is None or needs.marker.evaluate({"extra": extra or ""}):
                found.append(Package(needs.name, _version(needs.name), extra))
    return tuple(found)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    facts: dict[str, Any] = {"system": f"{platform.system()} {platform.machine()}", "cores": cores, "device": _device()}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["memory"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return facts | {"disk_free": shutil.disk_usage(Path.cwd()).free, "executable": sys.executable}


def _device() -> str:
    if _version("torch") is None:
        return "none: torch is missing"
    from heedful.models.training import choose_device

    chosen = choose_device("auto")
    if chosen.type != "cuda":
        return str(chosen)
    import torch

    return f"{chosen} ({torch.cuda.get_device_name(chosen)})"


def _data() -> dict[str, Any]:
    from heedful.data.catalog import CATALOG, data_directory, is_here
    from heedful.data.synthetic.tasks import TASKS

    here = {name: is_here(name) for name in CATALOG}
    return {
        "HEEDFUL_DATA": os.environ.get("HEEDFUL_DATA"),
        "directory": str(data_directory()),
        "exists": data_directory().is_dir(),
        "found": [name for name, there in here.items() if there],
        "missing": [name for name, there in here.items() if not there],
        "generated": list(TASKS),
    }


def _advice(
    packages: tuple[Package, ...], extras: dict[str, bool], data: dict[str, Any], browser: dict[str, str | None]
) -> list[str]:
    said = []
    if lost := [p.name for p in packages if p.extra is None and not p.version]:
        said.append(f"{', '.join(lost)}: heedful cannot work without; pip install --force-reinstall heedful")
    for extra, whole in extras.items():
        if not whole:
            lacking = ", ".join(p.name for p in packages if p.extra == extra and not p.version)
            said.append(f"{extra} ({PURPOSES[extra]}) lacks {lacking}: pip install 'heedful[{extra}]'")
    if data["missing"]:
        said.append(
            f"{', '.join(data['missing'])}: not here; fetch one with 'heedful data fetch NAME' (needs the hf extra and "
            "a network), or point HEEDFUL_DATA at a mirror"
        )
    if lost := [name for name, path in browser.items() if path is None]:
        said.append(f"{' and '.join(lost)}: not on the path, so the tests of pages in a browser are skipped")
    return said
