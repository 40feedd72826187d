"""Environments that a command cannot choose: encodings, closed pipes, Ctrl-C, a folder that is gone, odd names."""

import io
import os
import subprocess
import sys

import pytest

from heedful.cli import main as cli
from tests.command import heedful


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: heedful(monkeypatch, capsys, *map(str, arguments))


def test_ctrl_c_while_the_command_line_is_imported(tmp_path):
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'heedful.cli.main':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import heedful.__main__ as command\n"
        "command.main()\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "stopped\n")


def test_ctrl_c_inside_a_constructor_and_after_the_end(tmp_path):
    (tmp_path / "ended.py").write_text(
        "import atexit, os, signal, sys\nimport heedful.cli.main as cli\nimport heedful.__main__ as command\n"
        "class Half:\n    def __del__(self):\n        self.handle\n"
        "def run():\n    Half()\n    sys.exit(int(sys.argv[1]))\n"
        "cli.main = run\natexit.register(os.kill, os.getpid(), signal.SIGINT)\ncommand.main()\n",
        encoding="utf-8",
    )

    def end(code):
        line = [sys.executable, "-m", "ended", str(code)]
        ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        return ended.returncode, "AttributeError" in ended.stderr

    assert end(130) == (130, False)
    assert end(0) == (0, True)


def test_ctrl_c_behind_an_error_of_a_library(command, monkeypatch):
    def interrupted():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise ImportError("a compiled module could not be loaded") from stop

    monkeypatch.setattr(cli, "app", interrupted)
    assert command("runs") == (130, "", "stopped; repeat the command to continue from here\n")


@pytest.mark.parametrize(("encoding", "written"), [("ascii", rb"\u03be \xe9"), ("latin-1", b"\\u03be \xe9")])
def test_an_output_that_knows_fewer_characters(monkeypatch, tmp_path, encoding, written):
    monkeypatch.chdir(tmp_path)
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding))
    monkeypatch.setattr(sys, "argv", ["heedful", "query", "SELECT 'ξ é' AS x", "."])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    assert written in output.getvalue()


def test_names_that_are_not_text(command, tmp_path):
    code, out, err = command("study", "a.csv", "--out", os.fsdecode(b"x\xff"))
    assert (code, out) == (2, "")
    assert "is not text in this locale, so it could not be written into a result" in " ".join(err.split())
    assert not list(tmp_path.iterdir())


def test_a_current_folder_that_is_gone(monkeypatch, capsys, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, err = heedful(monkeypatch, capsys, "runs")
    assert (code, err) == (2, "error: the current folder does not exist any more; change to another one\n")


def test_a_pipe_that_nobody_reads(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as output:
        monkeypatch.setattr(sys, "stdout", output)
        monkeypatch.setattr(sys, "argv", ["heedful", "data", "list"])
        with pytest.raises(SystemExit) as stop:
            cli.main()
    assert stop.value.code == 1
    assert "Traceback" not in capsys.readouterr().err
