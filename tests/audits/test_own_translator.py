import numpy as np
import pytest
import torch

from heedful.attribution.attention_maps import DELETION, GRADIENT
from heedful.attribution.modules import translator_network
from heedful.audits.audit import AuditSettings, run_audit
from heedful.audits.request import open_request, open_translator_run
from heedful.config import TranslatorConfig
from heedful.data.batching import collate
from heedful.errors import ConfigError, DataError, RunError
from heedful.models.translator import Translator
from heedful.studies.run_directory import RunDirectory

QUICK = AuditSettings(integrated_steps=2, adversary_steps=3, random_orders=1, resamples=20)


def test_a_passage_is_an_output_word_and_reads_as_teacher_forcing_does(smoke_translation_run):
    network, reader, passages, links = open_translator_run(smoke_translation_run)
    pairs = RunDirectory(smoke_translation_run).pairs("validation")
    batch = collate(pairs, np.array([0]))
    output = network.modules[0](batch)
    logits = network.modules[0].read(output.context, output.states)
    own = [passage for passage in passages if passage.text == 0]
    assert own
    for passage in own:
        found = network.run(network.embed(torch.tensor([passage.pieces])), torch.tensor([passage.before]))
        at = len(passage.before) - 1
        torch.testing.assert_close(found.probabilities[0], logits[0, at].softmax(-1))
        torch.testing.assert_close(found.attention[0][0, :, 0], output.alpha[0, :, at])
        assert passage.target == int(batch.target_out[0, at])
    assert links is not None
    assert own[0].special[0]
    assert reader.read(0, " ".join(own[0].words[1:-1])).pieces == own[0].pieces
    with pytest.raises(RunError, match=r"model\.safetensors: no such file; .* or has no model of seed 7"):
        open_translator_run(smoke_translation_run, seed=7)


def test_a_study_of_translation_is_audited_with_its_gold_links(smoke_translation_run, tmp_path):
    with open_request(smoke_translation_run, sample=3) as request:
        texts = {passage.text for passage in request.passages}
        assert len(texts) == 3
        short = [p for p in request.passages if max(map(len, p.words)) < 100][:4]
        result = run_audit(request.subject, short, out=tmp_path, settings=QUICK, links=request.links)
    assert result.score("tau", "layer 1", DELETION).n + result.score("tau", "layer 1", DELETION).undefined == len(short)
    assert 0 <= result.score("aer", "layer 1").value <= 1
    assert result.score("tau", "layer 1", GRADIENT).n > 0
    with pytest.raises(ConfigError, match="give no data"), open_request(smoke_translation_run, "toy-de-en"):
        pass


def test_a_random_translator_is_another_and_heads_are_counted():
    model = Translator(TranslatorConfig(embedding=5, hidden=4, layers=1, attention="bilinear", heads=3), vocabulary=9)
    network = translator_network(model.eval())
    other = network.randomised(0)
    assert not torch.equal(model.output.weight, other.modules[0].output.weight)
    assert network.heads == 3
    embedded = network.embed(torch.tensor([[4, 5, 6]]))
    uniform = network.run(embedded, torch.tensor([[2, 7]]), lambda layer, alpha: torch.full_like(alpha, 1 / 3))
    torch.testing.assert_close(uniform.attention[0], torch.full((1, 3, 1, 3), 1 / 3))
    with pytest.raises(DataError, match="output word"):
        network.run(embedded)
