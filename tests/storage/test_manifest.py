from dataclasses import asdict

from heedful.storage.atomic_files import write_json
from heedful.storage.manifest import Clock, Provenance, versions


def test_what_made_an_audit_is_written_and_read(tmp_path):
    made = Clock().stopped("heedful audit a b")
    write_json(tmp_path / "manifest.json", asdict(made))
    assert Provenance.load(tmp_path / "manifest.json") == made
    assert made.seconds >= 0
    assert made.cpu_seconds >= 0
    assert set(made.versions) >= {"python", "heedful", "torch"}


def test_what_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr("heedful.storage.manifest.PACKAGES", ("numpy", "no-such-package"))
    assert list(versions()) == ["python", "numpy"]
