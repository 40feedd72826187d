"""The API reference: a page for the public names, and one for `heedful.metrics`, from what is there."""

from abc import ABC
from pathlib import Path

import heedful

SOURCE = Path(heedful.__file__).parent
VERBS = ("preflight", "study", "audit", "reproduce", "claims", "report", "load")
INTRODUCTION = {
    "api": "# The public names\n\n`import heedful` is quick: each name is imported when it is first used.\n",
    "metrics": (
        "# Measures of any arrays\n\n`heedful.metrics` takes arrays, one row per output word, or a function that runs "
        "a model: never a model of ours. It serves whatever you have trained.\n"
    ),
    "theory": "# What the papers derive\n",
}


def write(folder):
    """Write `api.md`, `metrics.md` and `theory.md` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in heedful.__all__ if name not in ("__version__", "lexicon")]
    verbs = [name for name in VERBS if name in names] + [n for n in names if n[0].islower() and n not in VERBS]
    classes = [name for name in names if name not in verbs]
    parts = ["## Verbs\n", *map(_function, verbs), "## What they give and take\n", *map(_class, classes)]
    _save(folder / "api.md", INTRODUCTION["api"], parts)
    for folder_name in ("metrics", "theory"):
        modules = sorted(path.stem for path in (SOURCE / folder_name).glob("*.py") if path.stem != "__init__")
        parts = [_module(f"heedful.{folder_name}.{name}") for name in modules]
        _save(folder / f"{folder_name}.md", INTRODUCTION[folder_name], parts)


def _function(name):
    return _rst(f".. autofunction:: {getattr(heedful, name).__module__}.{name}")


def _class(name):
    kind = "autoexception" if name.endswith("Error") else "autoclass"
    home = getattr(heedful, name).__module__
    elsewhere = "\n   :no-index:" if home.startswith("heedful.metrics") else ""  # it has its place among the measures
    bases = [base for base in getattr(heedful, name).__mro__[1:-1] if base is not ABC]
    ours = bool(bases) and all(base.__module__.startswith("heedful.") for base in bases)
    shared = "\n   :inherited-members:" if ours and kind == "autoclass" else ""
    return _rst(f".. {kind}:: {home}.{name}\n   :members:{shared}{elsewhere}")


def _module(name):
    return f"## {name}\n\n" + _rst(f".. automodule:: {name}\n   :members:")


def _rst(text):
    return f"```{{eval-rst}}\n{text}\n```\n"


def _save(path, introduction, parts):
    text = "\n".join([introduction, *parts])
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
