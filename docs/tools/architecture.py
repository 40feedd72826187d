"""The picture of the architecture, drawn from the imports.

Every folder (the modules at the top count as one) stands in the first row below all that it imports. An arrow goes from
a folder to what it imports, unless a longer way says so already.
"""

import ast
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heedful"
MARGIN, BOX, TALL, GAP, ROW = 8, 206, 62, 18, 96
FACE = "verbs, command line"


def folder_of(path):
    """Where a module lives; the modules that people call are one folder."""
    inside = path.relative_to(SOURCE)
    folder = inside.parts[0] if len(inside.parts) > 1 else inside.stem
    return FACE if folder in ("api", "cli", "__init__", "__main__") else folder


def imports():
    """For each folder: its modules, its lines, and the folders that they import, with how many modules do."""
    folders = {}
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not source.strip():
            continue
        folder = folders.setdefault(folder_of(path), {"modules": 0, "lines": 0, "uses": {}})
        folder["modules"] += 1
        folder["lines"] += source.count("\n")
        for other in {folder_of(SOURCE / f"{found}.py") for found in _imported(source)} - {folder_of(path)}:
            folder["uses"][other] = folder["uses"].get(other, 0) + 1
    return folders


def _imported(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"heedful.{a.name}" for a in node.names] if node.module == "heedful" else [node.module]
        else:
            continue
        for name in names:
            if name.startswith("heedful."):
                inside = name.split(".")[1]
                path = SOURCE / inside
                yield f"{inside}/x" if path.is_dir() else inside if (SOURCE / f"{inside}.py").exists() else "__init__"


def rows(folders):
    """The folders row by row: each below everything it imports. The face stands last, whatever else asks for it."""
    depth = {}

    def deep(folder, above=()):
        if folder in above:
            raise SystemExit(f"folders import each other: {' → '.join([*above, folder])}")
        if folder not in depth:
            below = [deep(other, (*above, folder)) for other in folders[folder]["uses"] if other != FACE]
            depth[folder] = 1 + max(below, default=-1)
        return depth[folder]

    for folder in folders:
        deep(folder)
    return [sorted(r for r in folders if depth[r] == level) for level in sorted(set(depth.values()))]


def arrows(folders):
    """Imports that no longer way implies."""

    def reached(folder):
        found, waiting = set(), [folder]
        while waiting:
            for other in folders[waiting.pop()]["uses"]:
                if other not in found and other != FACE:
                    found.add(other)
                    waiting.append(other)
        return found

    for folder, facts in folders.items():
        direct = [other for other in facts["uses"] if other != FACE]
        for other in direct:
            if not any(other in reached(third) for third in direct if third != other):
                yield folder, other, facts["uses"][other]


def svg():
    """The picture, as SVG that reads on light and dark ground."""
    folders, roles = imports(), _roles()
    drawn, place = rows(folders), {}
    wide = [len(names) * (BOX + GAP) - GAP for names in drawn]
    width = max(wide) + 2 * MARGIN
    for level, names in enumerate(drawn):
        for i, name in enumerate(names):
            place[name] = ((width - wide[level]) / 2 + i * (BOX + GAP), 16 + level * ROW)
    tall = 32 + (len(drawn) - 1) * ROW + TALL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" role="img" font-family="sans-serif">',
        "<title>The folders of heedful and what they import</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#8a8f98"/></marker></defs>',
    ]
    for folder, other, count in arrows(folders):
        (x, y), (u, v) = place[folder], place[other]
        x, u, v = x + BOX / 2, u + BOX / 2, v + TALL
        middle = (y + v) / 2
        parts.append(
            f'<path d="M{x:.0f} {y:.0f} C{x:.0f} {middle:.0f} {u:.0f} {middle:.0f} {u:.0f} {v + 3:.0f}" fill="none" '
            f'stroke="#8a8f98" stroke-width="{min(1 + count / 12, 4):.1f}" marker-end="url(#tip)">'
            f"<title>{count} modules of {escape(folder)} import {escape(other)}</title></path>"
        )
    for name, (x, y) in place.items():
        facts = folders[name]
        count = f"{facts['modules']} module{'s' * (facts['modules'] > 1)}, {facts['lines']:,} lines"
        role = roles.get(name, "")
        parts.append(
            f'<rect x="{x:.0f}" y="{y}" width="{BOX}" height="{TALL}" rx="8" fill="#f4f1ea" stroke="#b8892b"/>'
            f'<text x="{x + BOX / 2:.0f}" y="{y + 22}" text-anchor="middle" font-size="15" font-weight="600" '
            f'fill="#1d232b">{escape(name)}</text>'
            f'<text x="{x + BOX / 2:.0f}" y="{y + 38}" text-anchor="middle" font-size="9.5" fill="#3d444d">'
            f"{escape(role)}</text>"
            f'<text x="{x + BOX / 2:.0f}" y="{y + 53}" text-anchor="middle" font-size="10" fill="#6a717b">'
            f"{count}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


def _roles():
    """What each path is for, in the README's words."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^  (\w+)/ +(\S.*)$", readme, re.M))


def write(path):
    """Write the picture, where it has changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != svg():
        path.write_text(svg(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
