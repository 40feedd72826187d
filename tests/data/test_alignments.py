import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.files.text_files import read_lines
from heedful.data.parallel import Alignment, parse_links, read_alignments
from heedful.errors import DataError

MIRROR = Path(os.environ.get("HEEDFUL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
GOLD = MIRROR / "word_alignment"
needs_gold = pytest.mark.skipif(
    not GOLD.is_dir(), reason="no mirror: set HEEDFUL_DATA to a folder with word_alignment/"
)

links = st.frozensets(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=20)


@settings(deadline=None)
@given(links, links, st.integers(0, 1))
def test_written_links_read_back(sure, possible, first):
    alignment = Alignment.of(sure, possible)
    shifted = " ".join(f"{s + first}{'-' if (s, t) in sure else 'p'}{t + first}" for s, t in alignment.possible)
    assert parse_links(shifted, first=first) == alignment
    assert alignment.reversed().reversed() == alignment


@needs_gold
@pytest.mark.parametrize(
    ("file", "pairs", "sure", "possible"),
    [
        ("naacl2003/enfr.gold", 447, 4038, 13400),
        ("naacl2003/roen.gold", 248, 6198, 0),
        ("deen_bicici100/de-en.wa", 100, 1233, 0),
        ("deen_bicici100/de-en.ref.wa", 100, 1233, 0),
    ],
)
def test_gold_counts(file, pairs, sure, possible):
    gold = read_alignments(GOLD / file, count=pairs)
    assert sum(len(a.sure) for a in gold) == sure
    assert sum(len(a.possible - a.sure) for a in gold) == possible


@needs_gold
def test_both_forms_of_the_german_gold_are_one():
    folder = GOLD / "deen_bicici100"
    assert read_alignments(folder / "de-en.wa") == read_alignments(folder / "de-en.ref.wa")


@needs_gold
@pytest.mark.parametrize("name", ["enfr", "roen"])
def test_one_based_links_fit_their_sentences(name):
    rows = [line.split("|||") for line in read_lines(GOLD / "naacl2003" / f"{name}.src-tgt")]
    lengths = [[len(side.split()) for side in row] for row in rows]
    gold = read_alignments(GOLD / "naacl2003" / f"{name}.gold")
    for alignment, (L, T) in zip(gold, lengths, strict=True):
        assert all(s < L and t < T for s, t in alignment.possible)


@needs_gold
def test_byte_order_mark_is_not_part_of_the_first_word():
    assert read_lines(GOLD / "deen_bicici100" / "test.de")[0].startswith("herr ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0-0\n1-x\n", r":2: '1-x' is not a link"),
        (b"0-0\n1--1\n", r":2: '1--1'"),
        (b"0-0\n\xff\n", r":2: byte 0xff at offset 4 is not UTF-8"),
        (b"0-0\n\x00\n", r":2: there is a NUL"),
        (b"0 1 1\n", r":1: sentence 0; sentences count from 1 to 1,000,000"),
    ],
)
def test_bad_lines_are_named(tmp_path, content, message):
    file = tmp_path / "gold.wa"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_alignments(file)


def test_crlf_empty_lines_and_counts(tmp_path):
    file = tmp_path / "gold.wa"
    file.write_bytes(b"\xef\xbb\xbf0-0 1p1\r\n\r\n2-2\r\n")
    gold = read_alignments(file)
    assert [len(a.possible) for a in gold] == [2, 0, 1]
    with pytest.raises(DataError, match="3 alignments for 4 sentence pairs"):
        read_alignments(file, count=4)


def test_naacl_form_has_unlinked_sentences_and_possible_links(tmp_path):
    file = tmp_path / "gold.naacl"
    file.write_text("1 1 1 S\n3 2 1 P\n3 1 1\n")
    gold = read_alignments(file)
    assert [str(a) for a in gold] == ["0-0", "", "0-0 1p0"]


def test_zero_where_one_was_promised(tmp_path):
    with pytest.raises(DataError, match="counts from 0"):
        parse_links("0-1", first=1)
    (tmp_path / "gold.naacl").write_text("1 1 1\n2 0 1\n")
    with pytest.raises(DataError, match=r"gold\.naacl:2: position 0, but positions count from 1; pass first=0"):
        read_alignments(tmp_path / "gold.naacl", first=1)
    with pytest.raises(DataError, match="sure links must be possible"):
        Alignment(frozenset({(0, 0)}), frozenset())
