"""Other people's architectures, small and random, from a text to a verdict."""

from dataclasses import replace

import pytest

pytest.importorskip("transformers")

from heedful.attribution.huggingface import open_model
from heedful.attribution.huggingface_translator import open_translator, output_passages
from heedful.attribution.interface import Subject
from heedful.audits.audit import AuditSettings, run_audit
from heedful.audits.result import AuditResult
from heedful.data.parallel import Alignment
from tests.audits.tiny import CLASSIFIERS, LABELS, PAIRS, SEQUENCES, TEXTS

QUICK = AuditSettings(integrated_steps=2, adversary_steps=3, random_orders=1, resamples=20)


@pytest.mark.parametrize("name", sorted(CLASSIFIERS))
def test_a_classifier_is_audited(name, tmp_path):
    tiny = CLASSIFIERS[name]()
    with open_model(tiny.model, tiny.tokenizer) as (network, reader):
        subject = Subject(network, reader)
        passages = [reader.read(i, text, LABELS[i % 2]) for i, text in enumerate(TEXTS)]
        result = run_audit(subject, passages, out=tmp_path, settings=QUICK, model=name)
    assert (result.layers, result.heads, result.passages) == (2, 2, len(TEXTS))
    assert [label.name for label in result.labels] == list(LABELS)
    assert sum(label.predicted for label in result.labels) == len(TEXTS)
    assert result.score("tau", "layer 2 head 1", "hidden gradient").n > 0
    assert result.score("entropy", "rollout").n == len(TEXTS)
    assert result.score("tvd", "permuted", "all layers").value > 0
    assert result.score("random tau", "layer 1", "leave one out").n > 0
    assert 0 <= result.score("adversary", "layer 2").value <= 0.7
    assert AuditResult.load(tmp_path / "result.json").to_dict() == result.to_dict()


@pytest.mark.parametrize("name", sorted(SEQUENCES))
def test_a_translator_is_audited(name, tmp_path):
    tiny = SEQUENCES[name]()
    with open_translator(tiny.model, tiny.tokenizer) as (network, reader):
        passages = [
            passage
            for i, (source, target) in enumerate(PAIRS)
            for passage in output_passages(network, reader, i, source, target)
        ]
        links = {0: Alignment.of([(0, 0), (1, 1), (2, 2), (3, 3)]), 1: Alignment.of([(0, 0), (1, 1), (2, 2)])}
        result = run_audit(Subject(network, reader), passages, out=tmp_path, settings=QUICK, links=links)
    assert (result.texts, result.passages) == (2, len(passages))
    assert "rollout" not in {score.of for score in result.scores}
    assert result.labels == ()
    assert result.accuracy is None
    assert 0 <= result.score("aer", "layer 2").value <= 1
    assert result.score("tau", "layer 2", "gradient").n == 2
    assert result.score("tvd", "uniform", "layer 1").value > 0
    assert {example.output for example in result.examples} == {passage.output for passage in passages}


def test_many_at_once_are_as_one_by_one(tmp_path):
    tiny = CLASSIFIERS["bert"]()
    tiny.model.double()
    with open_model(tiny.model, tiny.tokenizer) as (network, reader):
        passages = [reader.read(i, text) for i, text in enumerate(TEXTS)]
        one, many = (
            run_audit(
                Subject(network, reader, max_tokens=size),
                passages,
                out=tmp_path / str(size),
                settings=replace(QUICK, chunk=chunk),
            )
            for size, chunk in ((1, 1), (9999, 99))
        )
    for first, second in zip(one.scores, many.scores, strict=True):
        assert first.estimate.value == pytest.approx(second.estimate.value, abs=1e-7, nan_ok=True), first
