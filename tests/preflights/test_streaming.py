"""A file counted piece by piece comes to what the same file comes to when it is counted at once."""

import gzip
import json
import re
from collections import Counter
from dataclasses import asdict, replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful import api
from heedful.data.corpus import Corpus, Split, TokenRules
from heedful.data.files import text_files
from heedful.data.files.chunks import is_large, open_stream
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.data.ragged import Ragged
from heedful.data.synthetic.tasks import stream_pairs
from heedful.data.vocabulary import tokenise
from heedful.errors import ConfigError, DataError
from heedful.models.lexicon import count_table
from heedful.preflights import streaming
from heedful.preflights.preflight import _pairs as encoded_pairs
from heedful.preflights.preflight import run_preflight
from heedful.preflights.streaming import Settings, count_streamed, hashed, run_streamed

PAIRS = [(pair.source, pair.target) for pair in islice(stream_pairs("toy-de-en", seed=3), 211)]
TEXTS = [(f"{'good' if i % 2 else 'bad'} film, isn't it? nr. {i % 7} of many", str(i % 2)) for i in range(83)]
TEXTS += [("word " * 450 + "tail", "1"), ("\x01", "0")]


@pytest.fixture
def parallel(tmp_path):
    paths = tmp_path / "a.de", tmp_path / "a.en"
    for path, side in zip(paths, zip(*PAIRS, strict=True), strict=True):
        path.write_text("\n".join(side) + "\n", encoding="utf-8")
    return paths


def corpus_of(pairs) -> ParallelCorpus:
    split = ParallelSplit(*(tuple(side) for side in zip(*pairs, strict=True)))
    return ParallelCorpus("a.de", split, split, NO_PAIRS)


def of(paths):
    return open_stream(*paths, task="translation")


def plain(result):
    """Everything but what was decided; Trans comes from another order of sums."""
    found = asdict(replace(result, decisions=()))
    for output in found["outputs"]:
        for word in (*output["most"], *output["least"]):
            word["trans"] = round(word["trans"], 12)
    return found


@pytest.mark.parametrize("rows", [7, 50, 1000])
def test_pairs_streamed_equal_pairs_at_once(parallel, rows):
    settings = Settings(rows=rows, jobs=1)
    sources, targets, names, outputs, _ = encoded_pairs(corpus_of(PAIRS), 3)
    counted = count_streamed(of(parallel), settings)
    whole = count_table(sources, targets, source_size=len(names), target_size=len(outputs))
    assert (counted.names, counted.outputs, counted.pairs) == (names, outputs, len(PAIRS))
    assert np.array_equal(counted.table.rows, whole.rows)
    assert np.array_equal(counted.table.counts, whole.counts)
    assert (counted.table.matrix() != whole.matrix()).nnz == 0
    at_once = run_preflight(corpus_of(PAIRS), permutations=20)
    assert plain(run_streamed(of(parallel), settings, permutations=20)) == plain(at_once)


def write_table(path, columns):
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, row_group_size=17)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        import csv

        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            out.writerows([columns.keys(), *zip(*columns.values(), strict=True)])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_texts_streamed_equal_texts_at_once(tmp_path, suffix):
    texts, labels = (list(side) for side in zip(*TEXTS, strict=True))
    path = tmp_path / f"reviews{suffix}"
    write_table(path, {"id": list(range(len(texts))), "review": texts, "stars": labels})
    if suffix in (".csv", ".tsv"):
        path.write_text(path.read_text("utf-8").replace(",1\n", ",1.0\n"), "utf-8")
    split = Split(tuple(texts), tuple(map(int, labels)))
    at_once = run_preflight(Corpus(path.name, ("0", "1"), split, split, Split((), ())), permutations=20)
    source = open_stream(path, task="classification")
    result = run_streamed(source, Settings(rows=10, jobs=1), permutations=20)
    assert plain(result) == plain(at_once)
    assert any("1 of 85 texts cut to 400 words" in said for said in result.decisions)


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".parquet"])
def test_pairs_of_a_table(tmp_path, suffix):
    path = tmp_path / f"pairs{suffix}"
    german, english = (list(side) for side in zip(*PAIRS, strict=True))
    if suffix == ".parquet":
        write_table(path, {"translation": [{"de": d, "en": e} for d, e in PAIRS]})
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps({"translation": {"de": d, "en": e}}) + "\n" for d, e in PAIRS), "utf-8")
    else:
        write_table(path, {"de": german, "en": english})
    at_once = run_preflight(replace(corpus_of(PAIRS), name=path.name), permutations=20)
    source = open_stream(path, task="translation")
    assert plain(run_streamed(source, Settings(rows=20, jobs=1), permutations=20)) == plain(at_once)


def test_on_processes_packed_and_by_the_public_name(parallel, tmp_path):
    packed = [tmp_path / f"{path.name}.gz" for path in parallel]
    for path, plain_path in zip(packed, parallel, strict=True):
        path.write_bytes(gzip.compress(plain_path.read_bytes()))
    one = api.preflight(str(parallel[0]), target=str(parallel[1]), stream=True, jobs=1, permutations=20)
    two = api.preflight(str(packed[0]), target=str(packed[1]), jobs=2, permutations=20)
    assert plain(one) == plain(two)
    assert "streamed: all 211 rows counted, none held out" in one.decisions


def test_words_beyond_those_kept_are_counted_as_one(parallel):
    counted = count_streamed(of(parallel), Settings(max_types=9, jobs=1, rows=50))
    sources, targets, names, *_ = encoded_pairs(corpus_of(PAIRS), 3)
    assert counted.names == names[:13]
    assert len(counted.table.counts) <= 13 * 13 * len(np.unique(sources.lengths))

    def kept(ids: Ragged) -> Ragged:
        return Ragged(np.where(ids.values < 13, ids.values, 1).astype(np.int32), ids.offsets)

    whole = count_table(kept(sources), kept(targets), source_size=13, target_size=13)
    assert np.array_equal(counted.table.counts, whole.counts)
    assert any("--max-types" in said for said in counted.decisions)


def test_the_table_is_bounded_by_words_and_lengths(tmp_path):
    draw = np.random.default_rng(0)
    pairs = [" ".join(draw.choice(["a", "b", "c", "d", "e"], draw.integers(2, 5))) for _ in range(3000)]
    cells = []
    for count in (1500, 3000):
        paths = tmp_path / "a.de", tmp_path / "a.en"
        for path in paths:
            path.write_text("\n".join(pairs[:count]) + "\n")
        cells.append(len(count_streamed(of(paths), Settings(max_types=3, min_count=1, jobs=1, rows=100)).table.rows))
    assert cells == [(3 + 1) ** 2 * 3] * 2  # three words and the rest, opposite each other, in three lengths


def test_a_sample_does_not_depend_on_the_chunks(parallel, monkeypatch):
    monkeypatch.setattr(streaming, "MAX_CELLS", 20_000)
    samples = [count_streamed(of(parallel), Settings(jobs=1, rows=rows)).sample for rows in (13, 1000)]
    assert samples[0].number.tolist() == samples[1].number.tolist()
    assert np.array_equal(samples[0].sources.values, samples[1].sources.values)
    assert 100 <= len(samples[0].number) < len(PAIRS)
    other = count_streamed(of(parallel), Settings(jobs=1, seed=1)).sample
    assert other.number.tolist() != samples[0].number.tolist()


def test_scrambled_numbers_are_spread_evenly():
    high = hashed(np.arange(4000, dtype=np.uint64), 7) >> np.uint64(60)
    assert np.bincount(high.astype(int), minlength=16).min() > 200


def test_pairs_left_out_are_named_by_their_lines(tmp_path):
    paths = tmp_path / "a.de", tmp_path / "a.en"
    paths[0].write_text("ein Hund\n\n3\nzwei Hunde\n\x01\n" * 3, "utf-8")
    paths[1].write_text("a dog\nx\n3\ntwo dogs\nnothing\n" * 3, "utf-8")
    counted = count_streamed(of(paths), Settings(jobs=1, rows=4))
    assert counted.pairs == 6
    assert "a.de: 3 pairs with an empty side left out (lines 2, 7, 12)" in counted.decisions
    assert "a.de: 3 pairs of numbers alone left out (lines 3, 8, 13)" in counted.decisions
    assert any("no word left out" in said for said in counted.decisions)


def test_a_side_that_ends_early(parallel):
    parallel[1].write_text("a dog\n" * 100, "utf-8")
    with pytest.raises(DataError, match=r"a\.en ends after 100 lines, before .*a\.de:101"):
        count_streamed(of(parallel), Settings(jobs=1, rows=30))


def test_a_line_longer_than_any_sentence(parallel, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE", 10)
    monkeypatch.setattr(text_files, "_BLOCK", 16)
    with pytest.raises(DataError, match=r"a\.de:1: this line has more than 10 bytes; give one sentence a line"):
        count_streamed(of(parallel), Settings(jobs=1))


def test_a_name_that_no_file_can_have_is_not_large():
    assert not is_large("x" * 5000, None, 0)


def test_what_cannot_be_streamed(tmp_path):
    (tmp_path / "a.txt").write_text("ein Hund\n")
    with pytest.raises(DataError, match=r"a\.txt: this format is not read in chunks; give \.csv"):
        api.preflight(tmp_path / "a.txt", stream=True)
    with pytest.raises(ConfigError, match="only files"):
        api.preflight("copy-vocab", stream=True)
    with pytest.raises(ConfigError, match="max_types is 0; it must be 1 or more"):
        Settings(max_types=0)
    with pytest.raises(ConfigError, match=r"max_types is 2,097,152; it must be below [\d,]+"):
        Settings(max_types=1 << 21)


def test_numbers_are_no_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "MAX_LABELS", 20)
    path = tmp_path / "scores.csv"
    path.write_text("text,score\n" + "".join(f"some words,{i / 7:.3f}\n" for i in range(60)), "utf-8")
    with pytest.raises(DataError, match=r"scores\.csv: column 'score' has more than 20 distinct labels.* --label"):
        count_streamed(open_stream(path, task="classification", text="text", label="score"), Settings(jobs=1, rows=30))


def test_words_that_had_no_room_are_spoken_of(parallel, monkeypatch):
    monkeypatch.setattr(streaming, "CAPACITY", 12)
    counted = count_streamed(of(parallel), Settings(max_types=5, jobs=1, rows=50))
    for side in ("source", "target"):
        (said,) = [line for line in counted.decisions if line.startswith(f"every {side} word that occurs")]
        missed = int(re.search(r"more than ([\d,]+) times", said)[1].replace(",", ""))
        assert missed > 0
        words = Counter(word for pair in PAIRS for word in tokenise(pair[side == "target"], TokenRules()))
        kept = counted.names if side == "source" else counted.outputs
        word, times = words.most_common(1)[0]
        assert times > missed
        assert word in kept


def test_stretches_that_are_forgotten_are_worked_out_again(parallel, monkeypatch):
    whole = count_streamed(of(parallel), Settings(jobs=1, rows=50))
    monkeypatch.setattr(streaming, "MAX_CACHED", 3)
    again = count_streamed(of(parallel), Settings(jobs=1, rows=50))
    assert np.array_equal(again.table.rows, whole.table.rows)
    assert np.array_equal(again.table.counts, whole.table.counts)


def test_tabs_with_quotes_that_do_not_pair_up(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text("text\tlabel\n" + '5" nails are good\tup\n"so bad\tdown\n' * 20, "utf-8")
    result = api.preflight(str(path), stream=True, jobs=1, permutations=120)
    assert any("quotes do not pair up" in said for said in result.decisions)
    assert result.verdict == "learnable"
