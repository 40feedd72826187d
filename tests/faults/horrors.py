"""Files that nobody should have to read, made by hand."""

import gzip
import io
import json
import lzma
import os
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

GOOD_ROWS = [("a good film", "up"), ("a bad film", "down")] * 20
GOOD = {
    "csv": ("text,label\n" + "".join(f"{text},{label}\n" for text, label in GOOD_ROWS)).encode(),
    "tsv": ("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in GOOD_ROWS)).encode(),
    "jsonl": "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in GOOD_ROWS).encode(),
    "txt": "".join(text + "\n" for text, _ in GOOD_ROWS).encode(),
}
LONG = 10_000_000  # bytes of the longest line

JSON_VALUES = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"9" * 5000, b"1.7976931348623157e308", b"null", b"true", b"[]",
    b"{}", b"[[1]]", b'"\\ud800"', b'"\\u0000"', b'""', b'" "', b'{"a": {"b": 1}}', b'"x"', b"[" * 5000 + b"]" * 5000,
)  # fmt: skip


def contents(kind: str) -> Iterator[tuple[str, bytes]]:
    """Hand-made horrors for one kind of file (csv, tsv, jsonl or txt), by name."""
    good = GOOD[kind]
    yield "empty", b""
    yield "blank", b" \n\t\n\r\n"
    yield "one newline", b"\n"
    yield "byte-order mark alone", b"\xef\xbb\xbf"
    yield "byte-order mark", b"\xef\xbb\xbf" + good
    yield "two byte-order marks", b"\xef\xbb\xbf\xef\xbb\xbf" + good
    yield "NUL bytes", good.replace(b"film", b"fi\0lm")
    yield "all NUL", bytes(1000)
    yield "UTF-16", good.decode().encode("utf-16")
    yield "UTF-16 big-endian", good.decode().encode("utf-16-be")
    yield "UTF-32", good.decode().encode("utf-32")
    yield "Latin-1", good.replace(b"good", b"g\xf6\xf6d")
    yield "Shift-JIS", "日本語,テスト\n".encode("shift-jis") * 20
    yield "lone surrogates", good.replace(b"good", b"\xed\xa0\x80")
    yield "overlong UTF-8", good.replace(b"good", b"\xc0\xaf")
    yield "cut in a character", good + "é".encode()[:1]
    yield "control characters", good.replace(b"good", bytes(range(1, 9)))
    yield "separators of Unicode", good.replace(b"good", "\u2028\u2029\x85\x0b\x0c".encode())
    yield "old Macintosh lines", good.replace(b"\n", b"\r")
    yield "mixed line ends", good.replace(b"\n", b"\r\n", 7).replace(b"down", b"down\r")
    yield "no last newline", good.rstrip()
    yield "one huge line", b"x" * LONG
    yield "one huge field", good + b"w " * (LONG // 4) + b"\n"
    yield "gzip under another name", gzip.compress(good)
    yield "a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9
    yield "right to left and marks", good.replace(b"good", "‮‏ا҉̴̵̶̷̸".encode())
    yield "noise", random.Random(1).randbytes(5000)
    if kind in ("csv", "tsv"):
        mark = b"," if kind == "csv" else b"\t"
        yield "unbalanced quote", good.replace(b"a good", b'"a good', 1)
        yield "quote in a field", good.replace(b"good", b'go"od')
        yield "quote after a field", good.replace(b"a good", b'"a" good')
        yield "only quotes", b'"' * 999
        yield "ragged rows", good + mark.join([b"a", b"b", b"c"]) + b"\n"
        yield "short row", good + b"alone\n"
        yield "duplicate headers", good.replace(b"label", b"text", 1)
        yield "empty headers", mark * 3 + b"\n" + mark * 3 + b"\n"
        yield "header only", good.split(b"\n")[0]
        yield "no header", good.split(b"\n", 1)[1]
        yield "ten thousand columns", mark.join(b"c%d" % i for i in range(10_000)) + b"\n"
        yield "one class", good.replace(b"down", b"up")
        yield "labels that are numbers", _labelled(kind, [f"{i / 7}" for i in range(40)])
        yield "labels that are no numbers", _labelled(kind, ["nan", "inf", "-inf", "1e400"] * 10)
        yield "giant labels", _labelled(kind, ["9" * 4400, "8" * 4400] * 20)
        yield "labels of four hundred digits", _labelled(kind, ["9" * 400, "1e308"] * 20)
        yield "blank labels", _labelled(kind, ["", " "] * 20)
        yield "every label its own", _labelled(kind, [f"id{i}" for i in range(40)])
        yield "formulas", good.replace(b"a good", b"=HYPERLINK(1)")
        yield "NULL rows", good + mark * 1 + b"\n"
    if kind == "jsonl":
        for value in JSON_VALUES:
            name = value[:12].decode()
            yield f"text is {name}", b'{"text": ' + value + b', "label": "up"}\n' + good
            yield f"label is {name}", b'{"text": "so", "label": ' + value + b"}\n" + good
            yield f"a line is {name}", good + value + b"\n"
        yield "a JSON list", json.dumps([{"text": "a", "label": "b"}]).encode()
        yield "an indented object", json.dumps({"text": "a", "label": "b"}, indent=1).encode()
        yield "keys that come and go", b'{"text": "a"}\n{"label": "b"}\n{"x": 1}\n' * 9
        yield "every line its own key", b"".join(b'{"text": "a", "label": "b", "k%d": 1}\n' % i for i in range(20_000))
        yield "repeated keys", b'{"text": "a", "text": 1, "label": "b"}\n' * 9
        yield "comments", b"// no\n" + good


def _labelled(kind: str, labels: list[str]) -> bytes:
    mark = "," if kind == "csv" else "\t"
    return "".join(
        [f"text{mark}label\n", *(f"text number {i}{mark}{label}\n" for i, label in enumerate(labels))]
    ).encode()


def parquets() -> Iterator[tuple[str, bytes]]:
    """Parquet files of the wrong kind, and a right one cut."""
    good = good_parquet()
    yield "good", good
    yield "no rows", _parquet({"text": pa.array([], pa.string()), "label": pa.array([], pa.string())})
    yield "no columns", _parquet({})
    yield "numbers", _parquet({"text": [1.5, None] * 9, "label": [float("nan"), 1.0] * 9})
    yield "binary", _parquet({"text": [b"\xff\x00"] * 9, "label": [b"x"] * 9})
    yield "nested", _parquet({"text": [{"a": [1]}] * 9, "label": [[1, 2]] * 9})
    yield "nulls", _parquet({"text": pa.array([None] * 9, pa.string()), "label": pa.array([None] * 9, pa.null())})
    yield "translation of numbers", _parquet({"translation": [{"de": 1, "en": None}] * 9})
    for cut in (0, 4, 8, 100, len(good) - 8, len(good) - 1):
        yield f"cut at {cut}", good[:cut]


def good_parquet() -> bytes:
    """A table as it should be."""
    return _parquet({"text": [text for text, _ in GOOD_ROWS], "label": [label for _, label in GOOD_ROWS]})


def _parquet(columns: dict[str, object]) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written)
    return written.getvalue()


def packed(good: bytes) -> Iterator[tuple[str, bytes]]:
    """What may stand behind `.gz`."""
    whole = gzip.compress(good)
    yield "good", whole
    yield "not gzip", good
    yield "xz", lzma.compress(good)
    yield "empty", b""
    yield "header alone", whole[:10]
    yield "cut", whole[:-9]
    yield "wrong checksum", whole[:-8] + bytes(8)
    yield "rubbish behind", whole + b"rubbish"
    yield "two members", whole + whole
    yield "bomb", bomb()


@lru_cache
def bomb(size: int = 1 << 27) -> bytes:
    """A little file that unpacks to so many bytes, in lines."""
    written = io.BytesIO()
    with gzip.GzipFile(fileobj=written, mode="wb", compresslevel=6) as file:
        for _ in range(size >> 20):
            file.write((b"0" * 1023 + b"\n") * 1024)
    return written.getvalue()


def places(folder: Path, suffix: str) -> Iterator[tuple[str, Path]]:
    """Paths that are no files."""

    def at(name: str, make: Callable[[Path], object]) -> tuple[str, Path]:
        path = folder / f"{name}{suffix}"
        make(path)
        return name, path

    yield at("nowhere", lambda path: None)
    yield at("folder", lambda path: path.mkdir(exist_ok=True))
    yield at("pipe", lambda path: path.exists() or os.mkfifo(path))
    yield at("loop", lambda path: path.is_symlink() or path.symlink_to(path.name))
    yield at("dangling", lambda path: path.is_symlink() or path.symlink_to("nothing"))
    yield at("zero", lambda path: path.is_symlink() or path.symlink_to("/dev/zero"))
    yield at("null", lambda path: path.is_symlink() or path.symlink_to("/dev/null"))
    yield "name too long", folder / ("x" * 300 + suffix)
    yield "path too long", Path("/".join(["x" * 200] * 21) + suffix)
    yield "NUL in the name", folder / f"a\0b{suffix}"
    yield "a file as folder", folder / "a.csv" / f"b{suffix}"
    yield "surrogate in the name", folder / f"\udc80{suffix}"
    yield "nothing", Path("")
