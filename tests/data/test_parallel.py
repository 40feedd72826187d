import gzip
import os
from functools import partial
from pathlib import Path

import pytest

from heedful.data.catalog import entry
from heedful.data.loading import open_data
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.errors import DataError

MIRROR = Path(os.environ.get("HEEDFUL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
needs_multi30k = pytest.mark.skipif(
    not (MIRROR / "multi30k").is_dir(), reason="no mirror: set HEEDFUL_DATA to a folder with multi30k/"
)
open_pairs = partial(open_data, task="translation")
GERMAN = [f"der Hund Nummer {n} schläft ." for n in range(20)]
ENGLISH = [f"dog number {n} sleeps ." for n in range(20)]


def write(path, lines, end="\n"):
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def test_two_files(tmp_path):
    corpus = open_pairs(write(tmp_path / "a.de", GERMAN), write(tmp_path / "a.en", ENGLISH))
    assert (corpus.source_language, corpus.target_language) == ("de", "en")
    assert [len(s) for s in (corpus.train, corpus.validation, corpus.test)] == [16, 2, 2]
    together = {
        p for s in (corpus.train, corpus.validation, corpus.test) for p in zip(s.sources, s.targets, strict=True)
    }
    assert together == set(zip(GERMAN, ENGLISH, strict=True))
    assert "20 pairs split 16 / 2 / 2, seed 0" in corpus.decisions[-1]


def test_the_split_depends_on_the_seed_alone(tmp_path):
    files = write(tmp_path / "a.de", GERMAN), write(tmp_path / "a.en", ENGLISH)
    assert open_pairs(*files).digest() == open_pairs(*files).digest() != open_pairs(*files, seed=1).digest()


def test_all_forms_give_the_same_pairs(tmp_path):
    import polars as pl

    table = pl.DataFrame({"de": GERMAN, "en": ENGLISH})
    table.write_csv(tmp_path / "a.csv")
    table.write_csv(tmp_path / "a.tsv", separator="\t")
    table.write_ndjson(tmp_path / "a.jsonl")
    table.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.de.gz").write_bytes(gzip.compress("\r\n".join(GERMAN).encode("utf-8-sig")))
    write(tmp_path / "b.en", ENGLISH)
    digests = {open_pairs(tmp_path / f"a{end}").digest() for end in (".csv", ".tsv", ".jsonl", ".parquet")}
    digests.add(open_pairs(tmp_path / "b.de.gz", tmp_path / "b.en").digest())
    assert len(digests) == 1


def test_a_dataset_with_a_translation_column():
    datasets = pytest.importorskip("datasets")
    rows = [{"de": de, "en": en} for de, en in zip(GERMAN, ENGLISH, strict=True)]
    data = datasets.Dataset.from_dict({"id": list(range(20)), "translation": rows})
    corpus = open_pairs(data)
    assert corpus.train.sources[0] in GERMAN
    assert (corpus.source_language, corpus.target_language) == ("de", "en")
    assert open_pairs(data, text="en", label="de").train.targets[0] in GERMAN
    splits = datasets.DatasetDict({"training": data, "validation": data.select(range(3))})
    assert len(open_pairs(splits).validation) == 3
    with pytest.raises(DataError, match=r"there is no column 'dee'.*did you mean 'de'"):
        open_pairs(data, text="dee")
    with pytest.raises(DataError, match="no split 'train', only 'validation'; pass one of them alone"):
        open_pairs(datasets.DatasetDict({"validation": data}))
    assert open_pairs(corpus) is corpus


def test_two_columns_that_stand_the_other_way_round(tmp_path):
    rows = "".join(f"{english}\t{german}\n" for english, german in zip(ENGLISH, GERMAN, strict=True))
    (tmp_path / "a.tsv").write_text("target\tsource\n" + rows, "utf-8")
    assert open_pairs(tmp_path / "a.tsv").train.targets[0] in ENGLISH
    with pytest.raises(DataError, match="column 'source' cannot be both source and target"):
        open_pairs(tmp_path / "a.tsv", text="source", label="source")


@pytest.mark.parametrize(("row", "held"), [("{}", "missing"), ('{"translation": "' + "x" * 99 + '"}', "'x{38}…")])
def test_a_row_without_a_translation_is_named(tmp_path, row, held):
    (tmp_path / "a.jsonl").write_text('{"translation": {"de": "ein Hund", "en": "a dog"}}\n' + row + "\n")
    with pytest.raises(DataError, match=rf"a\.jsonl:2: column 'translation' holds {held}, not one sentence per lang"):
        open_pairs(tmp_path / "a.jsonl")


def test_unequal_line_counts_are_refused(tmp_path):
    files = write(tmp_path / "a.de", GERMAN), write(tmp_path / "a.en", ENGLISH[:-2])
    with pytest.raises(DataError, match=r"20 lines.*18.*ends before .*a\.de:19"):
        open_pairs(*files)


def test_empty_and_numerical_pairs_are_reported_with_their_lines(tmp_path):
    german, english = list(GERMAN), list(ENGLISH)
    german[3] = " "
    english[5] = ""
    german[7] = english[7] = "1,234 / 5"
    corpus = open_pairs(write(tmp_path / "a.de", german, "\r\n"), write(tmp_path / "a.en", english))
    assert "2 pairs with an empty side left out (lines 4, 6)" in corpus.decisions[0]
    assert "1 pair of numbers alone left out (line 8)" in corpus.decisions[1]
    kept = open_pairs(tmp_path / "a.de", tmp_path / "a.en", drop_numerical=False)
    assert "kept (line 8)" in kept.decisions[1]
    assert sum(len(s) for s in (kept.train, kept.validation, kept.test)) == 18


@pytest.mark.parametrize(
    ("content", "message"), [(b"ein\n\xe4\n", ":2: byte 0xe4"), (b"ein\n\x00\n", ":2: there is a NUL")]
)
def test_bytes_that_are_not_text_are_named(tmp_path, content, message):
    (tmp_path / "a.de").write_bytes(content)
    write(tmp_path / "a.en", ENGLISH[:2])
    with pytest.raises(DataError, match=message):
        open_pairs(tmp_path / "a.de", tmp_path / "a.en")


def test_own_validation_and_test(tmp_path):
    files = write(tmp_path / "a.de", GERMAN), write(tmp_path / "a.en", ENGLISH)
    few = write(tmp_path / "b.de", GERMAN[:3]), write(tmp_path / "b.en", ENGLISH[:3])
    corpus = open_pairs(*files, validation=few)
    assert [len(s) for s in (corpus.train, corpus.validation, corpus.test)] == [20, 3, 0]
    corpus = open_pairs(*files, test=few)
    assert [len(s) for s in (corpus.train, corpus.validation, corpus.test)] == [18, 2, 3]


def test_what_cannot_be_pairs(tmp_path):
    with pytest.raises(DataError, match="half a corpus"):
        open_pairs(write(tmp_path / "a.de", GERMAN))
    with pytest.raises(DataError, match="no such file"):
        open_pairs("there.de", "there.en")
    with pytest.raises(DataError, match="not from a int"):
        open_pairs(3)
    with pytest.raises(DataError, match=r"copy-vocab is a named corpus .* so it takes no --target"):
        open_pairs("copy-vocab", "x.en")
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(DataError, match="'a', 'b', 'c'; say which two"):
        open_pairs(tmp_path / "a.csv")
    with pytest.raises(DataError, match="drop_numerical=False"):
        open_pairs(tmp_path / "a.csv", text="a", label="b")
    with pytest.raises(DataError, match="too few to split"):
        open_pairs(write(tmp_path / "c.de", GERMAN[:4]), write(tmp_path / "c.en", ENGLISH[:4]))
    with pytest.raises(DataError, match="1 source sentences but 2"):
        ParallelSplit(("a",), ("b", "c"))
    with pytest.raises(DataError, match="0 alignments for 1"):
        ParallelSplit(("a",), ("b",), ())


def test_digest_sees_boundaries():
    def corpus(*sources):
        return ParallelCorpus("x", ParallelSplit(sources, sources), NO_PAIRS, NO_PAIRS).digest()

    assert corpus("a", "bc") != corpus("ab", "c")


@needs_multi30k
def test_multi30k_in_both_directions(monkeypatch):
    monkeypatch.setenv("HEEDFUL_DATA", str(MIRROR))
    corpus, other = open_pairs("multi30k"), open_pairs("multi30k:en-de")
    assert [len(s) for s in (corpus.train, corpus.validation, corpus.test)] == [29000, 1014, 1000]
    assert corpus.train.sources[0].startswith("Zwei junge weiße Männer")
    assert other.train.sources == corpus.train.targets
    assert (other.source_language, other.target_language) == ("en", "de")
    assert other.digest() != corpus.digest()
    with pytest.raises(DataError, match="not 'fr-en'"):
        open_pairs("multi30k:fr-en")


def test_a_missing_or_changed_mirror_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"train\.de\.gz is not in"):
        open_pairs("multi30k")
    (tmp_path / "multi30k" / "raw").mkdir(parents=True)
    for file in entry("multi30k").files:
        (tmp_path / file.path).write_bytes(b"")
    with pytest.raises(DataError, match="checksum"):
        open_pairs("multi30k")
