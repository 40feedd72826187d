"""Count heedful's modules, and those that common commands run: `python docs/tools/counts.py [--journeys] [--src DIR]`.

A module counts as run when one of its functions is called in any process of the command; what only runs while modules
are imported does not count. Functions that numba compiled are not seen.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = 8  # how many of the largest are shown
JOURNEYS = {
    "study": ["study", "rotten-tomatoes", "--budget", "smoke", "--out", "runs/smoke"],
    "audit": ["audit", "runs/smoke"],
    "reproduce": ["reproduce", "snell2021", "table2", "--budget", "smoke"],
}
# Every process that finds this on its path appends a line to one file when a function of heedful is first called;
# at once, as a worker may end by os._exit.
HOOK = """
import os, sys, threading

_SOURCE, _LOG = os.environ["HEEDFUL_COUNTS_SOURCE"], os.environ["HEEDFUL_COUNTS_LOG"]
_FUNCTION, _PARTS = 0x1, ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_known = {}  # by id: comparing code objects is slow; they are kept, so that no id is used again


def _importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "exec_module" and "importlib" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _profile(frame, event, argument):
    if event != "call":
        return
    code = frame.f_code
    if id(code) in _known:
        return
    ours = code.co_filename.startswith(_SOURCE) and code.co_flags & _FUNCTION and code.co_name not in _PARTS
    if ours:
        if _importing(frame):
            return
        line = f"{code.co_filename[len(_SOURCE):]} {code.co_qualname} {code.co_firstlineno}\\n"
        log = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, line.encode())
        os.close(log)
    _known[id(code)] = code


threading.setprofile(_profile)
sys.setprofile(_profile)
"""


def main() -> None:
    """Print the counts; store them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the folder that holds the package heedful")
    parser.add_argument("--journeys", action="store_true", help="run commands and count what they run (minutes)")
    parser.add_argument("--list", action="store_true", help="name every module and function that the commands run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to this file")
    asked = parser.parse_args()
    package = asked.src.resolve() / "heedful"
    counts = count_source(package)
    print_source(counts)
    if asked.journeys:
        counts["journeys"] = count_journeys(package)
        print_journeys(counts["journeys"], names=asked.list)
    if asked.json:
        asked.json.write_text(json.dumps(counts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def count_source(package: Path) -> dict[str, Any]:
    """What can be counted by reading: modules are all files but the `__init__`."""
    files = sorted(package.rglob("*.py"))
    modules = [path for path in files if path.name != "__init__.py"]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    lines = {_name(path, package): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    importers: dict[str, set[str]] = {name: set() for name in lines}
    for path, tree in trees.items():
        name = _name(path, package)
        for other in _imports(tree, name, path.name == "__init__.py"):
            if other in importers and other != name:
                importers[other].add(name)
    once = {name: next(iter(others)) for name, others in importers.items() if len(others) == 1}
    folders = Counter(path.parent.relative_to(package.parent).as_posix() for path in modules)
    classes: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(_name(path, package))
    names: dict[str, list[str]] = {}
    for path in modules:
        names.setdefault(path.name, []).append(path.parent.relative_to(package.parent).as_posix())
    return {
        "modules": len(modules),
        "lines": sum(lines.values()),
        "median_lines": median(lines.values()),
        "imported_once": once,
        "never_imported": sorted(name for name, others in importers.items() if not others),
        "folders": dict(folders.most_common()),
        "same_file_name": {name: where for name, where in sorted(names.items()) if len(where) > 1},
        "same_class_name": {name: where for name, where in sorted(classes.items()) if len(where) > 1},
        "lines_of": lines,
    }


def count_journeys(package: Path) -> dict[str, Any]:
    """Run each command in one empty folder, in order, and collect the functions that were called."""
    counts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "hook").mkdir()
        (folder / "hook" / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
        for name, arguments in JOURNEYS.items():
            log = folder / f"{name}.log"
            environment = {key: value for key, value in os.environ.items() if key != "HEEDFUL_DATA"} | {
                "PYTHONPATH": os.pathsep.join([str(folder / "hook"), str(package.parent)]),
                "HEEDFUL_COUNTS_SOURCE": f"{package}{os.sep}",
                "HEEDFUL_COUNTS_LOG": str(log),
                "OMP_NUM_THREADS": "1",  # threads that wait for a busy core would take minutes
            }
            start = time.monotonic()
            ran = subprocess.run(
                [sys.executable, "-m", "heedful", *arguments],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if ran.returncode:
                raise SystemExit(f"heedful {' '.join(arguments)}: exit code {ran.returncode}\n{ran.stderr}")
            functions: dict[str, set[str]] = {}
            for path, called, line in map(str.split, set(log.read_text(encoding="utf-8").splitlines())):
                if path.endswith(".py") and not path.endswith("__init__.py"):  # Jinja's templates run as functions too
                    functions.setdefault(_name(package / path, package), set()).add(f"{called}:{line}")
            counts[name] = {
                "command": f"heedful {' '.join(arguments)}",
                "modules": len(functions),
                "functions": sum(map(len, functions.values())),
                "seconds": round(time.monotonic() - start, 1),
                "called": {module: sorted(called) for module, called in sorted(functions.items())},
            }
    return counts


def print_source(counts: dict[str, Any]) -> None:
    """A line for each count, and the names that occur several times."""
    folders = [f"{folder} {number}" for folder, number in list(counts["folders"].items())[:FOLDERS]]
    for name, value in {
        "modules (without __init__)": counts["modules"],
        "lines": f"{counts['lines']:,}",
        "median lines": f"{counts['median_lines']:g}",
        "imported by exactly one module": len(counts["imported_once"]),
        "imported by none": len(counts["never_imported"]),
        "largest folders": ", ".join(folders),
        "file names that occur several times": _several(counts["same_file_name"]),
        "class names that occur several times": _several(counts["same_class_name"]),
    }.items():
        print(f"{name:<38}{value}")


def print_journeys(counts: dict[str, Any], *, names: bool = False) -> None:
    """How much of heedful each command runs."""
    print(f"\n{'modules':>8}{'functions':>11}{'seconds':>9}  command")
    for journey in counts.values():
        row = f"{journey['modules']:>8}{journey['functions']:>11}{journey['seconds']:>9.1f}"
        print(f"{row}  {journey['command']}")
        if names:
            for module, called in journey["called"].items():
                print(f"{'':>8}{module}: {', '.join(name.rpartition(':')[0] for name in called)}")


def _several(where: dict[str, list[str]]) -> str:
    listed = ", ".join(f"{name} ×{len(places)}" for name, places in where.items())
    return f"{len(where)}: {listed}" if where else "0"


def _name(path: Path, package: Path) -> str:
    """The dotted name of a module; that of a package's `__init__` ends in it, unless it is the topmost."""
    name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
    return "heedful" if name == "heedful.__init__" else name


def _imports(tree: ast.AST, name: str, is_package: bool) -> Iterator[str]:
    """The dotted names that a module may import, wherever in it the import stands; some are no modules."""
    package = name.removesuffix(".__init__") if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


if __name__ == "__main__":
    main()
