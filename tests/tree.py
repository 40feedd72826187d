"""What README and docs show of the source and the results: `python -m tests.tree` writes it anew.

README.md has one line per folder, how close the papers' numbers are and what our own experiments found;
docs/architecture.md has every module with the first line of its docstring.
"""

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path

from heedful.papers.experiment import Result
from heedful.papers.findings import Figure
from heedful.papers.reproduction import claims
from heedful.reports.pages import shown_results
from heedful.reports.paper_closeness import compared_cells, counted, share_covered
from heedful.reports.paper_figures import draw_figure
from heedful.reports.paper_page import claim_rows

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "heedful"
README = ROOT / "README.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
BLOCK = re.compile(r"```\nsrc/heedful/\n.*?```", re.S)
CLOSE = re.compile(r"^\| paper \|.*?(?=\n\n)", re.S | re.M)
PAPERS = {"snell2021": "Snell et al. 2021", "meister2021": "Meister et al. 2021", "sunlu2020": "Sun & Lu 2020"}
AUDITED = re.compile(r"^\| audited model \|.*?(?=\n\n)", re.S | re.M)
AUDITS = {"minilm": "MiniLM, fine-tuned on film reviews", "films": "an LSTM with attention on long film reviews"}
OWN = re.compile(r"<!-- our own experiments.*?<!-- end -->", re.S)
DRAWN = "docs/papers/figures/heedful2026"
NOT_MEASURED = "Our own experiments ask when attention is learned and what helps: `heedful reproduce heedful2026`."
OVER = "*x over y*: the steps of x divided by those of y, with a 95 % interval over seeds; below 1, x is faster."
WIDTH = 112  # of a line
# Every folder with its role, in the order in which imports go.
FOLDERS = {
    "": "",
    "storage/": "atomic files, checksums, locks, settings, the manifest and the cache of finished steps",
    "data/": "corpora: reading, splitting, vocabulary, batches",
    "data/files/": "users' CSV, TSV, JSONL, Parquet and text files",
    "data/corpora/": "one module per named corpus",
    "data/synthetic/": "generated tasks whose answer is known",
    "metrics/": "agreement, rank correlation, entropy, intervals and tests, on plain arrays",
    "models/": "attention classifiers, translators, the proxy, IBM Model 1, and their training",
    "theory/": "the papers' equations, computed",
    "attribution/": "what a prediction depends on, for any model behind one interface",
    "execution/": "the process pool, its workers, Ray, and progress",
    "tracing/": "α, β and Δ recorded through training",
    "preflights/": "what a corpus can teach attention, before any training",
    "studies/": "the main job: train, record, measure, judge",
    "sweeps/": "grids of studies, on this machine or on Ray",
    "audits/": "can a model's attention be shown as an explanation?",
    "followed/": "recording a training run of your own, step by step",
    "papers/": "experiments, claims and published numbers",
    "papers/snell2021/": "Snell et al. 2021",
    "papers/meister2021/": "Meister et al. 2021",
    "papers/sunlu2020/": "Sun and Lu 2020",
    "papers/heedful2026/": "our own experiments, 2026",
    "records/": "the list of runs, and SQL across them",
    "reports/": "results as pages and as terminal output",
    "cli/": "the command line",
}


def folders() -> str:
    """The block of the README: one line per folder."""
    column = 4 + max(map(len, FOLDERS))
    lines = [f"  {name:<{column}}{role}" for name, role in FOLDERS.items() if name and name.count("/") == 1]
    return "\n".join(["```", "src/heedful/", *lines, "```"])


def tree() -> str:
    """The block of docs/architecture.md: every module with the first line of its docstring."""
    modules = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent == SOURCE]
    by_folder: dict[str, list[Path]] = {folder: [] for folder in FOLDERS}
    for path in sorted(modules):
        inside = path.parent.relative_to(SOURCE).as_posix()
        by_folder["" if inside == "." else f"{inside}/"].append(path)
    column = 6 + max(len(path.name) for path in modules)
    lines = ["```", "src/heedful/"]
    for folder, paths in by_folder.items():
        if folder:
            lines.append(f"  {folder:<{column - 2}}{FOLDERS[folder]}")
        indent = "    " if folder else "  "
        lines += [f"{indent}{path.name:<{column - len(indent)}}{_summary(path, WIDTH - column)}" for path in paths]
    return "\n".join([*lines, "```"])


def how_close() -> str:
    """The table of the README: the share of each paper's numbers that our intervals cover."""
    lines = ["| paper | covered by our interval | not measured, or without an interval | budget |", "|---|--:|--:|---|"]
    for key, name in PAPERS.items():
        cells = compared_cells(shown_results(key, "quick", ROOT / "results")[0])
        counts, share = counted(cells), share_covered(cells)
        assert share is not None, f"{key} has no measured cell"
        judged, budgets = counts["covered"] + counts["outside"], sorted({cell.budget for cell in cells})
        lines.append(
            f"| [{name}](docs/papers/{key}.md) | **{100 * share:.0f} %** ({counts['covered']} of {judged}) "
            f"| {len(cells) - judged} | `{'`, `'.join(budgets)}` |"
        )
    return "\n".join(lines)


def audited() -> str:
    """The table of the README: the grade of each audit that is told in full, and the reason."""
    lines = ["| audited model | accuracy | grade | because |", "|---|--:|---|---|"]
    for name, words in AUDITS.items():
        result = json.loads((ROOT / "results" / "audit" / f"{name}.json").read_text(encoding="utf-8"))["result"]
        grade, right = result["verdict"]["grade"], result["accuracy"]["value"]
        reason = result["verdict"]["sentence"].partition(": ")[2].partition(" (")[0]
        lines.append(f"| [{words}](docs/audit.md) | {100 * right:.0f} % | **{grade}** | {reason} |")
    return "\n".join(lines)


def own_findings() -> str:
    """What our own experiments found: the dose-response picture, and every claim that was decided."""
    results = shown_results("heedful2026", "quick", ROOT / "results")[0]
    lines = ["<!-- our own experiments, by `make tree` -->", *([] if results else [NOT_MEASURED])]
    if figure := dose_figure(results):
        lines += ["", f"[![{figure.title}]({DRAWN}/{figure.name}.svg)](docs/papers/heedful2026.md)"]
    entries = [each for each in claims("quick", ROOT / "results") if each.claim.paper == "heedful2026"]
    if decided := [each for each in entries if each.verdict in ("holds", "holds in part", "fails")]:
        rows = {row["id"]: row for row in claim_rows(decided) if row["id"]}
        lines += ["", "| our own experiments | expected | measured | verdict |", "|---|---|---|---|"]
        cells = ([row["sentence"], row["expected"], row["measured"], f"**{row['verdict']}**"] for row in rows.values())
        lines += [f"| {' | '.join(each)} |" for each in cells]
        lines += ["", OVER]
    return "\n".join([*lines, "<!-- end -->"])


def dose_figure(results: Sequence[Result]) -> Figure | None:
    """Learning time of attention against the information in word counts; None where that was not measured."""
    figures = [figure for each in results if each.experiment == "dose" for figure in each.finding.figures]
    return figures[0] if figures else None


def _summary(path: Path, room: int) -> str:
    """The first line of a module's docstring, or as many of its clauses as fit."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path} has no docstring"
    line = docstring.splitlines()[0].rstrip(".")
    if len(line) <= room:
        return line
    first = re.split(r"(?<=\?) |[:;] |\. (?=[A-Z][a-z])", line)[0]
    if len(first) <= room and len(first.split()) > 2:
        return first
    fitting = [part for part in (line[: match.start()] for match in re.finditer(r"[:;,.] ", line)) if len(part) <= room]
    return fitting[-1] if fitting else line[: line.rindex(" ", 0, room)] + " …"


def main() -> None:
    """Write the blocks into their pages."""
    for page, block in ((README, folders()), (ARCHITECTURE, tree())):
        text = page.read_text(encoding="utf-8")
        page.write_text(BLOCK.sub(lambda _, block=block: block, text), encoding="utf-8")
    if figure := dose_figure(shown_results("heedful2026", "quick", ROOT / "results")[0]):
        draw_figure(figure, ROOT / DRAWN)
    text = README.read_text(encoding="utf-8")
    text = AUDITED.sub(lambda _: audited(), CLOSE.sub(lambda _: how_close(), text))
    README.write_text(OWN.sub(lambda _: own_findings(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
