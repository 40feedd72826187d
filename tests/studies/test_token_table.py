"""The words of a trained model: what the trace recorded, what the vectors say, and which words are suspicious."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
import typer
from safetensors.torch import save_file
from typer.testing import CliRunner

from heedful.cli.runs import tokens
from heedful.config import ModelConfig
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import ConfigError, DamagedError, HeedfulError, RunError
from heedful.models.classifier import AttentionClassifier
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.token_table import (
    ATTENDED,
    FEWEST,
    NOTICED,
    OPPOSED,
    RULES,
    UNFOUNDED,
    WordMeans,
    _suspicious,
    alone,
    load_model,
    load_weights,
    over_occurrences,
    select,
    token_table,
    towards,
)

V, K = 11, 3
TEXTS = EncodedSplit.of([[4, 5, 4], [6], [5, 7, 8, 9, 4]], [0, 2, 1])


def untrained(encoder: str = "embedding", classes: int = K) -> AttentionClassifier:
    torch.manual_seed(0)
    config = ModelConfig(embedding=5, encoder=encoder, hidden=5, scorer="dot", scale=2.0, output_bias=False)
    return AttentionClassifier(config, V, classes).eval()


@pytest.mark.parametrize("encoder", ["embedding", "bilstm"])
def test_means_over_places_one_by_one(encoder):
    model = untrained(encoder)
    seen = over_occurrences(model, TEXTS, V)
    assert seen.count.tolist() == [0, 0, 0, 0, 3, 2, 1, 1, 1, 1, 0]
    places = {word: [] for word in range(V)}
    with torch.no_grad():
        for i in range(len(TEXTS)):
            text = torch.from_numpy(TEXTS.text(i).astype(np.int64))[None]
            output = model(text, torch.ones_like(text, dtype=torch.bool))
            logits = model.output(output.hidden)[0]
            for l, word in enumerate(text[0].tolist()):  # noqa: E741
                alpha = output.alpha[0, l].item()
                places[word].append([alpha, alpha * text.shape[1], output.scores[0, l].item(), *logits[l].tolist()])
    for word, rows in places.items():
        ours = [seen.alpha[word], seen.relative[word], seen.score[word], *seen.logits[word]]
        if rows:
            assert ours == pytest.approx(np.mean(rows, axis=0), abs=1e-6)
        else:
            assert np.isnan(ours).all()


def test_a_word_alone_is_a_word_in_any_text_where_nothing_mixes():
    for encoder in ("embedding", "affine"):
        model = untrained(encoder)
        logits, score = alone(model)
        seen = over_occurrences(model, TEXTS, V)
        met = seen.count > 0
        np.testing.assert_allclose(logits[met], seen.logits[met], atol=1e-6)
        np.testing.assert_allclose(score[met], seen.score[met], atol=1e-6)
    assert alone(untrained("lstm")) is None


def test_polarity_towards_labels():
    two = towards(np.array([[1.5], [-2.0]]))
    assert two.tolist() == [[-1.5, 1.5], [2.0, -2.0]]
    three = towards(np.array([[1.0, 4.0, 1.0]]))
    assert three.tolist() == [[-1.5, 3.0, -1.5]]


def test_what_is_suspicious():
    n = 20
    counts = np.tile([[10, 10]], (n, 1))
    counts[0], counts[1], counts[2] = (1, 9), (9, 1), (1, 9)
    logits = np.linspace(1.0, 2.0, n)[:, None]  # all speak for the second label
    relative = np.linspace(2.0, 1.0, n)
    seen = WordMeans(np.full(n, FEWEST), logits, np.zeros(n), relative / n, relative)
    marks = _suspicious(counts, seen, logits[:, 0])
    assert marks[1] == OPPOSED  # it stands in texts of the first label
    assert marks[0] == UNFOUNDED  # the highest weight, the lowest polarity
    assert [m for m in marks[2:] if m] == []
    unnoticed = WordMeans(np.full(n, FEWEST), logits, np.zeros(n), relative / n, relative * (NOTICED - 0.01) / 2)
    assert _suspicious(counts, unnoticed, logits[:, 0]) == [None, OPPOSED, *[None] * (n - 2)]
    unattended = WordMeans(np.full(n, FEWEST), logits, np.zeros(n), relative / n, relative * (ATTENDED - 0.01) / 2)
    assert _suspicious(counts, unattended, logits[:, 0]) == [None] * n
    rare = WordMeans(np.full(n, FEWEST - 1), logits, np.zeros(n), relative / n, relative)
    assert _suspicious(counts, rare, logits[:, 0]) == [None] * n


def test_a_study_has_a_table_of_its_words(smoke_run):
    run = RunDirectory(smoke_run)
    table = token_table(smoke_run)
    words = run.vocabulary().words
    assert set(table["token"]) <= set(words)
    assert table["frequency"].sum() == len(run.split("train").ids.values)
    assert table["occurrences"].sum() == len(run.split("validation").ids.values)
    by_word = {row["token"]: row for row in table.iter_rows(named=True)}
    assert (by_word["good"]["class"], by_word["bad"]["class"]) == ("positive", "negative")
    assert by_word["good"]["association"] > 0.5
    assert table["polarity_alone"].null_count() == len(table)  # a BiLSTM
    assert table["frequency"].is_sorted(descending=True)


@pytest.mark.parametrize("seed", [0, 1])
def test_polarity_and_weight_are_those_of_the_trace(smoke_run, seed):
    run = RunDirectory(smoke_run)
    trace, validation = run.model(ModelSpec("standard", seed)).trace(), run.split("validation")
    last = trace.steps[-1]
    sign = np.repeat(2 * validation.labels - 1, validation.lengths)
    logit = trace.quantity("beta_logit", last).values * sign
    weight = trace.quantity("alpha", last).values * np.repeat(validation.lengths, validation.lengths)
    table = token_table(run, seed=seed)
    for row in table.filter(pl.col("occurrences") > 0).head(20).iter_rows(named=True):
        here = validation.ids.values == run.vocabulary().words.index(row["token"])
        assert row["polarity"] == pytest.approx(logit[here].mean(), abs=1e-4)
        assert row["weight"] == pytest.approx(weight[here].mean(), abs=1e-4)


def test_choosing_words(smoke_run):
    table = token_table(smoke_run)
    assert select(table, sort="score")["score"].drop_nulls().is_sorted(descending=True)
    assert set(select(table, kind="positive")["class"]) == {"positive"}
    assert select(table, min_count=5)["frequency"].min() >= 5
    assert select(table, suspicious=True)["suspicious"].null_count() == 0
    with pytest.raises(ConfigError, match=r"no column 'wight'.*weight"):
        select(table, sort="wight")
    with pytest.raises(ConfigError, match="no class 'good'"):
        select(table, kind="good")


def test_what_is_no_study_of_texts_is_refused(smoke_run, smoke_translation_run, tmp_path):
    with pytest.raises(RunError, match="study of translation"):
        token_table(smoke_translation_run)
    with pytest.raises(RunError, match="no model of seed 7"):
        load_model(RunDirectory(smoke_run), 7)
    with pytest.raises(RunError, match="not a run"):
        token_table(tmp_path)


def run_command(*arguments, columns=200):
    app = typer.Typer()
    app.command()(tokens)
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": str(columns)})


def test_command(smoke_run, tmp_path):
    shown = run_command(smoke_run, "--top", 5, "--sort", "frequency")
    assert shown.exit_code == 0, shown.output
    assert f"5 of {len(select(token_table(smoke_run)))} words" in shown.stdout
    said = json.loads(run_command(smoke_run, "--json", "--class", "negative").stdout)
    assert [row["token"] for row in said["tokens"]] == ["bad"]
    assert said["rules"] == RULES


def test_the_rules_of_what_is_suspicious_are_told_below_the_table(smoke_run, monkeypatch):
    table = token_table(smoke_run)
    marked = table.with_columns(suspicious=pl.when(pl.col("token") == "good").then(pl.lit(OPPOSED)))
    monkeypatch.setattr("heedful.studies.token_table.token_table", lambda run, seed: marked)
    shown = run_command(smoke_run, "--suspicious").stdout
    assert "1 of 1 words" in shown
    assert f"{OPPOSED}: {RULES[OPPOSED]}" in shown.replace("\n", " ")
    assert UNFOUNDED not in shown


def test_the_table_fits_into_80_columns(smoke_run, monkeypatch):
    row = {
        "token": "incomprehensibilities-of-the-world",
        "frequency": 123_456,
        "occurrences": 12_345,
        "class": "neutral",
        "association": -0.25,
        "polarity": -12.25,
        "polarity_alone": -11.25,
        "score": -123.25,
        "weight": 12.25,
        "suspicious": UNFOUNDED,
    }
    monkeypatch.setattr("heedful.studies.token_table.token_table", lambda run, seed: pl.DataFrame([row]))
    lines = run_command(smoke_run, columns=80).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (first,) = [line.split() for line in lines if "123,456" in line]
    values = ["123,456", "12,345", "neutral", "-0.25", "-12.25", "-11.25", "-123.25", "12.25", "a"]
    assert first[-len(values) :] == values
    headings = ["token", "train", "seen", "class", "assoc.", "polarity", "alone", "score", "weight", "?"]
    assert lines[1].split() == headings or lines[0].split() == headings
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_export(smoke_run, tmp_path, ending):
    out = tmp_path / f"tokens.{ending}"
    assert run_command(smoke_run, "--min-count", 1, "--out", out).stdout.strip() == str(out)
    read = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
    whole = select(token_table(smoke_run), min_count=1)
    assert read.columns == whole.columns
    assert len(read) == len(whole)
    assert ("'=" if ending == "csv" else "=") in read["token"]  # a spreadsheet would take it for a formula
    assert read["weight"].to_list() == pytest.approx(whole["weight"].to_list(), abs=1e-5, nan_ok=True)


def test_no_other_ending(smoke_run, tmp_path):
    result = run_command(smoke_run, "--out", tmp_path / "tokens.xlsx")
    assert isinstance(result.exception, HeedfulError)
    assert ".csv or .parquet" in str(result.exception)


def test_sizes_of_a_strangers_settings_are_compared_before_the_model_is_built(tmp_path):
    path, config = tmp_path / "model.safetensors", ModelConfig(embedding=5, hidden=3, scorer_hidden=2)
    model = AttentionClassifier(config, 7, 2)
    save_file(model.state_dict(), path)
    loaded = load_weights(lambda: AttentionClassifier(config, 7, 2), path)
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), model.parameters(), strict=True))
    endless = replace(config, embedding=1 << 16, hidden=1 << 16)  # 400 GB
    with pytest.raises(DamagedError, match=r"model\.safetensors: damaged \(not the weights of this model: .* has the"):
        load_weights(lambda: AttentionClassifier(endless, 7, 2), path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError, match=r"not the weights of this model: .*not a whole safetensors file"):
        load_weights(lambda: AttentionClassifier(config, 7, 2), path)
