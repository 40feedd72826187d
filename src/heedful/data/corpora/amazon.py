"""Product reviews of four domains (Blitzer et al. 2007)."""

import html
import re
from pathlib import Path

from heedful.data.corpora.entry import (
    POLARITY,
    CatalogEntry,
    Parts,
    as_split,
    distinct,
    files,
    not_empty,
    read_whole,
    split_in_three,
)
from heedful.data.corpus import Split
from heedful.data.vocabulary import tokenise

DOMAINS = ("books", "dvd", "electronics", "kitchen_&_housewares")
LONGEST_REVIEW = 400


def amazon(root: Path) -> Parts[Split]:
    """Four domains of product reviews of fewer than 400 words (snell2021, A.5), split 80/10/10."""
    decisions: list[str] = []
    pairs = [
        (review, label)
        for domain in DOMAINS
        for label, name in enumerate(("negative", "positive"))
        for review in _reviews(root / "amazon_multidomain" / domain / f"{name}.review.gz")
    ]
    reviews = distinct(not_empty(pairs, "all", decisions), decisions)
    short = [(text, label) for text, label in reviews if len(tokenise(text)) < LONGEST_REVIEW]
    decisions.append(f"{len(reviews) - len(short):,} reviews of {LONGEST_REVIEW} words or more dropped")
    return split_in_three(as_split(short), decisions)


_TAGGED = re.compile(r"<review_text>(.*?)</review_text>", re.DOTALL)


def _reviews(path: Path) -> list[str]:
    return [" ".join(html.unescape(review).split()) for review in _TAGGED.findall(read_whole(path))]


_AMAZON = files(
    "amazon_multidomain",
    """
527bb277ca90b0415ff8fa9b684b489e26246f9b9c52fbfd12492370dd23926e 545499 books/negative.review.gz
3c0aeb138b7a683b69c9340801f7409f692ff3f28a74592620eea0ffb89d8cb0 528640 books/positive.review.gz
682c3faf6653c0eb2ff567774b7f8363dc1d45dacb1ee8ecf74ba434779f3eea 587867 dvd/negative.review.gz
44b0d6a5a9c8f40d57076beea7a7f7bd63c05e7b2adfb84da9d16d7febbd614e 635162 dvd/positive.review.gz
f6414b855b28f730f7fdf00606486debbf16975abe624b600c9a9d004e4304dc 346458 electronics/negative.review.gz
b512d17042666e5e2dfaeb06b29e8e6fad4d52178858857e6080fc0e5721d574 345012 electronics/positive.review.gz
5e0190187239c1d7007a33d2d21a8392c072a22c6af3abdd87c36a50750a631a 300892 kitchen_&_housewares/negative.review.gz
e1fe187a8a3ad992888a98bca4d51538f4d7fef18aa050dde21b5aceb326c1e0 303721 kitchen_&_housewares/positive.review.gz
""",
)

ENTRIES = (
    CatalogEntry(
        "amazon",
        "Multi-Domain Sentiment Dataset (Blitzer et al. 2007), four domains",
        "sentiment of a product review",
        POLARITY,
        "none stated",
        "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/",
        _AMAZON,
        amazon,
        published_as="Amzn",
    ),
)
