"""The README's tree of the house, drawn from the modules themselves: `python -m tests.tree` writes it anew."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "heedful"
README = ROOT / "README.md"
BLOCK = re.compile(r"```\nsrc/heedful/\n.*?```", re.S)
WIDTH = 112  # of a line
# What each room is for, in the order in which one walks through the house.
ROOMS = {
    "": "",
    "storage/": "files that are whole, checksums, settings, locks",
    "data/": "text becomes batches",
    "data/files/": "a user's files",
    "data/corpora/": "one module per named corpus",
    "data/synthetic/": "generated tasks",
    "metrics/": "arrays become numbers",
    "models/": "scores become predictions",
    "theory/": "what the papers derive",
    "attribution/": "what a prediction depends on, in any model",
    "execution/": "work on many cores, or on a Ray cluster",
    "tracing/": "quantities through training",
    "preflights/": "what a corpus can teach, before training",
    "studies/": "a corpus becomes trained models and measures",
    "audits/": "can a model's attention be trusted?",
    "followed/": "somebody else's training, step by step",
    "papers/": "what was published, and what we find",
    "papers/snell2021/": "one function per table or figure",
    "papers/meister2021/": "one function per table or figure",
    "papers/sunlu2020/": "one function per table or figure",
    "runs/": "runs are found again",
    "reports/": "results become pages",
    "sweeps/": "a grid becomes studies, here or on a cluster",
    "cli/": "the command line, a module for each group of verbs",
}


def tree() -> str:
    """The block of the README: every module with the first words of its docstring."""
    modules = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent == SOURCE]
    rooms: dict[str, list[Path]] = {room: [] for room in ROOMS}
    for path in sorted(modules):
        inside = path.parent.relative_to(SOURCE).as_posix()
        rooms["" if inside == "." else f"{inside}/"].append(path)
    column = 6 + max(len(path.name) for path in modules)
    lines = ["```", "src/heedful/"]
    for room, paths in rooms.items():
        if room:
            lines.append(f"  {room:<{column - 2}}{ROOMS[room]}")
        indent = "    " if room else "  "
        lines += [f"{indent}{path.name:<{column - len(indent)}}{_words(path, WIDTH - column)}" for path in paths]
    return "\n".join([*lines, "```"])


def _words(path: Path, room: int) -> str:
    """The first line of a module's docstring, or what there is room for: its first clause, or as many as fit."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert said, f"{path} has no docstring"
    line = said.splitlines()[0].rstrip(".")
    if len(line) <= room:
        return line
    first = re.split(r"(?<=\?) |[:;] |\. (?=[A-Z][a-z])", line)[0]
    if len(first) <= room and len(first.split()) > 2:
        return first
    fitting = [part for part in (line[: match.start()] for match in re.finditer(r"[:;,.] ", line)) if len(part) <= room]
    return fitting[-1] if fitting else line[: line.rindex(" ", 0, room)] + " …"


def main() -> None:
    """Write the tree into the README."""
    text = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda _: tree(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
