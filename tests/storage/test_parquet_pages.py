"""Sizes of Parquet columns by their pages: as the metadata say where they are true, and not fooled where they lie."""

import io
import random
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs, load_tokeniser
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import DataError
from heedful.storage import parquet_pages
from heedful.storage.parquet_pages import chunk_sizes, number_bytes, read_numbers_and_texts
from tests.faults.bombs import lie

TABLE = pa.table(
    {
        "text": [f"a film number {i % 7}" for i in range(2003)],
        "ids": [list(range(i % 5)) for i in range(2003)],
        "score": pa.array(np.linspace(0, 1, 2003)),
    }
)


def written(table, **options):
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_sizes_agree_with_true_metadata(version, compression, dictionary):
    file = written(
        TABLE,
        data_page_version=version,
        compression=compression,
        use_dictionary=dictionary,
        row_group_size=701,
        data_page_size=997,
        write_page_checksum=True,
    )
    metadata = pq.read_metadata(file)
    chunks = [metadata.row_group(g).column(k) for g in range(3) for k in range(3)]
    sizes = chunk_sizes(file, metadata)
    assert [size.values for size in sizes] == [chunk.num_values for chunk in chunks]
    assert sum(size.values for size in sizes if size.column == "score") == 2003
    for size, chunk in zip(sizes, chunks, strict=True):
        assert 0 < size.unpacked < chunk.total_uncompressed_size  # which counts the headers of pages too
        assert size.packed == chunk.total_compressed_size


def test_sizes_are_not_those_of_metadata_that_lie():
    true = written(pa.table({"text": ["x" * 50_000, "y"]}), compression="zstd", use_dictionary=False)
    size = pq.read_metadata(true).row_group(0).column(0).total_uncompressed_size
    lying = io.BytesIO(lie(true.getvalue(), size, 100))
    metadata = pq.read_metadata(lying)
    assert metadata.row_group(0).column(0).total_uncompressed_size == 100
    assert [chunk.unpacked for chunk in chunk_sizes(lying, metadata)] == [chunk_sizes(true, metadata)[0].unpacked]
    assert chunk_sizes(lying, metadata)[0].unpacked > 50_000


def test_a_wrong_number_of_values_is_refused():
    true = written(pa.table({"a": pa.array(range(5003))}))
    lying = io.BytesIO(lie(true.getvalue(), 5003, 17, count=3))
    with pytest.raises(ValueError, match="column 'a' has 17 values by the metadata, but 5,003 in its pages"):
        chunk_sizes(lying, pq.read_metadata(lying))


def test_changed_page_headers_are_refused_in_words_or_read():
    true, draw = written(TABLE).getvalue(), random.Random("headers")
    metadata = pq.read_metadata(io.BytesIO(true))
    values = [size.values for size in chunk_sizes(io.BytesIO(true), metadata)]
    for _ in range(500):
        changed = bytearray(true)
        for _ in range(3):
            changed[draw.randrange(4, len(changed) - 8)] = draw.randrange(256)
        with suppress(ValueError):
            sizes = chunk_sizes(io.BytesIO(bytes(changed)), metadata)
            assert [size.values for size in sizes] == values


def test_too_many_pages(monkeypatch):
    monkeypatch.setattr(parquet_pages, "MAX_PAGES", 5)
    file = written(TABLE)
    with pytest.raises(ValueError, match="more than 5 pages"):
        chunk_sizes(file, pq.read_metadata(file))


def test_tables_larger_than_their_file_allows(tmp_path, monkeypatch):
    path = tmp_path / "train.parquet"
    ids = Ragged.from_lengths(np.full(30_011, 7, np.int32), [10_007, 10_007, 9997])
    EncodedSplit(ids, np.array([0, 1, 0])).save(path)
    assert EncodedSplit.load(path).ids.values.tolist() == ids.values.tolist()
    pairs = EncodedPairs(ids, ids, ids, ids)
    pairs.save(tmp_path / "pairs.parquet")
    assert EncodedPairs.load(tmp_path / "pairs.parquet").target.lengths.tolist() == [10_007, 10_007, 9997]
    assert number_bytes(path) == 4 * 30_011 + 8 * 3
    monkeypatch.setattr(parquet_pages, "FREE_BYTES", 50_000)
    monkeypatch.setattr(parquet_pages, "MAX_RATIO", 2)
    with pytest.raises(DataError, match=r"train\.parquet: damaged \(.*bytes unpack to 120,068 or more"):
        EncodedSplit.load(path)
    with pytest.raises(DataError, match=r"pairs\.parquet: damaged \(.*bytes unpack to 480,176 or more"):
        EncodedPairs.load(tmp_path / "pairs.parquet")
    with pytest.raises(OSError, match="bytes unpack to 120,068 or more"):
        number_bytes(path)


def test_repeated_texts_are_counted_while_they_are_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(parquet_pages, "BATCH_BYTES", 1 << 17)
    path = tmp_path / "a.parquet"
    text = pa.array(["x" * 10_007] * 997)
    pq.write_table(pa.table({"alignment": text.dictionary_encode()}), path)
    with pytest.raises(ValueError, match="column 'alignment' repeats the values of a dictionary"):
        read_numbers_and_texts(path, ("alignment",))
    pq.write_table(pa.table({"alignment": text}), path)
    with pytest.raises(OSError, match="as no such table does"):
        read_numbers_and_texts(path, ("alignment",))
    with pytest.raises(OSError, match="column 'alignment' does not hold numbers"):
        number_bytes(path)


def test_links_are_not_followed(tmp_path):
    (tmp_path / "a.parquet").symlink_to("/etc/hostname")
    with pytest.raises(DataError, match="a symbolic link"):
        EncodedSplit.load(tmp_path / "a.parquet")
    (tmp_path / "a.model").symlink_to("/etc/hostname")
    with pytest.raises(DataError, match="a symbolic link"):
        load_tokeniser(tmp_path / "a.model")


def test_a_tokeniser_of_many_bytes(tmp_path):
    with (tmp_path / "a.model").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DataError, match="more than 67,108,864 bytes"):
        load_tokeniser(tmp_path / "a.model")
