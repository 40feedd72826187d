"""A short run of what an enemy would send; `make faults` runs the long one."""

import pytest

from tests.faults import hostile, hostile_locks


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    return hostile.make_shelf(tmp_path_factory.mktemp("hostile") / "shelf")


def check(attack, least):
    assert not attack.failures, "\n".join(attack.failures[:20])
    assert attack.injected >= least


def test_links(shelf):
    check(hostile.links(shelf, 5), 5)


def test_devices(shelf):
    check(hostile.devices(shelf, 6), 6)


def test_names(shelf):
    check(hostile.names(shelf, 18), 18)


def test_strangers(shelf):
    check(hostile.strangers(shelf, 3), 5)


def test_figures(shelf):
    check(hostile.figures(shelf, 2), 8)


def test_locks(tmp_path):
    check(hostile_locks.locks(tmp_path), 40)


def test_failures_are_seen(tmp_path):
    attack = hostile.Attack("none")
    attack.must_refuse("accepted", lambda: 1)
    attack.must_hold("false", False)
    assert len(attack.failures) == 2
