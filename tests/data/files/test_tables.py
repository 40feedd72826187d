import csv
import gzip
import io
import json
import re
from contextlib import suppress
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.data.files import text_files
from heedful.data.files.tables import SUFFIXES, format_of, read_table
from heedful.data.loading import open_data
from heedful.errors import DataError, HeedfulError

CSV = "text,label\ngood,1\nbad,0\n"


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.CSV", CSV),
        ("bom.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("crlf.csv", CSV.replace("\n", "\r\n")),
        ("cr.csv", CSV.replace("\n", "\r")),
        ("semicolon.csv", CSV.replace(",", ";")),
        ("no_last_line_end.csv", CSV.rstrip()),
        ("blank_lines.csv", CSV.replace("\n", "\n\n")),
        ("a.tsv", CSV.replace(",", "\t")),
        ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("a.jsonl", '{"text": "good", "label": "1"}\n\n{"label": "0", "text": "bad"}\n'),
        ("a.jsonl.gz", gzip.compress(b'{"text": "good", "label": "1"}\n{"text": "bad", "label": "0"}', mtime=0)),
    ],
)
def test_every_way_to_write_the_same_table(tmp_path, name, content):
    assert read_table(written(tmp_path, name, content)).columns == {"text": ["good", "bad"], "label": ["1", "0"]}


def test_parquet(tmp_path):
    pl.DataFrame({"text": ["good", "bad"], "label": [1, 0]}).write_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.columns == {"text": ["good", "bad"], "label": [1, 0]}
    assert table.where(1).endswith("a.parquet: row 2")


def test_lines_are_right_after_quoted_newlines(tmp_path):
    path = written(tmp_path, "a.csv", 'text,label\n"one\ntwo\r\nthree",1\n\n"four",0\nfive,1\n')
    table = read_table(path)
    assert table.columns["text"] == ["one\ntwo\r\nthree", "four", "five"]
    assert table.lines == [2, 6, 7]


def test_a_field_of_a_million_characters(tmp_path):
    limit = csv.field_size_limit()
    table = read_table(written(tmp_path, "a.csv", f"text,label\n{'x' * 1_000_000},1\n"))
    assert len(table.columns["text"][0]) == 1_000_000
    assert csv.field_size_limit() == limit


def test_quotes_in_tsv_that_do_not_pair_up_are_text(tmp_path):
    table = read_table(written(tmp_path, "a.tsv", 'text\tlabel\n"Hi" he said\t1\nan "odd one\t0\n'))
    assert table.columns["text"] == ['"Hi" he said', 'an "odd one']
    assert "quotes do not pair up" in table.decisions[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", r"a\.csv: the file is empty"),
        ("a.csv", "\ufeff", r"a\.csv: the file is empty"),
        ("a.csv", "text,label\n", r"a\.csv: there is a header \('text', 'label'\) but no rows"),
        ("a.csv", b"text,label\ngood,1\nb\xe4d,0\n", r"a\.csv:3: byte 0xe4 at offset 19 is not UTF-8"),
        ("a.csv", b"\xef\xbb\xbftext,label\ngood,1\nb\xe4d,0\n", r"a\.csv:3: byte 0xe4 at offset 22 is not UTF-8"),
        ("a.csv", b"text,label\r\ngo\0od,1\r\n", r"a\.csv:2: there is a NUL byte at offset 14"),
        ("a.csv", "text,label\ngood,1\nbad, really,0\n", r"a\.csv:3: this row has 3 fields, the header has 2"),
        ("a.csv", 'text,label\n"a\nb",1\nbad\n', r"a\.csv:4: this row has 1 fields"),
        ("a.csv", 'text,label\ngood,1\n"bad,0\ngood,1\n', r"a\.csv:3: the quotes of the row that begins here"),
        ("a.csv", 'text,label\n"go"od,1\n', r"a\.csv:2: the quotes of the row that begins here"),
        ("a.csv", "text,text,label\na,b,1\n", r"a\.csv:1: two columns are named 'text'"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', r"a\.jsonl:2: this line is not JSON"),
        ("a.jsonl", '{"text": "a"}\n[1, 2]\n', r"a\.jsonl:2: this line is not a JSON object"),
        ("a.jsonl", "[" * 100_000, r"a\.jsonl:1: this line is not JSON"),
        ("a.jsonl", '{"label": ' + "9" * 5000 + "}", r"a\.jsonl:1: this line is not JSON"),
        ("a.parquet", "not parquet", r"a\.parquet: cannot be read as Parquet"),
        ("a.csv.gz", "not gzip", r"a\.csv\.gz: cannot be read"),
        ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-12], r"a\.csv\.gz: cannot be read"),
        ("a.docx", "text", r"a\.docx: \.docx is not a format read here; use \.csv, \.tsv, \.jsonl, \.parquet"),
        ("a", "text", r"a: no suffix is not a format"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_table(written(tmp_path, name, content))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl.gz"])
def test_a_missing_file(tmp_path, name):
    with pytest.raises(DataError, match="there is no such file"):
        read_table(tmp_path / name)


def test_an_empty_parquet_file(tmp_path):
    pl.DataFrame({"text": [], "label": []}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="there are no rows"):
        read_table(tmp_path / "a.parquet")


def test_two_columns_of_one_name_in_parquet(tmp_path):
    pq.write_table(pa.table([["a"], ["b"]], names=["text", "text"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"two columns are named 'text'"):
        read_table(tmp_path / "a.parquet")


def test_more_than_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_WHOLE", 20)
    with pytest.raises(DataError, match=r"a\.csv: more than .* GiB, .* heedful preflight --stream"):
        read_table(written(tmp_path, "a.csv", CSV))


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, "a.csv", CSV)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"a\.csv: cannot be read: .*Permission denied"):
        read_table(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("any")


pieces = st.sampled_from(
    [b"text", b"label", b",", b";", b"\t", b'"', b"\n", b"\r", b"1", b"0", b'{"text": "', b'"}', b"\xff"]
)


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".csv.gz"])
@given(content=st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=40).map(b"".join)))
@example(content=b"PAR1\x00\x00\x00\x00PAR1")
@example(content=b'{"text": "\\ud800", "label": NaN}\n{"text": "b", "label": 1e999}')
def test_arbitrary_bytes_are_read_or_refused(folder, suffix, content):
    path = written(folder, f"any{suffix}", gzip.compress(content) if suffix.endswith("gz") else content)
    with suppress(HeedfulError):
        open_data(path)


@given(content=st.one_of(st.binary(max_size=50), st.lists(pieces, max_size=20).map(b"".join)))
def test_every_error_is_one_printable_line(folder, content):
    # A header of one column never makes a corpus.
    with pytest.raises(HeedfulError) as caught:
        open_data(written(folder, "one.csv", content.replace(b",", b"").replace(b";", b"").replace(b"\t", b"")))
    assert str(caught.value).isprintable()


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.sampled_from("01"))
    )
)
def test_csv_round_trip(folder, rows):
    content = io.StringIO(newline="")
    csv.writer(content).writerows([("text", "label"), *rows])
    path = written(folder, "round.csv", content.getvalue())
    if not rows:
        with pytest.raises(DataError):
            read_table(path)
        return
    table = read_table(path)
    assert list(zip(table.columns["text"], table.columns["label"], strict=True)) == rows
    lines = re.split(r"\r\n|\r|\n", content.getvalue())
    for line, (text, _) in zip(table.lines, rows, strict=True):
        first = re.split(r"\r\n|\r|\n", text)[0].replace('"', '""')
        assert lines[line - 1].removeprefix('"').startswith(first)


@given(st.lists(st.tuples(st.text(), st.integers()), min_size=1))
def test_jsonl_round_trip(folder, rows):
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    table = read_table(written(folder, "round.jsonl", "\n".join(lines)))
    assert list(zip(table.columns["text"], table.columns["label"], strict=True)) == rows
    assert table.lines == list(range(1, len(rows) + 1))


def test_formats():
    assert format_of(Path("a.parquet.gz")) is None
    assert format_of(Path("a.b.jsonl")) == ".jsonl"
