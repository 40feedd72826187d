import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.attribution.attention_maps import HIDDEN, HIDDEN_DELETION, read_attention
from heedful.attribution.interface import Subject
from heedful.attribution.modules import classifier_network
from heedful.audits.audit import AuditSettings, run_audit
from heedful.audits.request import open_run, validation_passages
from heedful.audits.scores import importances
from heedful.config import ModelConfig
from heedful.errors import RunError
from heedful.models.classifier import AttentionClassifier
from heedful.studies.run_directory import RunDirectory
from heedful.studies.token_table import load_model
from tests.attribution.bag import D_Y_H, D_Y_X, G_Y_H
from tests.audits.constructed import READER, passages
from tests.conftest import restamp

QUICK = AuditSettings(integrated_steps=2, adversary_steps=3, random_orders=1, resamples=20, sample=6)


@pytest.mark.parametrize(("classes", "projection"), [(2, "softmax"), (3, "softmax"), (2, "sparsemax")])
def test_a_classifier_reads_as_it_does_itself_and_importance_is_the_same_in_padded_batches(classes, projection):
    torch.manual_seed(0)
    config = ModelConfig(embedding=5, hidden=3, scorer_hidden=7, dropout=0.3, projection=projection)
    model = AttentionClassifier(config, vocabulary=40, classes=classes).double().eval()
    subject = Subject(classifier_network(model), replace(READER, labels=tuple("abc"[:classes])))
    some = subject.with_targets(passages(4))
    reading = read_attention(subject, some)
    found = importances(subject, some, steps=0, include_special=True, layer=0)
    padded = Subject(subject.network, subject.reader, padded=True)
    by_state, masked, deleted = (method(padded, some) for method in (G_Y_H, D_Y_H, D_Y_X))
    for i, passage in enumerate(some):
        tokens = torch.tensor([passage.pieces])
        mask = torch.ones_like(tokens, dtype=torch.bool)
        np.testing.assert_allclose(reading.attention[i][0, 0], model(tokens, mask).alpha[0].detach(), atol=1e-12)
        assert reading.probabilities.shape == (4, classes)
        gradient = found.hidden[HIDDEN][0][i][1:]
        np.testing.assert_allclose(gradient / gradient.sum(), by_state[i], atol=1e-9)
        np.testing.assert_allclose(np.abs(found.hidden[HIDDEN_DELETION][0][i][1:]), masked[i], atol=1e-9)
        np.testing.assert_allclose(np.abs(found.inputs["leave one out"][i][1:]), deleted[i], atol=1e-9)


def test_another_attention_takes_the_place_of_its_own():
    model = AttentionClassifier(ModelConfig(embedding=5, hidden=3), vocabulary=9, classes=2).eval()
    network = classifier_network(model)
    embedded = network.embed(torch.tensor([[4, 5, 6]]))
    first = torch.tensor([[[[1.0, 0.0, 0.0]]]])
    output = network.run(embedded, change=lambda layer, alpha: first)
    expected = model.from_attention(first[:, 0, 0], output.hidden[0]).sigmoid()
    torch.testing.assert_close(output.probabilities[:, 1:], expected)


def test_a_random_model_has_the_same_shape_and_other_parameters():
    model = AttentionClassifier(ModelConfig(embedding=5, hidden=3), vocabulary=9, classes=2).double()
    state = torch.get_rng_state()
    one, same, other = (classifier_network(model).randomised(seed).modules[0].embedding.weight for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.dtype == torch.float64


def test_a_study_is_audited(smoke_run, tmp_path):
    network, reader = open_run(smoke_run)
    some = validation_passages(smoke_run, reader)
    validation = RunDirectory(smoke_run).split("validation")
    for i, passage in enumerate(some):
        assert list(passage.pieces) == validation.text(i).tolist()
    result = run_audit(Subject(network, reader), some, out=tmp_path, settings=QUICK)
    assert [label.name for label in result.labels] == RunDirectory(smoke_run).data_summary()["labels"]
    assert result.passages == 6
    model = load_model(RunDirectory(smoke_run))
    assert torch.equal(model.embedding.weight, network.modules[0].embedding.weight)


def test_texts_are_read_as_the_study_read_them(smoke_run):
    _, reader = open_run(smoke_run)
    passage = reader.read(0, "A GOOD film!")
    assert passage.words == ("<bos>", "a", "good", "film", "!", "<eos>")


def test_a_study_of_translation_is_refused(smoke_run, tmp_path):
    run = tmp_path / "translation"
    shutil.copytree(smoke_run, run)
    config = run / "config.toml"
    config.write_text(config.read_text().replace('task = "classification"', 'task = "translation"'))
    restamp(run)
    with pytest.raises(RunError, match="a study of translation"):
        open_run(run)


def test_texts_asked_about_again_and_again_are_read_once_but_never_out_of_date():
    """Equal rows, equal inputs: the same states; after a change of a parameter, new ones."""
    torch.manual_seed(0)
    model = AttentionClassifier(ModelConfig(embedding=5, hidden=3), vocabulary=9, classes=2).eval()
    network, reads = classifier_network(model), []
    model.encoder.register_forward_pre_hook(lambda module, given: reads.append(len(given[0])))
    embedded = network.embed(torch.tensor([[4, 5, 6], [4, 5, 6], [7, 8, 4]])).detach()
    for change in (None, lambda layer, alpha: alpha, lambda layer, alpha: alpha):
        hidden = network.run(embedded, change=change).hidden[0]
        torch.testing.assert_close(hidden, network.run(embedded).hidden[0])
    assert reads == [3, 3, 2, 3, 3]
    with torch.no_grad():
        model.encoder.forwards[0].weight_ih_l0.mul_(2.0)
    changed = network.run(embedded, change=lambda layer, alpha: alpha).hidden[0]
    torch.testing.assert_close(changed, network.run(embedded).hidden[0])
