"""Every reader of data, gold alignments and rationales, given horrors."""

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from heedful import api
from heedful.data.corpora.eraser import read_marked
from heedful.data.loading import open_data
from heedful.data.parallel import read_alignments
from heedful.data.subwords import EncodedPairs, load_tokeniser
from heedful.data.vocabulary import EncodedSplit, Vocabulary
from heedful.preflights.preflight import run_preflight
from tests.faults import horrors
from tests.faults.fuzzing import Tally
from tests.faults.mutations import aligned, broken, each, marked, mutated, tables, values

KINDS = ("csv", "tsv", "jsonl")
PERMUTATIONS = 19
LINKS = (b"0-0 1p1\n2-1\n\n", b"1 1 1 S\n1 2 3 P\n2 1 1\n")
VOCABULARY = b'["<pad>", "<unk>", "<bos>", "<eos>", "a"]'


def fuzz(rounds: int) -> Tally:
    """Every hand-made horror once, then `rounds` that hypothesis draws for each kind of file."""
    tally = Tally("fuzz-readers")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _hand_made(tally, folder)
        _drawn(tally, folder, rounds)
    return tally


def _hand_made(tally: Tally, folder: Path) -> None:
    for kind in KINDS:
        for name, content in horrors.contents(kind):
            _tables(tally, f"{kind}, {name}", _file(folder, f"a.{kind}", content))
        for name, content in horrors.packed(horrors.GOOD[kind]):
            _tables(tally, f"{kind}.gz, {name}", _file(folder, f"a.{kind}.gz", content))
    for name, content in horrors.parquets():
        _tables(tally, f"parquet, {name}", _file(folder, "a.parquet", content))
    for name, content in horrors.contents("txt"):
        _pairs(tally, f"pairs, {name}", _file(folder, "a.de", content), _file(folder, "a.en", horrors.GOOD["txt"]))
        _alignments(tally, f"alignments, {name}", _file(folder, "gold.wa", content))
        _stored(tally, f"stored, {name}", folder, content)
    for name, content in horrors.packed(horrors.GOOD["txt"]):
        _pairs(tally, f"packed, {name}", _file(folder, "p.de.gz", content), _file(folder, "a.en", horrors.GOOD["txt"]))
    for suffix in (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".de", ".docx", ""):
        for name, path in horrors.places(folder, suffix):
            _places(tally, f"{name}{suffix}", path)
    for name, lines in GOLD.items():
        _alignments(tally, name, _file(folder, "gold.wa", lines.encode()))
    for name, rows in RATIONALES.items():
        _eraser(tally, name, folder, "\n".join(json.dumps(row) for row in rows).encode())


def _drawn(tally: Tally, folder: Path, rounds: int) -> None:
    def as_table(kind: str, content: bytes) -> None:
        _tables(tally, f"{kind} drawn {content[:60]!r}", _file(folder, f"a.{kind}", content))

    def as_pairs(content: bytes) -> None:
        other = _file(folder, "a.en", horrors.GOOD["txt"])
        _pairs(tally, f"pairs drawn {content[:60]!r}", _file(folder, "a.de", content), other)

    def as_links(content: bytes) -> None:
        _alignments(tally, f"alignments drawn {content[:60]!r}", _file(folder, "gold.wa", content))

    for kind in KINDS:
        each(rounds, broken(horrors.GOOD[kind]) | tables(kind), partial(as_table, kind))
    each(rounds, mutated(horrors.good_parquet()), partial(as_table, "parquet"))
    each(rounds, broken(horrors.GOOD["txt"]), as_pairs)
    for gold in LINKS:
        each(rounds, broken(gold) | aligned(), as_links)
    rows = "\n".join(json.dumps(row) for row in RATIONALES["good"]).encode()
    each(rounds, broken(rows) | marked(), lambda content: _eraser(tally, "rationales drawn", folder, content))
    each(
        rounds, broken(VOCABULARY) | values.map(_json), lambda content: _stored(tally, "stored drawn", folder, content)
    )


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _tables(tally: Tally, what: str, path: Path) -> None:
    place = path.name
    corpus = tally.attempt(f"{what}: load", lambda: open_data(path), place=place)
    if corpus is not None:
        tally.attempt(f"{what}: preflight", lambda: run_preflight(corpus, permutations=PERMUTATIONS))
    tally.attempt(f"{what}: as pairs", lambda: open_data(path, task="translation"), place=place)
    tally.attempt(f"{what}: streamed", lambda: _streamed(str(path)), place=place)


def _pairs(tally: Tally, what: str, one: Path, other: Path) -> None:
    corpus = tally.attempt(f"{what}: load", lambda: open_data(one, other), place=one.name)
    if corpus is not None:
        tally.attempt(f"{what}: preflight", lambda: run_preflight(corpus, permutations=PERMUTATIONS), place=one.name)
    tally.attempt(f"{what}: streamed", lambda: _streamed(str(one), target=str(other)), place=one.name)


def _streamed(data: str, **settings: Any) -> Any:
    return api.preflight(data, stream=True, jobs=1, permutations=PERMUTATIONS, **settings)


def _alignments(tally: Tally, what: str, path: Path) -> None:
    tally.attempt(what, lambda: read_alignments(path), place=path.name)
    tally.attempt(f"{what}, two pairs", lambda: read_alignments(path, first=1, count=2), place=path.name)


def _eraser(tally: Tally, what: str, folder: Path, annotations: bytes) -> None:
    root = folder / "eraser"
    (root / "docs").mkdir(parents=True, exist_ok=True)
    (root / "docs" / "one").write_text("a dull , dull film", "utf-8")
    _file(root, "val.jsonl", annotations)
    found = tally.attempt(what, lambda: read_marked(root, "val"), place="val.jsonl")
    for number in range(len(found) if found is not None else 0):
        tally.attempt(f"{what}, mask", lambda number=number: found.mask(number))


def _stored(tally: Tally, what: str, folder: Path, content: bytes) -> None:
    readers: tuple[tuple[str, Callable[[Path], Any]], ...] = (
        ("v.json", Vocabulary.load),
        ("s.parquet", EncodedSplit.load),
        ("p.parquet", EncodedPairs.load),
        ("t.json", load_tokeniser),
        ("t.model", load_tokeniser),
    )
    for name, read in readers:
        path = _file(folder, name, content)
        tally.attempt(f"{what}: {name}", lambda read=read, path=path: read(path), place=name)


def _places(tally: Tally, what: str, path: Path) -> None:
    tally.attempt(f"{what}: load", lambda: open_data(path))
    tally.attempt(f"{what}: load by name", lambda: open_data(str(path)))
    tally.attempt(f"{what}: as pairs", lambda: open_data(path, path))
    tally.attempt(f"{what}: one side", lambda: open_data(path, task="translation"))
    tally.attempt(f"{what}: streamed", lambda: _streamed(str(path)))
    tally.attempt(f"{what}: streamed pairs", lambda: _streamed(str(path), target=str(path)))
    tally.attempt(f"{what}: alignments", lambda: read_alignments(path))
    tally.attempt(f"{what}: rationales", lambda: read_marked(path, "val"))
    tally.attempt(f"{what}: vocabulary", lambda: Vocabulary.load(path))
    tally.attempt(f"{what}: tokeniser", lambda: load_tokeniser(path))
    tally.attempt(f"{what}: encoded texts", lambda: EncodedSplit.load(path))
    tally.attempt(f"{what}: encoded pairs", lambda: EncodedPairs.load(path))


def _file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


GOLD = {
    "links beyond the sentence": "0-0 7-9\n5p5\n",
    "no links": "\n\n",
    "words": "one-two\n",
    "negative": "-1-0\n",
    "giant": "99999999999999999999-1\n",
    "a sentence far away": "999999999 1 1\n",
    "from 0 and 1": "0 1 1\n1 0 0\n",
    "half": "1-\n",
    "Arabic digits": "٣-٤\n",
    "superscripts": "²-³\n",
}


def _span(start: Any, end: Any, **more: Any) -> dict[str, Any]:
    return {
        "annotation_id": "one",
        "classification": "NEG",
        "evidences": [[{"start_token": start, "end_token": end}]],
    } | more


RATIONALES: dict[str, list[Any]] = {
    "good": [_span(0, 2), _span(1, 5)],
    "beyond the text": [_span(0, 99)],
    "negative": [_span(-3, 2)],
    "backwards": [_span(4, 2)],
    "words for numbers": [_span("one", "two")],
    "null": [_span(None, None)],
    "infinite": [_span(float("inf"), float("nan"))],
    "giant": [_span(10**400, 10**401)],
    "lists": [_span([1], {})],
    "no such text": [_span(0, 1, annotation_id="two")],
    "another text by path": [_span(0, 1, annotation_id="../docs/one")],
    "id of another type": [_span(0, 1, annotation_id=["one"])],
    "no evidences": [_span(0, 1, evidences=None)],
    "evidences of another type": [_span(0, 1, evidences=[[1, 2]])],
    "a string": ["one"],
    "a number": [1],
    "nothing": [{}],
}
