"""What is known of a named corpus: its facts, its files with their checksums, and what reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heedful.data.corpus import EMPTY, Split
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
class Entry:
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

        >>> Entry("a", "A", "", (), "", "", (File("sst/train", "", 0),), lambda root: Parts(EMPTY, EMPTY)).folder
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
