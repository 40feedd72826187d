"""The Large Movie Review Dataset (Maas et al. 2011)."""

from pathlib import Path

from heedful.data.corpora.entry import (
    FILM_SENTIMENT,
    POLARITY,
    SEED,
    CatalogEntry,
    HubSource,
    LabelledTexts,
    Parts,
    as_split,
    files,
    read_lines,
)
from heedful.data.corpus import Split, divide

LARGEST_VALIDATION = 4000


def imdb(root: Path) -> Parts[Split]:
    """Maas et al.'s 25,000 and 25,000; at most 4,000 of the test set validate (snell2021, A.8), the rest stay test."""
    train, test = (as_split(_imdb_rows(root / "imdb" / f"{part}.tsv.xz")) for part in ("train", "test"))
    validation, rest = divide(test, [LARGEST_VALIDATION], SEED)
    decision = (
        f"validation: {len(validation):,} of {len(test):,} test texts, stratified, seed {SEED}; the rest stay test"
    )
    return Parts(train, validation, rest, (decision,))


def _imdb_rows(path: Path) -> LabelledTexts:
    return [(text, int(label)) for label, _stars, _file, text in (line.split("\t", 3) for line in read_lines(path))]


_IMDB = files(
    "imdb",
    """
1e7078fdaf57f10758f1f171e9d9d6cefa1e8706010d97d4250b3a85bd30c3d8 9055096 train.tsv.xz
c255aae605061efd7f4ce72b99567ed1fa2cc6477790ced96f1b3e85a6392a14 8819024 test.tsv.xz
""",
)

ENTRIES = (
    CatalogEntry(
        "imdb",
        "Large Movie Review Dataset (Maas et al. 2011)",
        FILM_SENTIMENT,
        POLARITY,
        "none stated; asks for citation",
        "https://ai.stanford.edu/~amaas/data/sentiment/",
        _IMDB,
        imdb,
        published_as="IMDB",
        hub=HubSource("stanfordnlp/imdb", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31"),
    ),
)
