"""Models in half precision are audited in single precision, and given back as they were."""

import numpy as np
import pytest
import torch

from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import Subject
from heedful.attribution.taps import find_taps
from heedful.audits.audit import AuditSettings, run_audit
from tests.audits import tiny

QUICK = AuditSettings(integrated_steps=3, adversary_steps=5, random_orders=1, resamples=9)
MADE = {"bert": tiny.bert, "gpt2": tiny.gpt2, "llama": tiny.llama}


def audited(model, tokenizer, out):
    with open_model(model, tokenizer) as (network, reader):
        passages = [reader.read(i, text, tiny.LABELS[i % 2]) for i, text in enumerate(tiny.TEXTS)]
        return run_audit(Subject(network, reader), passages, out=out, settings=QUICK)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_audited_whole_as_an_object_and_as_a_folder(name, dtype, tmp_path):
    made = MADE[name]()
    made.model.to(dtype)
    before = {key: (value.data_ptr(), value.clone()) for key, value in made.model.state_dict().items()}
    as_object = audited(made.model, made.tokenizer, tmp_path / "object")
    for key, value in made.model.state_dict().items():
        assert value.dtype == before[key][1].dtype
        assert value.data_ptr() == before[key][0]
        assert torch.equal(value, before[key][1])
    folder = made.save(tmp_path / "model")
    as_folder = audited(folder, None, tmp_path / "folder")
    single = audited(made.model.float(), made.tokenizer, tmp_path / "single")
    # A cast object has cast rotary frequencies too; a folder does not store them.
    stored = audited(type(made.model).from_pretrained(folder).float(), made.tokenizer, tmp_path / "stored")
    for half, whole in ((as_object, single), (as_folder, stored)):
        names, expected_names = ([(s.quantity, s.of, s.against) for s in result.scores] for result in (half, whole))
        assert names == expected_names
        found, expected = ([s.estimate.value for s in result.scores] for result in (half, whole))
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert as_object.score("tvd", "permuted", "all layers").n == len(tiny.TEXTS)
    assert as_object.score("adversary", "layer 2").n == len(tiny.TEXTS)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_softmax_that_is_cast_is_found(dtype):
    scores = torch.randn(1, 2, 3, 5, generator=torch.Generator().manual_seed(0)).to(dtype)

    def attention():
        return (scores.softmax(-1, dtype=torch.float32).to(dtype), (2 * scores).softmax(-1))

    assert find_taps(attention).layer == {0: 0, 1: 1}
