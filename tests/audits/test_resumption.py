import numpy as np
import pytest
import torch

from heedful.audits import audit
from heedful.audits.audit import fingerprint
from heedful.audits.parts import MeasuredPart, measured
from heedful.audits.result import AuditExample, Weights
from tests.audits.constructed import passages, pooled


def texts(count, seed=0):
    """Texts of one passage each."""
    return [[passage] for passage in passages(count, seed=seed)]


def part(chunk):
    weights = (Weights("gradient", (1 / 3, 2 / 3)),)
    examples = [
        AuditExample(p.text, ("a", "b"), "yes", None, 0.5, (0.25, 0.75), weights, (True, False))
        for p in chunk
        if p.text == 0
    ]
    numbers = {"tau/layer 1/gradient": np.array([np.nan if p.text == 0 else p.text / 3 for p in chunk])}
    important = {"gradient": [[p.text] for p in chunk]}
    return MeasuredPart(numbers, important, [f"yes {p.text}" for p in chunk], ["yes"] * len(chunk), examples)


def test_what_is_written_is_what_is_read(tmp_path):
    fresh = measured(tmp_path, texts(5), part, key="k", chunk=2)
    read = measured(tmp_path, texts(5), pytest.fail, key="k")
    assert len(list(tmp_path.iterdir())) == 5
    assert [p.outputs for p in fresh] == [[f"yes {i}"] for i in range(5)]
    for first, second in zip(fresh, read, strict=True):
        np.testing.assert_array_equal(first.numbers["tau/layer 1/gradient"], second.numbers["tau/layer 1/gradient"])
        assert (first.important, first.outputs, first.predicted) == (second.important, second.outputs, second.predicted)
        assert first.examples == second.examples
    assert [len(p.examples) for p in read] == [1, 0, 0, 0, 0]


def test_after_the_first_text_there_is_something_to_go_on_from(tmp_path):
    asked, events = [], []

    def interrupted(chunk):
        asked.append([p.text for p in chunk])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return part(chunk)

    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, texts(5), interrupted, key="k", chunk=3)
    assert asked == [[0], [1, 2, 3]]
    asked.append([])
    measured(tmp_path, texts(5), interrupted, key="k", chunk=3, on_progress=events.append)
    assert asked[3:] == [[1, 2, 3], [4]]
    assert events[0] == {"model": "audit", "step": 1, "steps": 5, "resumed": True}


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "{}", '{"answer": {}, "sha256": "0"}', '{"answer": 3, "sha256": "0"}']
)
def test_a_damaged_file_is_named_set_aside_and_measured_again(tmp_path, damage):
    chunks = texts(1)
    measured(tmp_path, chunks, part, key="k")
    (file,) = tmp_path.iterdir()
    whole = file.read_text()
    file.write_text(damage)
    said = []
    measured(tmp_path, chunks, part, key="k", on_progress=said.append)
    assert file.read_text() == whole
    (aside,) = (path for path in tmp_path.iterdir() if path != file)
    assert aside.name == f"{file.name}.damaged-1"
    assert aside.read_text() == damage
    (notice,) = (line["notice"] for line in said if "notice" in line)
    assert notice.startswith(f"{file} was damaged (")
    assert notice.endswith(f"): set aside as {aside.name}, and computed again")


def test_another_key_is_another_file(tmp_path):
    for key in ("a", "b"):
        measured(tmp_path, texts(1), part, key=key)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_network_is_known_by_its_parameters():
    first, same = pooled().network, pooled().network
    assert fingerprint(first) == fingerprint(same)
    with torch.no_grad():
        same.modules[0].embedding.weight[3, 1] += 1e-12
    assert fingerprint(first) != fingerprint(same)
    assert fingerprint(first) != fingerprint(pooled(can_change=False).network)


def test_half_precision_has_a_fingerprint_too():
    network = pooled().network
    network.modules[0].to(torch.bfloat16)
    assert len(fingerprint(network)) == 64


def test_expected_passes_are_counted_anew_for_another_measurement(monkeypatch):
    monkeypatch.setattr(audit, "BEAT", 0.0)
    seen = []
    heartbeat = audit._Heartbeat(seen.append)
    heartbeat.progress({"model": "audit", "step": 0, "steps": 4})
    heartbeat.run(100, 5)
    heartbeat.progress({"model": "audit", "step": 4, "steps": 4})
    heartbeat.progress({"model": "other weights for mean", "step": 0, "steps": 4})
    heartbeat.run(10, 5)
    heartbeat.progress({"model": "other weights for mean", "step": 2, "steps": 4})
    heartbeat.run(1, 5)
    assert seen[-1] == {"model": "other weights for mean", "step": 2, "steps": 4, "expected": 20, "passes": 11}
