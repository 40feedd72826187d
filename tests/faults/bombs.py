"""Small files that unpack, decode or parse to very much: read in bounded memory, or refused in words.

Each is opened with the address space limited (`fuzzing.limited`): what takes more fails.
"""

import gzip
import io
import json
import lzma
import random
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful import api
from heedful.data.corpora.entry import read_whole
from heedful.data.corpora.eraser import read_marked
from heedful.data.loading import open_data
from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs, load_tokeniser
from heedful.data.vocabulary import EncodedSplit
from heedful.data.word_vectors import vector_words
from heedful.tracing.store import Trace
from tests.faults.fuzzing import Tally

LONG = 1 << 25


def fuzz(rounds: int) -> Tally:
    """Every bomb as a table, streamed, and as a file of a corpus; then Parquet files of random shapes."""
    tally = Tally("bombs")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for what, name, content in chain(packed(), tables(), drawn(rounds), lying()):
            path = folder / name
            path.write_bytes(content)
            if name == "docs.tar.gz":
                (folder / "val.jsonl").write_text("{}")
                tally.attempt(what, lambda: read_marked(folder, "val"), place=folder.name)
                continue
            if name.endswith((".tsv.gz", ".tsv.xz")):
                tally.attempt(f"{what}: as a corpus", lambda path=path: read_whole(path), place=name)
                if name.endswith(".xz"):
                    continue
            tally.attempt(what, lambda path=path: _sizes(path), place=name)
            tally.attempt(f"{what}: streamed", lambda path=path: _streamed(path), place=name)
        for what, name, load in chain(of_runs(folder), vectors(folder)):
            tally.attempt(what, load, place=name)
    return tally


def _sizes(path: Path) -> int:
    return len(open_data(path).train)


def _streamed(path: Path) -> object:
    return api.preflight(path, stream=True, jobs=1, permutations=19)


def packed() -> Iterator[tuple[str, str, bytes]]:
    """Compressed files: rows, lines without an end, and the headers of archives."""
    rows = b"text\tlabel\n" + (b"x" * 1000 + b"\t1\n" + b"y" * 1000 + b"\t0\n") * (LONG // 2006)
    for name, pack in (("a.tsv.gz", gzip.compress), ("a.tsv.xz", lambda content: lzma.compress(content, preset=0))):
        yield f"rows in {name}", name, pack(rows)
        yield f"one line in {name}", name, pack(b"text\tlabel\n" + b"a" * LONG)
        yield f"blank lines in {name}", name, pack(b"text\tlabel\n" + b"\n" * LONG)
    for kind in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.REGTYPE):
        header = tarfile.TarInfo("x")
        header.type, header.size = kind, LONG
        content = io.BytesIO()
        content.write(
            header.tobuf(format=tarfile.GNU_FORMAT) + b"a" * LONG + tarfile.TarInfo("y").tobuf() + bytes(1024)
        )
        yield f"an archive with a header of kind {kind!r}", "docs.tar.gz", gzip.compress(content.getvalue(), 1)
    members = io.BytesIO()
    for i in range(40_000):
        members.write(tarfile.TarInfo(f"{i}").tobuf())
    yield "an archive of many members", "docs.tar.gz", gzip.compress(members.getvalue() + bytes(1024))


def tables() -> Iterator[tuple[str, str, bytes]]:
    """Tables whose memory has little to do with their length."""
    yield "CSV of very many columns", "a.csv", ",".join(f"c{i}" for i in range(10**5)).encode()
    nested = json.dumps({"text": [[]] * 10**4, "label": 1}).encode()
    yield "JSON of empty lists", "a.jsonl", (nested + b"\n") * 20
    keys = b"\n".join(json.dumps({f"k{i}-{j}": 0 for j in range(50)}).encode() for i in range(2000))
    yield "JSON of other keys in every line", "a.jsonl", keys
    other = b"\n".join(json.dumps({"text": "so good", "label": i % 2, "x": [[]] * 10**4}).encode() for i in range(200))
    yield "JSON with lists in a column nobody asked for", "a.jsonl", other


def drawn(rounds: int) -> Iterator[tuple[str, str, bytes]]:
    """Parquet files in which a long value is repeated by every encoding."""
    draw = random.Random("bombs")
    for _ in range(6 * rounds):
        length = draw.choice((10, 10**3, 10**5, 10**6))
        rows = min(draw.choice((50, 3000, 200_000)), (1 << 28) // length)
        unique = draw.choice((1, 3)) if length * 3 < 1 << 26 else 1
        dictionary = pa.array([f"{'ab'[i % 2]} " * (length // 2) for i in range(unique)])
        column = pa.DictionaryArray.from_arrays(pa.array([i % unique for i in range(rows)], pa.int32()), dictionary)
        plain = length * rows <= LONG
        text = column.dictionary_decode() if plain and draw.random() < 0.5 else column
        options = {"compression": draw.choice(("snappy", "zstd", "gzip", "none"))}
        if plain and text is not column:
            options |= draw.choice(
                ({"use_dictionary": False}, {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}})
            )
        columns = {"text": text, "label": pa.array([i % 2 for i in range(rows)])}
        if draw.random() < 0.3:
            columns = {"body": text, "text": pa.array(["so good", "so bad"] * rows)[:rows], "label": columns["label"]}
        written = io.BytesIO()
        pq.write_table(pa.table(columns), written, **options)
        yield f"Parquet {length} × {rows}, {unique} values, {options}, {list(columns)}", "a.parquet", written.getvalue()


def lying() -> Iterator[tuple[str, str, bytes]]:
    """Parquet files whose metadata do not say how much is in them."""
    rows = 20_000
    long = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["a " * (LONG // 4)]))
    written = io.BytesIO()
    pq.write_table(pa.table({"text": long, "label": pa.array([i % 2 for i in range(rows)])}), written)
    chunk = pq.read_metadata(written).row_group(0).column(0)
    size, packed = chunk.total_uncompressed_size, chunk.total_compressed_size
    yield "Parquet that says its texts are short", "a.parquet", lie(written.getvalue(), size, 1000)
    yield "Parquet that says its texts are as long as packed", "a.parquet", lie(written.getvalue(), size, packed)
    for count in (1, 2, 3):
        yield f"Parquet with another number of rows, {count}", "a.parquet", lie(written.getvalue(), rows, 50, count)


def lie(content: bytes, true: int, false: int, count: int = 1) -> bytes:
    """A Parquet file with another number in its metadata, the first `count` times that it occurs there."""
    length = int.from_bytes(content[-8:-4], "little")
    start = len(content) - 8 - length
    before = _varint(2 * true)
    after = _varint(2 * false, len(before))
    assert before in content[start:-8]
    return content[:start] + content[start:-8].replace(before, after, count) + content[-8:]


def _varint(value: int, length: int = 1) -> bytes:
    """A number in groups of seven bits, with empty groups up to a length."""
    groups = []
    while value or len(groups) < length:
        groups.append(value & 127)
        value >>= 7
    return bytes(group | 128 for group in groups[:-1]) + bytes(groups[-1:])


def of_runs(folder: Path) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Files of a run that a stranger made: encoded texts and pairs, a trace, a tokeniser."""
    zeros = Ragged.from_lengths(np.zeros(1 << 22, np.int32), [1 << 21, 1 << 21]).to_arrow()
    plain = {"label": pa.array([0, 1]), "example": pa.array([0, 1], pa.int32())}
    names = ("ids", "source", "target", "source_words", "target_words")
    table = pa.table(plain | dict.fromkeys(names, zeros) | {"alpha": zeros.cast(pa.list_(pa.float32()))})
    with pq.ParquetWriter(folder / "1.parquet", table.schema) as writer:
        for _ in range(20):
            writer.write_table(table)
    yield "encoded texts of equal words", "1.parquet", lambda: EncodedSplit.load(folder / "1.parquet")
    yield "encoded pairs of equal words", "1.parquet", lambda: EncodedPairs.load(folder / "1.parquet")
    yield "a trace of equal numbers", "1.parquet", lambda: Trace(folder).quantity("alpha", 1)
    with (folder / "a.model").open("wb") as file:
        file.truncate(1 << 40)
    yield "a tokeniser without an end", "a.model", lambda: load_tokeniser(folder / "a.model")


def vectors(folder: Path) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Files of word vectors: equal numbers, a shape beyond any memory, a line without an end."""
    np.savez_compressed(folder / "v.npz", words=np.array(["a"]), vectors=np.zeros((1, 1 << 28), np.float16))
    yield "vectors of equal numbers", "v.npz", lambda: vector_words(str(folder / "v.npz"))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 44, 1)})
    with ZipFile(folder / "w.npz", "w") as packed:
        packed.writestr("vectors.npy", header.getvalue())
        packed.writestr("words.npy", header.getvalue().replace(b"<f8", b"<U9"))
    yield "vectors of a shape that no memory holds", "w.npz", lambda: vector_words(str(folder / "w.npz"))
    with (folder / "v.txt").open("wb") as file:
        file.write(b"good 1 2\nfilm ")
        file.truncate(1 << 40)
    yield "vectors in a line without an end", "v.txt", lambda: vector_words(str(folder / "v.txt"))
