"""Reports format what was computed elsewhere: they import neither models nor metrics."""

import ast
from importlib.resources import files

import pytest

COMPUTING = ("torch", "scipy", "polars", "heedful.models", "heedful.metrics", "heedful.theory", "heedful.execution")
ALLOWED = {"heedful.metrics.statistics", "heedful.execution.terminal"}  # an estimate, and the console
MODULES = sorted(path.name for path in files("heedful.reports").iterdir() if path.name.endswith(".py"))


@pytest.mark.parametrize("name", MODULES)
def test_reports_compute_nothing(name):
    tree = ast.parse((files("heedful.reports") / name).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert not {one for one in imported if one.startswith(COMPUTING)} - ALLOWED
