"""What a user can choose: measures, baseline, erasure, spans; and what the dry run says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.attribution.importance import d_y_h, d_y_x, integrated_gradients
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.interventions import other_maps
from heedful.attribution.modules import ModuleNetwork
from heedful.attribution.network import Output
from heedful.audits import audit
from heedful.audits.audit import AuditSettings, prepared, run_audit
from heedful.audits.dry_run import rehearse_audit
from heedful.config import MEASURES
from heedful.errors import ConfigError
from tests.audits import tiny
from tests.audits.constructed import passages, pooled

pytest.importorskip("transformers")

from heedful.attribution.huggingface import open_model

QUICK = AuditSettings(integrated_steps=2, adversary_steps=2, random_orders=1, resamples=9)


@pytest.fixture(scope="module")
def opened():
    made = tiny.bert(seed=3)
    with open_model(made.model.double(), made.tokenizer) as (network, reader):
        yield Subject(network, reader), [reader.read(i, text) for i, text in enumerate(tiny.TEXTS)]


def test_a_skipped_measure_is_not_measured_and_named(tmp_path):
    result = run_audit(pooled(), passages(7), out=tmp_path, settings=replace(QUICK, measures=("tau",)))
    quantities = {score.quantity for score in result.scores}
    assert "tau" in quantities
    assert not quantities & {"tvd", "flip", "adversary", "random tau", "comprehensiveness", "sufficiency"}
    assert [sentence.split(" was skipped")[0] for sentence in result.left_out] == list(MEASURES)[1:]
    reasons = [question.because for question in result.verdict.questions]
    skipped = {0: "changes", 2: "random", 3: "erasure", 4: "adversary"}
    for number, name in skipped.items():
        assert reasons[number] == f"not asked: the measure {name!r} was skipped (--only or --skip)"
    assert not any("skipped" in reasons[number] for number in (1, 5))


@pytest.mark.parametrize("name", MEASURES)
def test_any_measure_can_be_skipped_and_changes_no_other(name, tmp_path):
    every = run_audit(pooled(), passages(7), out=tmp_path / "all", settings=QUICK)
    rest = tuple(other for other in MEASURES if other != name)
    some = run_audit(pooled(), passages(7), out=tmp_path / "some", settings=replace(QUICK, measures=rest))
    known = {(s.quantity, s.of, s.against): s.estimate for s in every.scores}
    assert len(some.scores) < len(known) or name == "hidden"
    for score in some.scores:
        assert score.estimate.value == pytest.approx(known[score.quantity, score.of, score.against].value, nan_ok=True)


@pytest.mark.parametrize("baseline", ["pad", "mask"])
def test_integrated_gradients_add_up_to_the_difference_from_their_baseline(opened, baseline):
    subject, texts = opened
    piece = subject.reader.special_piece(baseline)
    targeted = subject.with_targets(texts[:2])
    rows = integrated_gradients(subject, targeted, 200, baseline=piece)
    for passage, row in zip(targeted, rows, strict=True):
        nothing = passage.masked(np.zeros(len(passage.words), dtype=bool), piece)
        everything = np.ones(len(passage.words), dtype=bool)
        whole, start = (subject.predict([p], [everything])[0] for p in (passage, nothing))
        assert row.sum() == pytest.approx(whole - start, abs=1e-4)
        assert row[0] == 0  # a special word is the same at both ends


def test_words_can_be_masked_in_place_of_deleted(opened):
    subject, texts = opened
    masking = prepared(subject, replace(QUICK, erase="mask"))
    assert subject.mask is None
    (passage,) = subject.with_targets(texts[:1])
    (row,) = d_y_x(masking, [passage])
    everything = np.ones(len(passage.words), dtype=bool)
    for word in np.flatnonzero(passage.explained()):
        without = everything.copy()
        without[word] = False
        masked = passage.masked(without, subject.reader.special_piece("mask"))
        assert len(masked.pieces) == len(passage.pieces)
        whole, left = (subject.predict([p], [everything])[0] for p in (passage, masked))
        assert row[word] == pytest.approx(whole - left, abs=1e-10)


@pytest.mark.parametrize(
    ("changed", "option"), [({"baseline": "mask"}, "--baseline mask"), ({"erase": "mask"}, "--erase mask")]
)
def test_a_tokeniser_without_the_token_is_named(changed, option, tmp_path):
    made = tiny.gpt2()
    with open_model(made.model, made.tokenizer) as (network, reader):
        texts = [reader.read(0, tiny.TEXTS[0])]
        with pytest.raises(ConfigError, match=f"{option}: the model's tokeniser has no mask token; use"):
            run_audit(Subject(network, reader), texts, out=tmp_path, settings=replace(QUICK, **changed))


def test_spans_share_what_is_lost_without_them(opened):
    subject, texts = opened
    (passage,) = subject.with_targets(texts[3:4])
    words = np.flatnonzero(passage.explained())
    (row,), (hidden,) = d_y_x(subject, [passage], spans=2), d_y_h(subject, [passage], 1, spans=2)
    keep = np.ones(len(passage.words), dtype=bool)
    whole = subject.predict([passage], [keep])[0]
    for span in np.array_split(words, 2):
        without = keep.copy()
        without[span] = False
        lost = whole - subject.predict([passage], [without])[0]
        np.testing.assert_allclose(row[span], lost / len(span), atol=1e-10)
        assert np.ptp(hidden[span]) == 0
    singles = d_y_x(subject, [passage])
    np.testing.assert_array_equal(d_y_x(subject, [passage], spans=99), singles)


def test_a_prediction_that_is_no_number_under_other_attention_is_not_blamed_on_the_model():
    table, output = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2)

    def run(embedded, change):
        own = embedded[..., 0].softmax(-1)[:, None, None]
        alpha = own if change is None else change(0, own)
        broken = torch.where((alpha - own).abs().sum() > 1e-6, torch.nan, 0.0)
        return Output(output((alpha[:, 0] @ embedded)[:, 0] + broken).softmax(-1), (alpha,), (embedded,))

    network = ModuleNetwork((table, output), table, run, layers=1, heads=1, can_change=True)
    texts = [Passage.of_pieces(0, [1, 2, 3], target=0), Passage.of_pieces(1, [4, 5], target=1)]
    assert [other.divergence for other in other_maps(Subject(network), texts, layer=0, steps=3)] == [0.0, 0.0]


def test_the_dry_run_counts_what_an_audit_runs(opened, tmp_path, monkeypatch):
    subject, texts = opened
    settings = replace(QUICK, measures=("tau",))
    plan = rehearse_audit(subject, texts, settings)
    assert (plan.texts, plan.longest, list(plan.passes)) == (6, max(len(t.pieces) for t in texts), ["tau"])
    assert plan.seconds > 0
    assert rehearse_audit(subject, texts, replace(settings, spans=2)).passes["tau"] < plan.passes["tau"]
    monkeypatch.setattr(audit, "BEAT", 0.0)
    events = []
    run_audit(subject, texts, out=tmp_path, settings=settings, on_progress=events.append)
    forward = max(event.get("passes", 0) for event in events)
    backward = len(texts) * (1 + settings.integrated_steps)
    assert forward == plan.passes["tau"] - backward  # the same pass finds what is predicted


def test_a_long_text_is_announced(tmp_path):
    long = Passage.of_pieces(0, [2, 3, 4] * 200)
    events = []
    settings = replace(QUICK, measures=("changes",), sample=1)
    run_audit(pooled(), [long], out=tmp_path / "a", settings=settings, on_progress=events.append)
    assert not any("pieces" in event.get("notice", "") for event in events)
    settings = replace(QUICK, measures=("tau",), integrated_steps=0, spans=3)
    run_audit(pooled(), [long], out=tmp_path / "b", settings=settings, on_progress=events.append)
    assert not any("pieces" in event.get("notice", "") for event in events)
    settings = replace(settings, spans=None)
    run_audit(pooled(), [long], out=tmp_path / "c", settings=settings, on_progress=events.append)
    (notice,) = (event["notice"] for event in events if "pieces" in event.get("notice", ""))
    assert notice.startswith("text 0 has 600 pieces: leave one out runs the model on it 600 times; --dry-run")
