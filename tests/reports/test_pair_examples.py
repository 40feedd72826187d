import base64
import zlib
from itertools import pairwise

import numpy as np
import pytest

from heedful.data.ragged import Ragged
from heedful.data.subwords import Subwords, train_subwords
from heedful.metrics.agreement import agreement
from heedful.metrics.translation_quality import alignment_scores, links_from_attention
from heedful.reports.examples import spelling
from heedful.reports.study_page import study_payload
from heedful.studies import page_data
from heedful.studies.page_words import translated_words
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory

TYPES = {"Uint8Array": "u1", "Int8Array": "i1", "Uint16Array": "<u2", "Int16Array": "<i2", "Uint32Array": "<u4"}


@pytest.fixture(scope="module")
def run(smoke_translation_run):
    return RunDirectory(smoke_translation_run)


@pytest.fixture(scope="module")
def payload(run):
    result = StudyResult.load(run.result_path)
    return study_payload(run, result, page_data.study_page_data(run, result))


@pytest.fixture(scope="module")
def chosen(run, payload):
    return page_data.take_pairs(run.pairs("validation"), np.array(payload.content["pairs"]["index"]))


@pytest.fixture(scope="module")
def read(payload):
    content = zlib.decompress(base64.b64decode(payload.arrays.packed()))

    def array(name):
        note = payload.arrays.directory[name]
        part = content[note["start"] : note["start"] + note["bytes"]]
        return np.frombuffer(part, dtype=TYPES.get(note["type"], "<f4"))

    return array


def cells_of(chosen):
    return chosen.source.lengths * chosen.outputs.lengths


def recorded(run, payload, chosen, quantity, model="standard"):
    trace = run.model(ModelSpec(model, 0)).trace()
    return [trace.quantity(quantity, step).take(chosen.rows) for step in payload.content["steps"]]


def test_words_are_the_sentences(run, payload, chosen, read):
    words, vocabulary = payload.content["words"], run.tokeniser().vocabulary.words
    for side, ids in (("source", chosen.source), ("target", chosen.outputs)):
        assert [words[i] for i in read(side)] == [vocabulary[i] for i in ids.values]
    assert payload.content["joined"] == [0] * len(words)


def test_rows_of_a_pair_are_the_rows_of_the_trace(run, chosen):
    trace = run.model(ModelSpec("standard", 0)).trace()
    np.testing.assert_array_equal(trace.example()[chosen.rows], np.repeat(chosen.index, chosen.outputs.lengths))
    lengths = trace.quantity("alpha", 0).take(chosen.rows).lengths
    np.testing.assert_array_equal(lengths, np.repeat(chosen.source.lengths, chosen.outputs.lengths))
    assert cells_of(chosen).sum() == lengths.sum()


@pytest.mark.parametrize("name", ["standard-0/alpha", "lexicon/counting", "lexicon/model_1"])
def test_attention_survives_quantisation(run, payload, chosen, read, name):
    if name.startswith("lexicon"):
        trace = run.model(ModelSpec("lexicon", 0)).trace()
        rows = [trace.quantity("alpha", trace.steps[-1 if name.endswith("1") else 0]).take(chosen.rows)]
    else:
        rows = recorded(run, payload, chosen, "alpha")
    exact = np.stack([r.values for r in rows])
    assert np.abs((read(name).reshape(exact.shape) / 255.0) ** 2 - exact).max() < 0.004
    np.testing.assert_array_equal(
        read(f"{name}_top").reshape(len(rows), -1), [[np.argmax(r[k]) for k in range(len(r))] for r in rows]
    )


def test_knowledge_survives_quantisation_row_by_row(run, payload, chosen, read):
    rows = recorded(run, payload, chosen, "beta_logit")
    low, high = (read(f"standard-0/beta_{end}").reshape(len(rows), -1) / 1000 for end in ("low", "high"))
    levels = read("standard-0/beta").reshape(len(rows), -1) / 255
    for k, each in enumerate(rows):
        kept = np.repeat(low[k], each.lengths) + levels[k] * np.repeat(high[k] - low[k], each.lengths)
        span = np.repeat(high[k] - low[k], each.lengths)
        assert np.all(np.abs(kept - each.values) <= span / 500 + 0.0015)


def test_saliency_survives_quantisation_row_by_row(run, payload, chosen, read):
    rows = recorded(run, payload, chosen, "delta")
    levels = read("standard-0/delta").reshape(len(rows), -1) / 127.0
    peaks = read("standard-0/delta_peak").reshape(len(rows), -1)
    for k, each in enumerate(rows):
        peak = np.repeat(peaks[k], each.lengths)
        assert np.all(np.abs(np.sign(levels[k]) * levels[k] ** 2 * peak - each.values) <= peak / 120 + 1e-12)


def test_agreement_on_the_page_is_the_measure(run, payload, chosen, read):
    alphas, betas = recorded(run, payload, chosen, "alpha"), recorded(run, payload, chosen, "beta_logit")
    higher = read("standard-0/higher").reshape(len(alphas), -1)
    for counted, alpha, beta in zip(higher, alphas, betas, strict=True):
        np.testing.assert_array_equal(100 * counted < 5 * alpha.lengths, agreement(alpha, beta) > 0)


def test_predictions_are_words(run, payload, chosen, read):
    trace, step = run.model(ModelSpec("standard", 0)).trace(), payload.content["steps"][-1]
    places = read("standard-0/prediction").reshape(len(payload.content["steps"]), -1)[-1]
    right = places == read("target")
    np.testing.assert_array_equal(right, trace.correct(step)[chosen.rows])


def test_gold_links_are_marked_in_their_cells(run, chosen, read):
    gold = run.pairs("validation").alignments
    cells = np.split(read("gold"), np.cumsum(cells_of(chosen))[:-1])
    for m, marks, L in zip(chosen.index, cells, chosen.source.lengths, strict=True):
        grid = marks.reshape(-1, L)
        links = {(int(s) - 1, int(t)) for t, s in np.argwhere(grid == page_data.SURE)}  # the source has its <bos>
        assert links == gold[m].sure
        assert {(int(s) - 1, int(t)) for t, s in np.argwhere(grid)} == gold[m].possible


def test_alignment_errors_are_those_of_the_measure(run, payload, chosen, read):
    gold = [run.pairs("validation").alignments[m] for m in chosen.index]
    errors = read("standard-0/aer").reshape(len(payload.content["steps"]), -1)
    for kept, alpha in zip(errors, recorded(run, payload, chosen, "alpha"), strict=True):
        starts = chosen.outputs.offsets
        matrices = [np.stack([alpha[r] for r in range(a, b - 1)])[:, 1:-1] for a, b in pairwise(starts.tolist())]
        scores = alignment_scores(links_from_attention(matrices), [g.sure for g in gold], [g.possible for g in gold])
        np.testing.assert_allclose(kept, scores.per_sentence, atol=1e-6)


def test_a_uniform_twin_has_no_attention_to_show(payload):
    assert "uniform-0/alpha" not in payload.arrays.directory
    assert "uniform-0/beta" in payload.arrays.directory


def test_long_pairs_are_fewer_but_never_below_the_least(run):
    trace, pairs = run.model(ModelSpec("standard", 0)).trace(), run.pairs("validation")
    few = page_data.choose_pairs(trace, pairs, 10**9, 0)
    assert len(few) == page_data.FEWEST_PAIRS
    np.testing.assert_array_equal(few, page_data.choose_pairs(trace, pairs, 10**9, 0))
    assert len(page_data.choose_pairs(trace, pairs, 1, 1)) == len(pairs)


def test_parts_of_words_are_joined():
    tokeniser, _ = train_subwords(["ein Hundehaus", "ein Haus", "ein Hund"] * 3, 30)
    assert isinstance(tokeniser, Subwords)
    ids, owners = tokeniser.encode("ein Hundehaus")
    spelt = spelling(tokeniser, [2, *ids, 3])
    assert spelt["special"][0] == "start"
    assert spelt["special"][-1] == "end"
    pieces = list(zip(spelt["words"], spelt["joined"], strict=True))[1:-1]
    starts = [k == 0 or owners[k] != owners[k - 1] for k in range(len(owners))]
    assert [not joined for _, joined in pieces] == starts
    whole = "".join(("" if joined else " ") + (word if word != "▁" else "") for word, joined in pieces)
    assert "".join(whole.split()) == "einHundehaus"


def test_translations_by_hand(run):
    pairs = run.pairs("validation")
    trace, lexicon = (run.model(ModelSpec(kind, 0)).trace() for kind in ("standard", "lexicon"))
    step = trace.steps[-1]
    table = translated_words(pairs, [trace], lexicon, [step])
    alpha, beta = trace.quantity("alpha", step), trace.quantity("beta_logit", step)
    trans = lexicon.quantity("beta", 1)
    place = int(np.argmax(table.counts))
    word, meetings, row = table.ids[place], {}, 0
    whole = 0.0
    for source, outputs in zip(pairs.source, pairs.outputs, strict=True):
        for output in outputs:
            for at in np.flatnonzero(source == word):
                whole += alpha[row][at]
                if output > 3:
                    lift = beta[row][at] - beta[row].mean(dtype=np.float64)
                    meetings.setdefault(int(output), []).append((alpha[row][at], lift, trans[row][at]))
            row += 1
    by_attention = {o: sum(a for a, _, _ in cells) / whole for o, cells in meetings.items()}
    by_knowledge = {
        o: np.mean([b for _, b, _ in cells]) for o, cells in meetings.items() if len(cells) >= table.meetings
    }
    by_counting = {o: cells[0][2] for o, cells in meetings.items()}
    for ranking, scores in (
        (table.attention, by_attention),
        (table.knowledge, by_knowledge),
        (table.counting, by_counting),
    ):
        best = sorted(scores.values(), reverse=True)[: ranking.tokens.shape[-1]]
        np.testing.assert_allclose(ranking.scores[0, place, : len(best)], best, rtol=1e-4)
        for token, score in zip(ranking.tokens[0, place], ranking.scores[0, place], strict=True):
            if token >= 0:
                assert scores[int(token)] == pytest.approx(score, rel=1e-4)


def test_the_first_of_equals_is_the_top():
    np.testing.assert_array_equal(page_data.top(Ragged.of([[1.0, 1.0, 0.5], [0.0, 2.0]])), [0, 1])
