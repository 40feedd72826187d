"""`heedful doctor`: what is installed and what is missing."""

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import typer
from packaging.requirements import Requirement

from heedful.cli.options import AsJson, print_result


def doctor(as_json: AsJson = False) -> None:
    """Show what is installed and what is missing: versions, device, memory, data, extras."""
    report = examine()
    print_result(report, _print, as_json=as_json)
    if not report.healthy:
        raise typer.Exit(1)


def _print(report: "DoctorReport") -> None:
    from rich.table import Table
    from rich.text import Text

    from heedful.execution.terminal import TerminalConsole
    from heedful.reports.terminal import size

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")

    def add(name: str, words: str) -> None:
        table.add_row(Text(name), Text(words))

    for name, version in report.versions.items():
        add(name, version)
    add("system", report.machine["system"])
    add("device", f"{report.machine['device']}, {report.machine['cores']} cores")
    if "memory" in report.machine:
        add("memory", size(report.machine["memory"]))
    add("disk free", size(report.machine["disk_free"]))
    add("needed", _listed(report, None))
    for extra, complete in report.extras.items():
        add(f"[{extra}]", f"{'✓' if complete else '✗'} {PURPOSES[extra]}: {_listed(report, extra)}")
    add("data", f"{report.data['directory']}{'' if report.data['exists'] else ' (not there)'}")
    add("corpora", ", ".join(report.data["found"]) or "none found")
    add("generated", ", ".join(report.data["generated"]))
    for name, path in report.browser.items():
        add(name, path or "✗ not on the path")
    console = TerminalConsole(highlight=False)
    console.print(table)
    console.print("[bold]missing[/bold]" if report.advice else "[bold]nothing is missing[/bold]")
    for sentence in report.advice:
        console.print(Text(f"  {sentence}"), soft_wrap=True)


def _listed(report: "DoctorReport", extra: str | None) -> str:
    return ", ".join(f"{p.name} {p.version or '✗'}" for p in report.packages if p.extra == extra)


PURPOSES = {
    "demo": "the film reviews rotten-tomatoes and imdb-reviews, and pandas",
    "hf": "auditing Hugging Face models, fetching corpora, integrated gradients",
    "ray": "sweeps on a cluster",
    "examples": "the weights that an example fine-tunes",
    "track": "metrics to TensorBoard, MLflow and Weights & Biases",
    "bench": "the peers that benchmarks compare with",
    "docs": "building these docs",
    "dev": "tests and linters",
}
BROWSERS = ("chromium", "chromedriver")


@dataclass(frozen=True)
class Package:
    """A package that heedful or one of its extras needs; `version` is `None` if it is not installed."""

    name: str
    version: str | None
    extra: str | None = None


@dataclass(frozen=True)
class DoctorReport:
    """The result of `heedful doctor`; `advice` has one sentence for each thing that is missing."""

    versions: dict[str, str]
    machine: dict[str, Any]
    data: dict[str, Any]
    packages: tuple[Package, ...]
    extras: dict[str, bool]
    browser: dict[str, str | None]
    advice: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether every required package is installed."""
        return all(package.version for package in self.packages if package.extra is None)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "healthy": self.healthy}


def examine() -> DoctorReport:
    """Examine this installation and this machine.

    >>> examine().machine["cores"] >= 1
    True
    """
    packages = _packages()
    complete = {extra: all(p.version for p in packages if p.extra == extra) for extra in PURPOSES}
    extras = {extra: done for extra, done in complete.items() if any(p.extra == extra for p in packages)}
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
    """The requirements in the metadata of the installed heedful, for this Python."""
    packages = []
    for requirement in map(Requirement, metadata.requires("heedful") or ()):
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        for extra in (None,) if always else PURPOSES:
            if marker is None or marker.evaluate({"extra": extra or ""}):
                packages.append(Package(requirement.name, _version(requirement.name), extra))
    return tuple(packages)


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

    device = choose_device("auto")
    if device.type != "cuda":
        return str(device)
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})"


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
    advice = []
    if missing := [p.name for p in packages if p.extra is None and not p.version]:
        advice.append(f"{', '.join(missing)}: required; pip install --force-reinstall heedful")
    for extra, complete in extras.items():
        if not complete:
            packages_missing = ", ".join(p.name for p in packages if p.extra == extra and not p.version)
            advice.append(f"{extra} ({PURPOSES[extra]}) lacks {packages_missing}: pip install 'heedful[{extra}]'")
    if data["missing"]:
        advice.append(
            f"{', '.join(data['missing'])}: not here; fetch one with 'heedful data fetch NAME' (needs the hf extra and "
            "a network), or point HEEDFUL_DATA at a mirror"
        )
    if missing := [name for name, path in browser.items() if path is None]:
        advice.append(f"{' and '.join(missing)}: not on the path, so the tests of pages in a browser are skipped")
    return advice
