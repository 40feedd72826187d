"""Run the commands that the docs show, and keep what they print: `python docs/tools/output.py [NAME…]`.

Everything runs in a folder of its own, on real film reviews, with models small enough for a minute or two. The pages
include the files of `docs/output/`; nothing in them is typed by hand. What was trained stays in `build/output` and is
used again while it is there.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "output"
WORK = ROOT / "build" / "output"
SMALL = """\
data = "reviews.csv"
seeds = 2
max_validation = 300

[model]
embedding = 64
hidden = 48
scorer_hidden = 48

[train]
steps = 250
learning_rate = 0.003

[proxy.train]
steps = 1500
learning_rate = 0.001
"""
GRID = """\
[base]
data = "reviews.csv"
budget = "smoke"

[grid]
"model.projection" = ["softmax", "sparsemax"]
"""
COMMANDS = {
    "data-list": "heedful data list",
    "data-show": "heedful data show rotten-tomatoes",
    "preflight": "heedful preflight reviews.csv",
    "preflight-permutation": "heedful preflight copy-permutation",
    "dry-run": "heedful study --config study.toml --dry-run",
    "study": "heedful study --config study.toml",
    "report": "heedful report runs/reviews",
    "tokens": "heedful tokens runs/reviews --top 12",
    "tokens-suspicious": "heedful tokens runs/reviews --suspicious --top 8",
    "audit": "heedful audit runs/reviews --sample 40",
    "sweep": "heedful sweep grid.toml",
    "runs": "heedful runs",
    "query": 'heedful query "SELECT run, state, accuracy FROM runs"',
    "query-schema": "heedful query --schema",
    "reproduce": "heedful reproduce snell2021",
    "reproduce-figure4": "heedful reproduce snell2021 figure4 --budget smoke",
    "claims": "heedful claims --results {results}",
    "doctor": "heedful doctor",
    "mistake": "heedful study --config typo.toml",
}


def main(wanted):
    """Run the commands named; all of them where none is."""
    OUT.mkdir(exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "reviews.csv").exists():
        subprocess.run([sys.executable, ROOT / "docs" / "tools" / "reviews.py"], cwd=WORK, check=True)
    files = {"study.toml": SMALL, "grid.toml": GRID, "typo.toml": 'data = "reviews.csv"\nmax_lenght = 100\n'}
    for name, content in files.items():
        (WORK / name).write_text(content, encoding="utf-8")
        (OUT / name).write_text(content, encoding="utf-8")
    lines = (WORK / "reviews.csv").read_text(encoding="utf-8").splitlines()
    (OUT / "reviews.csv.txt").write_text("\n".join(lines[:4]) + "\n", encoding="utf-8")
    for name, command in COMMANDS.items():
        if not wanted or name in wanted:
            print(name, flush=True)
            (OUT / f"{name}.txt").write_text(run(command, WORK), encoding="utf-8")


def run(command, folder):
    """What a command prints, after a prompt that shows the command itself."""
    shown = command.format(results="results")
    arguments = shlex.split(command.format(results=ROOT / "results"))
    environment = {key: value for key, value in os.environ.items() if key != "HEEDFUL_DATA"}
    environment |= {"COLUMNS": "96", "XDG_DATA_HOME": "/home/you/.local/share", "NO_COLOR": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "heedful", *arguments[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if (ran.returncode == 0) == ("typo" in command):
        raise SystemExit(f"{command}: exit code {ran.returncode}\n{ran.stderr}")
    printed = "\n".join(line.rstrip() for line in (ran.stdout or ran.stderr).strip("\n").splitlines())
    return f"$ {shown}\n{printed}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
