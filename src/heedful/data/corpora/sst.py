"""The Stanford Sentiment Treebank (Socher et al. 2013), sentences only."""

from collections.abc import Callable
from pathlib import Path

from heedful.data.corpora.entry import (
    FILM_SENTIMENT,
    POLARITY,
    CatalogEntry,
    HubSource,
    LabelledTexts,
    Parts,
    as_split,
    files,
    read_lines,
)
from heedful.data.corpus import Split


def sst(kind: str) -> Callable[[Path], Parts[Split]]:
    """A reader of `stsa.<kind>.*`: a label, a space, a sentence on each line."""

    def read(root: Path) -> Parts[Split]:
        train, validation, test = (
            as_split(_labelled_lines(root / "sst" / f"stsa.{kind}.{part}")) for part in ("train", "dev", "test")
        )
        return Parts(train, validation, test)

    return read


def _labelled_lines(path: Path) -> LabelledTexts:
    return [(sentence, int(label)) for label, _, sentence in (line.partition(" ") for line in read_lines(path))]


_SST = files(
    "sst",
    """
71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338 738844 stsa.binary.train
02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1 94400 stsa.binary.dev
6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b 193562 stsa.binary.test
""",
)
_SST_FINE = files(
    "sst",
    """
9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee 902818 stsa.fine.train
b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3 117239 stsa.fine.dev
0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73 233634 stsa.fine.test
""",
)
_HUB_SST = HubSource("SetFit/sst5", "e51bdcd8cd3a30da231967c1a249ba59361279a3")

ENTRIES = (
    CatalogEntry(
        "sst",
        "Stanford Sentiment Treebank, two classes (Socher et al. 2013)",
        FILM_SENTIMENT,
        POLARITY,
        "none stated",
        "https://nlp.stanford.edu/sentiment/",
        _SST,
        sst("binary"),
        published_as="SST",
        hub=_HUB_SST,
    ),
    CatalogEntry(
        "sst-fine",
        "Stanford Sentiment Treebank, five classes (Socher et al. 2013)",
        FILM_SENTIMENT,
        ("very negative", "negative", "neutral", "positive", "very positive"),
        "none stated",
        "https://nlp.stanford.edu/sentiment/",
        _SST_FINE,
        sst("fine"),
        hub=_HUB_SST,
    ),
)
