import pytest

from heedful.data.catalog import describe
from heedful.data.corpus import Corpus
from heedful.data.loading import open_data, task_of
from heedful.data.parallel import ParallelCorpus
from heedful.data.synthetic.tasks import TASKS
from heedful.errors import DataError


@pytest.mark.parametrize("name", TASKS)
def test_generated_tasks_open_by_name(name):
    corpus = open_data(name)
    assert isinstance(corpus, Corpus if TASKS[name].kind == "classification" else ParallelCorpus)
    assert task_of(name) == describe(name)["task"] == TASKS[name].kind


def test_files_of_ones_own(tmp_path):
    (tmp_path / "a.de").write_text("ein Hund\neine Katze\n" * 10, encoding="utf-8")
    (tmp_path / "a.en").write_text("a dog\na cat\n" * 10, encoding="utf-8")
    corpus = open_data(str(tmp_path / "a.de"), str(tmp_path / "a.en"))
    assert isinstance(corpus, ParallelCorpus)
    assert (corpus.source_language, corpus.target_language, len(corpus.train)) == ("de", "en", 16)
    (tmp_path / "pairs.tsv").write_text("de\ten\n" + "ein Hund\ta dog\n" * 20, encoding="utf-8")
    assert isinstance(open_data(str(tmp_path / "pairs.tsv"), task="translation"), ParallelCorpus)
    (tmp_path / "a.en").write_text("a dog\n", encoding="utf-8")
    with pytest.raises(DataError, match="20 lines"):
        open_data(str(tmp_path / "a.de"), str(tmp_path / "a.en"))


def test_a_dataset_with_a_translation_column():
    datasets = pytest.importorskip("datasets")
    rows = [{"translation": {"de": "ein Hund", "en": "a dog"}}] * 20
    data = datasets.Dataset.from_list(rows)
    assert task_of(data) == "translation"
    assert isinstance(open_data(data), ParallelCorpus)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(DataError, match="copy-vocab"):
        open_data("copy-vocap")
    with pytest.raises(DataError, match="sst is a corpus for classification, not for translation"):
        open_data("sst", task="translation")
    with pytest.raises(DataError, match="not from a int"):
        open_data(3)
