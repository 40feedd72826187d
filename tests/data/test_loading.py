import subprocess
import sys

import polars as pl
import pytest

from heedful.data.corpus import EMPTY, Corpus, Split
from heedful.data.loading import open_data
from heedful.data.vocabulary import encode
from heedful.errors import DataError


@pytest.fixture
def reviews(tmp_path):
    def write(name="reviews.csv", rows=None):
        path = tmp_path / name
        rows = rows if rows is not None else [(f"text {i}", "good" if i % 3 else "bad") for i in range(100)]
        path.write_text("review,sentiment\n" + "".join(f"{text},{label}\n" for text, label in rows))
        return path

    return write


def test_a_file_is_split_by_label_and_seed(reviews):
    corpus = open_data(reviews())
    assert corpus.name == "reviews.csv"
    assert corpus.labels == ("bad", "good")
    assert [len(split) for split in (corpus.train, corpus.validation, corpus.test)] == [80, 10, 10]
    assert abs(corpus.train.labels.count(0) - 27) <= 1
    assert corpus.decisions[-1] == "no validation set given: 100 texts split 80 / 10 / 10, stratified, seed 0"
    assert open_data(str(reviews())).digest() == corpus.digest()
    assert open_data(reviews(), seed=1).digest() != corpus.digest()


def test_own_files(reviews):
    own = {"validation": reviews("v.csv", [("v", "good")]), "test": reviews("t.csv", [("t", "bad")])}
    corpus = open_data(reviews(), **own)
    assert (len(corpus.train), corpus.validation, corpus.test) == (100, Split(("v",), (1,)), Split(("t",), (0,)))
    assert [len(open_data(reviews(), validation=own["validation"]).test)] == [0]
    tested = open_data(reviews(), test=own["test"])
    assert [len(split) for split in (tested.train, tested.validation, tested.test)] == [90, 10, 1]


def test_own_files_may_be_of_another_kind(reviews, tmp_path):
    pl.DataFrame({"text": ["v"], "label": ["good"]}).write_parquet(tmp_path / "v.parquet")
    assert open_data(reviews(), validation=tmp_path / "v.parquet").validation == Split(("v",), (1,))


def test_a_label_never_seen_in_training(reviews):
    with pytest.raises(DataError, match=r"v\.csv:3: label 'odd' does not occur in training"):
        open_data(reviews(), validation=reviews("v.csv", [("a", "good"), ("b", "odd")]))


def test_repeated_texts_are_counted(reviews):
    same = reviews("same.csv", [("a", "good"), ("a", "good"), ("b", "bad")])
    corpus = open_data(same, validation=same)
    assert "1 training texts repeat an earlier one; they are kept" in corpus.decisions
    assert "3 validation texts are also in training; they are kept" in corpus.decisions


def test_one_class_only(reviews):
    with pytest.raises(DataError, match="every label is 'good'"):
        open_data(reviews(rows=[("a", "good"), ("b", "good")]))


def test_too_few_to_split(reviews):
    with pytest.raises(DataError, match="2 texts are too few to split"):
        open_data(reviews(rows=[("a", "good"), ("b", "bad")]))


def test_a_text_of_50000_words_is_cut_and_counted(reviews):
    rows = [("word " * 50_000, "good"), *((f"t {i}", "bad" if i % 2 else "good") for i in range(19))]
    encoded = encode(open_data(reviews(rows=rows), validation=reviews("v.csv", [("v", "good")])))
    assert encoded.train.lengths.max() == 402
    assert encoded.decisions[-1] == "train: 1 of 20 texts cut to 400 words"


def test_lower(reviews, mirror):
    assert open_data(reviews()).rules.lower
    assert not open_data(reviews(), lower=False).rules.lower
    assert not open_data("sst", lower=False).rules.lower


def test_a_corpus_comes_back():
    corpus = Corpus("tiny", ("a", "b"), EMPTY, EMPTY, EMPTY)
    assert open_data(corpus) is corpus


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stt", "no corpus or file named 'stt'; did you mean 'sst'\\?"),
        ("zzzzzz", "no corpus or file named 'zzzzzz'; `heedful data list` shows all names"),
        ("nowhere.csv", r"nowhere\.csv: there is no such file"),
        ("some/where", "some/where: there is no such file"),
        ("a\0b", "cannot be used as a path: embedded null byte; give another"),
        ("x" * 5000, "x…' cannot be used as a path: File name too long; give another"),
    ],
)
def test_a_name_that_is_nothing(name, message):
    with pytest.raises(DataError, match=message):
        open_data(name)


def test_a_folder(tmp_path):
    with pytest.raises(DataError, match="this is a folder"):
        open_data(tmp_path)


def test_options_of_files_are_not_for_names():
    with pytest.raises(DataError, match=r"sst is a named corpus .* so it takes no --text, --validation"):
        open_data("sst", text="a", validation="b.csv")


def test_nothing_heavy_is_imported():
    code = "import sys, heedful.data.loading, heedful.data.vocabulary; print({'torch', 'datasets'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


class TestHub:
    @pytest.fixture
    def datasets(self):
        return pytest.importorskip("datasets")

    def rows(self, size, start=0):
        return {"text": [f"text {i}" for i in range(start, start + size)], "label": [i % 2 for i in range(size)]}

    def labelled(self, datasets, rows):
        features = datasets.Features(
            {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["pos", "neg", "unused"])}
        )
        return datasets.Dataset.from_dict(rows, features=features)

    def test_dataset(self, datasets):
        corpus = open_data(self.labelled(datasets, self.rows(20)))
        assert corpus.labels == ("pos", "neg")
        assert [len(split) for split in (corpus.train, corpus.validation, corpus.test)] == [16, 2, 2]

    def test_no_value_of_another_column_is_read(self, datasets):
        class Guarded(datasets.Dataset):
            def __getitem__(self, key):
                columns = [key] if isinstance(key, str) else self.column_names
                assert {"text", "label"}.issuperset(columns), f"{columns} were read"
                return super().__getitem__(key)

        rows = self.rows(20) | {"blob": [b"x" * 97] * 20, "when": [None] * 20}
        data = datasets.Dataset.from_dict(rows)
        data.__class__ = Guarded
        assert len(open_data(data).train) == 16

    def test_too_many_rows(self, datasets, monkeypatch):
        monkeypatch.setattr("heedful.data.in_memory.MAX_ROWS", 19)
        with pytest.raises(DataError, match="dataset has 20 rows, more than 19; select some of them first"):
            open_data(self.labelled(datasets, self.rows(20)))

    def test_translations(self, datasets):
        pairs = [{"de": f"ein Satz {i}", "en": f"a sentence {i}"} for i in range(20)]
        corpus = open_data(datasets.Dataset.from_dict({"translation": pairs, "id": list(range(20))}))
        assert (corpus.source_language, corpus.target_language) == ("de", "en")
        assert len(corpus.train) == 16

    def test_dataset_dict(self, datasets):
        parts = {"train": self.rows(10), "dev": self.rows(4, 50), "test": self.rows(2, 90)}
        corpus = open_data(datasets.DatasetDict({name: self.labelled(datasets, rows) for name, rows in parts.items()}))
        assert [len(split) for split in (corpus.train, corpus.validation, corpus.test)] == [10, 4, 2]

    def test_a_dataset_dict_with_a_training_split_alone_is_split(self, datasets):
        corpus = open_data(datasets.DatasetDict({"train": self.labelled(datasets, self.rows(20))}))
        assert [len(split) for split in (corpus.train, corpus.validation, corpus.test)] == [16, 2, 2]

    def test_secret_labels_are_no_test_set(self, datasets):
        secret = {"text": ["a", "b"], "label": [-1, -1]}
        parts = {"train": self.rows(20), "validation": self.rows(4), "test": secret}
        corpus = open_data(datasets.DatasetDict({name: self.labelled(datasets, rows) for name, rows in parts.items()}))
        assert corpus.test == EMPTY
        assert "dataset['test']: every label is -1, that is secret, so there is no test set" in corpus.decisions

    @pytest.mark.parametrize(
        ("rows", "options", "message"),
        [
            ({"text": ["a"], "label": [1]}, {"text": "txt"}, "dataset: there is no column 'txt'.* did you mean 'text'"),
            ({"text": ["a", None], "label": [1, 0]}, {}, "dataset: row 1: there is no text"),
            ({"text": ["a", "b"], "label": [1, None]}, {}, "dataset: row 1: there is no label"),
            ({"text": [], "label": []}, {}, "dataset has no rows"),
        ],
    )
    def test_bad_datasets(self, datasets, rows, options, message):
        with pytest.raises(DataError, match=message):
            open_data(datasets.Dataset.from_dict(rows), **options)

    def test_no_training_split(self, datasets):
        with pytest.raises(DataError, match="no split 'train', only 'unsupervised'"):
            open_data(datasets.DatasetDict({"unsupervised": datasets.Dataset.from_dict(self.rows(4))}))

    def test_streams_have_no_length(self, datasets):
        with pytest.raises(DataError, match="load it without streaming"):
            open_data(datasets.Dataset.from_dict(self.rows(4)).to_iterable_dataset())
