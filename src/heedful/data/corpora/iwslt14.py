"""IWSLT'14 (Cettolo et al. 2014): transcripts of TED talks in German and English."""

import html
from pathlib import Path

from heedful.data.corpora.entry import CatalogEntry, HubSource, Parts, files
from heedful.data.parallel import Pairs, ParallelSplit, pairs_of_files


def iwslt14(root: Path) -> Parts[ParallelSplit]:
    """German to English: the Hub's splits if they were fetched, else a part of the training set.

    Without the whole training set, 4,600 of its pairs and the official test set are the training set, and the official
    validation set validates.
    """
    folder = root / "iwslt14"
    if (folder / "train.de.gz").is_file():
        train, validation, test = (_pairs(folder, part, ".gz") for part in ("train", "valid", "test"))
        decisions = train.decisions + validation.decisions + test.decisions
        return Parts(train.pairs, validation.pairs, test.pairs, decisions)
    part, test, validation = (_pairs(folder, name, "") for name in ("train_part", "test", "valid"))
    joined = ParallelSplit(part.pairs.sources + test.pairs.sources, part.pairs.targets + test.pairs.targets)
    decisions = (
        f"train: {len(part.pairs):,} of the 160,239 training pairs and the {len(test.pairs):,} of the test set; the "
        "rest is not in this copy, so there is no test set",
        "entities such as &apos; are undone",
    )
    return Parts(
        _plain(joined),
        _plain(validation.pairs),
        ParallelSplit((), ()),
        decisions + part.decisions + test.decisions + validation.decisions,
    )


def _pairs(folder: Path, part: str, ending: str) -> Pairs:
    return pairs_of_files(folder / f"{part}.de{ending}", folder / f"{part}.en{ending}", drop_numerical=False)


def _plain(split: ParallelSplit) -> ParallelSplit:
    return ParallelSplit(tuple(map(html.unescape, split.sources)), tuple(map(html.unescape, split.targets)))


_IWSLT14 = files(
    "iwslt14",
    """
7951bdd2a3ba41401bb47d9f06ec9d536a8083c304f89f32c9477408b2294621 518622 train_part.de
a6f0e0023229f216cf19603792572f25edde54a935f872a9241666dca6730dbb 478293 train_part.en
3f051579c9d8c7281a6ea8c72ad4ae09dbaa9bb24dfd41166f2c3a3df7cd940a 806361 valid.de
e6d7317a9772cd1ed970910c611e9e7dada1f34439269b44a9d801334bff948d 744235 valid.en
e718c783e33160b7d72af8f733756a466e0d0c016eff8ab624c1b0d1d01cbbdf 718778 test.de
4b127beb9050511a3e6209cd837ff36f623a3a423666b32aba6e208b7330cf4c 657543 test.en
""",
)

ENTRIES = (
    CatalogEntry(
        "iwslt14",
        "IWSLT'14 TED talks, German to English (iwslt14:en-de for the other direction)",
        "translation",
        (),
        "CC BY-NC-ND 4.0 (TED)",
        "https://wit3.fbk.eu",
        _IWSLT14,
        iwslt14,
        # The main branch holds a loading script, which we do not run; this branch holds its rows.
        hub=HubSource("bbaaaa/iwslt14-de-en", "refs/convert/parquet", "de-en"),
        languages=("de", "en"),
    ),
)
