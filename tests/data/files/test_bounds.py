"""Memory is bounded: by what is decoded, by rows times columns, and by the columns that are used."""

import gzip
import io
import json
import lzma
import tarfile
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful import api
from heedful.data.corpora.entry import read_whole
from heedful.data.corpora.eraser import read_marked
from heedful.data.files import tables, text_files
from heedful.data.loading import open_data
from heedful.errors import DataError

ROWS = 20
REPEATED = "word " * 10_000


def repeated(rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([REPEATED]))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_a_value_repeated_by_a_dictionary_is_counted_each_time(tmp_path, stream, nested):
    rows = 2003
    labels = pa.array(["a", "b"] * rows)[:rows]
    table = pa.table({"text": repeated(rows), "label": labels})
    if nested:
        table = pa.table({"translation": pa.StructArray.from_arrays([repeated(rows), labels], ["de", "en"])})
    pq.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 17
    with pytest.raises(DataError, match=r"a\.parquet: .* bytes unpack to more than .*, as no text does"):
        api.preflight(tmp_path / "a.parquet", task="translation" if nested else None, stream=stream, jobs=1)


def test_values_of_a_parquet_file_that_compress_like_no_text(tmp_path):
    texts = pa.array(["x" * (1 << 21)] * 17)
    table = pa.table({"text": texts, "label": ["a"] * 17})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(DataError, match="as no text does"):
        open_data(tmp_path / "a.parquet")


def test_columns_that_nobody_asked_for_are_not_read(tmp_path):
    table = {
        "id": pa.array([timedelta(days=1)] * ROWS, pa.duration("ns")),
        "when": pa.array([10**18] * ROWS, pa.timestamp("ms")),
        "day": [date(2020, 1, 1)] * ROWS,
        "tags": [[["x"]]] * ROWS,
        "body": repeated(ROWS),
        "text": ["so good", "so dull"] * (ROWS // 2),
        "label": ["1", "0"] * (ROWS // 2),
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    assert len(open_data(tmp_path / "a.parquet", text="text").train) == 16
    for name in ("id", "when", "day", "tags"):
        with pytest.raises(DataError, match=f"row 1: column '{name}' holds values of the type .*; name another with"):
            open_data(tmp_path / "a.parquet", text="text", label=name)
    rows = [{"text": "so good", "label": "ab"[i % 2], "tags": [[]] * 1000} for i in range(ROWS)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    table = tables.read_table(tmp_path / "a.jsonl", lambda header: ["text", "label"])
    assert list(table.columns) == ["text", "label"]


def test_languages_in_parquet_are_the_same_whole_and_streamed(tmp_path):
    rows = [{"de": "ein Hund" if i % 2 else "eine Katze", "en": "a dog" if i % 2 else "a cat"} for i in range(ROWS)]
    pq.write_table(pa.table({"id": range(ROWS), "translation": rows}), tmp_path / "a.parquet")
    corpus = open_data(tmp_path / "a.parquet", task="translation", all_as_test=True)
    assert corpus.test.sources == tuple(row["de"] for row in rows)
    assert (corpus.source_language, corpus.target_language) == ("de", "en")
    streamed = api.preflight(tmp_path / "a.parquet", task="translation", stream=True, jobs=1, permutations=19)
    assert streamed.statistics.pairs == ROWS


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "de"])
def test_more_rows_than_are_held_at_once(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(text_files, "MAX_ROWS", ROWS - 1)
    monkeypatch.setattr(tables, "COUNTED_ROWS", 1)
    path = tmp_path / f"a.{kind}"
    columns = {"text": ["so good"] * ROWS, "label": ["1"] * ROWS}
    if kind == "csv":
        path.write_text("text,label\n" + "so good,1\n" * ROWS)
    elif kind == "jsonl":
        path.write_text('{"text": "so good", "label": 1}\n' * ROWS)
    elif kind == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text("ein Hund\n" * ROWS)
    with pytest.raises(DataError, match=rf"a\.{kind}: more than 19 (rows|lines), .* heedful preflight --stream"):
        open_data(path, path if kind == "de" else None)


def test_rows_times_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_CELLS", 30)
    monkeypatch.setattr(tables, "COUNTED_ROWS", 1)
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "so good,1\n" * ROWS)
    with pytest.raises(DataError, match="2 columns of 16 rows or more"):
        open_data(path)
    path.write_text(",".join(f"c{i}" for i in range(tables.MAX_COLUMNS + 1)))
    with pytest.raises(DataError, match=r"a\.csv:1: 10,001 columns are more than 10,000"):
        open_data(path)


def test_nested_json_counts_for_more_than_it_is_long(tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_text('{"text": [[], [], []], "label": 1}\n' * ROWS)
    monkeypatch.setattr(text_files, "MAX_WHOLE", 1000)
    with pytest.raises(DataError, match="is not read at once"):
        open_data(tmp_path / "a.jsonl")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_the_headers_of_an_archive_are_counted(tmp_path, kind):
    (tmp_path / "val.jsonl").write_text("{}")
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = kind, 1 << 26
    content = io.BytesIO(header.tobuf(format=tarfile.GNU_FORMAT) + b"a" * header.size + tarfile.TarInfo("x").tobuf())
    (tmp_path / "docs.tar.gz").write_bytes(gzip.compress(content.getvalue()))
    with pytest.raises(DataError, match=r"unpack to more than 16,7.*, as no text does"):
        read_marked(tmp_path, "val")


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_the_files_of_a_corpus_are_counted(tmp_path, suffix, pack):
    path = tmp_path / f"a.tsv.{suffix}"
    path.write_bytes(pack(b"good\tfilm\n"))
    assert read_whole(path) == "good\tfilm\n"
    path.write_bytes(pack((b"0" * 1023 + b"\n") * (1 << 15)))
    with pytest.raises(DataError, match="as no text does"):
        read_whole(path)
    path.write_bytes(pack(b"good\tfilm\n")[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        read_whole(path)
