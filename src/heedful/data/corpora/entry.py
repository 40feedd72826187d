"""What is known of a named corpus: its facts, its files with their checksums, and what reads them."""

import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.corpus import EMPTY, Split, divide
from heedful.data.words import PLAIN, TokenRules

POLARITY = ("negative", "positive")
FILM_SENTIMENT = "sentiment of a film review"


@dataclass(frozen=True)
class Parts:
    """The three splits of a corpus and what was decided on the way."""

    train: Split
    validation: Split
    test: Split = EMPTY
    decisions: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A file of a corpus, relative to the mirror's root (or to the package that brings it)."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class HubSource:
    """Where `heedful data fetch` finds a corpus: a dataset of the Hugging Face hub at one commit."""

    repository: str
    revision: str


@dataclass(frozen=True)
class CatalogEntry:
    """A named corpus; `published_as` is its row in snell2021's tables, `package` the installed package it lies in."""

    name: str
    title: str
    task: str
    labels: tuple[str, ...]
    licence: str
    source: str
    files: tuple[File, ...]
    read: Callable[[Path], Parts]
    rules: TokenRules = PLAIN
    published_as: str | None = None
    package: str | None = None
    hub: HubSource | None = None

    @property
    def folder(self) -> str:
        """The folder of the mirror (or package) that holds the files.

        >>> CatalogEntry("a", "A", "", (), "", "", (File("sst/train", "", 0),), lambda root: Parts(EMPTY, EMPTY)).folder
        'sst'
        """
        return self.files[0].path.split("/")[0]


def files(folder: str, listing: str) -> tuple[File, ...]:
    """The files of a corpus, from lines of checksum, bytes and name.

    >>> files("sst", "0a1b 738844 stsa.binary.train")
    (File(path='sst/stsa.binary.train', sha256='0a1b', bytes=738844),)
    """
    rows = (line.split(" ", 2) for line in listing.strip().split("\n"))
    return tuple(File(f"{folder}/{path}", digest, int(size)) for digest, size, path in rows)


SEED = 0
LabelledTexts = list[tuple[str, int]]


def read_whole(path: Path) -> str:
    """The whole of a file, unpacked; its checksum has been seen to be right."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".xz":
        content = lzma.decompress(content)
    return content.decode("utf-8")


def read_lines(path: Path) -> list[str]:
    """The lines of a file, whether or not the last has an end."""
    return read_whole(path).removesuffix("\n").split("\n")


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """One object a line."""
    for line in read_lines(path):
        yield json.loads(line)


def distinct(pairs: LabelledTexts, decisions: list[str]) -> LabelledTexts:
    """Each text once, with its first label; how many repeat is said in `decisions`."""
    found = dict[str, int]()
    for text, label in pairs:
        found.setdefault(text, label)
    if len(found) < len(pairs):
        decisions.append(f"{len(pairs) - len(found):,} texts that repeat an earlier one dropped")
    return list(found.items())


def not_empty(pairs: LabelledTexts, part: str, decisions: list[str]) -> LabelledTexts:
    """The texts that have anything in them; how many have not is said in `decisions`."""
    kept = [(text, label) for text, label in pairs if text.strip()]
    if len(kept) < len(pairs):
        decisions.append(f"{part}: {len(pairs) - len(kept):,} texts with nothing left dropped")
    return kept


def as_split(pairs: LabelledTexts) -> Split:
    """Texts with labels as a split."""
    return Split(tuple(text for text, _ in pairs), tuple(label for _, label in pairs))


def eighty_ten_ten(whole: Split, decisions: list[str]) -> Parts:
    """A corpus that comes in one piece, divided under a seed."""
    train, validation, test = divide(whole, [len(whole) * 8 // 10, len(whole) // 10], SEED)
    return Parts(train, validation, test, (*decisions, parted(train, validation, test)))


def parted(*parts: Split) -> str:
    """How a corpus was divided, in words."""
    sizes = " / ".join(f"{len(part):,}" for part in parts)
    return f"{sum(map(len, parts)):,} texts split {sizes}, stratified, seed {SEED}"
