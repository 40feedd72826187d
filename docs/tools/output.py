"""Run the commands that the docs show, and keep what they print: `python docs/tools/output.py [NAME…]`.

Everything runs in a folder of its own, on real film reviews, with models small enough for a minute or two. The pages
include the files of `docs/output/`; nothing in them is typed by hand.
"""

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "output"
SMALL = """\
data = "reviews.csv"
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
    "reproduce": "heedful reproduce snell2021",
    "reproduce-figure4": "heedful reproduce snell2021 figure4 --budget smoke",
    "claims": "heedful claims --results {results}",
    "doctor": "heedful doctor",
    "mistake": "heedful study --config typo.toml",
}
PREPARING = {"report": "study", "tokens": "study", "tokens-suspicious": "study", "audit": "study"}


def main(wanted):
    """Run the commands named, all of them where none is, and those that they build on."""
    names = [name for name in COMMANDS if not wanted or name in wanted or name in {PREPARING.get(w) for w in wanted}]
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write_reviews(here / "reviews.csv")
        (here / "study.toml").write_text(SMALL, encoding="utf-8")
        (here / "typo.toml").write_text('data = "reviews.csv"\nmax_lenght = 100\n', encoding="utf-8")
        (OUT / "study.toml").write_text(SMALL, encoding="utf-8")
        lines = (here / "reviews.csv").read_text(encoding="utf-8").splitlines()
        (OUT / "reviews.csv.txt").write_text("\n".join(lines[:4]) + "\n", encoding="utf-8")
        for name in names:
            print(name, flush=True)
            text = run(COMMANDS[name], here)
            (OUT / f"{name}.txt").write_text(text, encoding="utf-8")


def write_reviews(path):
    """A third of the film reviews as somebody's CSV file."""
    from heedful import load

    train = load("rotten-tomatoes").train
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["review", "sentiment"])
        for text, label in list(zip(train.texts, train.labels, strict=True))[::3]:
            table.writerow([text, ("negative", "positive")[label]])


def run(command, folder):
    """What a command prints, after a prompt that shows the command itself."""
    shown = command.format(results="results")
    arguments = command.format(results=ROOT / "results").split()
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
