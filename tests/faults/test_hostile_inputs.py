"""A short run of the hostile model folders, bombs and environments; `make faults` runs the long one."""

from tests.faults import bombs, environments, model_folders
from tests.faults.fuzzing import Tally


def check(tally: Tally, least: int) -> None:
    assert not tally.failures, "\n".join(tally.failures[:20])
    assert tally.tried >= least


def test_model_folders():
    check(model_folders.fuzz(1), 130)


def test_bombs():
    check(bombs.fuzz(0), 20)


def test_environments():
    check(environments.fuzz(1, commands=1), 8)


def test_terminal_escapes(smoke_run):
    check(environments.escapes(30), 30)
