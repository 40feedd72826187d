"""Yelp reviews (Zhang et al. 2015; Yelp Open Dataset), at most two stars against at least four."""

from pathlib import Path

from heedful.data.corpora.entry import (
    POLARITY,
    SEED,
    CatalogEntry,
    HubSource,
    LabelledTexts,
    Parts,
    as_split,
    distinct,
    files,
    not_empty,
    read_lines,
    split_in_three,
)
from heedful.data.corpus import Split, divide

LARGEST_VALIDATION = 4000


def yelp(root: Path) -> Parts[Split]:
    """Reviews of 1 and 2 stars against 4 and 5 (snell2021, A.5): the Hub's if it was fetched, else a sample of 10,000.

    Of the Hub's test set at most 4,000 validate; the sample has no splits and is split 80/10/10.
    """
    folder = root / "yelp"
    decisions = ["reviews of three stars dropped"]
    if (folder / "train.tsv.xz").is_file():
        train, test = (as_split(distinct(_rows(folder / f"{p}.tsv.xz"), decisions)) for p in ("train", "test"))
        validation, rest = divide(test, [LARGEST_VALIDATION], SEED)
        decisions.append(f"validation: {len(validation):,} of {len(test):,} test texts, stratified, seed {SEED}")
        return Parts(train, validation, rest, tuple(decisions))
    decisions.append("a sample of 10,000 reviews of the Yelp Open Dataset")
    reviews = distinct(not_empty(_rows(folder / "reviews.tsv.xz")[1:], "all", decisions), decisions)
    return split_in_three(as_split(reviews), decisions)


def _rows(path: Path) -> LabelledTexts:
    rows = (line.split("\t", 2) for line in read_lines(path))
    return [(text, int(stars >= "4")) for stars, _review, text in rows if stars != "3"]


_YELP = files(
    "yelp",
    """
899d357f46542f770b8e639d99ee93e83469e71610338439a4d2d79e40a7ebb9 2226380 reviews.tsv.xz
""",
)

ENTRIES = (
    CatalogEntry(
        "yelp",
        "Yelp reviews, at most two stars against at least four",
        "sentiment of a review",
        POLARITY,
        "Yelp's dataset terms: academic use",
        "https://www.yelp.com/dataset",
        _YELP,
        yelp,
        published_as="Yelp",
        hub=HubSource("Yelp/yelp_review_full", "c1f9ee939b7d05667af864ee1cb066393154bf85", "yelp_review_full"),
    ),
)
