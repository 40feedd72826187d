"""Commands in strange environments: encodings, closed pipes, Ctrl-C, a folder that is gone, names that are not UTF-8.

Each ends with a proper exit code, without a traceback, and sends no control character of the data to a terminal.
"""

import os
import pty
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.faults import horrors
from tests.faults.fuzzing import Tally

ENVIRONMENTS: tuple[Mapping[str, str], ...] = (
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C", "PYTHONIOENCODING": "utf-16"},
    {"TERM": "dumb", "COLUMNS": "1"},
    {"NO_COLOR": "1", "COLUMNS": "0"},
    {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"},
    {"COLUMNS": "x", "LINES": "-1"},
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("query", "SELECT 'ξ é 日本' AS \"τ\", 'infinity'::TIMESTAMP AS t, '-infinity'::DATE AS d"),
    ("preflight", "a.csv", "--permutations", "19"),
    ("preflight", "nowhere-é.csv"),
    ("data", "list"),
    ("runs", "."),
    ("study", "a.csv", "--dry-run"),
)
ESCAPES = (
    "\x1b[2J", "\x1b]0;owned\x07", "\x1b[8m", "\x9b2J", "\r", "\x08\x08\x08", "\x1bc", "\u202e", "\x1b[1A\x1b[2K",
    "\x1b]8;;http://evil\x1b\\", "\x1bP", "\x7f", "\u2066", "\x0c",
)  # fmt: skip
PATIENCE = 300


def fuzz(rounds: int, commands: int = len(COMMANDS)) -> Tally:
    """Every command in every environment; then `rounds` of each other fault."""
    tally = Tally("environments")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "a.csv").write_bytes(horrors.GOOD["csv"])
        for setting in ENVIRONMENTS if commands > 1 else ENVIRONMENTS[:3]:
            for command in COMMANDS[:commands]:
                _try(tally, f"{setting} {command[:2]}", lambda c=command, s=setting: _run(c, folder, s))
        for i in range(rounds):
            others: dict[str, Callable[[], None]] = {
                "a closed pipe": lambda i=i: _closed_pipe(folder, i),
                "a folder that is gone": lambda: _gone(folder),
                "a name that is not UTF-8": lambda: _not_utf8(folder),
                "Ctrl-C": lambda i=i: _interrupt(folder, 0.05 + 0.35 * i),
                "no standard output": lambda: _closed_output(folder),
            }
            for what, call in others.items():
                _try(tally, what, call)
    return tally


def escapes(rounds: int) -> Tally:
    """Labels, paths and answers with control characters, printed on a terminal."""
    from heedful.cli import main as cli

    tally, draw = Tally("terminal-escapes"), random.Random("escapes")
    with tempfile.TemporaryDirectory() as made:
        for _ in range(rounds):
            evil = "".join(draw.choices(ESCAPES, k=draw.randint(1, 3)))
            label, path = f"good{evil}", Path(made) / f"a{evil.replace('/', '')}.csv"
            path.write_text(f"text,label\n{f'so good,{label!s}' if ',' not in label else ''}\n", "utf-8", newline="")
            quoted = evil.replace("'", "''")
            for line in (
                ["query", f"SELECT '{quoted}' AS \"{quoted.replace(chr(34), '')}x\""],
                ["query", f"SELECT '{quoted}' AS x", "--format", "csv"],
                ["preflight", str(path)],
                ["report", str(path)],
                ["runs", str(path)],
            ):
                tally.attempt(f"{line[0]} {evil!r}", lambda line=line: _on_a_terminal(cli.main, ["heedful", *line]))
    return tally


def _on_a_terminal(main: Callable[[], None], line: list[str]) -> None:
    """Call the command line with both outputs a terminal without colours; every character must be printable."""
    ours, theirs = pty.openpty()
    kept = {name: getattr(sys, name) for name in ("stdout", "stderr", "argv")}
    before = {name: os.environ.get(name) for name in ("NO_COLOR", "TERM")}
    os.environ |= {"NO_COLOR": "1", "TERM": "dumb"}
    try:
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
            sys.stdout = sys.stderr = terminal
            sys.argv = line
            try:
                main()
            except SystemExit:
                terminal.flush()
            os.set_blocking(ours, False)
            written = os.read(ours, 1 << 20).decode("utf-8", "replace").replace("\r\n", "\n")
    finally:
        for name, value in kept.items():
            setattr(sys, name, value)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        os.close(ours)
    written = written.removeprefix("\x1b[31m").replace("\x1b[0m\n", "\n")  # an error is red, whatever it says
    bad = sorted({c for c in written if not c.isprintable() and c not in "\n\t"})
    if bad:
        raise AssertionError(f"{bad} reached the terminal: {written[:200]!r}")


def _try(tally: Tally, what: str, call: Callable[[], None]) -> None:
    """As `Tally.attempt`, without its limit of memory: the command is another process."""
    tally.tried += 1
    try:
        call()
    except (AssertionError, subprocess.TimeoutExpired) as error:
        tally.failures.append(f"{what}: {error}"[:500])


def _start(command: tuple[str, ...], folder: Path, **settings: object) -> "subprocess.Popen[bytes]":
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": folder} | settings
    return subprocess.Popen([sys.executable, "-m", "heedful", *command], **options)  # type: ignore[call-overload]


def _check(code: int, said: bytes, codes: tuple[int, ...] = (0, 1, 2)) -> None:
    assert b"Traceback" not in said, said[-300:]
    assert b"Exception ignored" not in said, said[-300:]
    assert code in codes, f"exit code {code}: {said[-300:]!r}"


def _run(command: tuple[str, ...], folder: Path, settings: Mapping[str, str]) -> None:
    process = _start(command, folder, env={**os.environ, **settings})
    out, err = process.communicate(timeout=PATIENCE)
    _check(process.returncode, out + err)


def _closed_pipe(folder: Path, number: int) -> None:
    rows = 10 ** (1 + number % 6)
    process = _start(("query", f"SELECT range FROM range({rows})", "--format", "csv"), folder)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        said = process.stderr.read()
    _check(process.wait(PATIENCE), said, (0, 1))


def _closed_output(folder: Path) -> None:
    process = _start(("data", "list"), folder, stdout=None, preexec_fn=lambda: os.close(1))
    _, err = process.communicate(timeout=PATIENCE)
    _check(process.returncode, err)


def _gone(folder: Path) -> None:
    gone = Path(tempfile.mkdtemp(dir=folder))
    process = _start(("runs",), gone, preexec_fn=lambda: os.rmdir(gone))
    out, err = process.communicate(timeout=PATIENCE)
    _check(process.returncode, out + err, (2,))
    assert b"does not exist any more" in err, err


def _not_utf8(folder: Path) -> None:
    name = os.fsdecode(os.fsencode(folder) + b"/x\xff")
    process = _start(("study", "a.csv", "--budget", "smoke", "--steps", "2", "--out", name), folder)
    out, err = process.communicate(timeout=PATIENCE)
    _check(process.returncode, out + err, (2,))


def _interrupt(folder: Path, after: float) -> None:
    """Ctrl-C at some time after the start: within the first milliseconds nothing of heedful runs yet."""
    process = _start(("preflight", "a.csv"), folder)
    until = time.monotonic() + PATIENCE
    while b"heedful" not in Path(f"/proc/{process.pid}/cmdline").read_bytes() and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.3 + after)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    _check(process.returncode, out + err, (0, 130))
    if process.returncode == 130:
        assert len(err.strip().splitlines()) == 1, err
