"""An entry of the catalog: the facts of a corpus, its files with checksums, and the function that reads them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from heedful.config import TaskName
from heedful.data.corpus import PLAIN, S, Split, TokenRules, eighty_ten_ten, sizes_of
from heedful.data.files.text_files import blocks
from heedful.data.parallel import ParallelSplit

POLARITY = ("negative", "positive")
FILM_SENTIMENT = "sentiment of a film review"
SEED = 0
LabelledTexts = list[tuple[str, int]]


@dataclass(frozen=True)
class Parts(Generic[S]):
    """The three splits of a corpus and what was decided when they were read."""

    train: S
    validation: S
    test: S
    decisions: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A file of a corpus, relative to the mirror's root (or to the package that brings it)."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class HubSource:
    """Where `heedful data fetch` finds a corpus: a dataset of the Hugging Face hub at one commit.

    A branch in place of the commit is resolved when the corpus is fetched. folder: the only one that is needed.
    """

    repository: str
    revision: str
    folder: str | None = None


@dataclass(frozen=True)
class CatalogEntry:
    """A named corpus: labelled texts or, where `languages` are given, sentence pairs from the first into the second.

    `task` describes what is predicted; `published_as` is its row in snell2021's tables, `package` the installed package
    that holds its files.
    """

    name: str
    title: str
    task: str
    labels: tuple[str, ...]
    licence: str
    source: str
    files: tuple[File, ...]
    read: Callable[[Path], Parts[Split]] | Callable[[Path], Parts[ParallelSplit]]
    rules: TokenRules = PLAIN
    published_as: str | None = None
    package: str | None = None
    hub: HubSource | None = None
    languages: tuple[str, str] | None = None

    @property
    def kind(self) -> TaskName:
        """Whether its models classify or translate."""
        return "translation" if self.languages else "classification"

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions of a parallel corpus, its own first; `name:direction` opens it in one of them."""
        if self.languages is None:
            return ()
        source, target = self.languages
        return f"{source}-{target}", f"{target}-{source}"

    @property
    def folder(self) -> str:
        """The folder of the mirror (or package) that holds the files."""
        return self.files[0].path.split("/")[0]


def files(folder: str, listing: str) -> tuple[File, ...]:
    """The files of a corpus, from lines of checksum, bytes and name.

    >>> files("sst", "0a1b 738844 stsa.binary.train")
    (File(path='sst/stsa.binary.train', sha256='0a1b', bytes=738844),)
    """
    rows = (line.split(" ", 2) for line in listing.strip().split("\n"))
    return tuple(File(f"{folder}/{path}", digest, int(size)) for digest, size, path in rows)


def fetched_files(folder: str, *names: str) -> tuple[File, ...]:
    """The files of a corpus that only `heedful data fetch` brings; their checksums are those written beside them.

    >>> fetched_files("news", "pairs.en.gz")
    (File(path='news/pairs.en.gz', sha256='', bytes=0),)
    """
    return tuple(File(f"{folder}/{name}", "", 0) for name in names)


def read_whole(path: Path) -> str:
    """The content of a file, unpacked, in bounded memory: a checksum beside it does not say who wrote both."""
    return b"".join(block.content for block in blocks(path, whole=True)).decode("utf-8")


def read_lines(path: Path) -> list[str]:
    """The lines of a file, whether or not the last has an end."""
    return read_whole(path).removesuffix("\n").split("\n")


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """One object a line."""
    for line in read_lines(path):
        yield json.loads(line)


def distinct(pairs: LabelledTexts, decisions: list[str]) -> LabelledTexts:
    """Each text once, with its first label; the number of repetitions is added to `decisions`."""
    labels = dict[str, int]()
    for text, label in pairs:
        labels.setdefault(text, label)
    if len(labels) < len(pairs):
        decisions.append(f"{len(pairs) - len(labels):,} texts that repeat an earlier one dropped")
    return list(labels.items())


def not_empty(pairs: LabelledTexts, part: str, decisions: list[str]) -> LabelledTexts:
    """The texts that are not blank; the number of blank ones is added to `decisions`."""
    kept = [(text, label) for text, label in pairs if text.strip()]
    if len(kept) < len(pairs):
        decisions.append(f"{part}: {len(pairs) - len(kept):,} texts with nothing left dropped")
    return kept


def as_split(pairs: LabelledTexts) -> Split:
    """Texts with labels as a split."""
    return Split(tuple(text for text, _ in pairs), tuple(label for _, label in pairs))


def split_in_three(texts: Split, decisions: list[str]) -> Parts[Split]:
    """80/10/10 parts of a corpus that has no splits of its own."""
    parts = eighty_ten_ten(texts, None, SEED)
    return Parts(*parts, (*decisions, split_decision(*parts)))


def split_decision(*parts: Split) -> str:
    """The decision that says how a corpus was split."""
    return f"{sum(map(len, parts)):,} texts split {sizes_of(*parts)}, stratified, seed {SEED}"
