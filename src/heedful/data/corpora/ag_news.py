"""AG News (Zhang et al. 2015), world and business."""

import csv
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path

from heedful.data.corpora.entry import CatalogEntry, HubSource, Parts, as_split, distinct, files, read_whole
from heedful.data.corpus import EMPTY, Split
from heedful.data.vocabulary import TokenRules


def ag_news(root: Path) -> Parts[Split]:
    """World and business: the full training set if it was fetched, else the sample of 10,000 by its column `gt`."""
    folder = root / "ag_news"
    decisions = ["the news feed's entities and tags are undone"]
    classes = {"World": 0, "Business": 1}
    test = as_split([(text, classes[name]) for name, text in _ag_rows(folder / "test.csv.gz") if name in classes])
    if (folder / "train.csv.gz").is_file():
        texts = [(text, classes[name]) for name, text in _ag_rows(folder / "train.csv.gz") if name in classes]
    else:
        rows = csv.DictReader(io.StringIO(read_whole(folder / "train10000_valMed.csv.gz"), newline=""))
        number = {"0": 0, "2": 1}
        texts = [(_plain(row["text"].replace(" . ", " ", 1)), number[row["gt"]]) for row in rows if row["gt"] in number]
        decisions.append("train: world and business among a sample of 10,000 texts of the official training set")
    held_out = {_key(text) for text in test.texts}
    kept = [(text, label) for text, label in texts if _key(text) not in held_out]
    if len(kept) < len(texts):
        decisions.append(f"train: {len(texts) - len(kept):,} texts that are also in the test set dropped")
    train = as_split(distinct(kept, decisions))
    decisions.append("the test set serves as validation set, as in the paper, so there is no test set")
    return Parts(train, test, EMPTY, tuple(decisions))


def _ag_rows(path: Path) -> Iterator[tuple[str, str]]:
    names = ("World", "Sports", "Business", "Sci/Tech")
    for number, title, description in csv.reader(io.StringIO(read_whole(path), newline="")):
        yield names[int(number) - 1], _plain(f"{title} {description}".strip())


def _plain(text: str) -> str:
    """AG News has lost the ampersands of its entities and kept the backslashes of its source."""
    text = html.unescape(_BARE_ENTITY.sub(r"&\1;", text))
    return " ".join(_TAG.sub(" ", text).replace("\\", " ").split())


_BARE_ENTITY = re.compile(r"(?<![&\w])(#\d{2,5}|quot|lt|gt|amp|nbsp|hellip);")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def _key(text: str) -> str:
    return "".join(re.findall(r"\w+", text.lower()))


_AG_NEWS = files(
    "ag_news",
    """
49dfe6dfb241a3c88adf5c8f2664ff607353c2616ebe79988c5c24e45651912c 1034977 train10000_valMed.csv.gz
8f2492849851f68c29295bea83a672fb394003ad922eda770bb9f5bb797b5241 749484 test.csv.gz
""",
)

ENTRIES = (
    CatalogEntry(
        "ag-news",
        "AG News (Zhang et al. 2015), world and business",
        "topic of a news item",
        ("world", "business"),
        "research and other non-commercial activity",
        "http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
        _AG_NEWS,
        ag_news,
        TokenRules(integers_to_unknown=True),
        published_as="AG News",
        hub=HubSource("fancyzhx/ag_news", "eb185aade064a813bc0b7f42de02595523103ca4"),
    ),
)
