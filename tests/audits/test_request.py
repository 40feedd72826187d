import json
from pathlib import Path

import pytest

from heedful.audits.request import match_labels, open_request
from heedful.data.corpus import EMPTY, Corpus, Split
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.errors import ConfigError, DataError
from tests.audits import tiny

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
        (("LABEL_0", "LABEL_1"), ("x", "y", "z"), None, "say which is which"),
    ],
)
def test_labels_that_do_not_match_are_refused(ours, theirs, given, said):
    with pytest.raises(ConfigError, match=said):
        match_labels(ours, theirs, given)
