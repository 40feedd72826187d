"""The house stands as drawn: layers import one way, the README's tree is true, public names are there."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import heedful
from tests.tree import ARCHITECTURE, README, SOURCE, folders, tree

LAYERS = [
    {"errors"},
    {"html", "storage"},
    {"config"},
    {"data"},
    {"metrics"},
    {"models"},
    {"attribution", "theory"},
    {"execution"},
    {"tracing"},
    {"preflights", "studies"},
    {"audits"},
    {"followed"},
    {"papers"},
    {"runs"},
    {"reports"},
    {"sweeps"},
    {"api", "cli", "__init__", "__main__"},
]
DEPTH = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}


def room_of(path: Path) -> str:
    inside = path.relative_to(SOURCE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imports_of(source: str) -> set[str]:
    """The rooms of heedful that a module imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "heedful":
                names = [f"heedful.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("heedful.")}
    return found


def turned_around(room: str, source: str) -> set[str]:
    """Imports that go against the one direction."""
    known = imports_of(source) & set(DEPTH)
    return {other for other in known if other != room and (DEPTH[other], other) >= (DEPTH[room], other)}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    room = room_of(path)
    assert room in DEPTH, f"{room} has no place in the layers"
    if DEPTH[room] < len(LAYERS) - 1:
        assert turned_around(room, path.read_text(encoding="utf-8")) == set()


def test_a_turned_around_import_is_seen():
    assert turned_around("metrics", "from heedful.models.training import train") == {"models"}
    assert turned_around("trace", "def f():\n    import heedful.reports.pages") == {"reports"}
    assert turned_around("data", "from heedful.metrics.rank import kendall_tau_b") == {"metrics"}
    assert turned_around("studies", "from heedful.tracing.store import Trace") == set()


def test_measure_and_reports_do_not_know_our_models():
    for room in ("reports",):
        for path in (SOURCE / room).rglob("*.py"):
            assert "import torch" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize(("page", "block"), [(README, folders), (ARCHITECTURE, tree)])
def test_trees_are_true(page, block):
    assert block() in page.read_text(encoding="utf-8"), f"the tree in {page.name} is old; `make tree` draws it anew"


def test_public_names_exist_and_are_documented():
    for name in heedful.__all__:
        assert getattr(heedful, name).__doc__ or name == "__version__"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = heedful.nothing


@pytest.mark.parametrize("room", [path for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"])
def test_subpackage_inits_are_empty(room):
    inits = list(room.glob("__init__.py"))
    assert all(init.read_text() == "" for init in inits)


def test_preflight_and_help_do_not_import_torch():
    code = "import sys, heedful.cli.main, heedful.preflights.preflight; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
