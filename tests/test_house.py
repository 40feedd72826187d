"""The source tree: imports go one way, the trees in the docs are true, the public names exist."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import heedful
from tests.tree import ARCHITECTURE, README, SOURCE, audited, folders, how_close, own_findings, tree

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
    {"preflights"},
    {"studies"},
    {"audits", "sweeps"},
    {"followed"},
    {"papers"},
    {"records"},
    {"reports"},
    {"api"},
    {"cli", "__init__", "__main__"},
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}


def layer_name(path: Path) -> str:
    inside = path.relative_to(SOURCE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imported_layers(source: str) -> set[str]:
    """The folders of heedful that a module imports, anywhere in it."""
    imported = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "heedful":
                names = [f"heedful.{alias.name}" for alias in node.names]
        imported |= {name.split(".")[1] for name in names if name.startswith("heedful.")}
    return imported


def upward_imports(layer: str, source: str) -> set[str]:
    """Imports of the same or a later layer."""
    known = imported_layers(source) & set(DEPTH)
    return {other for other in known if other != layer and DEPTH[other] >= DEPTH[layer]}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    layer = layer_name(path)
    assert layer in DEPTH, f"{layer} has no place in the layers"
    if DEPTH[layer] < len(LAYERS) - 1:
        assert upward_imports(layer, path.read_text(encoding="utf-8")) == set()


def test_an_upward_import_is_seen():
    assert upward_imports("metrics", "from heedful.models.training import train") == {"models"}
    assert upward_imports("tracing", "def f():\n    import heedful.reports.pages") == {"reports"}
    assert upward_imports("data", "from heedful.metrics.rank import kendall_tau_b") == {"metrics"}
    assert upward_imports("audits", "from heedful.sweeps.grid import Grid") == {"sweeps"}
    assert upward_imports("studies", "from heedful.tracing.store import Trace") == set()


def test_reports_do_not_import_torch():
    for path in (SOURCE / "reports").rglob("*.py"):
        assert "import torch" not in path.read_text(encoding="utf-8"), path


def test_one_class_one_name():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(("page", "block"), [(README, folders), (ARCHITECTURE, tree)], ids=["README", "architecture"])
def test_trees_are_true(page, block):
    assert block() in page.read_text(encoding="utf-8"), f"the tree in {page.name} is old; `make tree` draws it anew"


def test_the_readme_is_short_and_its_numbers_are_those_of_the_stored_results():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert how_close() in text, "results changed; `make tree` writes the README's table anew"
    assert audited() in text, "audits changed; `make tree` writes the README's table anew"
    assert own_findings() in text, "results changed; `make tree` writes the README's findings anew"
    for place in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (README.parent / place).exists(), place


def test_public_names_exist_and_are_documented():
    for name in heedful.__all__:
        assert getattr(heedful, name).__doc__ or name == "__version__"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = heedful.nothing


@pytest.mark.parametrize("folder", [path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE])
def test_subpackage_inits_are_empty(folder):
    assert (folder / "__init__.py").read_text() == ""


def test_preflight_and_help_do_not_import_torch():
    code = "import sys, heedful.cli.main, heedful.preflights.preflight; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
