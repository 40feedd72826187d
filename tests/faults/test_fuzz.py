"""A short run of the fuzzers; `make faults` runs the long one."""

import pytest

from tests.faults import fuzz_cli, fuzz_config, fuzz_readers, fuzz_runs, horrors
from tests.faults.fuzzing import Tally


@pytest.fixture(autouse=True)
def plain_types(monkeypatch):
    """Horrors of a size that fits into a test."""
    monkeypatch.setattr(horrors, "LONG", 200_000)


def check(tally: Tally) -> None:
    assert not tally.failures, "\n".join(tally.failures[:20])
    assert tally.tried > 100


def test_readers():
    check(fuzz_readers.fuzz(4))


def test_settings():
    check(fuzz_config.fuzz(100))


def test_command_line():
    check(fuzz_cli.fuzz(120))


def test_runs(smoke_run):
    check(fuzz_runs.fuzz(12, run=smoke_run))


def test_failures_are_seen():
    tally = Tally("none")
    tally.attempt("a bug", lambda: 1 // 0)
    tally.attempt("no number", lambda: {"x": float("nan")})
    assert len(tally.failures) == 2
