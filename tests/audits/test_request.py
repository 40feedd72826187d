import json
import os
from pathlib import Path

import datasets
import polars as pl
import pytest

import heedful
from heedful.attribution.interface import Passage
from heedful.audits import request
from heedful.audits.request import match_labels, open_request
from heedful.data.corpus import EMPTY, Corpus, Split
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.errors import ConfigError, DataError, HeedfulError
from heedful.studies.run_directory import RunDirectory
from tests.audits import tiny
from tests.audits.constructed import pooled
from tests.conftest import tiny_corpus

REVIEWS = Corpus("reviews", tiny.LABELS, EMPTY, Split(tiny.TEXTS[:2], (1, 0)), Split(tiny.TEXTS, (1, 0, 0, 1, 0, 1)))
PAIRS = ParallelCorpus("pairs", NO_PAIRS, NO_PAIRS, ParallelSplit(*zip(*tiny.PAIRS, strict=True)))


def test_the_test_set_unless_said():
    made = tiny.bert()
    with open_request(made.model, REVIEWS, tokenizer=made.tokenizer) as request:
        assert [passage.text for passage in request.passages] == list(range(6))
        assert [passage.label for passage in request.passages[:2]] == ["positive", "negative"]
    with open_request(made.model, REVIEWS, tokenizer=made.tokenizer, split="validation") as request:
        assert len(request.passages) == 2
    with (
        pytest.raises(DataError, match="reviews has no train texts"),
        open_request(made.model, REVIEWS, tokenizer=made.tokenizer, split="train"),
    ):
        pass


def test_all_of_a_file_that_has_no_splits(tmp_path):
    made = tiny.bert()
    rows = [f'"{text}",{tiny.LABELS[i % 2]}' for i, text in enumerate(tiny.TEXTS * 4)]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *rows]))
    with open_request(made.model, tmp_path / "reviews.csv", tokenizer=made.tokenizer) as request:
        assert len(request.passages) == len(rows)
    with open_request(made.model, tmp_path / "reviews.csv", tokenizer=made.tokenizer, split="validation") as request:
        assert 0 < len(request.passages) < len(rows)


def test_a_sample_is_drawn_under_its_seed():
    made = tiny.bert()

    def drawn(seed: int) -> list[int]:
        with open_request(made.model, REVIEWS, tokenizer=made.tokenizer, sample=3, seed=seed) as request:
            return [passage.text for passage in request.passages]

    assert drawn(1) == drawn(1) == sorted(drawn(1))
    assert len({tuple(drawn(seed)) for seed in range(5)}) > 1


def test_sentence_pairs_give_a_passage_for_each_output_word():
    made = tiny.marian()
    with open_request(made.model, PAIRS, tokenizer=made.tokenizer) as request:
        assert [passage.output for passage in request.passages[:4]] == ["der", "film", "war", "gut"]
    classifier = tiny.bert()
    with (
        pytest.raises(DataError),
        open_request(classifier.model, PAIRS, tokenizer=classifier.tokenizer),
    ):
        pass


def test_marked_words_come_along(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("the film was unwatchable !")
    evidence = {"start_token": 3, "end_token": 4}
    row = {"annotation_id": "a.txt", "classification": "NEG", "evidences": [[evidence]]}
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n")
    made = tiny.bert()
    with open_request(made.model, tmp_path, tokenizer=made.tokenizer) as request:
        assert request.rationales is not None
        assert request.rationales[0].tolist() == [False, False, False, True, False]
        assert request.passages[0].label == "negative"


def test_a_corpus_with_marked_words_is_checked_and_read_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    with pytest.raises(DataError, match="eraser-movies"), open_request(pooled(), "eraser-movies"):
        pass  # its files are not there
    (tmp_path / "eraser_movies" / "docs").mkdir(parents=True)
    (tmp_path / "eraser_movies" / "docs" / "a.txt").write_text("w1 fine w2")
    row = {"annotation_id": "a.txt", "classification": "POS", "evidences": [[{"start_token": 1, "end_token": 3}]]}
    (tmp_path / "eraser_movies" / "test.jsonl").write_text(json.dumps(row) + "\n")
    checked = []
    monkeypatch.setattr(request, "open_data", checked.append)  # these are not the files that the checksums are of
    with open_request(pooled(), "eraser-movies", labels={"NEG": "bad", "POS": "good"}) as asked:
        assert asked.rationales is not None
        assert asked.rationales[0].tolist() == [False, True, True]
        assert asked.passages[0].label == "good"
    assert checked == ["eraser-movies"]


def test_a_subject_made_in_python():
    subject, labels = pooled(), {"negative": "bad", "positive": "good"}
    ours = Corpus("ours", tiny.LABELS, EMPTY, EMPTY, Split(("w1 fine", "dull w2 w3"), (1, 0)))
    with open_request(subject, ours, labels=labels) as asked:
        assert asked.subject is subject
        assert [passage.words[1:] for passage in asked.passages] == [("w1", "fine"), ("dull", "w2", "w3")]
        assert [passage.label for passage in asked.passages] == ["good", "bad"]
    with (
        pytest.raises(DataError, match="pairs holds sentence pairs; a classifier is audited on texts with labels"),
        open_request(subject, PAIRS),
    ):
        pass


def test_a_study_is_audited_on_its_validation_texts_or_on_others(smoke_run):
    validation = RunDirectory(smoke_run).split("validation")
    with open_request(smoke_run, sample=4, seed=1) as asked:
        assert len(asked.passages) == 4
        for passage in asked.passages:
            assert list(passage.pieces) == validation.text(passage.text).tolist()
    theirs = tiny_corpus().labels
    with open_request(smoke_run, REVIEWS, labels=dict(zip(tiny.LABELS, theirs, strict=True))) as asked:
        assert [passage.words[1:-1] for passage in asked.passages][5] == ("not", "bad")
        assert [passage.label for passage in asked.passages] == [theirs[i] for i in REVIEWS.test.labels]


def test_data_are_needed(tmp_path):
    with pytest.raises(ConfigError, match="an audit needs data"), open_request(Path("some/model")):
        pass


@pytest.mark.parametrize(
    ("ours", "theirs", "given", "expected"),
    [
        (("NEG", "POS"), ("negative", "positive"), None, {"negative": "NEG", "positive": "POS"}),
        (("LABEL_0", "LABEL_1"), ("ham", "spam"), None, {"ham": "LABEL_0", "spam": "LABEL_1"}),
        (("a", "b"), ("x", "y"), {"x": "b", "y": "a"}, {"x": "b", "y": "a"}),
    ],
)
def test_labels_are_matched(ours, theirs, given, expected):
    assert match_labels(ours, theirs, given) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "given", "said"),
    [
        (("a", "b"), ("x", "y"), None, "the model's labels are a, b, the data's x, y"),
        (("a", "b"), ("x", "y"), {"x": "a"}, "labels must give each of x, y one of a, b"),
        (("a", "b"), ("x", "y"), {"x": "a", "y": "c"}, "labels must give each"),
        (("LABEL_0", "LABEL_1"), ("x", "y", "z"), None, "map them with --labels"),
    ],
)
def test_labels_that_do_not_match_are_refused(ours, theirs, given, said):
    with pytest.raises(ConfigError, match=said):
        match_labels(ours, theirs, given)


@pytest.mark.parametrize(
    ("special", "word", "said"),
    [
        ((False,), (0, 1), "text 3: 2 words, but 1 marks"),
        ((False,) * 2, (0,), "2 pieces, but word numbers for 1"),
    ],
)
def test_a_passage_that_does_not_fit_together(special, word, said):
    with pytest.raises(DataError, match=said):
        Passage(3, ("not", "bad"), special, (7, 8), word)


TEXTS, NUMBERS = list(tiny.TEXTS), [1, 0, 0, 1, 0, 1]


@pytest.mark.parametrize("form", ["pandas", "polars", "lists", "rows", "dataset", "csv", "jsonl", "parquet"])
def test_every_form_of_data_gives_the_same_passages(form, tmp_path):
    frame = pl.DataFrame({"text": TEXTS, "label": NUMBERS})
    data = {
        "pandas": lambda: frame.to_pandas(),
        "polars": lambda: frame,
        "lists": lambda: (TEXTS, NUMBERS),
        "rows": lambda: list(zip(TEXTS, NUMBERS, strict=True)),
        "dataset": lambda: datasets.Dataset.from_dict({"text": TEXTS, "label": NUMBERS}),
        "csv": lambda: frame.write_csv(tmp_path / "a.csv") or tmp_path / "a.csv",
        "jsonl": lambda: frame.write_ndjson(tmp_path / "a.jsonl") or tmp_path / "a.jsonl",
        "parquet": lambda: frame.write_parquet(tmp_path / "a.parquet") or tmp_path / "a.parquet",
    }[form]()
    made = tiny.bert()
    with open_request(made.model, data, tokenizer=made.tokenizer) as asked:
        assert [p.label for p in asked.passages] == [tiny.LABELS[number] for number in NUMBERS]
        assert asked.passages[5].words == ("[CLS]", "not", "bad", "[SEP]")


def test_texts_without_labels(tmp_path):
    made = tiny.bert()
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    for data in (TEXTS, tmp_path / "a.txt"):
        with open_request(made.model, data, tokenizer=made.tokenizer) as asked:
            assert [p.label for p in asked.passages] == [None] * len(TEXTS)


def test_a_study_whose_settings_are_a_pipe_is_refused_by_that_name(tmp_path):
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(HeedfulError, match=r"config\.toml is a pipe"):
        heedful.audit(tmp_path)
