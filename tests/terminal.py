"""What a person at a terminal is left with, as plain lines."""

import re

import pytest


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, *, columns: int, lines: int = 60) -> None:
    """Let standard error count as a terminal of that size."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns), "LINES": str(lines)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)


def plainly(written: str) -> str:
    """Without colours and movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written).replace("\r", "")


def last_frame(written: str, first: str) -> list[str]:
    """The lines from where `first` was last written to the end, without the spaces at their ends."""
    text = plainly(written)
    return [line.rstrip() for line in text[text.rindex(first) :].splitlines()]
