"""The cache of finished steps: resumed, verified, and computed again where it is damaged."""

import pytest

from heedful.errors import DamagedError, RunError
from heedful.storage.atomic_files import write_checksummed_json
from heedful.storage.step_cache import (
    StepCache,
    StepRecord,
    read_answer,
    record_beside,
    write_answer,
    write_with_record,
)

DAMAGES = ["", "{", "[]", "{}", '{"answer": {"x": 2}, "sha256": "0"}', '{"answer": {"x": 1}}']


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_answer_is_named_set_aside_and_computed_again(tmp_path, damage):
    notices = []
    cache = StepCache(tmp_path, notices.append)
    cache.put("a", {"x": 1})
    assert cache.get("a") == {"x": 1}
    (tmp_path / "a.json").write_text(damage)
    assert cache.get("a") is None
    cache.put("a", {"x": 1})
    assert cache.get("a") == {"x": 1}
    assert (tmp_path / "a.json.damaged-1").read_text() == damage
    (notice,) = notices
    assert notice.startswith(f"{tmp_path / 'a.json'} was damaged (")
    assert notice.endswith("): set aside as a.json.damaged-1, and computed again")


def test_a_record_without_an_answer_is_damaged(tmp_path):
    write_checksummed_json(tmp_path / "a.json", {"answer": [1]})
    with pytest.raises(DamagedError, match="it has no answer"):
        read_answer(tmp_path / "a.json")
    with pytest.raises(RunError, match="no such file"):
        read_answer(tmp_path / "b.json")


def test_a_record_is_read_once_and_its_files_are_verified_once(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("whole")
    path = tmp_path / "done.json"
    write_with_record(tmp_path / "a", lambda place: place.write_text("whole"))
    StepRecord(path).save({"x": 1}, record_beside(tmp_path / "a").files())
    record, opened = StepRecord(path), []
    monkeypatch.setattr("heedful.storage.step_cache.verify_checksum", lambda path, checksum: opened.append(path.name))
    for _ in range(3):
        assert record.load()["x"] == 1
        assert record.verified("a") == tmp_path / "a"
    assert opened == ["a"]
    with pytest.raises(DamagedError, match=r"b: damaged \(done\.json does not list it\)"):
        record.verified("b")


def test_a_damaged_file_takes_its_record_with_it(tmp_path):
    write_with_record(tmp_path / "weights", lambda path: path.write_bytes(b"whole"))
    record = record_beside(tmp_path / "weights")
    assert record.verified("weights").read_bytes() == b"whole"
    (tmp_path / "weights").write_bytes(b"while")
    with pytest.raises(DamagedError, match="weights: damaged"):
        record_beside(tmp_path / "weights").verified("weights")
    notices = []
    assert not record_beside(tmp_path / "weights").repair(notices.append)
    assert "weights was damaged (its checksum is another): set aside as weights.damaged-1" in notices[0]
    assert not record.is_done()


def test_an_answer_that_was_written_elsewhere_is_found(tmp_path):
    write_answer(tmp_path / "a.json", {"x": 1})
    assert StepCache(tmp_path).get("a") == {"x": 1}
