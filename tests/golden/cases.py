"""Golden cases: small commands whose results are stored, and how stored and new results are compared.

Everything goes through the command line, so that modules can be moved and merged without touching this folder.
"""

import json
import math
import os
import platform
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import heedful
from tests.audits.tiny import ENDINGS, bert

STORED = Path(__file__).parent
TOLERANCE = 1e-3  # relative and absolute, on another kind of machine

# Intended changes of results, so that everything else can still be compared value for value with what was stored.
# A key is the name of the stored file and the path of names in it, "*" for a place in a list (or for any file), and
# stands for everything below it: {"*/models/*/kind": "*/models/*/role"}. None: no longer part of the result.
RENAMED: dict[str, str | None] = {}
ADDED: set[str] = set()  # keys of the same form that are new
REWORDED: dict[str, str] = {}  # sentences, the old one to the new one

# Keys whose values differ between two equal runs, or say which code and machine made them.
VOLATILE = {"seconds", "sha256", "finished", "started", "commit", "versions", "machine", "config_digest", "fingerprint"}
VOLATILE |= {"folder"}  # of a sweep's study, which is named by the digest of its settings

GRID = """\
[base]
data = "reviews.csv"
budget = "smoke"
min_count = 1
"train.steps" = 4
"proxy.train.steps" = 20
"model.hidden" = 4
"model.embedding" = 4

[grid]
"model.projection" = ["softmax", "sparsemax"]
"""


@dataclass(frozen=True)
class Command:
    """A command, and the file below its folder that holds its result; none: it prints it."""

    arguments: str
    result: str | None = None


def write_reviews(folder: Path) -> None:
    """Eighty texts of words that the tiny BERT knows, whole or in pieces; one word gives the label away."""
    draw = random.Random(0)
    words = ["the", "a", "film", "plot", "was", "it", "very", "and", f"un{ENDINGS[3]}{ENDINGS[0]}", "singing"]
    rows = ["text,label"]
    for i in range(80):
        text = [*draw.choices(words, k=draw.randint(3, 8)), ("bad", "good")[i % 2], *draw.choices(words, k=2)]
        rows.append(f"{' '.join(text)},{('negative', 'positive')[i % 2]}")
    (folder / "reviews.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_grid(folder: Path) -> None:
    """A grid of two studies."""
    write_reviews(folder)
    (folder / "grid.toml").write_text(GRID, encoding="utf-8")


def write_bert(folder: Path) -> None:
    """A random BERT as a Hugging Face folder."""
    write_reviews(folder)
    bert().save(folder / "bert")


def nothing(folder: Path) -> None:
    """No files are needed."""


ONE = "--jobs 1 --device cpu"
PAPER = f"--budget smoke {ONE} --results results --work work"
# Commands that need each other's files are one case, and run in one folder.
CASES: dict[str, tuple[Callable[[Path], None], dict[str, Command]]] = {
    "texts": (
        nothing,
        {
            "texts_study": Command(f"study rotten-tomatoes --budget smoke {ONE} --out texts", "texts/result.json"),
            "texts_audit": Command("audit texts --sample 12 --device cpu --out audit", "audit/result.json"),
            "texts_tokens": Command("tokens texts --json"),
            "texts_preflight": Command("preflight rotten-tomatoes --json"),
        },
    ),
    "pairs": (
        nothing,
        {
            "pairs_study": Command(f"study toy-de-en --budget smoke {ONE} --out pairs", "pairs/result.json"),
            "pairs_preflight": Command("preflight toy-de-en --permutations 39 --json"),
        },
    ),
    "bert": (
        write_bert,
        {
            "bert_audit": Command(
                "audit bert reviews.csv --sample 8 --adversary-steps 20 --device cpu --out audit", "audit/result.json"
            )
        },
    ),
    "sweep": (write_grid, {"sweep": Command(f"sweep grid.toml {ONE} --out sweep", "sweep/result.json")}),
    "snell2021": (
        nothing,
        {"snell2021_table2": Command(f"reproduce snell2021 table2 {PAPER}", "results/snell2021/smoke/table2.json")},
    ),
    "meister2021": (
        nothing,
        {
            "meister2021_table6": Command(
                f"reproduce meister2021 table6 {PAPER}", "results/meister2021/smoke/table6.json"
            )
        },
    ),
    "sunlu2020": (
        nothing,
        {"sunlu2020_table2": Command(f"reproduce sunlu2020 table2 {PAPER}", "results/sunlu2020/smoke/table2.json")},
    ),
}


def run_case(name: str, folder: Path) -> dict[str, Any]:
    """The results of a case's commands, each as it is to be stored under its name."""
    prepare, commands = CASES[name]
    prepare(folder)
    contents = {}
    for stored, command in commands.items():
        printed = run(command.arguments.split(), folder)
        text = printed if command.result is None else (folder / command.result).read_text(encoding="utf-8")
        assert str(folder) not in text, f"{stored} names its folder, which differs between runs"
        contents[stored] = without_volatile(json.loads(text))
    return contents


def run(arguments: list[str], folder: Path) -> str:
    """What a command prints, run on one thread with the heedful that this process has."""
    environment = {name: value for name, value in os.environ.items() if name != "HEEDFUL_DATA"} | {
        "PYTHONPATH": str(Path(heedful.__file__).resolve().parents[1]),
        "XDG_DATA_HOME": str(folder / "no-data"),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "heedful", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"heedful {' '.join(arguments)}: exit code {ran.returncode}\n{ran.stderr}"
    return ran.stdout


def machine() -> dict[str, str]:
    """What decides the last digits of floating-point results."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    capability = torch.backends.cpu.get_cpu_capability()
    return {"torch": torch.__version__, "capability": capability, "cpu": model or platform.processor()}


def without_volatile(content: Any) -> Any:
    """The content less `VOLATILE` keys, wherever they stand."""
    if isinstance(content, dict):
        return {name: without_volatile(value) for name, value in content.items() if name not in VOLATILE}
    return [without_volatile(value) for value in content] if isinstance(content, list) else content


def differences(name: str, stored: Any, new: Any, *, exact: bool) -> list[str]:
    """Where a new result differs from the stored one, one line for each place.

    exact: whether floats must be equal to the last digit; otherwise they may differ by `TOLERANCE`, and the digits
    within sentences by anything.
    """
    before, after = {}, dict(leaves(new, (name,)))
    for path, value in leaves(stored, (name,)):
        renamed = new_path(path)
        if renamed is not None:
            before[renamed] = REWORDED.get(value, value) if isinstance(value, str) else value
    lines = []
    for path in [*before, *(path for path in after if path not in before)]:
        if path not in after:
            lines.append(f"{'/'.join(path)} is missing; it was {before[path]!r}")
        elif path not in before:
            if not any(pattern in ADDED for pattern, _ in patterns(path)):
                lines.append(f"{'/'.join(path)} is new: {after[path]!r}")
        elif not same(before[path], after[path], exact=exact):
            lines.append(f"{'/'.join(path)} is {after[path]!r}; it was {before[path]!r}")
    return lines


def leaves(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value with its path; an empty list or dict counts as a value.

    >>> list(leaves({"a": [1, {"b": None}], "c": []}))
    [(('a', '0'), 1), (('a', '1', 'b'), None), (('c',), [])]
    """
    items: list[tuple[str, Any]] = []
    if isinstance(content, dict):
        items = list(content.items())
    elif isinstance(content, list):
        items = [(str(i), value) for i, value in enumerate(content)]
    if not items:
        yield path, content
    for name, value in items:
        yield from leaves(value, (*path, name))


def patterns(path: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """The keys of `RENAMED` that a path may fall under, the most specific first, and how many of its parts they cover.

    >>> list(patterns(("study", "models", "3")))[:3]
    [('study/models/*', 3), ('*/models/*', 3), ('study/models', 2)]
    """
    parts = ["*" if part.isdigit() else part for part in path]
    for length in range(len(parts), 1, -1):
        yield "/".join(parts[:length]), length
        yield "/".join(["*", *parts[1:length]]), length


def new_path(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Where a stored value is to be found now; None where it is no longer part of the result."""
    for pattern, length in patterns(path):
        if pattern not in RENAMED:
            continue
        renamed = RENAMED[pattern]
        if renamed is None:
            return None
        indices = iter([part for part in path[1:length] if part.isdigit()])
        parts = [next(indices) if part == "*" else part for part in renamed.split("/")[1:]]
        return (path[0], *parts, *path[length:])
    return path


def same(old: Any, new: Any, *, exact: bool) -> bool:
    """Whether two leaves are the same.

    >>> same(0.1, 0.1000001, exact=True), same(0.1, 0.1000001, exact=False), same(1, True, exact=False)
    (False, True, False)
    >>> same("moved by 0.31", "moved by 0.298", exact=False)
    True
    """
    if isinstance(old, float) or (isinstance(old, int) and isinstance(new, float)):
        if isinstance(new, bool) or not isinstance(new, int | float):
            return False
        if exact or not (math.isfinite(old) and math.isfinite(new)):
            return old == new or (math.isnan(old) and math.isnan(new))
        return math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(old, str) and isinstance(new, str) and not exact:
        return masked(old) == masked(new)
    return type(old) is type(new) and bool(old == new)


def masked(text: str) -> str:
    """The text with each number in it hidden.

    >>> masked("by 0.31 (−0.2 to 1e-05)")
    'by # (# to #)'
    """
    return re.sub(r"[-−]?\d[\d.,]*(?:e[-+]?\d+)?", "#", text)
