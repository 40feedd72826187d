import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from heedful.audits.audit import AuditSettings, free_folder, run_audit
from heedful.audits.measurements import Measurements
from heedful.audits.result import AuditResult
from heedful.audits.verdict import FULL_SEARCH
from heedful.data.parallel import Alignment
from heedful.errors import ConfigError, DataError, RunError
from heedful.records.index import list_runs
from heedful.storage.manifest import Manifest
from tests.audits.constructed import in_pieces, passages, pooled, stacked

QUICK = AuditSettings(integrated_steps=4, adversary_steps=40, random_orders=2, chunk=5, resamples=200)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The model whose attention decides everything, and the one whose attention is ignored."""
    some, full = passages(24), replace(QUICK, adversary_steps=FULL_SEARCH)
    return {
        listens: run_audit(pooled(listens=listens), some, out=tmp_path_factory.mktemp("audit"), settings=full)
        for listens in (True, False)
    }


def answers(result):
    return [question.answer for question in result.verdict.questions]


def test_the_verdicts_differ_as_they_must(both):
    moves, agrees, _, needs, another, layers = answers(both[True])  # tanh is flat at the key: its gradient is near 0
    assert (moves, agrees, needs, another, layers) == ("yes", "unclear", "yes", "no", "unclear")
    assert both[True].verdict.questions[1].statistic == "τ of layer 1 with gradient"
    moves, *_, another, _ = answers(both[False])
    assert (moves, another) == ("no", "yes")
    assert both[True].verdict.sentence != both[False].verdict.sentence


def test_predictions_do_not_move_at_all_where_attention_is_ignored(both):
    assert both[False].score("tvd", "permuted", "all layers").value == 0
    assert both[False].score("flip", "uniform", "all layers").value == 0
    assert both[True].score("tvd", "permuted", "all layers").value > 0.3


def test_labels_come_by_name_and_with_accuracy(both):
    result = both[True]
    assert [(count.name, count.gold, count.predicted) for count in result.labels] == [("bad", 12, 12), ("good", 12, 12)]
    assert result.accuracy is not None
    assert result.accuracy.value == 1


def test_every_mean_has_an_interval_over_texts(both):
    for score in both[True].scores:
        estimate = score.estimate
        models = QUICK.random_models
        assert estimate.n + estimate.undefined == (models if score.quantity.startswith("random ") else 24)
        assert estimate.n == 0 or estimate.low <= estimate.value <= estimate.high


def test_comparisons_are_tested_and_corrected(both):
    found = {(c.quantity, c.first, c.second): c for c in both[True].contrasts}
    erased = found["comprehensiveness", "layer 1", "random order"]
    assert erased.difference.low > 0
    assert erased.p < 0.01
    assert all(c.corrected >= c.p or np.isnan(c.p) for c in both[True].contrasts)
    assert ("concordance with leave one out", "this model", "random models") in found


def test_a_result_is_saved_and_comes_back(both, tmp_path):
    both[True].save(tmp_path / "again.json")
    assert AuditResult.load(tmp_path / "again.json").to_dict() == both[True].to_dict()


def test_examples_show_words_map_and_importances(both):
    example = both[True].examples[0]
    assert len(both[True].examples) == 24
    assert len(example.words) == len(example.map) == 5
    assert example.words[int(np.argmax(example.map))] in ("dull", "fine")
    assert {weights.name for weights in example.importances} >= {"gradient", "leave one out", "integrated gradients"}
    assert example.rationale == ()


def test_a_broken_off_audit_goes_on_where_it_was(tmp_path, monkeypatch):
    some, subject = passages(12), pooled()
    whole = run_audit(subject, some, out=tmp_path / "whole", settings=QUICK)
    measured = []
    measure = Measurements.measure

    def until_the_third(self, chunk, **options):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append([passage.text for passage in chunk])
        return measure(self, chunk, **options)

    monkeypatch.setattr(Measurements, "measure", until_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_audit(subject, some, out=tmp_path / "broken", settings=QUICK)
    before = list(measured)
    measured.clear()
    resumed = run_audit(subject, some, out=tmp_path / "broken", settings=QUICK)
    assert resumed.to_dict() == whole.to_dict()
    assert len(before) == 2
    assert len(measured) == 2
    assert (tmp_path / "broken" / "result.json").read_text() == (tmp_path / "whole" / "result.json").read_text()


def test_while_it_runs_it_is_said_to_and_nobody_else_may(tmp_path):
    some, subject, seen = passages(2), pooled(), []

    def look(line):
        seen.append(list_runs(tmp_path).runs[0].state)
        with pytest.raises(RunError, match="audit is in use by process"):
            run_audit(subject, some, out=tmp_path / "audit", settings=QUICK)

    run_audit(subject, some, out=tmp_path / "audit", settings=QUICK, on_progress=look)
    assert set(seen) == {"running"}
    assert [run.state for run in list_runs(tmp_path).runs] == ["finished"]


def test_a_damaged_part_is_measured_anew(tmp_path, monkeypatch):
    some, subject = passages(6), pooled()
    settings = replace(QUICK, chunk=2)
    whole = run_audit(subject, some, out=tmp_path, settings=settings)
    first, second, *others = sorted((tmp_path / "parts").iterdir())
    assert len(others) == 4
    first.write_text(first.read_text()[:100])
    changed = json.loads(second.read_text())
    changed["answer"]["numbers"]["correct"][0] = 0.25
    second.write_text(json.dumps(changed))
    count = []
    measure = Measurements.measure
    monkeypatch.setattr(
        Measurements, "measure", lambda self, chunk, **o: (count.append(1), measure(self, chunk, **o))[1]
    )
    assert run_audit(subject, some, out=tmp_path, settings=settings).to_dict() == whole.to_dict()
    assert 1 <= len(count) <= 2  # their chunks, which may be one


def test_another_model_or_setting_has_parts_of_its_own(tmp_path):
    some, settings = passages(3), replace(QUICK, adversary_steps=2)
    run_audit(pooled(), some, out=tmp_path, settings=settings)
    run_audit(pooled(), some, out=tmp_path, settings=replace(settings, resamples=100))
    assert len(list((tmp_path / "parts").iterdir())) == 3
    run_audit(pooled(listens=False, seed=1), some, out=tmp_path, settings=settings)
    run_audit(pooled(), some, out=tmp_path, settings=replace(settings, adversary_steps=3))
    assert len(list((tmp_path / "parts").iterdir())) == 9


def test_chunks_do_not_change_the_numbers(tmp_path):
    some = [*passages(5), *(replace(passage, text=passage.text + 5) for passage in in_pieces(4))]
    settings = replace(QUICK, adversary_steps=3, integrated_steps=3)
    one, many = (
        run_audit(stacked(), some, out=tmp_path / str(chunk), settings=replace(settings, chunk=chunk))
        for chunk in (1, 99)
    )
    assert [(s.quantity, s.of, s.against) for s in one.scores] == [(s.quantity, s.of, s.against) for s in many.scores]
    for first, second in zip(one.scores, many.scores, strict=True):
        assert first.estimate.value == pytest.approx(second.estimate.value, abs=1e-9, nan_ok=True), first
    assert answers(one) == answers(many)


def test_a_stack_of_layers_has_every_map(tmp_path):
    result = run_audit(stacked(), passages(6), out=tmp_path, settings=replace(QUICK, adversary_steps=2))
    maps = {score.of for score in result.scores if score.quantity == "entropy"}
    heads = {f"layer {layer} head {head}" for layer in (1, 2) for head in (1, 2, 3)}
    assert maps == heads | {"layer 1", "layer 2", "mean", "rollout", "layer 2 × norm", "layer 2 × gradient"}
    assert result.headline == "layer 2"
    assert result.score("tau", "layer 2 head 3", "hidden gradient").n > 0
    assert result.score("random tau", "layer 2", "leave one out").n > 0
    assert result.score("tvd", "uniform", "layer 1").n == 6
    with pytest.raises(KeyError, match="was not measured"):
        result.score("tau", "layer 9", "gradient")


def test_a_model_that_cannot_be_changed_or_made_anew_leaves_questions_open(tmp_path):
    subject = pooled(can_change=False, fresh=False)
    result = run_audit(subject, passages(9), out=tmp_path, settings=QUICK)
    asked = {q.question: q for q in result.verdict.questions}
    assert [q.answer for q in asked.values() if q.because.startswith("not asked")] == ["unclear"] * 3
    assert "no random models" in asked["Does it agree better than the attention of untrained models?"].because


def test_a_sample_is_drawn_under_a_seed(tmp_path):
    settings = replace(QUICK, sample=4, adversary_steps=0, integrated_steps=0)
    drawn = [
        [
            example.text
            for example in run_audit(
                pooled(), passages(12), out=tmp_path, settings=replace(settings, seed=seed)
            ).examples
        ]
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 4


def test_rationales_are_compared(tmp_path):
    some = passages(6)
    rationales = {p.text: [word in ("dull", "fine") for word in p.words[1:]] for p in some}
    result = run_audit(pooled(), some, out=tmp_path, settings=QUICK, rationales=rationales)
    assert result.score("auprc", "layer 1").value == 1
    assert result.score("token f1", "leave one out").low > result.score("token f1", "random order").high
    assert result.score("auprc", "random order").value < 0.8
    assert result.rationale_percent == 16
    assert sum(result.examples[0].rationale) == 1


def test_truncation_and_texts_without_words_are_counted(tmp_path):
    some = passages(4)
    some[1] = replace(some[1], cut=7)
    empty = replace(some[0], text=9, words=("<s>",), special=(True,), pieces=(0,), word=(0,))
    result = run_audit(pooled(), [*some, empty], out=tmp_path, settings=replace(QUICK, adversary_steps=0))
    assert (result.passages, result.wordless, result.cut, result.cut_pieces) == (4, 1, 1, 7)
    with pytest.raises(DataError, match="none of 1 passages has a word"):
        run_audit(pooled(), [empty], out=tmp_path)


def test_special_words_can_be_part_of_it(tmp_path):
    settings = replace(QUICK, include_special=True, adversary_steps=2)
    result = run_audit(stacked(), in_pieces(4), out=tmp_path, settings=settings)
    assert len(result.examples[0].map) == 5
    assert result.score("comprehensiveness", "layer 2").n == 4


def test_a_map_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="there is no map 'layer 7'; there are layer 1"):
        run_audit(pooled(), passages(2), out=tmp_path, settings=replace(QUICK, headline="layer 7"))


def test_progress_counts_passages(tmp_path):
    lines = []
    run_audit(pooled(), passages(7), out=tmp_path, settings=replace(QUICK, adversary_steps=0), on_progress=lines.append)
    assert [line.get("step") for line in lines if "passes" not in line] == [0, 1, 6, 7, None]
    assert lines[-1] == {"model": "audit", "done": True}


def test_links_are_scored_where_passages_are_output_words(tmp_path):
    """The classifier looks at the decisive word, which is what a gold link of the one output word names."""
    some = passages(6)
    links = {p.text: Alignment.of([(p.words.index(("dull", "fine")[i % 2]) - 1, 0)]) for i, p in enumerate(some)}
    result = run_audit(pooled(), some, out=tmp_path, settings=replace(QUICK, adversary_steps=0), links=links)
    assert result.score("aer", "layer 1").value == 0
    assert result.score("aer", "random order").value > 0.5


def test_no_folder_of_somebody_else(tmp_path):
    assert free_folder(tmp_path / "new") == tmp_path / "new"
    (tmp_path / "file").write_text("")
    Manifest("study").write(tmp_path)
    with pytest.raises(ConfigError, match="is a file"):
        free_folder(tmp_path / "file")
    with pytest.raises(ConfigError, match="holds a study"):
        free_folder(tmp_path)


def test_states_are_set_beside_inputs_by_all_four_accounts(tmp_path):
    """M1 of meister2021."""
    result = run_audit(stacked(), passages(6), out=tmp_path, settings=replace(QUICK, adversary_steps=0))
    beside = {c.first: c.second for c in result.contrasts if c.quantity == "tau" and c.first.startswith("hidden ")}
    assert beside == {
        "hidden gradient": "gradient",
        "hidden gradient × state": "gradient × input",
        "hidden integrated gradients": "integrated gradients",
        "hidden leave one out": "leave one out",
    }
    assert all(c.p <= c.corrected <= 1 for c in result.contrasts)


def test_what_is_asked_of_a_layer_is_asked_of_a_head_that_is_shown(tmp_path):
    settings = replace(QUICK, headline="layer 2 head 3", adversary_steps=2)
    result = run_audit(stacked(), passages(6), out=tmp_path, settings=settings)
    assert result.score("random tau", "layer 2 head 3", "leave one out").n > 0
    assert result.score("adversary", "layer 2 head 3").n == 6
    whole = run_audit(stacked(), passages(6), out=tmp_path, settings=replace(settings, headline="mean"))
    assert "of one layer or head" in whole.verdict.questions[4].because


def test_without_captum_one_sentence_says_what_was_left_out(tmp_path, monkeypatch):
    some, settings, lines = passages(3), replace(QUICK, adversary_steps=0, maps=("raw",)), []
    assert run_audit(pooled(), some, out=tmp_path, settings=settings).left_out == ()
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    result = run_audit(pooled(), some, out=tmp_path, settings=settings, on_progress=lines.append)
    (sentence,) = result.left_out
    assert sentence.startswith("integrated gradients were left out: ")
    assert [line["notice"] for line in lines if "notice" in line] == [sentence]
    assert not any("integrated" in score.against for score in result.scores)
    assert sentence in AuditResult.load(tmp_path / "result.json").left_out
    assert run_audit(pooled(), some, out=tmp_path, settings=replace(settings, integrated_steps=0)).left_out == ()
