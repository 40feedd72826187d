"""A training followed from a plain loop: what is recorded, what it says, and that it leaves no trace in the model."""

import json
import math
import random
import shutil
import subprocess
import sys
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from markupsafe import escape
from torch import nn

from heedful.attribution.interface import Subject
from heedful.attribution.modules import ModuleNetwork, WordReader
from heedful.attribution.network import Output
from heedful.errors import ConfigError, DataError, RunError
from heedful.followed.result import PAIRS, FollowedDirectory, FollowedStep, FollowedTraining, StepAgreement
from heedful.followed.training import Probe, Recorder, take_snapshot
from heedful.metrics.agreement import agreement
from heedful.metrics.statistics import Estimate

WORDS = ("<s>", "the", "film", "was", "good", "bad", "dull", "fine")
LABELS = ("negative", "positive")
TEXTS = ("the film was good", "bad film", "the dull film was bad", "fine fine film", "good", "the film was dull")
RIGHT = (1, 0, 0, 1, 1, 0)


class Toy(nn.Module):
    """Attention by the first number of an embedding, over all words, `<s>` among them."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.table, self.output = nn.Embedding(len(WORDS), width), nn.Linear(width, len(LABELS))
        self.drop = nn.Dropout(0.3)

    def read(self, embedded, change=None):
        alpha = embedded[..., 0].softmax(-1)[:, None, None]
        probabilities = self.output(self.drop((alpha[:, 0] @ embedded)[:, 0])).softmax(-1)
        return Output(probabilities, (alpha,), (embedded,))


READER = WordReader({word: i for i, word in enumerate(WORDS)}, LABELS, first=("<s>", 0), longest=5)


@contextmanager
def opening(model):
    yield ModuleNetwork((model,), model.table, model.read, layers=1, heads=1, query="first"), READER


@pytest.fixture
def toy():
    torch.manual_seed(0)
    return Toy().double().train()


def seen(model, texts=TEXTS, right=RIGHT, max_tokens=4096):
    with opening(model) as (network, reader):
        passages = [reader.read(i, text) for i, text in enumerate(texts)]
        targets = right or [-1] * len(texts)
        probes = [Probe.of(replace(passage, target=target)) for passage, target in zip(passages, targets, strict=True)]
        return take_snapshot(Subject(network, reader, max_tokens=max_tokens), probes, labelled=bool(right))


def probability(model, words, label, scale=None):
    """Of a label by the model's own numbers, each word's embedding scaled."""
    embedded = model.table.weight[[WORDS.index(word) for word in words]][None]
    embedded = embedded if scale is None else embedded * scale[None, :, None]
    return model.eval().read(embedded).probabilities[0, label]


def test_attention_is_over_words_and_what_special_tokens_take_is_kept_beside_it(toy):
    snapshot, special = seen(toy)
    score = toy.table.weight[:, 0].detach().numpy()
    shares = []
    for row, text in zip(snapshot.quantities["alpha"].offsets, TEXTS, strict=False):
        weights = np.exp(score[[WORDS.index(word) for word in text.split()]])
        found = snapshot.quantities["alpha"].values[row : row + len(weights)]
        np.testing.assert_allclose(found, weights / weights.sum())
        shares.append(np.exp(score[0]) / (np.exp(score[0]) + weights.sum()))
    assert special == pytest.approx(np.mean(shares))


def test_word_knowledge_is_that_of_the_word_read_alone(toy):
    snapshot, _ = seen(toy)
    expected = [probability(toy, ("<s>", w), y).item() for t, y in zip(TEXTS, RIGHT, strict=True) for w in t.split()]
    np.testing.assert_allclose(1 / (1 + np.exp(-snapshot.quantities["beta_logit"].values)), expected)


def test_saliency_is_the_slope_of_the_log_likelihood_in_a_mask(toy):
    snapshot, _ = seen(toy)
    words, step = ("<s>", *TEXTS[2].split()), 1e-6
    for place in range(1, len(words)):
        scale = torch.ones(2, len(words), dtype=torch.float64)
        scale[0, place], scale[1, place] = 1 + step, 1 - step
        up, down = (probability(toy, words, RIGHT[2], s).log().item() for s in scale)
        found = snapshot.quantities["delta"][2][place - 1]
        assert found == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-9)


def test_predictions_and_their_odds(toy):
    snapshot, _ = seen(toy)
    given = [probability(toy, ("<s>", *text.split()), y).item() for text, y in zip(TEXTS, RIGHT, strict=True)]
    np.testing.assert_allclose(1 / (1 + np.exp(-snapshot.log_odds)), given, rtol=1e-6)
    assert snapshot.accuracy == np.mean([p > 0.5 for p in given])
    assert snapshot.loss == pytest.approx(-np.log(given).mean())


def test_many_at_once_as_one_by_one(toy):
    together, special = seen(toy)
    alone, special_alone = seen(toy, max_tokens=1)
    for name, rows in together.quantities.items():
        np.testing.assert_allclose(rows.values, alone.quantities[name].values, rtol=1e-12)
    assert special == pytest.approx(special_alone)


def test_without_labels_the_predicted_one_is_asked_about(toy):
    snapshot, _ = seen(toy, right=())
    assert set(snapshot.label) == {-1}
    assert (snapshot.log_odds > 0).all()
    chosen, _ = seen(toy, right=tuple(snapshot.prediction.tolist()))
    for name, rows in snapshot.quantities.items():
        np.testing.assert_array_equal(rows.values, chosen.quantities[name].values)


def test_probabilities_near_one_are_told_apart(toy):
    with torch.no_grad():
        toy.output.bias[1] += 40
    odds = seen(toy.float())[0].log_odds
    assert np.isfinite(odds).all()
    assert np.abs(odds).max() > 30


def train(model, recorder=None, steps=6, start=0, optimiser=None):
    """A plain loop whose dropout draws random numbers."""
    optimiser = optimiser or torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(start, steps):
        if recorder is not None:
            recorder.record(model, step)
        loss = torch.zeros(())
        for text, label in zip(TEXTS, RIGHT, strict=True):
            pieces = torch.tensor([READER.read(0, text).pieces])
            loss = loss - model.read(model.table(pieces)).probabilities[0, label].log()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return optimiser


def test_training_goes_as_it_would_have_gone(tmp_path):
    ends = []
    for followed in (False, True):
        torch.manual_seed(1)
        np.random.seed(1)
        model = Toy()
        recorder = Recorder(tmp_path / "run", TEXTS, opening=opening, labels=RIGHT, every=2) if followed else None
        optimiser = train(model, recorder)
        if recorder is not None:
            recorder.close(model, 6)
        state = [v for p in optimiser.state.values() for v in p.values()]
        ends.append(([*model.parameters(), *state, torch.rand(3)], np.random.rand()))
    (tensors, number), (followed_tensors, followed_number) = ends
    assert all(map(torch.equal, tensors, followed_tensors))
    assert number == followed_number


def test_random_numbers_of_python_stay(tmp_path):
    """In a process of its own: the checks of types that tests run under draw such numbers themselves."""
    code = """
import random, sys
from tests.followed.test_training import RIGHT, TEXTS, Recorder, Toy, opening
model, before = Toy(), random.getstate()
Recorder(sys.argv[1], TEXTS, opening=opening, labels=RIGHT).record(model, 0)
sys.exit(random.getstate() != before)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)


def test_gradients_and_modes_stay(toy, tmp_path):
    toy.output.eval()
    toy.table.weight.requires_grad_(False)
    for p in toy.output.parameters():
        p.grad = torch.ones_like(p)
    Recorder(tmp_path / "run", TEXTS, opening=opening, labels=RIGHT).record(toy, 0)
    assert (toy.training, toy.output.training, toy.drop.training) == (True, False, True)
    assert not toy.table.weight.requires_grad
    assert toy.table.weight.grad is None
    assert all(p.requires_grad and torch.equal(p.grad, torch.ones_like(p)) for p in toy.output.parameters())


def test_gradients_are_found_even_where_nobody_wants_any(toy, tmp_path):
    with torch.no_grad():
        Recorder(tmp_path / "run", TEXTS, opening=opening, labels=RIGHT).record(toy, 0)
    assert np.abs(FollowedDirectory(tmp_path / "run").trace().quantity("delta", 0).values).max() > 0


@pytest.fixture
def run(tmp_path):
    torch.manual_seed(0)
    model = Toy()
    recorder = Recorder(tmp_path / "run", TEXTS, opening=opening, labels=RIGHT, steps=(2, 5))
    train(model, recorder, steps=7)
    recorder.close(model, 7)
    return FollowedDirectory(tmp_path / "run")


def test_chosen_steps_and_the_first_and_last(run):
    assert run.trace().steps == (0, 2, 5, 7)
    metrics = run.folder.metrics()
    assert [line["step"] for line in metrics] == [0, 2, 5, 7]
    assert metrics[-1]["accuracy"] == run.trace().correct(7).mean()
    assert metrics[-1]["loss"] < metrics[0]["loss"]


def test_agreement_at_every_step_with_chance(run):
    result = run.result()
    trace = run.trace()
    for name, u, v in (("A(alpha,beta)", "alpha", "beta_logit"), ("A(alpha,delta)", "alpha", "delta")):
        expected = [agreement(trace.quantity(u, s), trace.quantity(v, s)).mean() for s in trace.steps]
        assert result.curve(name).values == pytest.approx(tuple(expected))
    assert result.random_agreement == pytest.approx(np.mean([1 / len(text.split()) for text in TEXTS]))
    first = result.steps[0].agreement("A(alpha,beta)")
    assert (first.gain.value, first.gain.low, first.gain.high) == (0, 0, 0)
    with pytest.raises(KeyError, match="beta_uf"):
        result.steps[0].agreement("A(alpha,beta_uf)")


def test_the_result_is_plain_json_and_comes_back(run):
    stored = json.loads(run.result_path.read_text())
    assert FollowedTraining.load(run.result_path).to_dict() == stored
    table = run.result().to_pandas()
    assert len(table) == 4 * 3
    assert set(table["step"]) == {0, 2, 5, 7}
    assert "A(alpha,delta)" in set(table["quantity"])
    assert escape(run.result().verdict.sentence[:20]) in run.result()._repr_html_()


def test_taken_up_again_as_if_never_interrupted(tmp_path):
    results = {}
    for name in ("whole", "broken"):
        torch.manual_seed(0)
        model = Toy()
        recorder = Recorder(tmp_path / name, TEXTS, opening=opening, labels=RIGHT, every=2, name="toy")
        optimiser = train(model, recorder, steps=4)
        if name == "broken":
            saved = deepcopy((model.state_dict(), optimiser.state_dict(), torch.get_rng_state()))
            train(model, recorder, steps=9, start=4, optimiser=optimiser)  # interrupted, and back to step 4
            model.load_state_dict(saved[0])
            optimiser.load_state_dict(saved[1])
            torch.set_rng_state(saved[2])
            recorder = Recorder(tmp_path / name, TEXTS, opening=opening, labels=RIGHT, every=2, name="toy")
        train(model, recorder, steps=6, start=4, optimiser=optimiser)
        results[name] = recorder.close(model, 6)
    assert FollowedDirectory(tmp_path / "broken").trace().steps == (0, 2, 4, 6)
    assert results["whole"] == results["broken"]


def test_another_training_has_another_folder(run, toy):
    with pytest.raises(RunError, match="other texts"):
        Recorder(run.root, TEXTS[:3], opening=opening, labels=RIGHT[:3]).record(toy, 0)
    with pytest.raises(RunError, match="not empty"):
        Recorder(run.root / "trace", TEXTS, opening=opening).record(toy, 0)


def test_nothing_recorded_yet(tmp_path):
    with pytest.raises(RunError, match="no step"):
        FollowedDirectory(tmp_path).result()


def test_a_model_that_is_lost_stops_no_training(toy, tmp_path):
    recorder = Recorder(tmp_path / "run", TEXTS, opening=opening, labels=RIGHT)
    recorder.record(toy, 0)
    with torch.no_grad():
        toy.output.weight[0, 0] = math.nan
    with pytest.warns(UserWarning, match="step 1 is not recorded"):
        recorder.record(toy, 1)
    with pytest.warns(UserWarning, match="step 2 is not recorded"):
        assert [step.step for step in recorder.close(toy, 2).steps] == [0]


def test_labels_by_name_or_number(toy, tmp_path):
    for name, labels in (("a", RIGHT), ("b", [LABELS[y] for y in RIGHT]), ("c", np.array(RIGHT))):
        Recorder(tmp_path / name, TEXTS, opening=opening, labels=labels, name="toy").record(toy, 0)
    stored = [(tmp_path / name / "following.json").read_text() for name in "abc"]
    assert stored[0] == stored[1] == stored[2]


def test_some_of_many_texts_and_what_was_cut(toy, tmp_path):
    long = "good bad good bad good bad good"
    Recorder(tmp_path / "run", [*TEXTS, long] * 9, opening=opening, max_texts=20).record(toy, 0)
    probe = FollowedDirectory(tmp_path / "run").probe()
    assert len(probe.words) == 20
    assert probe.decisions[0] == "20 of 63 texts sampled, seed 0"
    cut = sum(text == ("good", "bad", "good", "bad", "good") for text in probe.words)
    assert probe.decisions[1] == f"{cut} of 20 texts cut, by {2 * cut} tokens in all"
    assert math.isnan(probe.majority)
    assert FollowedDirectory(tmp_path / "run").folder.metrics() == [{"step": 0, "accuracy": None, "loss": None}]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"texts": "a film"}, "single text"),
        ({"texts": []}, "no text"),
        ({"texts": iter(["good", 3])}, "text 1 is of type int"),
        ({"labels": (1, 0)}, "6 texts, but 2 labels"),
        ({"every": 0}, "every is 0"),
        ({"steps": (3, -1)}, "steps has -1"),
        ({"every": 2, "steps": (3,)}, "give one of them"),
        ({"max_texts": 0}, "max_texts is 0"),
        ({"opening": None}, "give a tokenizer, or an `opening`"),
        ({"tokenizer": object()}, "give a tokenizer, or an `opening`"),
    ],
)
def test_what_cannot_be_followed(tmp_path, settings, words):
    with pytest.raises((ConfigError, DataError), match=words):
        Recorder(tmp_path / "run", **{"texts": TEXTS, "opening": opening, **settings})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("texts", "labels", "words"),
    [
        (("good", ""), None, "text 1 has no word"),
        (TEXTS, (1, 0, 0, 2, 1, 0), "text 3: label 2 is not one of negative, positive"),
        (TEXTS, ("good",) * 6, "text 0: label 'good' is not one of"),
    ],
)
def test_what_the_model_cannot_read(toy, tmp_path, texts, labels, words):
    with pytest.raises(DataError, match=words):
        Recorder(tmp_path / "run", texts, opening=opening, labels=labels).record(toy, 0)
    assert not (tmp_path / "run").exists()


def test_a_model_without_labels(toy, tmp_path):
    @contextmanager
    def unlabelled(model):
        with opening(model) as (network, reader):
            yield network, WordReader(reader.vocabulary, ())

    with pytest.raises(DataError, match="Toy has 0 labels"):
        Recorder(tmp_path / "run", TEXTS, opening=unlabelled).record(toy, 0)


def test_attention_that_decides_and_attention_that_does_not(tmp_path):
    """Two models made to differ: one attends to the telling words alone, the other to none of them."""
    draw = random.Random(0)
    filler, verdicts = ("the", "film", "was"), {}
    labels = [i % 2 for i in range(60)]
    texts = []
    for label in labels:
        words = [*draw.choices(filler, k=draw.randint(5, 9)), ("bad", "good")[label]]
        draw.shuffle(words)
        texts.append(" ".join(words))
    for name, attended in (("looks", ("good", "bad")), ("looks away", filler)):
        model = Toy(width=2)
        with torch.no_grad():
            model.table.weight.zero_()
            model.table.weight[WORDS.index("good"), 1], model.table.weight[WORDS.index("bad"), 1] = 3.0, -3.0
            model.output.weight.copy_(torch.tensor([[0.0, -1.0], [0.0, 1.0]]))
            model.output.bias.zero_()
        recorder = Recorder(tmp_path / name, texts, opening=opening_of_any_length, labels=labels)
        recorder.record(model, 0)
        with torch.no_grad():
            model.table.weight[[WORDS.index(word) for word in attended], 0] = 4.0
        verdicts[name] = recorder.close(model, 10).verdict
    answers = {name: [q.answer for q in verdict.questions] for name, verdict in verdicts.items()}
    assert answers["looks"] == ["yes", "yes", "yes", "yes"]
    assert answers["looks away"] == ["no", "no", "no", "yes"]
    assert "words that predict the answer by themselves more often than chance, and training brought it there" in (
        verdicts["looks"].sentence
    )
    assert "does not find words that predict the answer by themselves" in verdicts["looks away"].sentence


@contextmanager
def opening_of_any_length(model):
    with opening(model) as (network, reader):
        yield network, WordReader(reader.vocabulary, LABELS, first=("<s>", 0))


def test_a_damaged_folder_is_named(run):
    copy = FollowedDirectory(shutil.copytree(run.root, run.root.with_name("copy")))
    (copy.root / "following.json").write_text("{", encoding="utf-8")
    with pytest.raises(RunError, match=r"following\.json"):
        copy.probe()


@pytest.mark.parametrize(
    ("right", "majority", "asked"),
    [
        (0.50, 0.5, False),
        (0.55, 0.5, False),  # of 200 texts, the interval begins at 48 %
        (0.60, 0.5, True),
        (0.98, 0.98, False),  # a rare class that is never predicted
        (0.60, math.nan, True),  # labels are not known
    ],
)
def test_nothing_is_said_of_a_model_at_the_majority_rate(right, majority, asked):
    sure = Estimate(0.4, 0.35, 0.45, 200)
    rows = tuple(StepAgreement(f"A({u},{v})", sure, sure, sure, sure, 0) for u, v in PAIRS)
    steps = tuple(FollowedStep(step, right, 0.7, sure, 0.1, rows) for step in (0, 10))
    verdict = FollowedTraining("mine", "Bert", 200, 0.05, steps, majority=majority).verdict
    assert {question.answer for question in verdict.questions} == ({"yes"} if asked else {"not asked"})
    assert ("does not clearly beat always guessing" in verdict.sentence) is not asked
    assert verdict.status == ("answered" if asked else "learned nothing")
