import base64
import json
import zlib

import numpy as np
import pytest

from heedful.metrics.agreement import agreement
from heedful.reports.html import Arrays, json_for_html
from heedful.reports.study_page import study_payload
from heedful.studies import page_data
from heedful.studies.page_data import study_page_data
from heedful.studies.page_words import attended_words
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.tracing.store import Trace


@pytest.fixture(scope="module")
def run(smoke_run):
    return RunDirectory(smoke_run)


@pytest.fixture(scope="module")
def payload(run):
    result = StudyResult.load(run.result_path)
    return study_payload(run, result, study_page_data(run, result))


def read(payload, name):
    """An embedded array as the page reads it."""
    note = payload.arrays.directory[name]
    dtype = {"Uint8Array": "u1", "Int8Array": "i1", "Uint16Array": "<u2", "Int16Array": "<i2", "Uint32Array": "<u4"}
    content = zlib.decompress(base64.b64decode(payload.arrays.packed()))
    part = content[note["start"] : note["start"] + note["bytes"]]
    return np.frombuffer(part, dtype=dtype.get(note["type"], "<f4"))


def shown_rows(run, payload, quantity, model="standard"):
    trace = run.model(ModelSpec(model, 0)).trace()
    chosen = np.array(payload.content["texts"]["index"])
    return [trace.quantity(quantity, step).take(chosen) for step in payload.content["steps"]]


def test_words_are_the_texts(run, payload):
    split, written = run.split("validation"), run.words()
    places = read(payload, "places")
    assert [payload.content["words"][i] for i in places] == [
        word for i in payload.content["texts"]["index"] for word in ["", *written[i], ""]
    ]
    ids = [w for i in payload.content["texts"]["index"] for w in split.text(i)]
    kinds = {1: "unknown", 2: "start", 3: "end"}
    assert [payload.content["special"][i] for i in places] == [kinds.get(int(w), "") for w in ids]


def test_alpha_survives_quantisation(run, payload):
    exact = np.stack([rows.values for rows in shown_rows(run, payload, "alpha")])
    kept = (read(payload, "standard-0/alpha").reshape(exact.shape) / 255.0) ** 2
    assert np.abs(kept - exact).max() < 0.004


@pytest.mark.parametrize("quantity", ["beta_logit", "delta"])
def test_signed_quantities_survive_quantisation(run, payload, quantity):
    exact = np.stack([rows.values for rows in shown_rows(run, payload, quantity)])
    level = read(payload, f"standard-0/{quantity}").reshape(exact.shape) / 127.0
    largest = payload.arrays.directory[f"standard-0/{quantity}"]["largest"]
    assert np.abs(np.sign(level) * level**2 * largest - exact).max() < largest / 120


def test_agreement_on_the_page_is_the_measure(run, payload):
    lengths = np.array(payload.content["texts"]["length"])
    higher = read(payload, "standard-0/higher").reshape(len(payload.content["steps"]), -1)
    alphas, betas = shown_rows(run, payload, "alpha"), shown_rows(run, payload, "beta_logit")
    for counted, alpha, beta in zip(higher, alphas, betas, strict=True):
        np.testing.assert_array_equal(100 * counted < 5 * lengths, agreement(alpha, beta) > 0)


def test_a_uniform_twin_has_no_attention_to_show(payload):
    assert "uniform-0/alpha" not in payload.arrays.directory
    assert "uniform-0/beta_logit" in payload.arrays.directory


def test_the_choice_is_varied_and_the_same_each_time(run, monkeypatch):
    monkeypatch.setattr(page_data, "MOST_TEXTS", 12)
    trace, split = run.model(ModelSpec("standard", 0)).trace(), run.split("validation")
    chosen = page_data.choose_texts(trace, split.lengths, 1)
    np.testing.assert_array_equal(chosen, page_data.choose_texts(trace, split.lengths, 1))
    right = trace.correct(trace.steps[-1])
    assert len(set(chosen)) == 12
    assert 0 < right[chosen].sum() < 12


def test_long_texts_are_fewer_but_never_below_the_least(run):
    trace, split = run.model(ModelSpec("standard", 0)).trace(), run.split("validation")
    assert len(page_data.choose_texts(trace, split.lengths, 10**9)) == page_data.FEWEST_TEXTS


def test_token_means_by_hand(run):
    split, trace = run.split("validation"), run.model(ModelSpec("standard", 0)).trace()
    step = trace.steps[-1]
    table = attended_words(split, [trace], [step])
    word = run.vocabulary().words.index("good")
    alpha = trace.quantity("alpha", step)
    drawn = [alpha[i][k] * n for i, n in enumerate(split.lengths) for k in np.flatnonzero(split.text(i) == word)]
    at = table.ids.tolist().index(word)
    assert table.counts[at] == len(drawn)
    assert table.attention[0, at] == pytest.approx(np.mean(drawn), rel=1e-5)
    assert table.counts.min() >= table.least


def test_attention_over_its_share_averages_to_one(run):
    split, trace = run.split("validation"), run.model(ModelSpec("standard", 0)).trace()
    total = sum(trace.quantity("alpha", 0)[i].sum() * n for i, n in enumerate(split.lengths))
    assert total / split.lengths.sum() == pytest.approx(1, rel=1e-5)


def test_json_in_a_script_element_holds_no_markup():
    hostile = {"</script>": "<!--<script>&\u2028\ud800{{7*7}}"}
    text = json_for_html(hostile)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == hostile


def test_an_array_a_page_cannot_read_is_refused():
    with pytest.raises(KeyError):
        Arrays().add("a", np.zeros(2, dtype=np.float64))


def test_no_step_recorded_by_all_models_is_left_out(run, payload):
    assert payload.content["steps"] == list(Trace(run.model(ModelSpec("uniform", 0)).trace_folder()).steps)
