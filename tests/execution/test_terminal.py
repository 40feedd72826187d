"""Control characters of the data never reach a terminal."""

import io
import sys

import pytest
from rich.table import Table
from rich.text import Text

from heedful.execution.terminal import TerminalConsole, echo, visible

HOSTILE = ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "a\rb", "\x08\x08", "\u202eevil", "\x7f", "\u2066x", "\x00"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_printed_is_printable(text, monkeypatch):
    assert visible(f"x{text}\t\n").replace("\t", "").replace("\n", "").isprintable()
    out = Terminal()
    console = TerminalConsole(file=out, force_terminal=False, width=80)
    table = Table(title=Text(text))
    table.add_column(Text(text))
    table.add_row(Text(f"label {text}"))
    console.print(table)
    console.print(Text(text), text)
    assert all(line.isprintable() for line in out.getvalue().splitlines())
    monkeypatch.setattr(sys, "stdout", Terminal())
    echo(f"path{text}")
    assert sys.stdout.getvalue() == f"path{visible(text)}\n"


def test_styles_of_the_console_itself_stay():
    out = Terminal()
    TerminalConsole(file=out, force_terminal=True, color_system="standard", width=80, highlight=False).print(
        "x\x1b[2J", style="red"
    )
    assert out.getvalue() == "\x1b[31mx\\x1b[2J\x1b[0m\n"


def test_a_pipe_gets_what_there_is(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    echo("a\x1b[2J\r\n", nl=False)
    assert sys.stdout.getvalue() == "a\x1b[2J\r\n"
