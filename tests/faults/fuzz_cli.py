"""The command line, given anything: exit codes 0, 1 and 2, words for people, and never a traceback."""

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import strategies as st

from heedful.cli import main as cli
from tests.faults import horrors
from tests.faults.fuzzing import Tally
from tests.faults.mutations import each

COMMANDS = (
    "study", "preflight", "report", "tokens", "audit", "data list", "data show", "data check", "data fetch",
    "reproduce", "claims", "sweep", "runs", "query", "doctor", "nonsense", "",
)  # fmt: skip
OPTIONS = (
    "--budget", "--seeds", "--steps", "--learning-rate", "--max-length", "--out", "--jobs", "--device",
    "--json", "--task", "--text", "--label", "--validation", "--test", "--lower", "--permutations", "--words",
    "--stream", "--max-types", "--on", "--address", "--sort", "--class", "--min-count", "--top", "--suspicious",
    "--seed", "--split", "--labels", "--sample", "--query", "--headline", "--results", "--work", "--check",
    "--debug-not", "--help", "--version", "-x", "--", "--force", "--revision", "--adversary-steps",
)  # fmt: skip
VALUES = (
    "", " ", "0", "-1", "1", "2", "99999999999999999999", "1e999", "nan", "inf", "-inf", "smoke", "quick",
    "paper", "poetry", "text", "label", "nowhere", "nowhere.csv", "a.csv", "bad.csv", "a.de", "folder",
    "pipe.csv", "loop.csv", "zero.csv", "../../../etc/passwd", "/etc/shadow", "~root/x", "~nobody-such/x",
    "a\ud800b", "x" * 5000, "x" * 300, "\x1b[31mred", "[red]x[/]", "[/red]", "{{7*7}}", "$(id)", "`id`", "';--",
    "%s%n", "é", "日本", "\u202e", "copy-vocab", "multi30k", "multi30k:xx-yy", "sst", "rotten-tomatos", "a=b",
    "a=b,c", "=", ",", "cuda", "cuda:99", "abacus", "ray", "local", "snell2021", "figure4", "table99", "all",
    "SELECT", "SELECT 1", "DROP TABLE x", "a.toml", "bad.toml", "a.json", ".", "..", "/", "/dev/null",
)  # fmt: skip
SLOW = {"study", "reproduce", "audit", "sweep"}  # these may really begin; with these they cannot come far
TRAINS = {"a.csv", "copy-vocab", "multi30k", "sst", "a.de", "all", "figure4"}

ARGUMENTS = st.text(st.characters(exclude_characters="\0"), max_size=20)


def fuzz(rounds: int) -> Tally:
    """So many command lines that hypothesis draws; about half have files that can be read."""
    tally = Tally("fuzz-cli")
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made):
        _furnish(Path(made))
        each(rounds, lines(), lambda line: tally.attempt(f"heedful {line!r}"[:300], lambda: run(line)))
    return tally


def run(line: list[str]) -> None:
    """One command; anything but an orderly end is raised."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", ["heedful", *line]),
        mock.patch.dict(os.environ, {"HF_HUB_OFFLINE": "1", "COLUMNS": "100"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code or 0
    said = err.getvalue()
    if code not in (0, 1, 2):
        raise AssertionError(f"exit code {code}: {said[-300:]}")
    if "Traceback" in said or "Traceback" in out.getvalue():
        raise AssertionError(f"a traceback: {said[-300:]}")
    if code == 2 and not (said + out.getvalue()).strip():
        raise AssertionError("exit code 2 without a word")
    if "NaN" in out.getvalue() and "--json" in line:
        raise AssertionError("NaN in JSON")


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A command, up to three arguments, up to three options with or without a value."""
    command = draw(st.sampled_from(COMMANDS)).split()
    known = [value for value in VALUES if value not in TRAINS] if SLOW & set(command[:1]) else VALUES
    value = st.sampled_from(known) | ARGUMENTS
    line = command + draw(st.lists(value, max_size=3))
    for _ in range(draw(st.integers(0, 3))):
        line.append(draw(st.sampled_from(OPTIONS)))
        if draw(st.integers(0, 4)):
            line.append(draw(value))
    return line


def _furnish(folder: Path) -> None:
    (folder / "a.csv").write_bytes(horrors.GOOD["csv"])
    (folder / "bad.csv").write_bytes(b"\xff\xfe\x00")
    (folder / "a.de").write_bytes(horrors.GOOD["txt"])
    (folder / "a.toml").write_text('data = "nowhere.csv"\n', "utf-8")
    (folder / "bad.toml").write_bytes(b"= [[\xff")
    (folder / "a.json").write_text("{}", "utf-8")
    list(horrors.places(folder, ".csv"))
    (folder / "folder").mkdir(exist_ok=True)
