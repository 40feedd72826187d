"""The ledger of faults merges, refuses what cannot be, and becomes a page."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.ledger import entries_of, page, record


def test_entries_are_merged_and_sorted(tmp_path):
    counts = tmp_path / "results" / "counts.json"
    record("kills", 50, 50, 0, 12.34, "make faults", counts=counts)
    record("fuzz: readers", 1000, 0, 1, 5, "make faults", counts=counts)
    record("kills", 51, 51, 0, 12.34, "make faults", counts=counts)
    assert list(json.loads(counts.read_text())) == ["fuzz: readers", "kills"]
    assert entries_of(counts)["kills"]["tried"] == 51
    text = page(entries_of(counts))
    assert "| kills | 51 | 51 | 0 | 12 s | `make faults` |" in text
    assert "| **all** | **1,051** | **51** | **1** |" in text


def test_writers_at_once_lose_nothing(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: record(f"n{i}", i, 0, 0, 0, "x", counts=tmp_path / "c.json"), range(20)))
    assert len(entries_of(tmp_path / "c.json")) == 20


def test_counts_that_cannot_be(tmp_path):
    with pytest.raises(ValueError, match="cannot be"):
        record("kills", 1, 1, 3, 0, "x", counts=tmp_path / "c.json")
