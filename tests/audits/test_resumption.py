import numpy as np
import pytest
import torch

from heedful.audits.audit import MeasuredPart, fingerprint, measured
from heedful.audits.result import AuditExample, Weights
from tests.audits.constructed import passages, pooled


def part(chunk):
    example = AuditExample(
        1, ("a", "b"), "yes", None, 0.5, (0.25, 0.75), (Weights("gradient", (1 / 3, 2 / 3)),), (True, False)
    )
    numbers = {"tau/layer 1/gradient": np.array([1 / 3, np.nan])}
    return MeasuredPart(numbers, {"gradient": [[0], [1, 2]]}, ["yes", "no"], ["yes", "yes"], [example])


def test_what_is_written_is_what_is_read(tmp_path):
    chunks = [passages(2), passages(2, seed=1)]
    fresh = measured(tmp_path, chunks, part, key="k")
    read = measured(tmp_path, chunks, pytest.fail, key="k")
    for first, second in zip(fresh, read, strict=True):
        np.testing.assert_array_equal(first.numbers["tau/layer 1/gradient"], second.numbers["tau/layer 1/gradient"])
        assert (first.important, first.outputs, first.predicted) == (second.important, second.outputs, second.predicted)
        assert first.examples == second.examples


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "{}", '{"answer": {}, "sha256": "0"}', '{"answer": 3, "sha256": "0"}']
)
def test_a_damaged_file_is_named_set_aside_and_measured_again(tmp_path, damage):
    chunks = [passages(2)]
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
        measured(tmp_path, [passages(2)], part, key=key)
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
